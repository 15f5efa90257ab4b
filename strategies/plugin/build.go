package plugin

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// native is the source code that is compiled on the user's machine: the host program and the
// libraries that stand in for CUDA's.
//
//go:embed native/*
var native embed.FS

// compilers are tried in this order, unless the variable CXX names one.
var compilers = []string{"c++", "g++", "clang++"}

// The files of a build.
const (
	hostFile    = "host"     // the program
	standinsDir = "standins" // the libraries
)

// flags are the options of every compilation.
var flags = []string{"-std=c++17", "-O2", "-fvisibility=hidden"}

// step is one call of the compiler; out and in are files of the build.
type step []string

// steps returns the calls of the compiler, in order. A version script gives the symbols of a
// library their versions, because plug-ins require symbols by library name and version.
func steps(source string) []step {
	from := func(name string) string { return filepath.Join(source, name) }
	// The libraries call functions of the host, which therefore exports them.
	all := []step{{"-rdynamic", "-o", hostFile, from("host.cc"), "-ldl", "-pthread"}}
	for _, unit := range []string{"runtime", "driver"} {
		all = append(all, step{"-fPIC", "-fno-exceptions", "-fno-rtti", "-c", "-o", unit + ".o", from(unit + ".cc")})
	}
	for _, soname := range runtimes {
		all = append(all, step{
			"-shared", "-Wl,-soname," + soname, "-Wl,--version-script," + soname + ".map", "-o",
			filepath.Join(standinsDir, soname), "runtime.o",
		})
	}
	// NVIDIA's driver library does not version its symbols.
	const driver = "libcuda.so.1"
	return append(all, step{"-shared", "-Wl,-soname," + driver, "-o", filepath.Join(standinsDir, driver),
		"driver.o", "-ldl"})
}

// runtimes are the names of the CUDA runtime by its releases.
var runtimes = []string{"libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"}

// building serializes builds.
var building sync.Mutex

// built returns the folder of the build, which is made if it is not in the user's cache. The name
// is the hash of all inputs, so a cached build is never stale.
func built() (string, error) {
	building.Lock()
	defer building.Unlock()
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("plugin: no folder to keep the host in: %w", err)
	}
	compiler, err := findCompiler()
	if err != nil {
		return "", err
	}
	name, err := buildName(compiler)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "vramyard", "plugin", name)
	if _, err := os.Stat(filepath.Join(dir, hostFile)); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("plugin: no folder to keep the host in: %w", err)
	}
	draft, err := os.MkdirTemp(filepath.Dir(dir), "draft-")
	if err != nil {
		return "", fmt.Errorf("plugin: no folder to keep the host in: %w", err)
	}
	defer func() { _ = os.RemoveAll(draft) }() // nothing remains of it unless something failed
	if err := build(draft, compiler); err != nil {
		return "", err
	}
	// If another process made the same build in the meantime, that one is used.
	if err := os.Rename(draft, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, gone := os.Stat(filepath.Join(dir, hostFile)); gone != nil {
			return "", fmt.Errorf("plugin: %w", err)
		}
	}
	return dir, nil
}

// errNoCompiler names the remedy.
var errNoCompiler = errors.New("plugin: no C++ compiler: a plug-in runs in a small program that is compiled when it " +
	"is first used; install g++ or clang++, or name one in the variable CXX")

// findCompiler returns the command of the compiler and its arguments.
func findCompiler() ([]string, error) {
	if words := strings.Fields(os.Getenv("CXX")); len(words) > 0 {
		if _, err := exec.LookPath(words[0]); err != nil {
			return nil, fmt.Errorf("plugin: the compiler that CXX names: %w", err)
		}
		return words, nil
	}
	for _, name := range compilers {
		if path, err := exec.LookPath(name); err == nil {
			return []string{path}, nil
		}
	}
	return nil, errNoCompiler
}

// buildName returns the hash of the sources and of the compiler with its arguments.
func buildName(compiler []string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q\n", compiler, flags, steps("native"))
	err := fs.WalkDir(native, "native", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := native.ReadFile(name)
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)[:16]), err
}

func build(dir string, compiler []string) error {
	source := filepath.Join(dir, "native")
	if err := os.CopyFS(dir, native); err != nil {
		return fmt.Errorf("plugin: %w", err)
	}
	if err := os.Mkdir(filepath.Join(dir, standinsDir), 0o755); err != nil {
		return fmt.Errorf("plugin: %w", err)
	}
	// A plug-in linked with a CUDA runtime requires its symbols with the versions of that runtime.
	for _, soname := range runtimes {
		script := soname + " { global: cuda*; local: *; };\n"
		if err := os.WriteFile(filepath.Join(dir, soname+".map"), []byte(script), 0o644); err != nil {
			return fmt.Errorf("plugin: %w", err)
		}
	}
	for _, s := range steps(source) {
		cmd := exec.Command(compiler[0], append(append(append([]string{}, compiler[1:]...), flags...), s...)...)
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("plugin: the program that plug-ins run in cannot be compiled: %s: %w: %s", compiler[0], err, text)
		}
	}
	return nil
}
