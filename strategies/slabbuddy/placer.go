package slabbuddy

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/internal/blocks"
)

// FreeNeighbours implements [power.Neighbours]: for the last slot of a slab the slab, with its
// chain of free buddies if it becomes a block of the buddy again. It costs a step for each class.
func (a *Allocator) FreeNeighbours(p device.Addr) (below, above device.Size) {
	if a.front.Closed() {
		return 0, 0
	}
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

// CanPlace implements [power.Placer]: slots first, then blocks of the buddy, among which are slabs
// that lose their last slot. It costs O(chunks log addresses).
func (a *Allocator) CanPlace(r alloc.Request, freed []device.Addr) bool {
	if a.front.Closed() || a.blocks.Judge(&r) != power.ReasonNone {
		return false
	}
	// A small request may fall back to a block of the buddy. If a block for a slab is free, so is one
	// for the request.
	class, small := a.cells.ClassFor(r.Size, r.Align)
	if small && a.cells.CanGrab(class, freed, func(other int) bool { return other == class }) {
		return true
	}
	emptied, rest := a.cells.Emptied(freed)
	for _, n := range emptied {
		rest = append(rest, a.cells.Piece(n).Addr)
	}
	return a.blocks.CanGrab(a.tiles, r, rest)
}

// tiles yields the tiles of the buddy, with slabs as live blocks.
func (a *Allocator) tiles(yield func(alloc.Chunk) bool) {
	a.spans(func(s blocks.Span, number int32) bool {
		c := a.chunkOf(s)
		if number >= 0 {
			c.State = alloc.Live
		}
		return yield(c)
	})
}
