package xdl

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
)

// FreeNeighbours implements [power.Neighbours] by the part that has the block. A block from the
// device has no neighbors.
func (a *Allocator) FreeNeighbours(p device.Addr) (below, above device.Size) {
	if a.front.Closed() {
		return 0, 0
	}
	// At most one part has it; the others return 0.
	if below, above = a.slab.FreeNeighbours(p); below|above == 0 {
		return a.buddy.FreeNeighbours(p)
	}
	return below, above
}

// CanPlace implements [power.Placer] by the part that serves the request. Freed blocks from the
// device make room on the device.
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
