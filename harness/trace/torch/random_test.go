package torch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// anything makes a device whose entries and blocks agree on nothing.
func anything(rng *workload.Rand) torch.Device {
	var d torch.Device
	d.History.Streams = []int64{0, 4096, -1}
	d.History.Pools = [][2]uint64{{}, {0, 3}}
	d.History.Confs = []string{"a:b"}
	addr := func() uint64 {
		if rng.Below(50) == 0 {
			return -(rng.Below(3) * 256)
		}
		return rng.Below(16) * 512
	}
	for range rng.Below(200) {
		d.History.Append(torch.Entry{
			Action: torch.Action(rng.Below(11)), Addr: addr(), Size: rng.Below(4) * 512, Time: int64(rng.Below(40)) - 1,
			Stream: uint16(rng.Below(3)), Pool: uint16(rng.Below(2)),
		})
	}
	for range rng.Below(6) {
		s := torch.Segment{Addr: addr(), Total: rng.Below(8) * 512, Expandable: rng.Below(2) == 0}
		for range rng.Below(4) {
			s.Blocks = append(s.Blocks, torch.Block{
				Addr: addr(), Size: 512, Requested: rng.Below(600), State: torch.BlockState(rng.Below(3)),
			})
		}
		d.Segments = append(d.Segments, s)
	}
	return d
}

// TestRandomSnapshotsAreAccepted makes traces of histories that cannot have been. Each is a trace
// that holds the rules of traces, with as many allocations as the history has.
func TestRandomSnapshotsAreAccepted(t *testing.T) {
	rng := workload.NewRand(8)
	for range 3000 {
		s := &torch.Snapshot{Devices: []torch.Device{anything(rng)}, Strings: []string{"", "x"}}
		for range rng.Below(4) {
			s.Annotations = append(s.Annotations, torch.Annotation{Name: 1, Time: int64(rng.Below(60)) - 10})
		}
		results, err := torch.Traces(s)
		require.NoError(t, err)
		for _, r := range results {
			b := trace.NewBuilder(r.Trace.Header)
			allocs := 0
			for _, e := range r.Trace.Events {
				require.NoError(t, b.Add(e))
				if e.Kind == trace.Alloc && int(e.ID) >= len(r.Timeline.Opening) {
					allocs++
				}
			}
			require.Equal(t, r.Report.Allocs, allocs)
			require.Equal(t, len(r.Trace.Events), len(b.Trace().Events))
			require.NotEmpty(t, r.Report.String())
		}
	}
}
