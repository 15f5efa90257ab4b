package remat

import (
	"cmp"
	"math"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// tile is a chunk of a walk, as a window sees it.
type tile struct {
	chunk alloc.Chunk
	worth float64 // 0 for a free chunk
	goes  bool    // it is a block that may be evicted
	stays bool    // no window reaches over it
}

// Window implements [Addressed]. It walks the strategy once and looks at each chunk as the first of
// a window, which grows upwards until the request would have a place in it, a chunk stays, the
// region ends, or the best window so far is worth no more. The first of equals wins. The other way
// to make room is to empty whole regions, for as much as the request would take of the device; it
// is chosen if it is worth less than the best window.
//
// Whether a window would hold the request is what the strategy promises of merging and of serving,
// or what it says itself where it promises less: so the windows of a buddy are aligned ranges, and
// those of slabs are slots or whole slabs.
//
// It costs O(chunks · chunks of a window), each at what the strategy takes to say whether the
// request would fit.
func (p *Space) Window(size device.Size, worth func(Owner, device.Addr) (float64, bool)) (goes []Owner, whole bool) {
	if p.s == nil {
		return nil, false
	}
	p.tiles = p.tiles[:0]
	for c := range p.s.Walk {
		t := tile{chunk: c, stays: c.State != alloc.Free}
		if c.State == alloc.Live {
			t.worth, t.goes = worth(Owner(c.Tag), c.Addr)
			t.stays = !t.goes
		}
		p.tiles = append(p.tiles, t)
	}
	window, least := p.cheapest(alloc.Request{Size: size})
	regions, sum := p.regions(size)
	if goes = owners(regions); len(goes) > 0 && sum < least {
		return goes, true
	}
	return owners(window), false
}

func owners(tiles []tile) (goes []Owner) {
	for _, t := range tiles {
		if t.goes {
			goes = append(goes, Owner(t.chunk.Tag))
		}
	}
	return goes
}

// cheapest returns the tiles of the best window and what they are worth, none and infinity if there
// is none.
func (p *Space) cheapest(r alloc.Request) (best []tile, least float64) {
	least = math.Inf(1)
	for from := range p.tiles {
		sum, bytes := 0.0, device.Size(0)
		p.joined, p.places = p.joined[:0], p.places[:0]
		for to := from; to < len(p.tiles); to++ {
			t := &p.tiles[to]
			sum += t.worth
			if t.stays || t.chunk.Region != p.tiles[from].chunk.Region || sum >= least {
				break
			}
			if t.goes {
				p.places = append(p.places, t.chunk.Addr)
			}
			bytes += t.chunk.Size
			if !p.fits(t.chunk, bytes, r) {
				continue
			}
			if len(p.places) > 0 { // else the strategy has refused what it holds
				best, least = p.tiles[from:to+1], sum
			}
			break
		}
	}
	return best, least
}

// fits adds a chunk to the end of the window and reports whether it holds the request now.
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
	case may.Serves != nil && p.atAnEnd(r, func(r alloc.Request) bool { return may.Serves(c, r) }):
		return true
	}
	return p.atAnEnd(r, func(r alloc.Request) bool { return power.CanPlace(p.s, r, p.places) })
}

// atAnEnd reports whether something holds of a request as Alloc would make it: at either end, if
// there are any.
func (p *Space) atAnEnd(r alloc.Request, holds func(alloc.Request) bool) bool {
	if p.ends == nil {
		return holds(r)
	}
	for _, r.Hint = range [...]alloc.Hint{alloc.HintLow, alloc.HintHigh} {
		if holds(r) {
			return true
		}
	}
	return false
}

// emptied is a region that could be emptied.
type emptied struct {
	tiles []tile
	bytes device.Size
	worth float64
}

// regions returns the tiles of regions that are worth little, and what they are worth together:
// emptied and given back, they leave the device enough for the request. They are taken by what a
// byte of them is worth; those that turn out not to be needed are left out again, the dearest
// first. A single one that is enough is better if it is worth less.
func (p *Space) regions(size device.Size) (tiles []tile, sum float64) {
	g := p.grant(size)
	left := p.dev.Usage().Free()
	if !g.ok || p.setup.Preallocates || left >= g.takes {
		return nil, 0
	}
	list := p.emptiable()
	slices.SortStableFunc(list, func(a, b emptied) int {
		return cmp.Compare(a.worth/float64(a.bytes), b.worth/float64(b.bytes))
	})
	bytes, enough, alone := left, 0, emptied{worth: math.Inf(1)}
	for i, e := range list {
		if bytes < g.takes {
			bytes += e.bytes
			enough = i + 1
		}
		if left+e.bytes >= g.takes && e.worth < alone.worth {
			alone = e
		}
	}
	if bytes < g.takes {
		return nil, 0
	}
	list = list[:enough]
	slices.SortStableFunc(list, func(a, b emptied) int { return cmp.Compare(b.worth, a.worth) })
	for _, e := range list {
		if bytes-e.bytes >= g.takes {
			bytes -= e.bytes
			continue
		}
		tiles = append(tiles, e.tiles...)
		sum += e.worth
	}
	if alone.worth < sum {
		return alone.tiles, alone.worth
	}
	return tiles, sum
}

func (p *Space) emptiable() (list []emptied) {
	for from := 0; from < len(p.tiles); {
		to, e, stays := from, emptied{}, false
		for ; to < len(p.tiles) && p.tiles[to].chunk.Region == p.tiles[from].chunk.Region; to++ {
			t := &p.tiles[to]
			stays = stays || t.chunk.State == alloc.Live && !t.goes || t.chunk.State == alloc.Pending
			e.worth += t.worth
			if t.chunk.State.Held() {
				e.bytes += t.chunk.Size
			}
		}
		if e.tiles = p.tiles[from:to]; !stays && e.bytes > 0 {
			list = append(list, e)
		}
		from = to
	}
	return list
}
