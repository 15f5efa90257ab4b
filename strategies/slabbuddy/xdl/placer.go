package xdl

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
)

// FreeNeighbours implements [power.Neighbours], as the part does that has the block. What came
// straight from the device goes back to it.
func (a *Allocator) FreeNeighbours(p device.Addr) (below, above device.Size) {
	if a.front.Closed() {
		return 0, 0
	}
	// At most one of them has it, and the others have nothing to tell.
	if below, above = a.slab.FreeNeighbours(p); below|above == 0 {
		return a.buddy.FreeNeighbours(p)
	}
	return below, above
}

// CanPlace implements [power.Placer], as the part does that serves the request. What came straight
// from the device goes back to it, and makes room for as much.
func (a *Allocator) CanPlace(r alloc.Request, freed []device.Addr) bool {
	if a.front.Closed() {
		return false
	}
	switch a.route(r.Size) {
	case slabbuddy.OwnerSlab:
		return a.slab.CanPlace(r, freed)
	case slabbuddy.OwnerBuddy:
		return a.buddy.CanPlace(r, freed)
	}
	align := max(r.Align, 1)
	return device.IsPowerOfTwo(align) && slices.ContainsFunc(freed, func(p device.Addr) bool {
		b, ok := a.direct.Get(p)
		return ok && b.Requested >= r.Size && p.IsAligned(align)
	})
}
