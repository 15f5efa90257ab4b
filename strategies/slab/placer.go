package slab

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// FreeNeighbours implements [power.Neighbours]: nothing, unless the block is the last of its slab.
// Then it is all of the slab. O(1).
func (a *Allocator) FreeNeighbours(p device.Addr) (below, above device.Size) {
	if !a.front.Closed() {
		below, above, _ = a.cells.FreeNeighbours(p)
	}
	return below, above
}

// CanPlace implements [power.Placer]. Regions without a slab do not count if the request needs
// slabs of another size. O(addresses).
func (a *Allocator) CanPlace(r alloc.Request, freed []device.Addr) bool {
	if !a.front.Accepts(&r) {
		return false
	}
	class, ok := a.cells.ClassFor(r.Size, r.Align)
	if !ok {
		return a.canPlaceDirect(r, freed)
	}
	return a.cells.CanGrab(class, freed, func(other int) bool {
		return a.slices.gradeOf[other] == a.slices.gradeOf[class]
	}) ||
		a.slices.grades[a.slices.gradeOf[class]].loose > 0
}

// canPlaceDirect is CanPlace for a request that gets a region of its own: a region that is kept or
// freed serves it, or goes back to the device, which has the bytes for it then.
func (a *Allocator) canPlaceDirect(r alloc.Request, freed []device.Addr) bool {
	size := device.AlignUp(r.Size, a.cfg.Quantum)
	return a.slices.kept.bySize.Largest() >= size || slices.ContainsFunc(freed, func(p device.Addr) bool {
		b, ok := a.live.Get(p)
		return ok && p.IsAligned(max(r.Align, 1)) && a.grantedOf(b) >= size
	})
}
