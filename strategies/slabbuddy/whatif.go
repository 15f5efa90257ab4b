package slabbuddy

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

var (
	_ alloc.Neighbours = (*Layers)(nil)
	_ alloc.Neighbours = (*Parts)(nil)
)

// FreeNeighbours implements [alloc.Neighbours]: of the last block of a slab, the slab, and if that becomes a block of the
// buddy again, its chain of free buddies. It costs a step for each class.
func (a *Layers) FreeNeighbours(p device.Addr) (below, above device.Size) {
	a.busy.Enter("slabbuddy")
	if !a.closed {
		below, above = a.freeNeighbours(p)
	}
	a.busy.Leave()
	return below, above
}

// freeNeighbours is FreeNeighbours without the guard.
func (a *Layers) freeNeighbours(p device.Addr) (below, above device.Size) {
	if l, ok := a.live.Get(p); ok {
		place, _ := a.blocks.PlaceOf(p)
		return a.blocks.FreeNeighbours(p, l.Requested, place)
	}
	below, above, gone := a.cells.FreeNeighbours(p)
	if gone < 0 {
		return below, above
	}
	// A kept region that is larger than the slab is one chunk again.
	granted, place := a.slabGranted(gone)
	under, over := a.blocks.FreeNeighbours(a.cells.Piece(gone).Addr, a.slabBytes(gone), place)
	return below + under, above + granted - a.slabBytes(gone) + over
}

// FreeNeighbours implements [alloc.Neighbours], as the part does that has the block. What came straight from the
// device goes back to it.
func (a *Parts) FreeNeighbours(p device.Addr) (below, above device.Size) {
	a.busy.Enter("slabbuddy")
	defer a.busy.Leave()
	if a.closed {
		return 0, 0
	}
	// At most one of them has it, and the others have nothing to tell.
	if below, above = a.slab.FreeNeighbours(p); below|above == 0 {
		return a.buddy.FreeNeighbours(p)
	}
	return below, above
}
