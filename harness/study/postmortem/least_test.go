package postmortem_test

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/postmortem"
)

var seed = flag.Uint64("seed", 1, "seed of the random heaps")

// price is the cost of a set of blocks, written independently of the tested code.
type price struct {
	blocks int
	bytes  device.Size
	waits  int
}

func (p price) compare(q price) int {
	return cmp.Or(cmp.Compare(p.blocks, q.blocks), cmp.Compare(p.bytes, q.bytes), cmp.Compare(p.waits, q.waits))
}

// without returns the chunks with some blocks freed, and the price of freeing them.
func without(chunks []alloc.Chunk, gone func(i int) bool) (left []alloc.Chunk, p price) {
	left = slices.Clone(chunks)
	for i, c := range left {
		if !gone(i) {
			continue
		}
		if c.State == alloc.Live {
			p.blocks++
			p.bytes += c.Size
		} else {
			p.waits++
		}
		left[i].State = alloc.Free
	}
	return left, p
}

// hasHole reports whether a run of adjacent free chunks serves a need. It tries every run.
func hasHole(chunks []alloc.Chunk, n *postmortem.Need) bool {
	for i := range chunks {
		var size device.Size
		for j := i; j < len(chunks) && chunks[j].Region == chunks[i].Region; j++ {
			c := chunks[j]
			if c.State != alloc.Free && c.State != alloc.Cached || c.Pool != n.Pool || c.Stream != n.Request.Stream ||
				c.Class != 0 {
				break
			}
			if size += c.Size; size >= n.Block {
				return true
			}
		}
	}
	return false
}

// releasable returns the bytes of the regions that can be released.
func releasable(chunks []alloc.Chunk) (n device.Size) {
	for i := 0; i < len(chunks); {
		j, empty, held := i, chunks[i].Pool == 0, device.Size(0)
		for ; j < len(chunks) && chunks[j].Region == chunks[i].Region; j++ {
			empty = empty && chunks[j].State != alloc.Live && chunks[j].State != alloc.Pending && chunks[j].State != alloc.Slack
			held += chunks[j].Size
		}
		if empty {
			n += held
		}
		i = j
	}
	return n
}

// randomHeap returns a heap of a few regions.
func randomHeap(r *rand.Rand) *postmortem.Heap {
	free := device.Size(r.IntN(8)) * mib
	h := &postmortem.Heap{DeviceFree: &free}
	states := []alloc.State{alloc.Free, alloc.Free, alloc.Live, alloc.Live, alloc.Live, alloc.Pending, alloc.Cached,
		alloc.Slack}
	for g := range 1 + r.IntN(5) {
		c := alloc.Chunk{Region: device.Addr(g+1) << 30, Stream: device.Stream(r.IntN(5) / 4), Class: int32(r.IntN(5) / 4)}
		c.Addr = c.Region
		if r.IntN(6) == 0 {
			c.Pool = 1
		}
		for range 1 + r.IntN(4) {
			c.Size, c.State, c.Tag = device.Size(1+r.IntN(6))*mib, states[r.IntN(len(states))], uint64(len(h.Chunks))
			h.Chunks = append(h.Chunks, c)
			c.Addr = c.End()
		}
	}
	return h
}

