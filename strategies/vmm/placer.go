package vmm

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
)

var (
	_ power.Neighbours = (*Allocator)(nil)
	_ power.Placer     = (*Allocator)(nil)
)

// FreeNeighbours implements [power.Neighbours] for mapped memory. O(1).
func (a *Allocator) FreeNeighbours(at device.Addr) (below, above device.Size) {
	if h := a.find(at); h != none {
		c := &a.rows[h]
		below, above = a.freeBytes(c.prev), a.freeBytes(c.next)
	}
	return below, above
}

// freeBytes returns the size of a chunk if it is a free one, else 0.
func (t *table) freeBytes(h handle) device.Size {
	if t.is(h, free) {
		return t.rows[h].size
	}
	return 0
}

// CanPlace implements [power.Placer]. Whole pages that are free serve anywhere, because they are
// unmapped before a request fails. It costs O(chunks log addresses).
func (a *Allocator) CanPlace(r alloc.Request, freed []device.Addr) bool {
	if a.placer == nil {
		a.placer = &forecast.Placer{Most: MaxRequest, Promises: a.cfg.Promises()}
	}
	if a.front.Closed() || !a.placer.Legal(r) || !device.CanAlignUp(r.Size, a.cfg.PageBytes) {
		return false
	}
	pages, found := device.Size(a.mem.Idle(a.cfg.PageBytes)), false
	need := device.AlignUp(r.Size, a.cfg.Quantum) + max(r.Align, a.vmAlign) - a.vmAlign
	need = (need + a.cfg.PageBytes - 1) / a.cfg.PageBytes
	a.placer.Holes(a.Walk, freed, func(c alloc.Chunk) bool {
		s := a.mem.Under(c.Addr)
		if low, high := s.Above(c.Addr), s.Below(c.End()); low < high {
			pages += high.Sub(low) / a.cfg.PageBytes
		}
		found = pages >= need || a.placer.Promises.Serves(c, r)
		return !found
	})
	return found
}
