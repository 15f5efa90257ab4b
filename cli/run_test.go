package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/standin"
	"github.com/vramyard/vramyard/harness/launch"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
)

// python returns an interpreter with the CUDA build of PyTorch. The test is skipped without one.
func python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("VRAMYARD_PYTHON")
	if path == "" {
		t.Skip("PyTorch is used where VRAMYARD_PYTHON names a Python with its CUDA build: bash .ci/pytorch installs one")
	}
	_, err := standin.Compiler()
	require.NoError(t, err)
	return path
}

// launched runs a program that must end well. It may print warnings.
func launched(t *testing.T, args ...string) string {
	t.Helper()
	status, out, text := command(t, append([]string{"run"}, args...)...)
	require.Equal(t, exitDone, status, text)
	return out
}

// TestPyTorchFeatures uses one feature of the real PyTorch after the other, and verifies that our
// model of its allocator places every allocation where it did. Attention is cuDNN's on an H100.
func TestPyTorchFeatures(t *testing.T) {
	snapshot := filepath.Join(t.TempDir(), "run.pickle")
	out := launched(t, "--device", "sim:h100-80g", "--snapshot", snapshot, "--", python(t), "testdata/pytorch/features.py")
	succeed(t, "verify", snapshot)
	source, err := os.ReadFile("testdata/pytorch/features.py")
	require.NoError(t, err)
	names := regexp.MustCompile(`(?m)^@feature\ndef (\w+)`).FindAllStringSubmatch(string(source), -1)
	require.NotEmpty(t, names)
	for _, n := range names {
		require.Contains(t, out, "ok "+n[1]+"\n", out)
	}
	require.NotRegexp(t, `(?m)^FAIL `, out)
}

// TestPyTorchRunsAreRecordedCompletely trains in the real PyTorch, and verifies that our model of
// its allocator places every allocation where it did.
func TestPyTorchRunsAreRecordedCompletely(t *testing.T) {
	for _, conf := range []string{"", "expandable_segments:True", "max_split_size_mb:64,roundup_power2_divisions:4"} {
		snapshot := filepath.Join(t.TempDir(), "run.pickle")
		args := []string{"--device", "sim:t4-16g", "--snapshot", snapshot}
		if conf != "" {
			args = append(args, "--conf", conf)
		}
		out := launched(t, append(args, "--", python(t), "testdata/pytorch/train.py", "8", "3")...)
		require.Contains(t, out, "Fits: PyTorch ", conf)
		require.Contains(t, out, " on the Tesla T4 (14.75 GiB, of which CUDA's context takes 500.00 MiB), in 3 steps.")
		require.Regexp(t, `The model of the recorded allocator places all [\d,]+ allocations`, out, conf)
		succeed(t, "verify", snapshot)
	}
}

// TestPyTorchSettingsThatChange has a program change its settings. The snapshot has the calls where
// they were made, so that a replay reserves what the program did.
func TestPyTorchSettingsThatChange(t *testing.T) {
	dir := t.TempDir()
	snapshot, text := filepath.Join(dir, "run.pickle"), filepath.Join(dir, "run.trace")
	out := launched(t, "--device", "sim:l4-24g", "--snapshot", snapshot, "--", python(t), "testdata/pytorch/settings.py")
	require.Contains(t, out, "The model of the recorded allocator places all 5 allocations")
	reserved := regexp.MustCompile(`reserved: (\d+)`).FindStringSubmatch(out)
	succeed(t, "verify", snapshot)
	require.Contains(t, succeed(t, "replay", "--strategy", "caching", snapshot), "reserves "+reserved[1]+".00 MiB at most")
	succeed(t, "trace", "convert", snapshot, text)
	events, err := os.ReadFile(text)
	require.NoError(t, err)
	require.Contains(t, string(events), "\n# config={\"conf\":\"max_split_size_mb:512\"}\n")
	require.Equal(t, []string{"a 0", "f 0", "conf max_split_size_mb:21", "a 1", `conf ""`, "a 2", "a 3",
		"conf expandable_segments:True", "conf max_split_size_mb:64", "a 4"},
		regexp.MustCompile(`(?m)^([af] \d+|conf \S+)`).FindAllString(string(events), -1))
}

