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
	Least   bool          `json:"least"`             // no set with fewer blocks, or as many and fewer bytes, does it this way
	Proven  *bool         `json:"proven,omitempty"`  // the strategy was tried without them, and granted the request or did not; null: not tried
	Blocks  []Block       `json:"blocks"`            // all of them, by address
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

// blockOf returns a chunk in use as a block.
func blockOf(c *alloc.Chunk) Block {
	return Block{Addr: c.Addr, Size: c.Size, Requested: c.Requested, Stream: c.Stream, State: c.State.String(), Tag: c.Tag}
}

// take adds the blocks of some chunks.
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

// add adds what a chunk costs.
func (k *cost) add(c *alloc.Chunk) {
	switch c.State {
	case alloc.Live:
		k.blocks++
		k.bytes += c.Size
	case alloc.Pending:
		k.waits++
	}
}

// drop takes off what a chunk costs.
func (k *cost) drop(c *alloc.Chunk) {
	switch c.State {
	case alloc.Live:
		k.blocks--
		k.bytes -= c.Size
	case alloc.Pending:
		k.waits--
	}
}

// compare compares two costs: fewest blocks, then fewest bytes, then fewest waits.
func (k cost) compare(than cost) int {
	return cmp.Or(cmp.Compare(k.blocks, than.blocks), cmp.Compare(k.bytes, than.bytes), cmp.Compare(k.waits, than.waits))
}

// window is consecutive chunks of a region, and what they cost.
type window struct {
	cost
	chunks []alloc.Chunk
}

// run returns the window as one chunk.
func (w *window) run() alloc.Chunk {
	c := w.chunks[0]
	c.State = alloc.Free
	c.Size = w.chunks[len(w.chunks)-1].End().Sub(c.Addr)
	return c
}

// slide finds the cheapest window of some chunks that is enough; enough is asked of the first i and the
// end j, and must stay true of a window that grows. For each chunk only the shortest window that begins there is
// looked at, because longer ones cost as much or more; accept may refuse one. O(chunks).
func slide(chunks []alloc.Chunk, enough func(i, j int) bool, accept func(alloc.Chunk) bool, best *window) {
	w := window{}
	j := 0
	for i := range chunks {
		if j < i {
			j, w.cost = i, cost{}
		}
		for j == i || !enough(i, j) {
			if j == len(chunks) {
				return
			}
			w.add(&chunks[j])
			j++
		}
		w.chunks = chunks[i:j]
		if (best.chunks == nil || w.compare(best.cost) < 0) && (accept == nil || accept(w.run())) {
			*best = w
		}
		w.drop(&chunks[i])
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

// hole returns the cheapest way to one hole inside a region, nil if there is none.
func (n *Need) hole(regions []region) *Plan {
	var best window
	may := func(c *alloc.Chunk) bool { return solid(c) && n.obstacle(*c) == usable }
	for _, g := range regions {
		stretches(g.chunks, may, func(part []alloc.Chunk) {
			enough := func(i, j int) bool {
				return aligned(part[i].Region, part[i].Addr, n.Grain).Add(n.Block) <= part[j-1].End()
			}
			slide(part, enough, n.fits, &best)
		})
	}
	if best.chunks == nil {
		return nil
	}
	p := &Plan{Way: WayHole, Addr: best.chunks[0].Addr, Hole: best.run().Size, Least: true}
	p.take(best.chunks)
	return p
}

// pages returns the cheapest way to pages that go back, by emptying memory in one place of a region that
// grows; nil if there is none. missing is the bytes that the device lacks.
func (n *Need) pages(regions []region, missing device.Size) *Plan {
	var best window
	var page device.Size
	for _, g := range regions {
		if g.page == 0 || g.pool != 0 {
			continue
		}
		found := window{}
		stretches(g.chunks, solid, func(part []alloc.Chunk) {
			loose := loosePages(part, g.page)
			enough := func(i, j int) bool {
				w := window{chunks: part[i:j]}
				return whole(w.run(), g.page) >= missing+loose[j]-loose[i]
			}
			slide(part, enough, nil, &found)
		})
		if found.chunks != nil && (best.chunks == nil || found.compare(best.cost) < 0) {
			best, page = found, g.page
		}
	}
	if best.chunks == nil {
		return nil
	}
	run := best.run()
	p := &Plan{Way: WayPages, Addr: run.Addr, Hole: run.Size, Back: whole(run, page) - loosePages(best.chunks, page)[len(best.chunks)]}
	p.take(best.chunks)
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

// loosePages returns for each chunk the bytes of the pages in the free ones before it, which go back without
// any block, and at the end those in all.
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

// back returns the cheapest way to regions that go back, nil if there is none or none is needed. missing
// is the bytes that the device lacks, those of empty regions left out.
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
