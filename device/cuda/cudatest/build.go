package cudatest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

//go:embed testdata/driver.c
var source string

// Part is a part of the driver that a stand-in can lack, like older drivers.
type Part string

// The parts.
const (
	Virtual Part = "WITHOUT_VIRTUAL" // the functions of virtual memory
	Pools   Part = "WITHOUT_POOLS"   // the functions of pools
	Capture Part = "WITHOUT_CAPTURE" // the function that exchanges a thread's capture mode
)

// compiled has a function for each set of missing parts, which returns the library. It is compiled
// once in a process: that takes a quarter of a second.
var compiled sync.Map

// Build compiles a stand-in without the given parts, and returns the path of the library,
// libcuda.so.1 in a new directory. A program whose LD_LIBRARY_PATH names the directory loads it
// too. Each stand-in has its own memory.
func Build(t testing.TB, without ...Part) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the stand-in for the CUDA driver is built on Linux only")
	}
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no compiler of C: the stand-in for the CUDA driver cannot be built")
	}
	args := []string{"-shared", "-fPIC", "-O1", "-pthread", "-x", "c", "-"}
	for _, part := range without {
		args = append(args, "-D"+string(part))
	}
	once, _ := compiled.LoadOrStore(strings.Join(args, " "), sync.OnceValues(func() ([]byte, error) {
		return compile(compiler, args)
	}))
	library, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatalf("the stand-in for the CUDA driver does not compile: %v", err)
	}
	path := filepath.Join(t.TempDir(), "libcuda.so.1")
	if err := os.WriteFile(path, library, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// compile returns the library that a compiler makes of the source.
func compile(compiler string, args []string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "cudatest-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }() // what stays is in the folder of temporary files
	path := filepath.Join(folder, "library")
	c := exec.Command(compiler, append(args, "-o", path)...)
	c.Stdin = strings.NewReader(source)
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
