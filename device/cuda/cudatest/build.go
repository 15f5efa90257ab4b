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

// Part is what a stand-in can lack, as older drivers do.
type Part string

// The parts.
const (
	Virtual Part = "WITHOUT_VIRTUAL" // the functions of virtual memory
	Pools   Part = "WITHOUT_POOLS"   // those of pools
	Capture Part = "WITHOUT_CAPTURE" // that which exchanges a thread's mode of capture
)

// Build compiles a stand-in that lacks the parts, and returns the path of the library, libcuda.so.1
// in a directory of its own: so it is also what a program loads whose LD_LIBRARY_PATH names the
// directory. Each is its own, with its own memory.
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
