//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/cuda/cudatest"
)

// asCommand is the variable that makes this program the command, so that it can be run as the
// bundle's.
const asCommand = "GPU_TEST_COMMAND"

// TestMain runs the tests, or the command.
func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	os.Exit(command(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// Programs that stand in for those of a bundle. Each fails or takes for ever if the environment
// wants that.
const (
	suiteStub = `#!/bin/sh
echo "=== RUN   TestOnTheGPU"
[ "$STUB_SUITE" = skip ] && { echo "    cuda_test.go:1: no GPU"; echo "--- SKIP: TestOnTheGPU (0.00s)"; exit 0; }
[ "$STUB_SUITE" = fail ] && { echo "    --- FAIL: TestOnTheGPU/pools (0.00s)"; echo "--- FAIL: TestOnTheGPU (0.00s)"; echo FAIL; exit 1; }
echo "    --- PASS: TestOnTheGPU/regions (0.00s)"; echo "--- PASS: TestOnTheGPU (0.00s)"; echo PASS
`
	programStub = `#!/bin/sh
[ "$1" = check ] && [ "$5" = "$STUB_SLOW" ] && exec sleep 1000
[ "$1" = check ] && [ "$5" = "$STUB_BROKEN" ] && { echo "vramyard: 1 of 2 subjects broke an invariant" >&2; exit 1; }
echo "every invariant held"
`
)

// stubBundle makes a bundle of programs that stand in, with the scripts of the repository.
func stubBundle(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
	}
	put("cuda.test", suiteStub, 0o755)
	put("vramyard", programStub, 0o755)
	for _, name := range copied {
		text, err := os.ReadFile(filepath.Join("../..", filepath.FromSlash(name)))
		require.NoError(t, err)
		if name == trainScript { // with fewer strategies, because each is several processes
			text = regexp.MustCompile(`(?s)STRATEGIES = \[.*?\]`).ReplaceAll(text, []byte(`STRATEGIES = ["caching", "slab"]`))
		}
		put(name, string(text), 0o644)
	}
	so := filepath.Join(dir, filepath.FromSlash(library))
	require.NoError(t, os.MkdirAll(filepath.Dir(so), 0o755))
	c := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-O1", "-o", so, "testdata/library.c")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	m := manifest{Schema: bundleSchema, Commit: "0123", Go: "go", Files: map[string]string{}}
	_, err = m.sum(dir)
	require.NoError(t, err)
	require.NoError(t, m.save(dir))
	return dir
}

// fakeTorch is where the stand-in for PyTorch lies.
func fakeTorch(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../cmd/libvramyard/testdata/fake")
	require.NoError(t, err)
	return "PYTHONPATH=" + path
}

// ran runs the command in a process of its own, which finds the stand-in for the driver, and
// returns what came out.
func ran(t *testing.T, bundle, out string, environment []string, flags ...string) (r *Result, status int, text string) {
	t.Helper()
	driver := filepath.Dir(cudatest.Build(t)) // which skips the test where there is no compiler of C
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), self,
		append([]string{"run", "-bundle", bundle, "-out", out, "-largest", "4KiB", "-steps", "6", "-tests", "4", "-python",
			interpreter()},
			flags...)...)
	c.Env = append(append(os.Environ(), asCommand+"=1", "LD_LIBRARY_PATH="+driver, "STANDIN_MEMORY=268435456"),
		environment...)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	_ = c.Run() // the status tells
	if r, err = readResult(filepath.Join(out, "result.json")); err != nil {
		t.Log(err)
	}
	return r, c.ProcessState.ExitCode(), said.String()
}

// interpreter is where python3 really is: what lies in the path may be a script that looks for it
// each time.
var interpreter = sync.OnceValue(func() string {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
})

// needsPython skips a test where there is no interpreter.
func needsPython(t *testing.T) {
	t.Helper()
	if interpreter() == "" {
		t.Skip("no python3: the parts that are scripts cannot be run")
	}
}