// TestPyTorchEndsWhereMemoryDoes lets the real PyTorch run out of memory.
func TestPyTorchEndsWhereMemoryDoes(t *testing.T) {
	status, out, text := command(t, "run", "--device", "sim:1GiB", "--", python(t), "testdata/pytorch/train.py", "256",
		"3")
	require.Equal(t, exitFailed, status, text)
	require.Contains(t, out, "Does not fit: in step 1 PyTorch found no room for ")
	require.Contains(t, text, "torch.OutOfMemoryError: CUDA out of memory.")
	require.Contains(t, text, "vramyard: the program ran out of memory")
}

// TestPyTorchRunsNameWhatTheyRead names the lines of programs that read unknown values, in every
// way that PyTorch has, and none that reads what the program wrote itself.
func TestPyTorchRunsNameWhatTheyRead(t *testing.T) {
	for _, name := range []string{"reads.py", "slices.py"} {
		out := launched(t, "--device", "sim:t4-16g", "--", python(t), "testdata/pytorch/"+name)
		source, err := os.ReadFile("testdata/pytorch/" + name)
		require.NoError(t, err)
		var want []string
		for i, line := range strings.Split(string(source), "\n") {
			if _, what, ok := strings.Cut(line, "  # "); ok {
				what, times, _ := strings.Cut(what, " x")
				want = append(want, strings.TrimRight(fmt.Sprintf("%s time.?  %s:%d  %s", cmp.Or(times, "1"), name, i+1,
					strings.TrimPrefix(what, "value")), " "))
			}
		}
		require.NotEmpty(t, want)
		for _, w := range want {
			require.Regexp(t, `(?m)^ +`+w+"$", out)
		}
		require.Equal(t, len(want), strings.Count(out, "  "+name+":"), out)
	}
}

// TestPyTorchRunsTakeWorkAreasFromTables has the functions of cuDNN's graph API, and the older
// ones, find the rows of a table.
func TestPyTorchRunsTakeWorkAreasFromTables(t *testing.T) {
	reserved := regexp.MustCompile(` reserved at most (\d+)\.00 MiB on the Tesla T4`)
	var want []string
	for _, disabled := range []string{"0", "1"} {
		t.Setenv("TORCH_CUDNN_V8_API_DISABLED", disabled)
		out := launched(t, "--device", "sim:t4-16g", "--cudnn", "table=testdata/pytorch/convolution.table", "--",
			python(t), "testdata/pytorch/convolution.py")
		require.NotContains(t, out, "cuDNN's own")
		found := reserved.FindStringSubmatch(out)
		require.NotNil(t, found, out)
		require.Len(t, found[1], 3, "the largest area has 128 MiB")
		want = append(want, found[1])
	}
	require.Equal(t, want[0], want[1])
}

// TestPyTorchRunsGiveRanges checks that the peak that an answer foresees without guessed areas, or
// with another order of addresses, is the peak of a run.
func TestPyTorchRunsGiveRanges(t *testing.T) {
	reserved := regexp.MustCompile(` reserved at most (\S+ \S+) on the Tesla T4`)
	run := func(args ...string) (out, peak string) {
		args = append(append([]string{"--device", "sim:t4-16g"}, args...), "--", python(t), "testdata/pytorch/ranges.py")
		out = launched(t, args...)
		found := reserved.FindStringSubmatch(out)
		require.NotNil(t, found, out)
		return out, found[1]
	}
	guessed, _ := run("--cudnn", "bound=64MiB")
	linux, falling := run()
	wsl, rising := run("--os", "wsl")
	require.Contains(t, guessed, "At most 64.00 MiB of guessed work areas are live at a time, ")
	require.Contains(t, guessed, " % of the peak; a replay without them reserves at most "+falling+".")
	differ := "The order of addresses matters: a replay reserves at most " + falling +
		" where they fall, as on Linux, and " + rising + " where they rise, as on WSL 2.\n"
	for _, out := range []string{linux, wsl} {
		require.Equal(t, falling != rising, strings.Contains(out, "The order of addresses matters"))
		require.Equal(t, falling != rising, strings.Contains(out, differ))
	}
}

