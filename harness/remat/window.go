package remat

import (
	"cmp"
	"math"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// tile is a chunk, seen as a part of windows.
type tile struct {
	chunk     alloc.Chunk
	cost      float64 // of evicting the block; 0 for a free chunk
	evictable bool    // a block that may be evicted
	fixed     bool    // no window may contain it
}

// Window implements [Addressed]. It walks the strategy once and starts a window at each chunk. A
// window grows upwards until the request fits. It is abandoned at a fixed chunk, at the end of the
// region, or when it costs as much as the cheapest one so far: the first of equals wins. The
// alternative is to empty whole regions until the device can grant the request; it is chosen if it
// costs less.
//
// Whether the request fits follows from the strategy's promises of merging and serving, or from its
// own CanPlace where it promises less. So a buddy's windows are aligned ranges, and a slab's are
// slots or whole slabs.
//
// The number of these checks is at most chunks · chunks per window.
func (p *Space) Window(
	size device.Size, cost func(Owner, device.Addr) (float64, bool),
) (victims []Owner, emptiesRegions bool) {
	if p.s == nil {
		return nil, false
	}
	p.tiles = p.tiles[:0]
	for c := range p.s.Walk {
		t := tile{chunk: c, fixed: c.State != alloc.Free}
		if c.State == alloc.Live {
			t.cost, t.evictable = cost(Owner(c.Tag), c.Addr)
			t.fixed = !t.evictable
		}
		p.tiles = append(p.tiles, t)
	}
	window, least := p.cheapestWindow(alloc.Request{Size: size})
	regions, sum := p.regionsToEmpty(size)
	if victims = ownersOf(regions); len(victims) > 0 && sum < least {
		return victims, true
	}
	return ownersOf(window), false
}

func ownersOf(tiles []tile) (victims []Owner) {
	for _, t := range tiles {
		if t.evictable {
			victims = append(victims, Owner(t.chunk.Tag))
		}
	}
	return victims
}

// cheapestWindow returns the tiles of the cheapest window and their cost, or none and infinity.
func (p *Space) cheapestWindow(r alloc.Request) (best []tile, least float64) {
	least = math.Inf(1)
	for from := range p.tiles {
		sum, bytes := 0.0, device.Size(0)
		p.joined, p.places = p.joined[:0], p.places[:0]
		for to := from; to < len(p.tiles); to++ {
			t := &p.tiles[to]
			sum += t.cost
			if t.fixed || t.chunk.Region != p.tiles[from].chunk.Region || sum >= least {
				break
			}
			if t.evictable {
				p.places = append(p.places, t.chunk.Addr)
			}
			bytes += t.chunk.Size
			if !p.fits(t.chunk, bytes, r) {
				continue
			}
			if len(p.places) > 0 { // a window without blocks is free memory that the strategy refused
				best, least = p.tiles[from:to+1], sum
			}
			break
		}
	}
	return best, least
}

// fits appends a chunk to the window and reports whether the request would fit into the window if
// its blocks were free.
func (p *Space) fits(c alloc.Chunk, bytes device.Size, r alloc.Request) bool {
	may := &p.setup.Promises
	c.State, c.Requested, c.Tag = alloc.Free, 0, 0
	if may.MustMerge != nil {
		for n := len(p.joined) - 1; n >= 0 && may.MustMerge(p.joined[n], c); n-- {
			c.Addr, c.Size = p.joined[n].Addr, p.joined[n].Size+c.Size
			p.joined = p.joined[:n]
		}
	}
	p.joined = append(p.joined, c)
	switch {
	case bytes < r.Size:
		return false
	case may.Serves != nil && p.withAnyHint(r, func(r alloc.Request) bool { return may.Serves(c, r) }):
		return true
	}
	return p.withAnyHint(r, func(r alloc.Request) bool { return power.CanPlace(p.s, r, p.places) })
}

// withAnyHint reports whether holds accepts the request with either hint, or without one if hints
// are not used.
func (p *Space) withAnyHint(r alloc.Request, holds func(alloc.Request) bool) bool {
	if p.hints == nil {
		return holds(r)
	}
	for _, r.Hint = range [...]alloc.Hint{alloc.HintLow, alloc.HintHigh} {
		if holds(r) {
			return true
		}
	}
	return false
}

// emptiableRegion is a region without fixed chunks.
type emptiableRegion struct {
	tiles []tile
	bytes device.Size
	cost  float64
}

// regionsToEmpty returns the tiles of the regions to empty and release so that the device can grant
// the request, and their total cost. It takes regions by cost per byte until they suffice, then
// drops the unnecessary ones, the most expensive first. A single region that suffices
// alone is preferred if it is cheaper.
func (p *Space) regionsToEmpty(size device.Size) (tiles []tile, sum float64) {
	g := p.grant(size)
	left := p.dev.Usage().Free()
	if !g.ok || p.setup.Preallocates || left >= g.reserved {
		return nil, 0
	}
	list := p.emptiableRegions()
	slices.SortStableFunc(list, func(a, b emptiableRegion) int {
		return cmp.Compare(a.cost/float64(a.bytes), b.cost/float64(b.bytes))
	})
	bytes, enough, alone := left, 0, emptiableRegion{cost: math.Inf(1)}
	for i, e := range list {
		if bytes < g.reserved {
			bytes += e.bytes
			enough = i + 1
		}
		if left+e.bytes >= g.reserved && e.cost < alone.cost {
			alone = e
		}
	}
	if bytes < g.reserved {
		return nil, 0
	}
	list = list[:enough]
	slices.SortStableFunc(list, func(a, b emptiableRegion) int { return cmp.Compare(b.cost, a.cost) })
	for _, e := range list {
		if bytes-e.bytes >= g.reserved {
			bytes -= e.bytes
			continue
		}
		tiles = append(tiles, e.tiles...)
		sum += e.cost
	}
	if alone.cost < sum {
		return alone.tiles, alone.cost
	}
	return tiles, sum
}

func (p *Space) emptiableRegions() (list []emptiableRegion) {
	for from := 0; from < len(p.tiles); {
		to, e, fixed := from, emptiableRegion{}, false
		for ; to < len(p.tiles) && p.tiles[to].chunk.Region == p.tiles[from].chunk.Region; to++ {
			t := &p.tiles[to]
			fixed = fixed || t.chunk.State == alloc.Live && !t.evictable || t.chunk.State == alloc.Pending
			e.cost += t.cost
			if t.chunk.State.Held() {
				e.bytes += t.chunk.Size
			}
		}
		if e.tiles = p.tiles[from:to]; !fixed && e.bytes > 0 {
			list = append(list, e)
		}
		from = to
	}
	return list
}