// states returns how the parts ended.
func states(r *Result) string {
	var all []string
	for _, p := range r.Parts {
		all = append(all, p.Name+" "+string(p.State))
	}
	return strings.Join(all, ", ")
}

func TestEveryPartHolds(t *testing.T) {
	needsPython(t)
	cudatest.Build(t)
	out := t.TempDir()
	r, status, text := ran(t, stubBundle(t), out, []string{fakeTorch(t)}, "-limit", "10m", "-tests", "20")
	require.NotNil(t, r, text)
	require.Equal(t, "suite held, timing held, conformance held, training held, snapshots held", states(r), text)
	assert.Zero(t, status, text)
	assert.Contains(t, text, "5 of 5 parts held")
	assert.True(t, r.StandIn)
	assert.Equal(t, "Stand-in 0", r.Machine.GPU)
	assert.Equal(t, "2.6.0+fake", r.Machine.Torch)
	assert.Equal(t, &Suite{Passed: 2, Left: []string{}}, r.Suite)
	assert.True(t, r.Training.Repeat)
	for _, c := range r.Conformance {
		assert.Equal(t, 20, c.Sequences, c.Strategy)
	}
	assert.Len(t, r.Training.Runs, 4)
	for _, run := range r.Training.Runs {
		assert.NotZero(t, run.Blocks, run.label())
		assert.Equal(t, run.Poison, run.Compared > 0, run.label())
	}
	assert.Len(t, r.Snapshots, len(programs))
	for _, s := range r.Snapshots {
		assert.NoError(t, s.measure(filepath.Join(out, s.File)))
		assert.True(t, s.Frames)
	}
	page, err := os.ReadFile(filepath.Join(out, "result.md"))
	require.NoError(t, err)
	assert.Contains(t, string(page), "nothing here was measured on a card")
	_, status, text = ran(t, stubBundle(t), out, []string{fakeTorch(t)})
	assert.Equal(t, 1, status)
	assert.Contains(t, text, "of another run")
}

// TestEveryCallIsTimed looks at the part that needs no scripts: every call that there is, with
// figures that can be.
func TestEveryCallIsTimed(t *testing.T) {
	r, _, text := ran(t, withoutScripts(t), t.TempDir(), nil, "-limit", "1m", "-python", "no-python", "-largest", "8MiB")
	require.NotNil(t, r, text)
	require.Equal(t, Held, r.part("timing").State, text)
	calls := map[string]bool{}
	for _, c := range r.Timing.Calls {
		calls[c.Call] = true
		assert.GreaterOrEqual(t, c.Count, fewest, c)
		for _, s := range []Spread{c.Driver, c.Ours} {
			assert.True(t, s.P10 <= s.Median && s.Median <= s.P90, c)
		}
		assert.Less(t, c.Driver.P10, c.Ours.P90, "%+v: a part takes longer than all of it", c)
	}
	for c := range device.NumCalls {
		assert.True(t, calls[c.String()], "%v is not timed", c)
	}
	assert.True(t, r.Timing.Complete)
	assert.NotZero(t, r.Timing.CallOverhead)
}

// withoutScripts is a bundle whose library could not be built.
func withoutScripts(t *testing.T) string {
	t.Helper()
	dir := stubBundle(t)
	m, err := readManifest(dir)
	require.NoError(t, err)
	m.Missing = map[string]string{library: "no compiler of C++ was found"}
	require.NoError(t, m.save(dir))
	return dir
}

