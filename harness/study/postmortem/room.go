package postmortem

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Ways to make room.
const (
	WayHole    = "hole"    // one hole that is large enough, inside a region
	WayRegions = "regions" // whole regions go back, so that the device has a new one
	WayPages   = "pages"   // whole pages go back, so that the device has others
)

// Plan is a set of blocks without which the request would have been served.
type Plan struct {
	Way     string        `json:"way"`               // WayHole, WayRegions or WayPages
	Addr    device.Addr   `json:"address"`           // WayHole, WayPages: where the hole would begin
	Hole    device.Size   `json:"hole_bytes"`        // and its bytes, with the free chunks that it swallows
	Regions []device.Addr `json:"regions,omitempty"` // WayRegions: those that would go back
	Back    device.Size   `json:"given_back_bytes"`  // WayRegions, WayPages: bytes that would go back
	Count   int           `json:"block_count"`       // live blocks that would have to be freed, or moved elsewhere
	Bytes   device.Size   `json:"copied_bytes"`      // bytes of them: what moving them copies
	Waits   int           `json:"pending_count"`     // blocks that a stream would have to be done with
	// no set with fewer blocks, or as many and fewer bytes, does it this way
	Least bool `json:"least"`
	// the strategy was tried without them, and granted the request or did not; null: not tried
	Proven *bool   `json:"proven,omitempty"`
	Blocks []Block `json:"blocks"` // all of them, by address
}

// Block is a block that stood in the way.
type Block struct {
	Addr      device.Addr   `json:"address"`         // first byte
	Size      device.Size   `json:"size_bytes"`      // granted
	Requested device.Size   `json:"requested_bytes"` // asked for
	Stream    device.Stream `json:"stream"`          // of its request
	State     string        `json:"state"`           // live, or pending: given back, a stream still uses it
	Tag       uint64        `json:"-"`               // label of its request
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

// cost is what a plan is judged by.
type cost struct {
	blocks int         // live blocks
	bytes  device.Size // of them
	waits  int         // pending blocks
}

// count adds the cost of a chunk, by times: 1, or -1 to take it off.
func (k *cost) count(c *alloc.Chunk, by int) {
	switch c.State {
	case alloc.Live:
		k.blocks += by
		k.bytes += device.Size(by) * c.Size // -1 wraps around, and so does the sum
	case alloc.Pending:
		k.waits += by
	}
}

// compare compares two costs: fewest blocks, then fewest bytes, then fewest waits.
func (k cost) compare(than cost) int {
	return cmp.Or(cmp.Compare(k.blocks, than.blocks), cmp.Compare(k.bytes, than.bytes), cmp.Compare(k.waits, than.waits))
}

// window is consecutive chunks of a stretch, and what they cost.
type window struct {
	cost
	stretch []alloc.Chunk // chunks of one region without a gap; nil if there is no window
	i, j    int           // first chunk, and the one behind the last
}

func (w *window) run() alloc.Chunk {
	c := w.stretch[w.i]
	c.State = alloc.Free
	c.Size = w.stretch[w.j-1].End().Sub(c.Addr)
	return c
}

// widened returns the window with the free chunks that touch it.
func (w window) widened() window {
	for w.i > 0 && w.stretch[w.i-1].State == alloc.Free {
		w.i--
	}
	for w.j < len(w.stretch) && w.stretch[w.j].State == alloc.Free {
		w.j++
	}
	return w
}

// slide finds the cheapest window of a stretch that is enough, if it is cheaper than the best so
// far; enough must stay true of a window that grows. For each chunk only the shortest window that
// begins there is looked at, because longer ones cost as much or more; accept may refuse one.
// O(chunks).
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

// stretches calls yield with each longest run of chunks that pass.
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

// solid reports whether a chunk has memory that somebody uses or may use.
func solid(c *alloc.Chunk) bool { return c.State.Held() && c.State != alloc.Slack }

// hole returns the cheapest way to one hole inside a region, nil if there is none. apart says that
// nobody would have to go: the hole is there, and the allocator keeps it in parts.
func (n *Need) hole(regions []region) (p *Plan, apart bool) {
	var best window
	may := func(c *alloc.Chunk) bool { return solid(c) && n.obstacle(*c) == usable }
	enough := func(w *window) bool {
		first := &w.stretch[w.i]
		return aligned(first.Region, first.Addr, n.Grain).Add(n.Block) <= w.stretch[w.j-1].End()
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

// pages returns the cheapest way to pages that go back, by emptying memory in one place of a region
// that grows; nil if there is none. missing is the bytes that the device lacks.
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

// whole returns the bytes of the whole pages inside a chunk, counted from the start of its region.
func whole(c alloc.Chunk, page device.Size) device.Size {
	from, to := aligned(c.Region, c.Addr, page).Sub(c.Region), c.End().Sub(c.Region)/page*page
	if from >= to {
		return 0
	}
	return to - from
}

// loosePages returns for each chunk the bytes of the pages in the free ones before it, which go
// back without any block, and at the end those in all.
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

// back returns the cheapest way to regions that go back, nil if there is none or none is needed.
// missing is the bytes that the device lacks, those of empty regions left out.
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
