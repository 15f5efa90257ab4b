package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
)

// TestFreeAt replays a block that a stream goes on using after its free.
func TestFreeAt(t *testing.T) {
	path := write(t, "delayed.trace", "a 1 1MiB\nf 1\na 2 1MiB stream=3\ndone 1\nf 2\n")
	for at, want := range map[string]device.Size{"completed": 2 * device.MiB, "requested": device.MiB} {
		var one struct {
			Peak    device.Size `json:"peak_allocated_bytes"`
			Streams []replay.StreamFigures
		}
		text := succeed(t, "replay", "--strategy", "bestfit", "--json", "-", "--free-at", at, "--check", path)
		require.NoError(t, json.Unmarshal([]byte(text), &one))
		require.Equal(t, want, one.Peak)
		require.Len(t, one.Streams, 2)
		var all compare.Report
		text = succeed(t, "compare", path, "--strategies", "bestfit", "--json", "-", "--free-at", at)
		require.NoError(t, json.Unmarshal([]byte(text), &all))
		require.Equal(t, want, all.Runs[0].PeakAllocated)
		require.Equal(t, at, string(all.FreeAt))
	}
	table := succeed(t, "replay", "--strategy", "bestfit", path)
	require.Contains(t, table, "peak allocated ")
	require.Contains(t, table, "stream 3: granted / peak requested / peak allocated")
}
