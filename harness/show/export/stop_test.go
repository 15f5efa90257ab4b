package export_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/show/export"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/strategies"
)

// TestExportEndsAtTheFatalRequest has a request refused in the middle of a trace. The
// events after it are not replayed, for a strategy that reports refusals and for one that does not.
func TestExportEndsAtTheFatalRequest(t *testing.T) {
	const text = "a 1 30MiB\na 2 30MiB\nf 1\na 3 40MiB tag=large\nf 2\na 4 1MiB\n"
	tr, err := trace.Read(bytes.NewReader([]byte(text)), "t.trace", trace.Options{})
	require.NoError(t, err)
	for name, freeThen := range map[string]device.Size{"caching": 34 * device.MiB, "async": 0, "bfc:growth": 0} {
		for _, stop := range []bool{false, true} {
			setup, err := strategies.All().Lookup(name, nil)
			require.NoError(t, err)
			dev, err := sim.New(sim.Config{Capacity: 64 * device.MiB})
			require.NoError(t, err)
			r, err := export.Replay(tr, setup.ForCapacity(64*device.MiB), dev, export.Options{StopAtOOM: stop})
			require.NoError(t, err)
			s, err := r.Snapshot()
			require.NoError(t, err)
			h := &s.Devices[0].History
			ooms, last := 0, h.At(h.Len()-1)
			for i := range h.Len() {
				if e := h.At(i); e.Action == torch.ActionOOM {
					ooms++
					require.EqualValues(t, 40*device.MiB, e.Size, name)
					require.Equal(t, "large", functionOf(s, e.Stack), "%s: who asked", name)
					if freeThen != 0 {
						require.EqualValues(t, freeThen, e.Addr, name)
					}
				}
			}
			require.Equal(t, 1, ooms, name)
			require.Equal(t, stop, last.Action == torch.ActionOOM, name)
			live := 0
			for _, seg := range s.Devices[0].Segments {
				for _, b := range seg.Blocks {
					if b.State == torch.ActiveAllocated {
						live++
					}
				}
			}
			require.Equal(t, 1, live, "%s: the block that is there at the end", name)
		}
	}
}

// functionOf returns the function that a stack was recorded in.
func functionOf(s *torch.Snapshot, stack uint32) string {
	for frame := range s.Stack(stack) {
		return s.Strings[s.Frames[frame].Function]
	}
	return ""
}
