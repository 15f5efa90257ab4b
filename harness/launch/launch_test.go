package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/device/standin"
)

// script writes an executable file and returns its path.
func script(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

func TestInterpreterOfAProgram(t *testing.T) {
	t.Parallel()
	python := script(t, "python3.11", "#!/bin/sh\n")
	for program, want := range map[string]string{
		python: python,
		script(t, "torchrun", "#!"+python+" -u\nimport torch\n"):           python,
		script(t, "torchrun", "#!/usr/bin/env "+python+"\nimport torch\n"): python,
	} {
		got, err := interpreter(program)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, program := range []string{script(t, "train", "#!/bin/sh\n"), script(t, "train", "python\n")} {
		_, err := interpreter(program)
		require.ErrorIs(t, err, errNoPython)
	}
	_, err := interpreter("no-such-program")
	require.ErrorContains(t, err, "no-such-program")
}

func TestWithoutPyTorch(t *testing.T) {
	t.Parallel()
	_, err := sitePackages(script(t, "python3", "#!/bin/sh\necho\n"))
	require.ErrorContains(t, err, "has no PyTorch: install a CUDA build of it")
	_, err = sitePackages(script(t, "python3", "#!/bin/sh\necho broken >&2\nexit 3\n"))
	require.ErrorContains(t, err, "exit status 3: broken")
}

func TestEnvironmentOfAProgram(t *testing.T) {
	t.Setenv("PYTHONPATH", "mine")
	t.Setenv("TORCH_SYMBOLIZE_MODE", "fast")
	require.Equal(t, []string{
		"PYTHONPATH=dir:mine", "VRAMYARD_SOCKET=dir/socket", "VRAMYARD_STANDINS=a.so:b.so", "VRAMYARD_SNAPSHOTS=dir",
		"VRAMYARD_CUDNN=bound=0",
		"VRAMYARD_STEPS=3", "VRAMYARD_FAST_INIT=1", "PYTORCH_ALLOC_CONF=x:1", "PYTORCH_CUDA_ALLOC_CONF=x:1",
	}, environment("dir", []string{"a.so", "b.so"}, Options{Steps: 3, FastInit: true, Conf: "x:1"}))
}

// TestOutcomeFollowsTheEvents checks what is kept of the events of a process.
func TestOutcomeFollowsTheEvents(t *testing.T) {
	t.Parallel()
	var p Process
	follow := func(events ...standin.Event) Process {
		for _, e := range events {
			p.note(e)
		}
		return p
	}
	got := follow(
		standin.Event{Kind: standin.Changed, Reserved: 5, Peak: 5},
		standin.Event{Kind: standin.StepEnded, Number: 1, Reserved: 9, Peak: 9},
		standin.Event{Kind: standin.OutOfMemory, Number: 70, Reserved: 8, Peak: 9, All: 8},
		standin.Event{Kind: standin.OutOfMemory, Number: 80, Reserved: 8, Peak: 9, All: 11},
		standin.Event{Kind: standin.GuessedConvolutions, Number: 4, Reserved: 8},
		standin.Event{Kind: standin.GuessedRecurrent, Number: 5, Reserved: 7},
		standin.Event{Kind: standin.GuessedOther, Number: 6, Reserved: 7},
		standin.Event{Kind: standin.Waited, Reserved: 7},
	)
	require.Equal(t, Process{
		Peak: 9, Steps: 1, Refused: 2, FailedAt: 2, Asked: 80, Others: 3, Waited: true, Guessed: Guessed{4, 5, 6}, held: 7,
	}, got)
	require.True(t, got.Exhausted(), "it returned memory after the refusal, and took none")
	got = follow(standin.Event{Kind: standin.Changed, Reserved: 8, Peak: 9})
	require.True(t, got.WentOn)
	require.False(t, got.Exhausted())
	got = follow(standin.Event{Kind: standin.Raised, Number: 1, Reserved: 8})
	require.True(t, got.Exhausted())
	got = follow(standin.Event{Kind: standin.Raised, Reserved: 8}, standin.Event{Kind: standin.Ended, Peak: 9})
	require.False(t, got.Exhausted())
}

// TestReadsOfAProcess orders the lines that a process reports.
func TestReadsOfAProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "1.reads")
	all, err := readsOf(path)
	require.NoError(t, err)
	require.Empty(t, all, "a process that was killed")
	text := `[{"line":"a.py:1","operator":"","read_count":2},{"line":"a.py:2","operator":"nonzero","read_count":3}]`
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	all, err = readsOf(path)
	require.NoError(t, err)
	require.Equal(t, []Read{{"a.py:2", 3, "nonzero"}, {"a.py:1", 2, ""}}, all)
}

// TestAreasOfAProcess reads the work areas that a process reports.
func TestAreasOfAProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "1.areas")
	a, err := areasOf(path)
	require.NoError(t, err)
	require.Zero(t, a, "a process that was killed")
	require.NoError(t, os.WriteFile(path, []byte("9\n3\n5\n3\n"), 0o600))
	a, err = areasOf(path)
	require.NoError(t, err)
	require.Equal(t, Areas{9, map[uint64]struct{}{3: {}, 5: {}}}, a)
	require.NoError(t, os.WriteFile(path, []byte("9\nx\n"), 0o600))
	_, err = areasOf(path)
	require.Error(t, err)
}