// TestSetsAreLeast compares each plan with every possible set of blocks.
func TestSetsAreLeast(t *testing.T) {
	t.Logf("seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 9))
	ways := map[string]int{}
	for range 1500 {
		h := randomHeap(r)
		n := apart(device.Size(1+r.IntN(16)) * mib)
		n.Segment += device.Size(r.IntN(3)) * mib
		best := map[string]*price{}
		var blocks []int
		for i, c := range h.Chunks {
			if c.State == alloc.Live || c.State == alloc.Pending {
				blocks = append(blocks, i)
			}
		}
		if len(blocks) > 11 {
			continue
		}
		for set := range 1 << len(blocks) {
			left, p := without(h.Chunks, func(i int) bool {
				k := slices.Index(blocks, i)
				return k >= 0 && set>>k&1 == 1
			})
			improve := func(way string, ok bool) {
				if ok && (best[way] == nil || p.compare(*best[way]) < 0) {
					best[way] = &p
				}
			}
			improve(postmortem.WayHole, hasHole(left, &n))
			improve(postmortem.WayRegions, *h.DeviceFree+releasable(left) >= n.Segment)
		}
		for way, p := range best {
			if *p == (price{}) {
				delete(best, way) // an empty set is not a plan
			}
		}
		report := postmortem.Explain(h, n, nil)
		require.Len(t, report.Plans, len(best))
		for _, plan := range report.Plans {
			ways[plan.Way]++
			require.True(t, plan.Least)
			require.Equal(t, *best[plan.Way], price{plan.Count, plan.Bytes, plan.Waits}, "%+v\n%+v", h, plan)
			makesRoom(t, h, &n, &plan)
		}
	}
	t.Logf("%v", ways)
	require.Greater(t, ways[postmortem.WayHole], 100)
	require.Greater(t, ways[postmortem.WayRegions], 100)
}

// makesRoom requires that a heap without the blocks of a plan serves the need in the plan's way.
func makesRoom(t *testing.T, h *postmortem.Heap, n *postmortem.Need, plan *postmortem.Plan) {
	t.Helper()
	left, _ := without(h.Chunks, func(i int) bool {
		return slices.ContainsFunc(plan.Blocks, func(b postmortem.Block) bool { return b.Addr == h.Chunks[i].Addr })
	})
	if plan.Way == postmortem.WayHole {
		require.True(t, hasHole(left, n), "%+v", plan)
		return
	}
	require.GreaterOrEqual(t, *h.DeviceFree+releasable(left), n.Segment)
}

// TestPlansDoNotDependOnRegionAddresses moves regions elsewhere and puts them in another order.
func TestPlansDoNotDependOnRegionAddresses(t *testing.T) {
	t.Logf("seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 10))
	for range 300 {
		h := randomHeap(r)
		n := apart(device.Size(1+r.IntN(16)) * mib)
		was := postmortem.Explain(h, n, nil)
		moved := *h
		moved.Chunks = nil
		for _, g := range r.Perm(9) {
			for _, c := range h.Chunks {
				if c.Region == device.Addr(g)<<30 {
					c.Region, c.Addr = c.Region+5<<20, c.Addr+5<<20
					moved.Chunks = append(moved.Chunks, c)
				}
			}
		}
		now := postmortem.Explain(&moved, n, nil)
		require.Equal(t, was.Verdict, now.Verdict)
		require.Equal(t, was.Streams, now.Streams)
		require.Equal(t, was.Pinned, now.Pinned)
		require.Len(t, now.Plans, len(was.Plans))
		for i, p := range was.Plans {
			q := now.Plans[i]
			require.Equal(t, price{p.Count, p.Bytes, p.Waits}, price{q.Count, q.Bytes, q.Waits})
		}
	}
}

// TestPagesAreFreedInTheCheapestPlace compares with every run of chunks of a region that grows.
func TestPagesAreFreedInTheCheapestPlace(t *testing.T) {
	t.Logf("seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 14))
	const page = 4 * mib
	pages := func(from, to device.Size) device.Size { return max(to/page, (from+page-1)/page) - (from+page-1)/page }
	planned := 0
	for range 1000 {
		free := device.Size(0)
		h := &postmortem.Heap{DeviceFree: &free}
		c := alloc.Chunk{Region: 1 << 30, Addr: 1 << 30, Stream: 1} // of another stream: nothing there serves at once
		for range 1 + r.IntN(12) {
			c.Size = device.Size(1+r.IntN(9)) * mib
			c.State = []alloc.State{alloc.Live, alloc.Live, alloc.Free, alloc.Pending, alloc.Unmapped}[r.IntN(5)]
			h.Chunks = append(h.Chunks, c)
			c.Addr = c.End()
		}
		n := apart(device.Size(1+r.IntN(4)) * page)
		n.PageOf = func(alloc.Chunk) device.Size { return page }
		loose := func(chunks []alloc.Chunk) (sum device.Size) {
			for _, c := range chunks {
				if c.State == alloc.Free {
					sum += page * pages(c.Addr.Sub(c.Region), c.End().Sub(c.Region))
				}
			}
			return sum
		}
		all := loose(h.Chunks)
		if all >= n.Segment {
			continue
		}
		var best *price
		for i := range h.Chunks {
			for j := i; j < len(h.Chunks) && h.Chunks[j].State != alloc.Unmapped; j++ {
				part := h.Chunks[i : j+1]
				_, p := without(part, func(k int) bool { return part[k].State == alloc.Live || part[k].State == alloc.Pending })
				gain := page*pages(part[0].Addr.Sub(c.Region), h.Chunks[j].End().Sub(c.Region)) - loose(part)
				if gain >= n.Segment-all && (best == nil || p.compare(*best) < 0) {
					best = &p
				}
			}
		}
		plans := postmortem.Explain(h, n, nil).Plans
		if best == nil {
			require.Empty(t, plans)
			continue
		}
		planned++
		require.Len(t, plans, 1)
		require.Equal(t, postmortem.WayPages, plans[0].Way)
		require.GreaterOrEqual(t, plans[0].Back, n.Segment-all)
		require.Equal(t, *best, price{plans[0].Count, plans[0].Bytes, plans[0].Waits})
	}
	require.Greater(t, planned, 300)
}

// TestLongSearchesEnd has more regions than can be searched for the least set. The plan is a good
// one and says so.
func TestLongSearchesEnd(t *testing.T) {
	t.Logf("seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 15))
	free := device.Size(0)
	h := &postmortem.Heap{DeviceFree: &free}
	for g := range 2000 {
		c := alloc.Chunk{Region: device.Addr(g+1) << 40, Stream: 1}
		c.Addr = c.Region
		for range 1 + r.IntN(9) {
			c.Size, c.State = device.Size(1+r.IntN(1<<20)), []alloc.State{alloc.Free, alloc.Live, alloc.Live}[r.IntN(3)]
			h.Chunks = append(h.Chunks, c)
			c.Addr = c.End()
		}
	}
	n := apart(device.GiB)
	plans := postmortem.Explain(h, n, nil).Plans
	require.Len(t, plans, 1)
	require.False(t, plans[0].Least)
	makesRoom(t, h, &n, &plans[0])
	for i := range plans[0].Blocks {
		require.NotEqual(t, alloc.Free.String(), plans[0].Blocks[i].State)
	}
}
