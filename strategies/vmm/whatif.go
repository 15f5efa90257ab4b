package vmm

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

var _ alloc.Neighbours = (*Allocator)(nil)

// FreeNeighbours implements [alloc.Neighbours]: what is mapped. O(1).
func (a *Allocator) FreeNeighbours(at device.Addr) (below, above device.Size) {
	a.busy.Enter("vmm")
	if h := a.live.Get(at, a.at); h != none {
		c := &a.rows[h]
		below, above = a.freeBytes(c.prev), a.freeBytes(c.next)
	}
	a.busy.Leave()
	return below, above
}

// freeBytes returns the size of a chunk if it is a free one, else 0.
func (t *table) freeBytes(h handle) device.Size {
	if t.is(h, free) {
		return t.rows[h].size
	}
	return 0
}
