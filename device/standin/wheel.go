package standin

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Facts describes an installed PyTorch as far as its stand-ins depend on it.
type Facts struct {
	// Torch is PyTorch's version, as in "2.6.0+cu124".
	Torch string `json:"torch"`
	// CUDA is the version of CUDA that PyTorch was built with, as in "12.4".
	CUDA string `json:"cuda"`
	// Requires lists the packages of NVIDIA's libraries that PyTorch requires.
	Requires []Requirement `json:"requires"`
	// Architectures lists the GPU architectures that the kernels were compiled for, as in "sm_80".
	Architectures []string `json:"architectures"`
	// Objects lists PyTorch's shared objects, and objects of other packages that need a CUDA library.
	Objects []ObjectFacts `json:"objects"`
	// Libraries lists the CUDA libraries that the objects need, by SONAME.
	Libraries []Library `json:"libraries"`
	// Looked lists functions of libraries that are found by name at run time, as far as the names
	// appear in the read-only data of PyTorch's objects.
	Looked []string `json:"looked"`
}

// Requirement is a package that PyTorch requires in one version.
type Requirement struct {
	// Package is the name of the package.
	Package string `json:"package"`
	// Version is the version.
	Version string `json:"version"`
}

// ObjectFacts describes how a file is linked.
type ObjectFacts struct {
	// File is the path below site-packages, with slashes.
	File string `json:"file"`
	// SoName is the SONAME, "" without one.
	SoName string `json:"soname,omitempty"`
	// Needed lists the SONAMEs of the libraries that are loaded with it.
	Needed []string `json:"needed,omitempty"`
	// RPath is the search path that has precedence over LD_LIBRARY_PATH.
	RPath string `json:"rpath,omitempty"`
	// RunPath is the search path behind LD_LIBRARY_PATH.
	RunPath string `json:"runpath,omitempty"`
}

// Library lists all that the objects import from one CUDA library.
type Library struct {
	// SoName is the SONAME under which the objects need the library.
	SoName string `json:"soname"`
	// Version is the version node of its symbols, "" if the imports have none.
	Version string `json:"version,omitempty"`
	// Names lists the imported functions in alphabetical order.
	Names []string `json:"names"`
}

// Scan reads the PyTorch in a site-packages directory. It does not run Python.
func Scan(site string) (Facts, error) {
	var f Facts
	err := f.readVersion(filepath.Join(site, "torch", "version.py"))
	if err != nil {
		return Facts{}, err
	}
	if err := f.readRequirements(site); err != nil {
		return Facts{}, err
	}
	s := scan{site: site, defined: map[string]bool{}, looked: map[string]bool{}}
	if err := filepath.WalkDir(site, s.visit); err != nil {
		return Facts{}, err
	}
	if len(s.architectures) == 0 {
		return Facts{}, fmt.Errorf("%s: expected a list of GPU architectures in libtorch_python.so",
			filepath.Join(site, "torch", "lib"))
	}
	f.Architectures = s.architectures
	f.Objects = s.facts()
	f.Libraries, err = s.libraries()
	f.Looked = sortedKeys(s.looked)
	return f, err
}

var (
	torchVersion = regexp.MustCompile(`(?m)^__version__.*= *'([^']+)'`)
	cudaVersion  = regexp.MustCompile(`(?m)^cuda\b.*= *'([^']+)'`)
	requirement  = regexp.MustCompile(`(?m)^Requires-Dist: ((?:nvidia|cuda)-[-\w]+)(?:\[[^]]*\])? *\(?==([^);\s]+)`)
)

// readVersion reads torch/version.py.
func (f *Facts) readVersion(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist: expected a site-packages directory with PyTorch", path)
	}
	if err != nil {
		return err
	}
	torch := torchVersion.FindSubmatch(text)
	if torch == nil {
		return fmt.Errorf("%s: expected a line __version__ = '...'", path)
	}
	cuda := cudaVersion.FindSubmatch(text)
	if cuda == nil {
		return fmt.Errorf("%s: PyTorch %s is built without CUDA: expected a line cuda = '...'", path, torch[1])
	}
	f.Torch, f.CUDA = string(torch[1]), string(cuda[1])
	return nil
}

// readRequirements reads the metadata of the package. An installation from source may have none.
func (f *Facts) readRequirements(site string) error {
	paths, err := filepath.Glob(filepath.Join(site, "torch-*.dist-info", "METADATA"))
	if err != nil || len(paths) == 0 {
		return err
	}
	text, err := os.ReadFile(paths[0])
	if err != nil {
		return err
	}
	for _, m := range requirement.FindAllSubmatch(text, -1) {
		f.Requires = append(f.Requires, Requirement{Package: string(m[1]), Version: string(m[2])})
	}
	return nil
}

// scan collects the shared objects of a site-packages directory.
type scan struct {
	site          string
	objects       []scanned
	defined       map[string]bool // functions named as in a CUDA library that an object defines itself
	looked        map[string]bool
	architectures []string
}

// scanned is an object and its path below the directory.
type scanned struct {
	file string
	linkage
}

// visit reads one file. NVIDIA's own packages are left out: stand-ins replace them.
func (s *scan) visit(path string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	file, err := filepath.Rel(s.site, path)
	if err != nil {
		return err
	}
	file = filepath.ToSlash(file)
	switch {
	case entry.IsDir() && (file == "nvidia" || entry.Name() == "__pycache__"):
		return fs.SkipDir
	case entry.IsDir(), !objectName.MatchString(entry.Name()):
		return nil
	}
	return s.read(path, file)
}

