package xdl

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
)

// FreeNeighbours implements [power.Neighbours]: the chain of free buddies. It costs a step for each
// order.
func (a *Allocator) FreeNeighbours(p device.Addr) (below, above device.Size) {
	if l, ok := a.live.Get(p); ok {
		region := a.regionAt(p)
		base, order := a.bases[region], a.orderFor(l.Requested)
		from := uint32(p.Sub(base) >> a.shift)
		at, top := a.trees[region].merged(from, order)
		below = device.Size(from-at) << a.shift
		above = a.bytesOf(top) - a.bytesOf(order) - below
	}
	return below, above
}

// merged returns the free run that a granted one would merge into.
func (t *tree) merged(at uint32, order int) (uint32, int) {
	for ; order < t.leaf; order++ {
		buddy := run(order) << ((at ^ 1<<order) % 64)
		if t.words[at>>t.leaf].free&buddy != buddy {
			return at, order
		}
		at &^= 1 << order
	}
	for i := t.nodeOf(at, order); i > 1 && t.isFree(i^1, order); i >>= 1 {
		at &^= 1 << order
		order++
	}
	return at, order
}

// CanPlace implements [power.Placer]. It costs O(chunks log addresses).
func (a *Allocator) CanPlace(r alloc.Request, freed []device.Addr) bool {
	if a.placer == nil {
		a.placer = &forecast.Placer{Most: a.cfg.RegionBytes, Promises: a.cfg.Promises()}
	}
	return !a.front.Closed() && a.placer.CanPlace(a.Walk, r, freed)
}
