package caching

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

var _ alloc.Neighbours = (*Allocator)(nil)

// FreeNeighbours implements [alloc.Neighbours]. All of a segment is of one stream and pool, so whatever is free beside
// the block merges with it; what is pending or unmapped does not. A block that other streams use is pending
// itself when it is freed. O(1).
func (a *Allocator) FreeNeighbours(at device.Addr) (below, above device.Size) {
	a.busy.Enter("caching")
	if link, err := a.find(at); err == nil && a.rows[*link].home&usedBit == 0 {
		b := &a.rows[*link]
		below, above = a.freeBytes(b.prev), a.freeBytes(b.next)
	}
	a.busy.Leave()
	return below, above
}

// freeBytes returns the size of a block if it is a free one, else 0.
func (t *table) freeBytes(h handle) device.Size {
	if t.is(h, free) {
		return t.rows[h].size
	}
	return 0
}
