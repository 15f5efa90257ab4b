package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/whatif"
)

// requireReproduced requires that verify and whatif reproduce a snapshot completely: the model
// places each allocation where it was, and the replay of the trace reserves the same peak.
func requireReproduced(t *testing.T, snapshot string, private bool) {
	t.Helper()
	succeed(t, "verify", snapshot)
	var r whatif.Result
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "whatif", "--json", "-", snapshot)), &r))
	require.Empty(t, r.Cannot)
	require.NotZero(t, r.Recorded.Allocs)
	require.Equal(t, r.Recorded.Allocs, r.Recorded.Predicted)
	require.Equal(t, r.Recorded.Peak, r.Recorded.Replayed)
	sure := strings.Join(r.Answer.Sure, "\n")
	require.Equal(t, private, strings.Contains(sure, "Private pools (CUDA graphs) are replayed."), sure)
}

// TestWhatifReproducesRecordings replays recordings of "vramyard run", without their stacks:
// examples/without-gpu/unet.py depends on the order of addresses, and released cached memory on a
// tight device; graphs.py and testdata/pytorch/pools.py have private pools and empty the cache.
func TestWhatifReproducesRecordings(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/recordings/*.pickle.xz")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			requireReproduced(t, file, !strings.Contains(file, "unet"))
		})
	}
}

// TestWhatifKeepsAPolicyOfTheUser replays a recording with falling addresses, which alone reserves
// the recorded peak.
func TestWhatifKeepsAPolicyOfTheUser(t *testing.T) {
	t.Parallel()
	const file, cannot = "testdata/recordings/unet-2.6.pickle.xz", "This file cannot answer that: replayed with the "
	require.Contains(t, succeed(t, "whatif", "--sim", `{"policy":"first-fit"}`, file), cannot)
	for _, sim := range []string{`{"charge":"2MiB"}`, `{"policy":"top-down"}`} {
		require.NotContains(t, succeed(t, "whatif", "--sim", sim, file), cannot, sim)
	}
}

// TestPyTorchPoolsAreReproduced records programs with private pools in the real PyTorch.
func TestPyTorchPoolsAreReproduced(t *testing.T) {
	for _, program := range []string{"testdata/pytorch/pools.py", "../examples/without-gpu/graphs.py"} {
		_, err := os.ReadFile(program) // so that a kept result knows what it is of
		require.NoError(t, err)
		snapshot := filepath.Join(t.TempDir(), "run.pickle")
		out := launched(t, "--device", "sim:t4-16g", "--snapshot", snapshot, "--", python(t), program)
		require.Contains(t, out, "Private pools (CUDA graphs) are replayed.")
		requireReproduced(t, snapshot, true)
	}
}

// TestSettingsThatATraceRejectsAreLeftOut has a trace whose program asks for a limit below the
// large segments of some settings. A change that no setting takes is an error of the trace.
func TestSettingsThatATraceRejectsAreLeftOut(t *testing.T) {
	const text, lines = "a 1 100MiB\nconf max_split_size_mb:20\na 2 50MiB\n", "a 1 100MiB\na 2 60MiB\n"
	changing, other := write(t, "changing.trace", text), write(t, "other.trace", lines)
	const why = `: conf "max_split_size_mb:20": max_split_size_mb:20: want at least `
	reason := changing + ":2" + why
	words := func(args ...string) string { return strings.Join(strings.Fields(succeed(t, args...)), " ") }
	for _, args := range [][]string{{"whatif", changing}, {"whatif", "--grid", "full", "--device", "sim:160MiB", changing},
		{"whatif", "--device", "sim:120MiB", changing}, {"fleet", other, changing}} {
		out := words(args...)
		require.Contains(t, out, "FAILED: rejects a change of the settings")
		require.Contains(t, out, "caching large_segment_size_mb:64")
		require.Contains(t, out, "The trace cannot be replayed with it: "+reason+"64, the size of a large segment.")
	}
	require.Contains(t, words("whatif", "--across-releases", changing),
		"releases 2.10 to 2.15 need 150.00 MiB. Releases 2.4 to 2.9 refuse these settings: "+reason+"21,")
	bad := write(t, "bad.trace", "a 1 1MiB\n\n# a comment\nconf nonsense:1\n")
	own := write(t, "own.trace", `# config={"conf":"large_segment_size_mb:64"}`+"\n"+text)
	binary := filepath.Join(t.TempDir(), "bad.parquet")
	succeed(t, "trace", "convert", bad, binary)
	for path, want := range map[string]string{
		bad: bad + `:4: conf "nonsense:1": `, own: own + ":3" + why + "64", binary: `event 1: conf "nonsense:1": `,
	} {
		status, _, stderr := command(t, "whatif", path)
		require.Equal(t, exitTrouble, status)
		require.Contains(t, strings.ReplaceAll(stderr, "alloc: invalid settings: ", ""), want)
		status, _, stderr = command(t, "replay", "--strategy", "caching", path)
		require.Equal(t, path != own, status == exitTrouble)
		require.Equal(t, path != own, strings.Contains(strings.ReplaceAll(stderr, "alloc: invalid settings: ", ""), want))
	}
}
