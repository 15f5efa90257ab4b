package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/cmd/libvramyard/pluggable"
	"github.com/vramyard/vramyard/device/cuda/cudatest"
	"github.com/vramyard/vramyard/harness/trace"
)

// built is what the tests share: it is built once.
var built struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // a temporary directory
	}
	os.Exit(code)
}

// directory returns where libvramyard.so and the programs of testdata are. Without compilers the
// test is skipped.
func directory(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("libvramyard.so is built on Linux only")
	}
	for _, compiler := range []string{"cc", "c++"} {
		if _, err := exec.LookPath(compiler); err != nil {
			t.Skipf("no %s: libvramyard.so cannot be built", compiler)
		}
	}
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "libvramyard"); built.err != nil {
			return
		}
		so := filepath.Join(built.dir, "libvramyard.so")
		for _, args := range [][]string{
			{"go", "build", "-buildmode=c-shared", "-o", so, "."},
			{"cc", "-O1", "-Wall", "-Wextra", "-o", filepath.Join(built.dir, "threads"), "testdata/threads.c", "-ldl",
				"-pthread"},
			{"c++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-o", filepath.Join(built.dir, "throws"), "testdata/throws.cc", so},
		} {
			c := exec.Command(args[0], args[1:]...)
			c.Env = append(os.Environ(), "CGO_ENABLED=1")
			if out, err := c.CombinedOutput(); err != nil {
				built.err = &buildError{strings.Join(args, " "), string(out)}
				return
			}
		}
	})
	require.NoError(t, built.err)
	return built.dir
}

// buildError is a command that failed.
type buildError struct{ command, output string }

func (e *buildError) Error() string { return e.command + ":\n" + e.output }

// run runs a program of testdata in an environment.
func run(t *testing.T, environment []string, program string, args ...string) string {
	t.Helper()
	c := exec.Command(filepath.Join(directory(t), program), args...)
	c.Env = append(os.Environ(), append(environment, "LD_LIBRARY_PATH="+directory(t)+":"+os.Getenv("LD_LIBRARY_PATH"))...)
	for _, v := range environment {
		if path, ok := strings.CutPrefix(v, "LD_LIBRARY_PATH="); ok {
			c.Env = append(c.Env, "LD_LIBRARY_PATH="+path+":"+directory(t))
		}
	}
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", program, args, out)
	return string(out)
}

// done is what threads.c prints.
type done struct {
	Allocs, Frees, Shared, Overlaps, Misaligned, Damaged, Empty, Live int
}

func TestThreadsThroughTheLibrary(t *testing.T) {
	standin := ""
	for _, c := range []struct{ name, strategy, device, poison string }{
		{"simulated caching", "caching", "sim:h100-80g", ""},
		{"simulated tlsf", "tlsf", "sim:24GiB", ""},
		{"simulated stitch", "stitch", "sim:24GiB", "1"},
		{"memory of slabbuddy", "slabbuddy", "cuda", ""},
		{"memory of caching:expandable", "caching:expandable", "cuda", ""},
		{"memory of bfc, poisoned", "bfc", "cuda", "1"},
		{"memory of vmm, poisoned", "vmm", "cuda", "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			tracePath, statsPath := filepath.Join(dir, "run.trace.zst"), filepath.Join(dir, "stats.json")
			environment := []string{
				pluggable.EnvStrategy + "=" + c.strategy, pluggable.EnvDevice + "=" + c.device, pluggable.EnvPoison +
					"=" + c.poison,
				pluggable.EnvTrace + "=" + tracePath, pluggable.EnvStats + "=" + statsPath,
			}
			writes := "0"
			if c.device == "cuda" {
				directory(t) // which skips the test where there is no compiler
				if standin == "" {
					standin = standinFor(t)
				}
				environment = append(environment, "LD_LIBRARY_PATH="+standin)
				writes = "1"
			}
			steps := "2000"
			if c.poison != "" {
				steps = "200"
			}
			var d done
			require.NoError(t, json.Unmarshal(
				[]byte(run(t, environment, "threads", filepath.Join(directory(t), "libvramyard.so"), "4", steps, writes)), &d))
			require.Zero(t, d.Overlaps+d.Misaligned+d.Damaged)
			require.NotZero(t, d.Shared)
			text, err := os.ReadFile(statsPath)
			require.NoError(t, err)
			var s pluggable.Stats
			require.NoError(t, json.Unmarshal(text, &s))
			require.Len(t, s.Devices, 1)
			got := s.Devices[0]
			require.Equal(t, d, done{
				Allocs: int(got.Allocs), Frees: int(got.Frees), Shared: int(got.Uses), Empty: d.Empty, Live: got.Live,
			})
			require.Equal(t, uint64(1), got.BadFrees)
			require.Equal(t, c.poison != "", got.Poison != nil)
			if got.Poison != nil {
				require.Zero(t, got.Poison.Violations, got.Poison.First)
			}
			compareTrace(t, tracePath, d)
		})
	}
}

// standinFor returns the directory of a stand-in for the driver, for several tests.
func standinFor(t *testing.T) string {
	t.Helper()
	path := filepath.Join(directory(t), "driver")
	require.NoError(t, os.MkdirAll(path, 0o755))
	require.NoError(t, os.Rename(cudatest.Build(t), filepath.Join(path, "libcuda.so.1")))
	return path
}

// compareTrace reads the trace that a program left.
func compareTrace(t *testing.T, path string, d done) {
	t.Helper()
	tr, err := trace.Open(path, trace.Options{})
	require.NoError(t, err)
	counts := map[trace.Kind]int{}
	streams := map[uint64]bool{}
	for _, e := range tr.Events {
		counts[e.Kind]++
		if e.Kind == trace.Alloc {
			streams[uint64(e.Stream)] = true
		}
	}
	require.Equal(t, d.Allocs, counts[trace.Alloc])
	require.Equal(t, d.Frees, counts[trace.Free])
	require.Equal(t, d.Shared, counts[trace.Use])
	require.Len(t, streams, 4)
}

func TestCXXProgramUsesTheLibrary(t *testing.T) {
	gib := pluggable.EnvDevice + "=sim:1GiB"
	for _, c := range []struct {
		name        string
		environment []string
	}{
		{"oom", []string{gib}},
		{"oom", []string{gib, pluggable.EnvStrategy + "=buddy:regions"}},
		{"wrong", []string{gib, pluggable.EnvStrategy + "=nothing", "WANTED=unknown strategy"}},
		{"wrong", []string{gib, pluggable.EnvConfig + `={"x":1}`, "WANTED=VRAMYARD_CONFIG"}},
		{"wrong", []string{pluggable.EnvDevice + "=gpu", "WANTED=VRAMYARD_DEVICE"}},
		{"fork", []string{gib}},
		{"panic", []string{gib, pluggable.EnvPanic + "=2"}},
		{"pools", []string{gib}},
		{"no_pools", []string{gib, pluggable.EnvStrategy + "=bfc"}},
		{"mistakes", []string{gib}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, "ok\n", run(t, c.environment, "throws", c.name)) })
	}
	t.Run("poison", func(t *testing.T) {
		standin := standinFor(t)
		for _, strategy := range []string{"caching", "tlsf"} {
			out := run(t, []string{
				"LD_LIBRARY_PATH=" + standin, pluggable.EnvPoison + "=1", pluggable.EnvStrategy + "=" + strategy,
			}, "throws", "poison")
			require.Equal(t, "ok\n", out)
		}
	})
}
