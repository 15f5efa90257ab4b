package blaze

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// FreeNeighbours implements [power.Neighbours]: blocks are never merged.
func (*Allocator) FreeNeighbours(device.Addr) (below, above device.Size) { return 0, 0 }

// CanPlace implements [power.Placer]: whether the list of its class, or what is not yet cut, has a
// block. O(addresses).
func (a *Allocator) CanPlace(r alloc.Request, freed []device.Addr) bool {
	if a.front.Closed() || a.judge(r) != power.ReasonNone {
		return false
	}
	k := a.classFor(r.Size)
	if a.lists[k] != none || a.left >= 1<<k {
		return true
	}
	return slices.ContainsFunc(freed, func(p device.Addr) bool {
		i := a.index.Get(p, a.addrOf)
		return i != index.NoHandle && a.blocks[i-1].live && int(a.blocks[i-1].class) == k
	})
}