// TestPyTorchRunsAtTheExtremes runs a program a second time if the time of events matters.
func TestPyTorchRunsAtTheExtremes(t *testing.T) {
	args := []string{"--device", "sim:t4-16g", "--", python(t), "../examples/without-gpu/overlap.py"}
	require.Contains(t, launched(t, args...), "so the peak may be higher: --extremes runs the program again")
	status, out, text := command(t, append([]string{"run", "--extremes"}, args...)...)
	require.Equal(t, exitDone, status, text)
	require.Contains(t, out, " reserved at most 880.00 MiB on ")
	require.Contains(t, out, "complete at once PyTorch reserved at most 192.00 MiB, and 880.00 MiB with events that ")
	args = []string{"--device", "sim:t4-16g", "--", args[3], "testdata/pytorch/train.py", "4", "1"}
	require.NotContains(t, launched(t, args...), "--extremes")
	require.Contains(t, launched(t, append([]string{"--extremes"}, args...)...),
		"The time at which events complete does not matter")
}

// TestPyTorchProgramsThatFail gives no answer about a program that fails for another reason.
func TestPyTorchProgramsThatFail(t *testing.T) {
	status, out, text := command(t, "run", "--device", "sim:1GiB", "--", python(t), "-c",
		"import torch; torch.ones(1, device='cuda'); raise SystemExit(3)")
	require.Equal(t, exitTrouble, status)
	require.Contains(t, out, "No answer: the program ended with status 3 before its first step ended, not for lack of ")
	require.Contains(t, text, "vramyard: the program ended with status 3")
	for end, want := range map[string]string{
		"os._exit(0)": "0", "os.kill(os.getpid(), 9)": "137",
	} {
		status, _, text := command(t, "run", "--device", "sim:1GiB", "--", python(t), "-c",
			"import os, torch; x = torch.empty(1 << 26, device='cuda'); "+end)
		require.Equal(t, exitTrouble, status)
		require.Contains(t, text, "vramyard: the program ended with status "+want+" before its history was written, as "+
			"after a signal or os._exit. Until then PyTorch reserved at most 256.00 MiB")
	}
}

// TestPyTorchProgramsThatAreRefused tells a program that ends for lack of memory from one that went
// on and failed for another reason.
func TestPyTorchProgramsThatAreRefused(t *testing.T) {
	const gpu = "on the Tesla T4 (14.75 GiB, of which CUDA's context takes 500.00 MiB)."
	for how, want := range map[string]string{
		"at first":  "Does not fit: in step 1 PyTorch found no room for 40.00 GiB " + gpu,
		"of memory": "Does not fit: in step 1 PyTorch found no room for 70.00 GiB " + gpu,
		"otherwise": "No answer: the program ended with status 1 before its first step ended, not for lack of memory. " +
			"Until then PyTorch reserved at most 84.00 MiB " + gpu +
			" It refused 2 requests, the last one for 60.00 GiB in step 1, and the program went on.",
	} {
		status, out, text := command(t, "run", "--device", "sim:t4-16g", "--", python(t), "testdata/pytorch/refused.py", how)
		require.Contains(t, out, want, text)
		require.NotContains(t, out, "version of PyTorch")
		require.Equal(t, strings.HasPrefix(want, "Does not fit"), status == exitFailed, text)
	}
}

// TestPyTorchProcessesShareAGPU adds the memory of processes up, each with a context.
func TestPyTorchProcessesShareAGPU(t *testing.T) {
	status, out, text := command(t, "run", "--device", "sim:t4-16g", "--", python(t), "testdata/pytorch/shared.py", "10")
	require.Equal(t, exitFailed, status, text)
	require.Contains(t, out, "found no room for 10.00 GiB on the Tesla T4 (14.75 GiB, of which CUDA's context takes "+
		"500.00 MiB), while other processes held 4.49 GiB with their contexts. This is one of 2 processes.\n"+
		"Together the processes held at most 4.98 GiB of the GPU at a time, with a context each.\n")
	require.Regexp(t, `the smallest listed card large\s+enough is\s+the\s+Tesla\s+V100`, out)
}

