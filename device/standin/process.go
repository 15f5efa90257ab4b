package standin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// core is the library that connects a program to the server. The others call its functions.
const core = "libvramyard-device.so"

// models lists the source files that model functions of a family of libraries.
var models = map[string][]string{
	"libcudart":   {"runtime", "launch", "names"},
	"libcuda":     {"driver"},
	"libcublas":   {"math"},
	"libcublasLt": {"math"},
	"libcudnn":    {"dnn", "dnngraph"},
	"libcupti":    {"math"},
	"libnccl":     {"nccl"},
}

// Build returns the files of the stand-ins for a program with these imports, in the order in which
// a process loads them, before anything else. They are prebuilt ones beside the program of this
// process if those fit; otherwise they are compiled, or found in the user's cache.
func (f *Facts) Build() ([]string, error) {
	r, names, err := f.recipe()
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	files, releases, err := f.prebuilt(filepath.Join(filepath.Dir(program), standinsFolder), names)
	if err != nil || files != nil {
		return files, err
	}
	dir, err := r.Build()
	if errors.Is(err, ErrNoCompiler) && len(releases) > 0 {
		err = fmt.Errorf("PyTorch %s and the packages beside it: want one of %s with the imports of its wheel, whose "+
			"stand-ins are prebuilt, or a compiler: %w", f.Torch, strings.Join(releases, ", "), err)
	}
	for _, name := range names {
		files = append(files, filepath.Join(dir, name))
	}
	return files, err
}

// recipe returns how the stand-ins are compiled, and their names in the order in which a process
// loads them.
func (f *Facts) recipe() (r Recipe, names []string, err error) {
	all, err := rules()
	if err != nil {
		return r, nil, err
	}
	r = Recipe{Folder: standinsFolder, Files: map[string]string{}}
	compile := []Step{compileUnit("process", "process.o"), compileUnit("contents", "contents.o")}
	names = []string{core}
	link := []Step{(&library{soname: core, models: []string{"process.o", "contents.o"}}).link("", r.Files)}
	done := map[string]bool{}
	for _, l := range f.libraries() {
		if l.names != nil {
			r.Files[l.soname+".cc"] = stubs(l.names, all)
			compile = append(compile, compileUnit(l.soname, l.soname+".o"))
		}
		for _, unit := range models[familyOf(l.soname)] {
			if !done[unit] {
				compile = append(compile, compileUnit(unit, unit+".o", f.defines()...))
			}
			done[unit] = true
			l.models = append(l.models, unit+".o")
		}
		if l.names != nil {
			l.models = append(l.models, l.soname+".o")
		}
		link = append(link, l.link("", r.Files))
		names = append(names, l.soname)
	}
	r.Stages = [][]Step{compile, link}
	return r, names, nil
}

// libraries returns the stand-ins that the program needs. It always needs a driver, whose functions
// it looks up by name and requires even if it never calls them.
func (f *Facts) libraries() []*library {
	driver := &library{soname: "libcuda.so.1", names: f.looked("libcuda")}
	all := []*library{driver}
	if names := f.looked("libnvidia-ml"); names != nil {
		all = append(all, &library{soname: "libnvidia-ml.so.1", names: names})
	}
	for _, l := range f.Libraries {
		if l.SoName == driver.soname {
			driver.names = slices.Compact(slices.Sorted(slices.Values(append(driver.names, l.Names...))))
		} else {
			all = append(all, &library{soname: l.SoName, node: l.Version, names: slices.Clip(l.Names)})
		}
	}
	return all
}

// looked returns the functions of a family that the program looks up by name.
func (f *Facts) looked(family string) (names []string) {
	for _, name := range f.Looked {
		if familyOfName(name) == family {
			names = append(names, name)
		}
	}
	return names
}

// defines returns the options that tell the models which releases they stand for.
func (f *Facts) defines() []string {
	major, _, _ := strings.Cut(f.CUDA, ".")
	return []string{
		"-DCUDART_MAJOR=" + major,
		"-DCUDNN_VERSION=" + strconv.Itoa(f.version("nvidia-cudnn", 9, 90100)),
		"-DNCCL_VERSION=" + strconv.Itoa(f.version("nvidia-nccl", 2, 22105)),
	}
}

// version returns the version of the package that the wheel requires as one number, which has two
// digits for the minor release since the major release wide; otherwise if the wheel names none.
func (f *Facts) version(name string, wide, otherwise int) int {
	for _, q := range f.Requires {
		if !strings.HasPrefix(q.Package, name) {
			continue
		}
		var n [3]int
		for i, part := range strings.SplitN(q.Version, ".", 4) {
			if i < len(n) {
				n[i], _ = strconv.Atoi(part) // 0 for what is no number
			}
		}
		if n[0] < wide {
			return n[0]*1000 + n[1]*100 + n[2]
		}
		return n[0]*10000 + n[1]*100 + n[2]
	}
	return otherwise
}
