package export_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/export"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/harness/trace/vectors"
	"github.com/vramyard/vramyard/strategies"
)

// TestExportedSnapshotsAreReadBack exports a replay of each of PyTorch's vectors, imports the
// snapshot, and replays that: every block lies where it lay.
func TestExportedSnapshotsAreReadBack(t *testing.T) {
	all, err := vectors.Torch()
	require.NoError(t, err)
	compared := 0
	for _, v := range all {
		tr, err := v.Trace()
		require.NoError(t, err)
		// A refused request is in the snapshot, but a replay of the snapshot does not repeat it, although
		// it released cached memory. In three vectors the program empties the cache right before a
		// request for which the device may have had no room: without stacks, the request seems to have
		// done that.
		if v.Refused > 0 || slices.Contains([]string{"fuzz_00", "captures", "mempools"}, v.Name) {
			continue
		}
		compared++
		t.Run(v.ID(), func(t *testing.T) {
			s, err := strategies.All().Lookup("caching", v.Config)
			require.NoError(t, err)
			var on sim.Config
			require.NoError(t, json.Unmarshal(v.Sim, &on))
			dev, err := sim.New(on)
			require.NoError(t, err)
			r, err := export.Replay(tr, s, dev, export.Options{})
			require.NoError(t, err)
			var file bytes.Buffer
			require.NoError(t, r.WriteSnapshot(&file))
			snap, err := torch.Read(&file, nil)
			require.NoError(t, err)
			back, err := torch.Traces(snap)
			require.NoError(t, err)
			require.Len(t, back, 1)
			require.Zero(t, back[0].Report.Inconsistencies(), "%v", back[0].Report)
			require.True(t, slices.Equal(placements(t, tr, s, on), placements(t, back[0].Trace, s, on)))
		})
	}
	require.Greater(t, compared, 70)
}

// placements replays a trace and returns every block that was granted.
func placements(t *testing.T, tr *trace.Trace, s setting.Setup, c sim.Config) (list []alloc.Block) {
	t.Helper()
	dev, err := sim.New(c)
	require.NoError(t, err)
	_, err = replay.Run(tr, s, dev, replay.Options{Observe: func(o replay.Observation) error {
		if o.Request.Size != 0 && o.Err == nil {
			list = append(list, alloc.Block{Addr: o.Block.Addr, Size: o.Block.Size}) // references may differ
		}
		return nil
	}})
	require.NoError(t, err)
	return list
}
