package standin

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// native is the source of the stand-ins, which is compiled on the user's machine.
//
//go:embed native/*
var native embed.FS

// compilers are tried in this order, unless the variable CXX names one.
var compilers = []string{"c++", "g++", "clang++"}

// flags are the options of every compilation; libraryFlags those of a library, which must not bring
// a C++ runtime into the program.
var (
	flags        = []string{"-std=c++17", "-O2", "-fvisibility=hidden"}
	libraryFlags = []string{"-fPIC", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"}
)

// Step is the arguments of one call of the compiler, in the folder of the build.
type Step []string

// Recipe describes native code that is compiled on the user's machine.
type Recipe struct {
	// Folder is the folder of the cache below the user's.
	Folder string
	// Files are the sources by name, in addition to those of the stand-ins.
	Files map[string]string
	// Stages are run one after the other, the steps of a stage at the same time.
	Stages [][]Step
}

// ErrNoCompiler says that there is no C++ compiler.
var ErrNoCompiler = errors.New("no C++ compiler: install g++ or clang++, or name one in the variable CXX")

// building serializes builds.
var building sync.Mutex

// Build returns the folder of the build, which is made if it is not in the user's cache. Its name
// is the hash of all inputs, so a cached build is never stale.
func (r *Recipe) Build() (string, error) {
	building.Lock()
	defer building.Unlock()
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder to keep native code in: %w", err)
	}
	compiler, err := Compiler()
	if err != nil {
		return "", err
	}
	files, err := r.sources()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "vramyard", r.Folder, r.name(compiler, files))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("no folder to keep native code in: %w", err)
	}
	draft, err := os.MkdirTemp(filepath.Dir(dir), "draft-")
	if err != nil {
		return "", fmt.Errorf("no folder to keep native code in: %w", err)
	}
	defer func() { _ = os.RemoveAll(draft) }() // nothing remains of it unless something failed
	if err := r.make(draft, compiler, files); err != nil {
		return "", err
	}
	// If another process made the same build in the meantime, that one is used.
	if err := os.Rename(draft, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, gone := os.Stat(dir); gone != nil {
			return "", err
		}
	}
	return dir, nil
}

// Compiler returns the command of the compiler and its arguments.
func Compiler() ([]string, error) {
	if words := strings.Fields(os.Getenv("CXX")); len(words) > 0 {
		if _, err := exec.LookPath(words[0]); err != nil {
			return nil, fmt.Errorf("the compiler that CXX names: %w", err)
		}
		return words, nil
	}
	for _, name := range compilers {
		if path, err := exec.LookPath(name); err == nil {
			return []string{path}, nil
		}
	}
	return nil, ErrNoCompiler
}

// sources returns all files of the build.
func (r *Recipe) sources() (map[string]string, error) {
	files := maps.Clone(r.Files)
	if files == nil {
		files = map[string]string{}
	}
	entries, err := native.ReadDir("native")
	for _, e := range entries {
		text, failed := native.ReadFile("native/" + e.Name())
		err = errors.Join(err, failed)
		files[e.Name()] = string(text)
	}
	return files, err
}

// Key returns the hash of all inputs except the compiler.
func (r *Recipe) Key() (string, error) {
	files, err := r.sources()
	return r.name(nil, files), err
}

// name returns the hash of the sources, of the steps and of the compiler.
func (r *Recipe) name(compiler []string, files map[string]string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q\n", compiler, flags, libraryFlags, r.Stages)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s %d\n%s", name, len(files[name]), files[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// make writes the sources and runs the steps.
func (r *Recipe) make(dir string, compiler []string, files map[string]string) error {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, stage := range r.Stages {
		failed := make([]error, len(stage))
		var all sync.WaitGroup
		for i, s := range stage {
			all.Go(func() { failed[i] = s.run(dir, compiler) })
		}
		all.Wait()
		if err := errors.Join(failed...); err != nil {
			return err
		}
	}
	return nil
}

func (s Step) run(dir string, compiler []string) error {
	if i := slices.Index(s, "-o"); i >= 0 {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, s[i+1])), 0o755); err != nil {
			return err
		}
	}
	cmd := exec.Command(compiler[0], slices.Concat(compiler[1:], flags, s)...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("native code cannot be compiled: %s: %w: %s", compiler[0], err, text)
	}
	return nil
}
