package torch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/torch"
)

// TestSitesMatchTheStacks records the same places in two snapshots, whose tables have them in
// different orders.
func TestSitesMatchTheStacks(t *testing.T) {
	// sites returns the sites of the events of a history: of a block that is live at the start,
	// allocated in train.py:9 and there at the end, of one that is freed, and of an allocation for
	// each line, in a call from train.py:1.
	sites := func(lines ...int64) []uint64 {
		b := one()
		in := torch.NewInterner(&b.s)
		frame := func(line int64) uint32 {
			return in.Frame(torch.Frame{File: in.String("train.py"), Function: in.String("step"), Line: line})
		}
		for i, line := range lines {
			if b.stack = 0; line > 0 {
				b.stack = in.Stack([]uint32{frame(line), frame(1)})
			}
			b.alloc(base+4096+512*uint64(i), 40)
		}
		b.stack = in.Stack([]uint32{frame(5)})
		b.complete(base+1024, 40)
		stays := block(base, 40)
		stays.Stack = in.Stack([]uint32{frame(9), frame(1)})
		var list []uint64
		for _, e := range b.segment(small, stays).result(t).Trace.Events {
			list = append(list, e.Site)
		}
		return list
	}
	a, b := sites(7, 8, 9, 0), sites(9, 7, 8, 7)
	require.Equal(t, a[2:5], []uint64{b[3], b[4], b[2]})
	require.Equal(t, b[3], b[5])
	require.Equal(t, a[0], a[4], "a block that was there at the start and is at the end has the site of its stack")
	require.Zero(t, a[1], "the stack of a free is no site of the allocation")
	require.Zero(t, a[5], "without a stack")
	require.NotContains(t, []uint64{0, a[3], a[4]}, a[2])
	require.NotEqual(t, a[3], a[4])
}
