package buddy

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// FreeNeighbours implements [power.Neighbours]: the chain of free buddies, as far as they would be
// merged now. It costs a step for each class.
func (a *Allocator) FreeNeighbours(p device.Addr) (below, above device.Size) {
	if l, ok := a.live.Get(p); ok {
		place, _ := a.blocks.PlaceOf(p)
		below, above = a.blocks.FreeNeighbours(p, l.Requested, place)
	}
	return below, above
}

// CanPlace implements [power.Placer]. In families other than binary it foresees the freed blocks,
// but not their merging. It costs O(chunks log addresses).
func (a *Allocator) CanPlace(r alloc.Request, freed []device.Addr) bool {
	return !a.front.Closed() && a.blocks.CanGrab(a.Walk, r, freed)
}
