package postmortem

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Ways to make room.
const (
	WayHole    = "hole"    // a sufficient hole inside a region
	WayRegions = "regions" // regions are returned, so that the device can grant a new one
	WayPages   = "pages"   // pages are returned, so that the device can grant others
)

// Plan is a set of blocks whose absence would have made room.
type Plan struct {
	Way     string        `json:"way"`               // WayHole, WayRegions or WayPages
	Addr    device.Addr   `json:"address"`           // WayHole, WayPages: start of the hole
	Hole    device.Size   `json:"hole_bytes"`        // size of the hole, including adjacent free chunks
	Regions []device.Addr `json:"regions,omitempty"` // WayRegions: regions returned
	Back    device.Size   `json:"given_back_bytes"`  // WayRegions, WayPages: bytes returned
	Count   int           `json:"block_count"`       // live blocks to free or move
	Bytes   device.Size   `json:"copied_bytes"`      // their size: the bytes to copy
	Waits   int           `json:"pending_count"`     // pending blocks to wait for
	// no set with lower cost exists in this way
	Least bool `json:"least"`
	// outcome of the test: granted or not; null: not tested
	Proven *bool   `json:"proven,omitempty"`
	Blocks []Block `json:"blocks"` // all blocks, by address
}

// Block is a block of a plan.
type Block struct {
	Addr      device.Addr   `json:"address"`         // first byte
	Size      device.Size   `json:"size_bytes"`      // granted
	Requested device.Size   `json:"requested_bytes"` // requested
	Stream    device.Stream `json:"stream"`          // of its request
	State     string        `json:"state"`           // live, or pending: freed, but still used by a stream
	Tag       uint64        `json:"-"`               // tag of its request
	Owner     Owner         `json:"owner"`           // who asked for it
}

func blockOf(c *alloc.Chunk) Block {
	return Block{Addr: c.Addr, Size: c.Size, Requested: c.Requested, Stream: c.Stream, State: c.State.String(), Tag: c.Tag}
}

func (p *Plan) take(chunks []alloc.Chunk) {
	for i := range chunks {
		c := &chunks[i]
		switch c.State {
		case alloc.Live:
			p.Count++
			p.Bytes += c.Size
		case alloc.Pending:
			p.Waits++
		default:
			continue
		}
		p.Blocks = append(p.Blocks, blockOf(c))
	}
}

// cost is the cost of a plan.
type cost struct {
	blocks int         // live blocks
	bytes  device.Size // of them
	waits  int         // number of pending blocks
}

// count adds the cost of a chunk (by = 1) or subtracts it (by = -1).
func (k *cost) count(c *alloc.Chunk, by int) {
	switch c.State {
	case alloc.Live:
		k.blocks += by
		k.bytes += device.Size(by) * c.Size // -1 wraps around, and the sum wraps back
	case alloc.Pending:
		k.waits += by
	}
}

// compare compares blocks, then bytes, then waits.
func (k cost) compare(than cost) int {
	return cmp.Or(cmp.Compare(k.blocks, than.blocks), cmp.Compare(k.bytes, than.bytes), cmp.Compare(k.waits, than.waits))
}

// window is a run of adjacent chunks with its cost.
type window struct {
	cost
	stretch []alloc.Chunk // contiguous chunks of a region; nil: no window
	i, j    int           // first chunk, and one past the last
}

func (w *window) run() alloc.Chunk {
	c := w.stretch[w.i]
	c.State = alloc.Free
	c.Size = w.stretch[w.j-1].End().Sub(c.Addr)
	return c
}

// widened returns the window extended by adjacent free chunks.
func (w window) widened() window {
	for w.i > 0 && w.stretch[w.i-1].State == alloc.Free {
		w.i--
	}
	for w.j < len(w.stretch) && w.stretch[w.j].State == alloc.Free {
		w.j++
	}
	return w
}

// slide replaces w by the cheapest sufficient window of a stretch, if it is cheaper. enough must be
// monotone in the window. For each first chunk only the shortest window is considered, since longer
// ones cost no less; accept may reject it. O(chunks).
func (w *window) slide(stretch []alloc.Chunk, enough, accept func(*window) bool) {
	x := window{stretch: stretch}
	for x.i = range stretch {
		if x.j < x.i {
			x.j, x.cost = x.i, cost{}
		}
		for x.j == x.i || !enough(&x) {
			if x.j == len(stretch) {
				return
			}
			x.count(&stretch[x.j], 1)
			x.j++
		}
		if (w.stretch == nil || x.compare(w.cost) < 0) && accept(&x) {
			*w = x
		}
		x.count(&stretch[x.i], -1)
	}
}

