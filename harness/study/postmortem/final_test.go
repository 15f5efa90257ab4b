package postmortem_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/trace/torch"
)

// segmentOf returns a segment of blocks with sizes in MiB; a negative size is a free block.
func segmentOf(at uint64, sizes ...int) torch.Segment {
	s := torch.Segment{Addr: at << 30, Large: true}
	for _, n := range sizes {
		b := torch.Block{Addr: s.Addr + s.Total, Size: uint64(max(n, -n)) << 20}
		if n > 0 {
			b.State, b.Requested = torch.ActiveAllocated, b.Size-1
		}
		s.Blocks = append(s.Blocks, b)
		s.Total += b.Size
	}
	return s
}

// TestTheFinalHeapAddsUp has an empty segment, a sparse one, one of a private pool, and one that
// grows in pages of 20 MiB.
func TestTheFinalHeapAddsUp(t *testing.T) {
	pool, grows := segmentOf(3, -50), segmentOf(4, -30, 15, -75)
	pool.Pool, grows.Expandable = [2]uint64{1, 0}, true
	r := refusing([]torch.Segment{segmentOf(1, -100), segmentOf(2, -60, 4, 1, -15), pool, grows, segmentOf(5, 30, -10)})
	r.Promises = promise.Set{Page: 20 * mib}
	f := r.Final()
	require.Equal(t, postmortem.Amount{Count: 5, Bytes: 390 * mib}, f.Reserved)
	require.Equal(t, postmortem.Amount{Count: 4, Bytes: 50 * mib}, f.Live)
	require.Equal(t, 50*mib-4, f.Requested)
	require.Equal(t, postmortem.Amount{Count: 2, Bytes: 150 * mib}, f.Empty)
	require.Equal(t, 50*mib, f.PoolEmpty)
	require.Equal(t, (100+20+60)*mib, f.Returnable, "the empty segment, and whole pages of the segment that grows")
	require.Equal(t, (75+10+15+10)*mib, f.InactiveSplit)
	require.Len(t, f.Sparse, 1)
	require.Equal(t, device.Addr(2<<30), f.Sparse[0].Addr)
	require.Equal(t, postmortem.Amount{Count: 2, Bytes: 5 * mib}, f.Sparse[0].Used)
	require.Equal(t, f.Reserved.Bytes, f.Live.Bytes+f.Pending.Bytes+f.Returnable+f.PoolEmpty+f.InactiveSplit)

	var text strings.Builder
	require.NoError(t, report.FinalHeap(&text, f))
	require.Equal(t, `  reserved   390.00 MiB in 5 segments
  live       50.00 MiB requested in 4 blocks, 50.00 MiB with rounding
  empty      150.00 MiB in 2 segments
  returnable 180.00 MiB of free segments and pages, which torch.cuda.empty_cache() returns
  pools      50.00 MiB in empty segments of private pools, which a CUDA graph may still use
  beside     110.00 MiB free beside blocks in use, which no call releases
  held       75.00 MiB of that in 1 segment of which at most a tenth is in use
             80.00 MiB at 0x80000000 by 2 blocks of 5.00 MiB
`, text.String())
}