// TestPyTorchStopsAtAStep ends a program after some steps of its optimizer.
func TestPyTorchStopsAtAStep(t *testing.T) {
	turns := launched(t, "--device", "sim:t4-16g", "--until-step", "1", "--", python(t), "testdata/pytorch/turns.py")
	require.Contains(t, turns, "states: 2 2\n", "the first step ends with both optimizers")
	require.Contains(t, turns, ", in 1 step.")
	out := launched(t, "--device", "sim:t4-16g", "--until-step", "2", "--fast-init", "--", python(t),
		"testdata/pytorch/train.py", "8", "1000000")
	require.Contains(t, out, ", in 2 steps.")
}

// TestPyTorchSnapshotsOfThePackage records snapshots with vramyard.record and vramyard.on_oom, and
// reads them. A snapshot of a failure ends with the refused request.
func TestPyTorchSnapshotsOfThePackage(t *testing.T) {
	interpreter, folder := python(t), t.TempDir()
	modules, err := filepath.Abs("../python")
	require.NoError(t, err)
	t.Setenv("PYTHONPATH", modules)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	status, _, text := command(t, "run", "--device", "sim:t4-16g", "--", interpreter, "testdata/pytorch/record.py", folder)
	require.Equal(t, exitFailed, status, text)
	for name, want := range map[string][]string{
		"ends":     {"step 1", "step 2", "step 3", "step 4"},
		"fails":    {"step 1", "step 2", "step 3", "refused", ""},
		"survives": {"step 1", "refused", "step 2", "step 3"},
		"inner":    {"step 1", "step 1", "step 2", "step 2"},
		"oom":      {"step 1", "step 1", "step 2", "step 2", "step 3", "refused", ""},
	} {
		tr, err := formats.Open(filepath.Join(folder, name+".pickle"), formats.Options{})
		require.NoError(t, err)
		var got []string
		for i, e := range tr.Events {
			switch {
			case e.Kind == trace.Refused:
				got = append(got, "refused")
				if i == len(tr.Events)-1 {
					got = append(got, "")
				}
			case e.Kind == trace.Mark && regexp.MustCompile(`^step \d+$`).MatchString(tr.TagOf(&e)):
				got = append(got, tr.TagOf(&e))
			}
		}
		require.Equal(t, want, got, name)
	}
	succeed(t, "verify", filepath.Join(folder, "ends.pickle"))
	require.Equal(t, 6, strings.Count(text, "snapshot written; next: vramyard whatif "+folder), text)
	require.Contains(t, text, "vramyard: a request for 256.00 MiB found no memory: snapshot written;")
}

// TestMetaRecordsWithoutCUDA runs the tests of vramyard.meta. PyTorch's CUDA build loads only over
// the stand-ins.
func TestMetaRecordsWithoutCUDA(t *testing.T) {
	folder, err := filepath.Abs("../python")
	require.NoError(t, err)
	for _, file := range []string{"meta.py", "meta_test.py", "reads.py", "scratch.py"} {
		// So that a kept result knows what it is of.
		_, err := os.ReadFile(filepath.Join(folder, "vramyard", file))
		require.NoError(t, err)
	}
	t.Setenv("PYTHONPATH", folder)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	_, out, text := command(t, "run", "--device", "sim:t4-16g", "--", python(t), "-m", "unittest", "vramyard.meta_test")
	require.Contains(t, out+text, "\nOK\n")
}

