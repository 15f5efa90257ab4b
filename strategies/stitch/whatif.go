package stitch

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

var _ alloc.Neighbours = (*Allocator)(nil)

// FreeNeighbours implements [alloc.Neighbours]. A block that was stitched becomes as many chunks as it has
// pieces, none of which lies at its address. O(1).
func (a *Allocator) FreeNeighbours(at device.Addr) (below, above device.Size) {
	a.busy.Enter("stitch")
	if b, ok := a.live.Get(at); ok {
		if c := &a.chunks[b.Place]; a.regions[c.region].kind != stitched {
			below, above = a.freeBytes(c.prev), a.freeBytes(c.next)
		}
	}
	a.busy.Leave()
	return below, above
}

// freeBytes returns the size of a chunk if it is a free one, else 0.
func (a *Allocator) freeBytes(h uint32) device.Size {
	if h != none && a.chunks[h].state == free {
		return a.chunks[h].size
	}
	return 0
}
