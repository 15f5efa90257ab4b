package torch_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// TestHistoryKeepsEntries appends entries whose columns need every width, none among them.
func TestHistoryKeepsEntries(t *testing.T) {
	masks := []uint64{0, 1, 0xff00, 0xffff_f000, 0xffff_ffff_0000, math.MaxUint64}
	rng := workload.NewRand(1)
	var h torch.History
	var want []torch.Entry
	for i := range 40_000 {
		m := masks[i/6000%len(masks)]
		e := torch.Entry{
			Addr: 1<<46 + rng.Next()&m, Size: rng.Next() & m, Time: int64(rng.Next() & m),
			Stack: uint32(rng.Next() & m), Category: uint32(rng.Next() & m), Stream: uint16(rng.Next() & m),
			Pool: uint16(rng.Next() & m), Action: torch.Action(rng.Next() & m & 7),
		}
		if i%5 == 0 {
			e.Time = torch.NoTime
		}
		h.Append(e)
		want = append(want, e)
	}
	require.Equal(t, len(want), h.Len())
	for i, e := range want {
		if e != h.At(i) {
			require.Equal(t, e, h.At(i), "entry %d", i)
		}
	}
}

// TestStacksShareTheirOuterParts adds stacks and reads them back.
func TestStacksShareTheirOuterParts(t *testing.T) {
	var s torch.Snapshot
	in := torch.NewInterner(&s)
	require.Zero(t, in.Stack(nil))
	var frames []uint32
	for line := range int64(10) {
		frames = append(frames, in.Frame(torch.Frame{File: in.String("a.py"), Function: in.String("f"), Line: line}))
	}
	rng := workload.NewRand(2)
	ids := map[uint32][]uint32{}
	for range 2000 {
		stack := []uint32{frames[rng.Below(10)], frames[rng.Below(3)], frames[0], frames[1]}[rng.Below(3):]
		id := in.Stack(stack)
		if old, ok := ids[id]; ok {
			require.Equal(t, old, stack)
		}
		ids[id] = stack
		var got []uint32
		for f := range s.Stack(id) {
			got = append(got, f)
		}
		require.Equal(t, stack, got)
	}
	require.Equal(t, 1+1+1+3+30, s.Calls.Len(), "each stack and each of its outer parts once, and none twice")
	require.Len(t, s.Strings, 3)
	require.Equal(t, frames[3], torch.NewInterner(&s).Frame(s.Frames[frames[3]]), "an interner finds what is there")
	require.NotZero(t, in.Frame(torch.Frame{}), "an entry for a frame without names is no empty stack")
}