// stretches yields the maximal runs of chunks that pass.
func stretches(chunks []alloc.Chunk, pass func(*alloc.Chunk) bool, yield func([]alloc.Chunk)) {
	from := 0
	for i := range chunks {
		if !pass(&chunks[i]) {
			if i > from {
				yield(chunks[from:i])
			}
			from = i + 1
		}
	}
	if from < len(chunks) {
		yield(chunks[from:])
	}
}

// solid reports whether a chunk is memory that is used or usable.
func solid(c *alloc.Chunk) bool { return c.State.Held() && c.State != alloc.Slack }

// hole returns the cheapest way to make a hole in a region, or nil. apart reports that the hole
// exists without evictions, but the allocator keeps its parts separate.
func (n *Need) hole(regions []region) (p *Plan, apart bool) {
	var best window
	may := func(c *alloc.Chunk) bool { return solid(c) && n.obstacle(*c) == usable }
	enough := func(w *window) bool {
		first := &w.stretch[w.i]
		return aligned(first.Region, first.Addr, n.Align).Add(n.Block) <= w.stretch[w.j-1].End()
	}
	accept := func(w *window) bool { return n.fits(w.run()) }
	for _, g := range regions {
		stretches(g.chunks, may, func(part []alloc.Chunk) { best.slide(part, enough, accept) })
	}
	if best.stretch == nil || best.cost == (cost{}) {
		return nil, best.stretch != nil
	}
	wide := best.widened()
	hole := wide.run()
	p = &Plan{Way: WayHole, Addr: hole.Addr, Hole: hole.Size, Least: true}
	p.take(best.stretch[best.i:best.j])
	return p, false
}

// pages returns the cheapest way to return pages by emptying one place of an expandable region, or
// nil. missing is the bytes that the device lacks.
func (n *Need) pages(regions []region, missing device.Size) *Plan {
	var best window
	var back device.Size
	for _, g := range regions {
		if g.page == 0 || g.pool != 0 {
			continue
		}
		stretches(g.chunks, solid, func(part []alloc.Chunk) {
			loose := loosePages(part, g.page)
			gain := func(w *window) device.Size { return whole(w.run(), g.page) - (loose[w.j] - loose[w.i]) }
			enough := func(w *window) bool { return gain(w) >= missing }
			best.slide(part, enough, func(w *window) bool {
				back = gain(w)
				return true
			})
		})
	}
	if best.stretch == nil {
		return nil
	}
	hole := best.run()
	p := &Plan{Way: WayPages, Addr: hole.Addr, Hole: hole.Size, Back: back}
	p.take(best.stretch[best.i:best.j])
	return p
}

// whole returns the bytes of whole pages inside a chunk, counted from the start of its region.
func whole(c alloc.Chunk, page device.Size) device.Size {
	from, to := aligned(c.Region, c.Addr, page).Sub(c.Region), c.End().Sub(c.Region)/page*page
	if from >= to {
		return 0
	}
	return to - from
}

// loosePages returns the prefix sums over chunks of the pages that are entirely free.
func loosePages(chunks []alloc.Chunk, page device.Size) []device.Size {
	sums := make([]device.Size, len(chunks)+1)
	for i, c := range chunks {
		sums[i+1] = sums[i]
		if c.State == alloc.Free {
			sums[i+1] += whole(c, page)
		}
	}
	return sums
}

// back returns the cheapest way to return regions, or nil. missing is the bytes that the device
// lacks after unused regions have been returned.
func (n *Need) back(regions []region, missing device.Size) *Plan {
	var items []item
	for i := range regions {
		g := &regions[i]
		if g.page == 0 && g.pool == 0 && !g.stuck && !g.empty() {
			items = append(items, item{cost{g.live, g.bytes, g.waits}, g.held, i})
		}
	}
	chosen, least := cover(items, missing)
	if chosen == nil {
		return nil
	}
	p := &Plan{Way: WayRegions, Least: least}
	slices.Sort(chosen)
	for _, i := range chosen {
		g := &regions[i]
		p.Regions = append(p.Regions, g.chunks[0].Region)
		p.Back += g.held
		p.take(g.chunks)
	}
	return p
}