// objectName matches the file names of shared objects.
var objectName = regexp.MustCompile(`\.so(?:\.\d+)*$`)

// read adds an object that is PyTorch's or needs a CUDA library.
func (s *scan) read(path, file string) error {
	f, err := elf.Open(path)
	torch := strings.HasPrefix(file, "torch/")
	if _, unreadable := errors.AsType[*fs.PathError](err); err != nil && !unreadable && !torch {
		return nil // a linker script, or an object for another system
	}
	if err != nil {
		return fmt.Errorf("%s: expected a shared object: %w", path, err)
	}
	defer f.Close()
	if !torch && !needsCUDA(f) {
		return nil
	}
	l, err := readLinkage(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if familyOf(l.SoName) != "" {
		return nil // one of the libraries itself
	}
	s.objects = append(s.objects, scanned{file, l})
	for _, name := range l.defined {
		if familyOfName(name) != "" {
			s.defined[name] = true
		}
	}
	if !torch {
		return nil
	}
	if err := s.readStrings(f, strings.HasSuffix(file, "/libtorch_python.so")); err != nil {
		return fmt.Errorf("%s: read .rodata: %w", path, err)
	}
	return nil
}

// needsCUDA reports whether the loader loads a CUDA library with f.
func needsCUDA(f *elf.File) bool {
	needed, err := f.ImportedLibraries()
	return err == nil && slices.ContainsFunc(needed, func(n string) bool { return familyOf(n) != "" })
}

var (
	lookedUp      = regexp.MustCompile(`^(?:cu[A-Z][a-z]\w+|nvml[A-Z]\w+|nvrtc[A-Z]\w+)$`)
	architectures = regexp.MustCompile(`((?:sm|compute)_\d+[a-f]?(?: (?:sm|compute)_\d+[a-f]?)*)\x00`)
)

// readStrings looks for names of functions and, if python is true, for the list of architectures
// among the string constants.
func (s *scan) readStrings(f *elf.File, python bool) error {
	section := f.Section(".rodata")
	if section == nil || section.Type == elf.SHT_NOBITS {
		return nil
	}
	data := make([]byte, 1+section.Size) // a zero byte before the first string, too
	if _, err := io.ReadFull(section.Open(), data[1:]); err != nil {
		return err
	}
	for _, prefix := range []string{"\x00cu", "\x00nvml", "\x00nvrtc"} {
		eachString(data, prefix, func(text []byte) {
			if lookedUp.Match(text) {
				s.looked[string(text)] = true
			}
		})
	}
	if !python {
		return nil
	}
	// The list may follow a constant without a zero at its end.
	for _, m := range architectures.FindAllSubmatch(data, -1) {
		if list := strings.Fields(string(m[1])); len(list) > len(s.architectures) {
			s.architectures = list
		}
	}
	return nil
}

// eachString calls visit with the strings of at most 1 KiB that begin with prefix, a zero byte and
// the first characters.
func eachString(data []byte, prefix string, visit func(text []byte)) {
	for {
		i := bytes.Index(data, []byte(prefix))
		if i < 0 {
			return
		}
		data = data[i+1:]
		if end := bytes.IndexByte(data[:min(len(data), 1<<10)], 0); end >= 0 {
			visit(data[:end])
		}
	}
}

// facts returns the objects in the order of their paths.
func (s *scan) facts() []ObjectFacts {
	var list []ObjectFacts
	for _, o := range s.objects {
		list = append(list, ObjectFacts{File: o.file, SoName: o.SoName, Needed: o.Needed,
			RPath: strings.Join(o.RPath, ":"), RunPath: strings.Join(o.RunPath, ":")})
	}
	return list
}

// libraries assigns the imports of all objects to the CUDA libraries that they need: those with a
// version to the library that the version names, the others by their names.
func (s *scan) libraries() ([]Library, error) {
	bySoName := map[string]*imports{}
	byFamily := map[string]string{}
	for _, o := range s.objects {
		for _, soName := range o.Needed {
			if f := familyOf(soName); f != "" {
				byFamily[f] = soName
				bySoName[soName] = &imports{names: map[string]bool{}}
			}
		}
	}
	for _, o := range s.objects {
		for _, i := range o.Imports {
			soName := i.Library
			if soName == "" && !s.defined[i.Name] {
				soName = byFamily[familyOfName(i.Name)]
			}
			if l := bySoName[soName]; l != nil {
				if err := l.add(i); err != nil {
					return nil, fmt.Errorf("%s: %w", filepath.Join(s.site, o.file), err)
				}
			}
		}
	}
	var list []Library
	for _, soName := range sortedKeys(bySoName) {
		l := bySoName[soName]
		list = append(list, Library{SoName: soName, Version: l.version, Names: sortedKeys(l.names)})
	}
	return list, nil
}

// imports collects the names that are imported from one library.
type imports struct {
	version string
	names   map[string]bool
}

// add adds an import. All CUDA libraries have at most one version node.
func (l *imports) add(i Import) error {
	if i.Version != "" {
		if l.version != "" && l.version != i.Version {
			return fmt.Errorf("import of %s in version %s: expected version %s like the other imports from this library",
				i.Name, i.Version, l.version)
		}
		l.version = i.Version
	}
	l.names[i.Name] = true
	return nil
}

// sortedKeys returns the keys of a map in alphabetical order, never nil.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