func TestFailuresOfPartsAreReported(t *testing.T) {
	needsPython(t)
	const noScripts, noPython = ", training skipped, snapshots skipped", "no-python"
	for _, c := range []struct {
		name        string
		environment []string
		python      string
		parts       string   // those that did not hold
		words       []string // of the reasons
	}{
		{"of three parts", []string{"STUB_SUITE=fail", "STANDIN_FAIL=cuEventRecord:3:999:1", "STUB_BROKEN=tlsf"}, noPython,
			"suite failed, timing failed, conformance failed" + noScripts, []string{
				"exit status 1: FAIL", "cuEventRecord: CUDA_ERROR_UNKNOWN (999)", "first tlsf: vramyard: exit status 1: " +
					"vramyard: 1 of 2",
				`"no-python": executable file not found`,
			}},
		{"the suite skips itself", []string{"STUB_SUITE=skip"}, noPython, "suite failed" + noScripts,
			[]string{"did not run: TestOnTheGPU: no GPU"}},
		{"losses differ, freed memory is written", []string{"FAKE_LOSS_OF=slab", "FAKE_STALE_ON=caching"}, "",
			"training failed",
			[]string{"of 4 trainings failed, first slab: the losses differ from PyTorch's own allocator, first " +
				"in step 1"}},
		{"losses are never the same", []string{"FAKE_UNSTEADY=1"}, "", "training failed",
			[]string{"does not give the same losses twice"}},
		{"PyTorch finds no GPU", []string{"FAKE_NO_GPU=1"}, "", "training skipped, snapshots skipped",
			[]string{"PyTorch finds no GPU"}},
		{"no PyTorch", []string{"PYTHONPATH="}, "", "training skipped, snapshots skipped",
			[]string{"ModuleNotFoundError: No module named 'torch'"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.name == "no PyTorch" && exec.CommandContext(t.Context(), "python3", "-c", "import torch").Run() == nil {
				t.Skip("there is PyTorch")
			}
			flags := []string{"-limit", "5m"}
			if c.python != "" {
				flags = append(flags, "-python", c.python)
			}
			r, status, text := ran(t, stubBundle(t), t.TempDir(), append([]string{fakeTorch(t)}, c.environment...), flags...)
			require.NotNil(t, r, text)
			assert.Equal(t, 1, status)
			var wrong, reasons []string
			for _, p := range r.Parts {
				if p.State != Held {
					wrong, reasons = append(wrong, p.Name+" "+string(p.State)), append(reasons, p.Reason)
				}
			}
			assert.Equal(t, c.parts, strings.Join(wrong, ", "), text)
			for _, words := range c.words {
				assert.Contains(t, strings.Join(reasons, "\n"), words)
			}
			assert.Contains(t, text, fmt.Sprintf("%d of 5 parts held", 5-len(wrong)))
			if strings.HasPrefix(c.name, "losses differ") {
				for _, run := range r.Training.Runs {
					wrong := run.Strategy == "slab" || run.Poison && run.Strategy == "caching"
					assert.Equal(t, wrong, run.State == Failed, run)
					assert.Equal(t, wrong && run.Strategy == "caching", run.Stale > 0, run)
				}
			}
		})
	}
}

func TestPartsAreSkippedAtTheTimeLimit(t *testing.T) {
	r, status, text := ran(t, withoutScripts(t), t.TempDir(), []string{"STUB_SLOW=caching"}, "-limit", "8s", "-python",
		"no-python")
	require.NotNil(t, r, text)
	assert.Equal(t, 1, status)
	assert.Equal(t, Late, r.part("conformance").State, text)
	assert.Contains(t, r.part("conformance").Reason, "its time is over")
	assert.Equal(t, Skipped, r.part("snapshots").State)
}

func TestNoGPU(t *testing.T) {
	driver := filepath.Dir(cudatest.Build(t))
	for _, environment := range []string{"LD_LIBRARY_PATH=" + driver, "STANDIN_INIT=100"} {
		out := t.TempDir()
		r, status, text := ran(t, withoutScripts(t), out, []string{environment, "STANDIN_GPUS=0"}, "-limit", "1m", "-python",
			"no-python")
		require.NotNil(t, r, text)
		assert.Equal(t, 1, status)
		assert.Equal(t, "suite skipped, timing skipped, conformance skipped, training skipped, snapshots skipped", states(r))
		assert.Contains(t, text, "0 of 5 parts held")
		assert.Contains(t, text, "MISSING: ")
		assert.FileExists(t, filepath.Join(out, "result.md"))
	}
}