// TestCardsAreDescribed checks that every card has a GPU of its own.
func TestCardsAreDescribed(t *testing.T) {
	t.Parallel()
	for _, c := range sim.Cards() {
		k := cardOf(c.Model, c.Memory, c.Chip())
		require.Equal(t, c.Memory, device.Size(k.Memory))
		require.Positive(t, k.Processors)
		require.Less(t, k.SharedOptIn, k.SharedProcessor+1)
	}
}

// TestLibraryOfTheStrategies checks where the library is looked for.
func TestLibraryOfTheStrategies(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mine.so")
	a := Allocator{Strategy: "bfc:growth", Config: `{"limit":"1GiB"}`}
	t.Setenv("VRAMYARD_LIBRARY", path)
	_, err := a.install(dir)
	require.ErrorContains(t, err, "strategy bfc:growth in PyTorch: VRAMYARD_LIBRARY: ")
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	variables, err := a.install(dir)
	require.NoError(t, err)
	require.Equal(t, []string{
		"VRAMYARD_ALLOCATOR=" + path, "VRAMYARD_STRATEGY=bfc:growth", `VRAMYARD_CONFIG={"limit":"1GiB"}`,
		"VRAMYARD_DEVICE=cuda", "VRAMYARD_TRACE=" + filepath.Join(dir, "%p.trace"),
	}, variables)
	require.FileExists(t, filepath.Join(dir, "vramyard_torch.py"))

	t.Setenv("VRAMYARD_LIBRARY", "")
	t.Chdir(dir)
	_, err = findLibrary()
	require.ErrorContains(t, err, "there is no libvramyard.so: want its path in VRAMYARD_LIBRARY, the file beside ")

	source := filepath.Join(dir, "cmd", "libvramyard")
	require.NoError(t, os.MkdirAll(source, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(source, "shim.cc"), nil, 0o644))
	t.Setenv("PATH", "")
	_, err = findLibrary()
	require.ErrorContains(t, err, "Go, which builds it, is not installed")
	built := filepath.Join(dir, "python", "vramyard", "bin", libraryName)
	require.NoError(t, os.MkdirAll(filepath.Dir(built), 0o755))
	require.NoError(t, os.WriteFile(built, nil, 0o644))
	got, err := findLibrary()
	require.NoError(t, err)
	require.Equal(t, built, got)
}

// TestPoolsOfAHistory has the entries of a history name their pools, among them pools whose memory
// went back.
func TestPoolsOfAHistory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "vramyard_pools.py"), []byte(pools), 0o600))
	require.Equal(t, "all:"+
		" segment_alloc@0:(0, 0) segment_free@0:(0, 0)"+
		" segment_alloc@0:(3, 0) oom@0:(3, 0) segment_free@0:(3, 0)"+
		" segment_alloc@0:(0, 0) oom@0:(0, 0)"+
		" segment_map@40:(0, 7) segment_map@60:(0, 7) oom@0:(0, 7) segment_unmap@60:(0, 7)\n"+
		"begun again: segment_alloc@80:-\n"+
		"named: True {}\n", pythonPrints(t, dir, "testdata/pools.py"))
}

// TestStepsOfAProgram counts the steps of a program with one optimizer, with two that step in turn
// or not, with one that never steps, and with one that replaces others.
func TestStepsOfAProgram(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux, where programs run")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sitecustomize.py"), []byte(sitecustomize), 0o600))
	got := pythonPrints(t, dir, "testdata/steps.py", "VRAMYARD_STANDINS=libc.so.6")
	require.Equal(t, `A.A.A.
AB.AB.AB.
AB.AB!
DD..D.GD.DD..G
DD!
AA..A.
ABA.B.CC..C.
`, got)
}

// TestSettingsOfAHistory adds the changes of settings to a history, also to one that has lost its
// oldest entries, and after the program has reset its counters.
func TestSettingsOfAHistory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux, where programs run")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sitecustomize.py"), []byte(sitecustomize), 0o600))
	got := pythonPrints(t, dir, "testdata/settings.py", "VRAMYARD_STANDINS=libc.so.6")
	const none = "{'PYTORCH_CUDA_ALLOC_CONF': ''}\n"
	require.Equal(t, "none: 0\nnone: 1\n"+none+"refused: 0\nrefused: 1\n"+none+
		"all: 0 conf@1001:start segment_alloc@1001 alloc@1002 free_requested@1003 free_completed@1004 "+
		"conf@1004:a conf@1004:b free_requested@1005 segment_alloc@1006 alloc@1007 conf@1007:c alloc@1008\n"+
		"all: 1\n"+none+
		"wrapped: 0 conf@1006:start conf@1006:a conf@1006:b segment_alloc@1006 alloc@1007 conf@1007:c alloc@1008\n"+
		"wrapped: 1\n"+none, got)
}

// pythonPrints returns the output of a program with the modules of a directory. The test is skipped
// without Python.
func pythonPrints(t *testing.T, dir, program string, variables ...string) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("modules of the program run where there is Python: ", err)
	}
	cmd := exec.Command(python, program)
	cmd.Env = append(append(os.Environ(), "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1"), variables...)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	return string(text)
}
