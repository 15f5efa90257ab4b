package rmm

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

var _ power.Placer = (*Allocator)(nil)

// CanPlace implements [power.Placer]. In a pool and in bins only memory of the request's stream
// counts, because the device may refuse a wait for another stream. In an arena all of it counts: a
// device that refuses to synchronize is not foreseen. O(chunks log addresses).
func (a *Allocator) CanPlace(r alloc.Request, freed []device.Addr) bool {
	t := &a.heap
	if !t.front.Accepts(&r) {
		return false
	}
	freed = slices.Clone(freed)
	slices.Sort(freed)
	return a.res.canPlace(&r, func(h handle) bool {
		_, goes := slices.BinarySearch(freed, t.rows[h].addr)
		return goes && t.live.Get(t.rows[h].addr, t.addrOf) == h
	})
}

// canPlace implements resource.
func (p *pool) canPlace(r *alloc.Request, goes func(handle) bool) bool {
	if p.filled < len(p.bins) {
		return false
	}
	own := func(h handle) bool {
		w := &p.rows[h]
		if w.state == free {
			return p.listsOf(w.part).of[w.list].stream == r.Stream
		}
		return w.stream == r.Stream && goes(h)
	}
	k, n := p.cfg.binOf(r.Size), p.cfg.blockFor(r.Size)
	if k < len(p.bins) {
		n *= device.Size(p.cfg.BinBlocks)
	}
	for i := range p.held.Len() {
		run := device.Size(0)
		for h := p.first(i); h != none; h = p.rows[h].next {
			switch part := int(p.rows[h].part); {
			case !own(h) || part != 0 && part != k+1:
				run = 0
			case part != 0:
				return true
			default:
				run += p.rows[h].size
			}
			if run >= n {
				return true
			}
		}
	}
	return false
}

// canPlace implements resource. A request that finds nothing gives all superblocks to the global
// arena, where adjacent vacant ones merge.
func (a *arena) canPlace(r *alloc.Request, goes func(handle) bool) bool {
	if len(a.supers) == 0 {
		return false
	}
	n, vacant := a.cfg.blockFor(r.Size), device.Size(0)
	for b := uint32(1); b != 0; b = a.supers[b].next {
		run := device.Size(0)
		for h := a.supers[b].first; h != none && a.rows[h].part == b; h = a.rows[h].next {
			if run += a.rows[h].size; a.rows[h].state != free && !goes(h) {
				run = 0
			}
			if run >= n {
				return true
			}
		}
		if vacant += run; run < a.supers[b].size {
			vacant = 0
		}
		if vacant >= n {
			return true
		}
	}
	return false
}
