package trace_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// TestSpansAgreeWithAList begins and ends random blocks, and compares with a list of live ones.
// Blocks that overlap are not kept in either.
func TestSpansAgreeWithAList(t *testing.T) {
	rng := workload.NewRand(3)
	var s trace.Spans
	live := map[uint64]uint64{}
	overlaps := 0
	for range 5000 {
		addr, size := rng.Below(400), rng.Below(20)
		if _, ok := live[addr]; ok {
			delete(live, addr)
			s.End(addr)
			continue
		}
		want := false
		for a, n := range live {
			want = want || a < addr && addr-a < n || a > addr && a-addr < size
		}
		require.Equal(t, want, s.Begin(addr, size))
		if want {
			overlaps++
			s.End(addr)
			continue
		}
		live[addr] = size
	}
	require.Positive(t, overlaps)
	var top trace.Spans
	require.False(t, top.Begin(^uint64(0)-9, 10), "the end of the address space")
	require.True(t, top.Begin(^uint64(0), 1))
	require.True(t, top.Begin(^uint64(0), 1), "twice at one address")
	top.End(5)
}
