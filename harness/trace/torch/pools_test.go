package torch_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/torch"
)

const mib = 1 << 20

// large is a segment for large blocks.
func large(addr uint64, pool [2]uint64) torch.Segment {
	return torch.Segment{Addr: addr, Total: 20 * mib, Large: true, Pool: pool}
}

// TestPrivatePoolsAreOpenAroundTheirRequests begins a pool at its first request and again later.
func TestPrivatePoolsAreOpenAroundTheirRequests(t *testing.T) {
	const other, at = base + 32*mib, base + 64*mib
	graph := [2]uint64{3, 0}
	for name, c := range map[string]struct {
		b    *builder
		want []string
	}{
		"opened, closed and opened again": {
			one().alloc(at, 2).alloc(at+2*512, 3).alloc(other, 2).alloc(at+5*512, 4).
				segment(large(other, [2]uint64{})).segment(large(at, graph)),
			[]string{
				"pool begin 1 stream=0", "a 0 2", "a 1 3", "pool end 1", "a 2 2",
				"pool begin 1 stream=0", "pool release 1", "a 3 4",
			},
		},
		"one pool after the other": {
			one().alloc(at, 2).alloc(other, 2).segment(large(other, [2]uint64{0, 1})).segment(large(at, graph)),
			[]string{
				"pool begin 1 stream=0", "a 0 2", "pool end 1", "pool begin 2 stream=0", "a 1 2",
			},
		},
		"closed where a free is delayed or completes": {
			one().alloc(at, 2).request(at, 2).alloc(at+2*512, 3).complete(at, 2).segment(large(at, graph)),
			[]string{
				"pool begin 1 stream=0", "a 0 2", "pool end 1", "f 0",
				"pool begin 1 stream=0", "pool release 1", "a 1 3", "pool end 1", "done 0",
			},
		},
		"live at the start": {
			one().alloc(other, 2).
				segment(large(other, [2]uint64{}), block(other, 2), block(other+512, 1)).
				segment(large(at, graph), block(at, 3)),
			[]string{
				"live 0 1", "pool begin 1 stream=0", "a 1 3", "pool end 1", "a 2 2",
			},
		},
		"live in a file without a history": {
			one().segment(large(at, graph), block(at, 3)), []string{"live 0 3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, lines(t, c.b.result(t).Trace))
		})
	}
}

// TestEntriesNameReleasedPools has entries with pools: a pool is released before its memory is.
func TestEntriesNameReleasedPools(t *testing.T) {
	b := one().add(torch.ActionSegmentAlloc, base, 20*mib, 0).alloc(base, 2).free(base, 2).
		add(torch.ActionSegmentFree, base, 20*mib, 0).add(torch.ActionOOM, 5, 1<<40, 0)
	was := b.d.History
	b.d.History = torch.History{Streams: []int64{0}, Pools: [][2]uint64{{}, {0, 7}}}
	for i := range was.Len() {
		e := was.At(i)
		e.Pool = 1
		b.d.History.Append(e)
	}
	r := b.result(t)
	require.Equal(t, []string{
		"pool begin 1 stream=0", "a 0 2", "f 0", "pool end 1", "pool release 1",
		"pool begin 1 stream=0", "refused 1099511627776 tag=rounded",
	}, lines(t, r.Trace))
	require.NotContains(t, r.Report.Unknown, torch.UnknownPools)
}

// TestEmptiedCachesAreTrims returns memory in front of each kind of entry.
func TestEmptiedCachesAreTrims(t *testing.T) {
	const next = base + 64*mib
	// back returns a segment in the call with one stack; the entries that follow have another one.
	back := func(stack, then uint32) *builder {
		b := one().add(torch.ActionSegmentAlloc, base, 20*mib, 0).alloc(base, 2*mib).free(base, 2*mib)
		in := torch.NewInterner(&b.s)
		for line := range int64(2) {
			in.Stack([]uint32{in.Frame(torch.Frame{File: in.String("train.py"), Line: line + 1})})
		}
		b.stack = stack
		b.add(torch.ActionSegmentFree, base, 20*mib, 0)
		b.stack = then
		return b
	}
	taken := func(b *builder, n uint64) *builder {
		return b.add(torch.ActionSegmentAlloc, next, n, 0).alloc(next, 2*mib)
	}
	roomy := func(b *builder) *builder { return taken(b, 20*mib).add(torch.ActionSegmentAlloc, 1<<40, 20*mib, 0) }
	collects := roomy(back(0, 0))
	collects.s.Settings = []torch.Setting{{Key: "garbage_collection_threshold", Value: "0.5"}}
	for name, c := range map[string]struct {
		b    *builder
		want bool
	}{
		"at the end":                           {back(1, 0), true},
		"before a free":                        {back(1, 1).free(base+4*mib, mib), true},
		"before a block of cached memory":      {back(0, 0).alloc(next, mib), true},
		"before a segment of another call":     {taken(back(1, 2), 20*mib), true},
		"in the call that takes a segment":     {taken(back(2, 2), 20*mib), false},
		"in the call that is refused":          {back(2, 2).add(torch.ActionOOM, mib, 30*mib, 0), false},
		"no stacks, and never more was held":   {taken(back(0, 0), 20*mib), false},
		"no stacks, and there was room":        {roomy(back(0, 0)), true},
		"no stacks, and a request may collect": {collects, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.b.result(t)
			trims := slices.DeleteFunc(lines(t, r.Trace), func(line string) bool { return line != "trim" })
			require.Equal(t, c.want, len(trims) == 1, trims)
			require.Equal(t, !c.want && len(c.b.s.Settings) == 0, r.Report.Tight)
		})
	}
}
