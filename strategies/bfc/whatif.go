package bfc

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/addrmap"
)

var _ alloc.Neighbours = (*Allocator)(nil)

// FreeNeighbours implements [alloc.Neighbours]. With timing nothing is merged before the frontier has
// passed. O(1).
func (a *Allocator) FreeNeighbours(at device.Addr) (below, above device.Size) {
	a.entry.Enter("bfc")
	if name := a.live.Get(at, a.chunks.addrOf); name != addrmap.None && !a.cfg.Timing {
		c := &a.chunks.rows[name-1]
		below, above = a.freeBytes(c.prev), a.freeBytes(c.next)
	}
	a.entry.Leave()
	return below, above
}

// freeBytes returns the size of a chunk if it is a free one, else 0.
func (a *Allocator) freeBytes(h handle) device.Size {
	if a.isFree(h) {
		return a.chunks.rows[h].size
	}
	return 0
}
