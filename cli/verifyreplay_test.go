package cli

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReplaysAreVerifiedWithTheirConfiguration writes replays of ours as snapshots and holds
// caching to them.
func TestReplaysAreVerifiedWithTheirConfiguration(t *testing.T) {
	dir := t.TempDir()
	replayed := func(strategy, config string) string {
		file := filepath.Join(dir, "run.pickle")
		succeed(t, "replay", "--strategy", strategy, "--config", config, "--device", "sim:8GiB", "--snapshot", file,
			"cpu_unet_train")
		return file
	}
	const config = `{"memory_fraction":0.9,"rules":"2.6","conf":"roundup_power2_divisions:[64:8,>:4]"}`
	out := succeed(t, "verify", "--json", "-", replayed("caching", config))
	require.Contains(t, out, `"rules": "2.6"`)
	require.Contains(t, out, `"memory_fraction": 0,`)

	status, _, stderr := command(t, "verify", replayed("bfc", "{}"))
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "run: a replay of the strategy bfc, want a recording of PyTorch, or a replay of caching\n")
}
