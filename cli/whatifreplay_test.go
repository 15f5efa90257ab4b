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
