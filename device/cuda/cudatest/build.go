package cudatest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
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
	path := filepath.Join(t.TempDir(), "libcuda.so.1")
	args := []string{"-shared", "-fPIC", "-O1", "-pthread", "-o", path, "-x", "c", "-"}
	for _, part := range without {
		args = append(args, "-D"+string(part))
	}
	c := exec.Command(compiler, args...)
	c.Stdin = strings.NewReader(source)
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		t.Fatalf("the stand-in for the CUDA driver does not compile: %v", err)
	}
	return path
}