// TestRunRefuses gives wrong input, which needs no PyTorch.
func TestRunRefuses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux, where programs run")
	}
	script := write(t, "train", "#!/bin/sh\n")
	require.NoError(t, os.Chmod(script, 0o700))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run"}, "0 arguments: want "},
		{[]string{"run", "--", "python3"}, "--device: want a card or a size, such as sim:h100-80g or sim:24GiB"},
		{[]string{"run", "--device", "sim:nosuch", "--", "python3"}, "no such card"},
		{[]string{"run", "--device", "sim:t4-16g", "--context", "much", "--", "python3"}, "--context: "},
		{[]string{"run", "--device", "sim:t4-16g", "--context", "20GiB", "--", "python3"}, "--context: want less than "},
		{
			[]string{"run", "--device", "sim:2GiB", "--cudnn", "bound=1548MiB", "--", "python3"},
			"--cudnn: bound=1.51 GiB: want less than the 1.51 GiB of the device that CUDA's context leaves",
		},
		{[]string{"run", "--device", "sim:t4-16g", "--until-step", "-1", "--", "python3"}, "--until-step: want 0 or more"},
		{[]string{"run", "--device", "sim:t4-16g", "--os", "mac", "--", "python3"}, "--os: \"mac\": want linux or wsl"},
		{[]string{"run", "--device", "sim:t4-16g", "--values", "-1", "--", "python3"}, "--values: "},
		{[]string{"run", "--device", "sim:t4-16g", "--allocator", "bestfti", "--", "python3"},
			"--allocator: unknown strategy"},
		{[]string{"run", "--device", "sim:t4-16g", "--allocator", `tlsf{"limt":1}`, "--", "python3"}, "--allocator: "},
		{[]string{"run", "--device", "sim:t4-16g", "--allocator", "bfc,tlsf", "--", "python3"},
			`"bfc,tlsf": want one strategy`},
		{[]string{"run", "--device", "sim:t4-16g", "--allocator", "bfc", "--conf", "backend:native", "--", "python3"},
			"--conf: sets PyTorch's own allocator, which --allocator replaces"},
		{[]string{"run", "--device", "sim:t4-16g", "--", script}, "want a Python interpreter, or a script whose first line"},
		{[]string{"run", "--device", "sim:t4-16g", "--", "no-such-program"}, "no-such-program"},
	} {
		status, _, text := command(t, c.args...)
		require.Equal(t, exitTrouble, status, c.args)
		require.Contains(t, text, c.want)
		require.Equal(t, 1, strings.Count(text, "\n"), text)
	}
}

// TestRunNamesGuessedWorkAreas checks the lines for calls whose work area is unknown.
func TestRunNamesGuessedWorkAreas(t *testing.T) {
	t.Parallel()
	guesses := func(f runFlags, g launch.Guessed) []string {
		a := runAnswer{Guessed: g}
		f.guesses(&a)
		return a.Text
	}
	require.Equal(t, []string{
		"1 convolution ran with a work area of 0 B: cuDNN's own is not known (docs/without-gpu.md).",
		"These calls take no memory here, so the peak may be too low.",
	}, guesses(runFlags{}, launch.Guessed{Convolutions: 1}))
	f := runFlags{o: launch.Options{CuDNN: launch.WorkAreas{Bound: 64 * device.MiB}}}
	require.Empty(t, guesses(f, launch.Guessed{}))
	require.Equal(t, []string{
		"1 convolution ran with a work area of 64.00 MiB: cuDNN's own is not known (docs/without-gpu.md).",
		"2 recurrent calls ran with a work area of 64.00 MiB: cuDNN's own is not known (docs/without-gpu.md).",
		"3 other calls ran with a guessed work area: that of cuDNN, cuSOLVER, cuSPARSE or cuFFT is not known " +
			"(docs/without-gpu.md).",
	}, guesses(f, launch.Guessed{Convolutions: 1, Recurrent: 2, Other: 3}))
}

// TestRulesOfReleases lists all rules, first those of the release.
func TestRulesOfReleases(t *testing.T) {
	t.Parallel()
	for release, want := range map[string]string{
		"": "2.11", "2.3.1": "2.6", "2.9.1": "2.6", "2.10.0": "2.11", "2.12.1": "2.12", "2.13.0": "2.13", "2.15.0": "2.13",
	} {
		require.Equal(t, want, rulesOf(release)[0], release)
		require.ElementsMatch(t, rulesOf(""), rulesOf(release))
	}
}

// TestRunNamesReads checks the lines for reads of unknown values, of which five are named.
func TestRunNamesReads(t *testing.T) {
	t.Parallel()
	require.Empty(t, reads(nil))
	require.Equal(t, `Sizes of tensors that depend on unknown values differ from a GPU's:
      1 time  a.py:9  nonzero
Unknown values of tensors were read as zeros:
     9 times  a.py:1
     8 times  a.py:2
     7 times  a.py:3
     6 times  a.py:4
     5 times  a.py:5
  and at 1 more line
`, reads([]launch.Read{
		{Line: "a.py:1", Times: 9}, {Line: "a.py:2", Times: 8}, {Line: "a.py:3", Times: 7}, {Line: "a.py:4", Times: 6},
		{Line: "a.py:5", Times: 5}, {Line: "a.py:6", Times: 4}, {Line: "a.py:9", Times: 1, Shape: "nonzero"},
	}))
}