// TestFullDiskIsReported has a limit on the size of files instead of a disk, which no test can
// fill.
func TestFullDiskIsReported(t *testing.T) {
	driver := filepath.Dir(cudatest.Build(t))
	self, err := os.Executable()
	require.NoError(t, err)
	out := t.TempDir()
	c := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 1; exec "$0" "$@"`, self, "run", "-bundle",
		withoutScripts(t), "-out", out, "-limit", "20s",
		"-python", "no-python", "-largest", "64KiB")
	c.Env = append(os.Environ(), asCommand+"=1", "LD_LIBRARY_PATH="+driver)
	said, err := c.CombinedOutput()
	require.Error(t, err)
	assert.Equal(t, 1, c.ProcessState.ExitCode(), string(said))
	assert.Contains(t, string(said), "file too large")
	for _, name := range []string{"result.json", "result.md"} {
		if text, err := os.ReadFile(filepath.Join(out, name)); err == nil && name == "result.json" {
			_, err := readResult(filepath.Join(out, name))
			assert.NoError(t, err, "half of it: %s", text)
		}
	}
}

func TestInvalidBundlesAreRefused(t *testing.T) {
	dir := stubBundle(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "vramyard"), []byte("changed"), 0o755))
	_, status, text := ran(t, dir, t.TempDir(), nil)
	assert.Equal(t, 1, status)
	assert.Contains(t, text, "vramyard: is not as it was made")
	_, status, text = ran(t, t.TempDir(), t.TempDir(), nil)
	assert.Equal(t, 1, status)
	assert.Contains(t, text, `make one with "gpu build DIR"`)
}

func TestWrongCommandLines(t *testing.T) {
	for want, args := range map[string][]string{
		"want gpu build DIR, gpu run [flags], or gpu publish": {},
		`"fly": want gpu build`:                               {"fly"},
		"build: want the directory of the bundle":             {"build"},
		"exists and is not a bundle":                          {"build", "testdata"},
		"flag provided but not defined":                       {"run", "-fast"},
		"--limit: want at least 1s":                           {"run", "-limit", "1ms"},
		"--steps: want 1 to 1000":                             {"run", "-steps", "0"},
		`"x": want flags only`:                                {"run", "x"},
		"unknown unit":                                        {"run", "-largest", "1parsec"},
		"no such file or directory":                           {"publish", "nowhere"},
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, 1, command(t.Context(), args, &out, &errs), args)
		assert.Contains(t, errs.String(), want)
		assert.Equal(t, 1, strings.Count(errs.String(), "\n"), "one line: %s", errs.String())
	}
	var out, errs bytes.Buffer
	assert.Zero(t, command(t.Context(), []string{"run", "-h"}, &out, &errs))
	assert.Contains(t, out.String(), "-limit")
}

func TestTheVersionOfTheDriver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "version")
	for text, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n" +
			"GCC version:  gcc version 12.2.0\n": "550.54.15",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (x)\n": "580.95.05",
		"nothing": "",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		assert.Equal(t, want, driverVersion(path))
	}
	assert.Empty(t, driverVersion(filepath.Join(path, "nowhere")))
}

func TestTimeSharesAddUpToOne(t *testing.T) {
	sum := 0
	for _, p := range parts() {
		sum += p.share
	}
	assert.Equal(t, 100, sum)
	assert.Equal(t, Spread{Median: 5, P10: 1, P90: 9}, spread([]time.Duration{9, 1, 8, 2, 7, 3, 6, 4, 5, 10}))
	assert.Equal(t, Spread{Median: 7, P10: 7, P90: 7}, spread([]time.Duration{7}))
}
