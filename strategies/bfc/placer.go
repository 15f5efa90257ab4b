package bfc

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
	"github.com/vramyard/vramyard/kit/index"
)

var (
	_ power.Neighbours = (*Allocator)(nil)
	_ power.Placer     = (*Allocator)(nil)
)

// FreeNeighbours implements [power.Neighbours]. With timing nothing is merged before the frontier
// has passed. O(1).
func (a *Allocator) FreeNeighbours(at device.Addr) (below, above device.Size) {
	a.reindex()
	if name := a.live.Get(at, a.chunks.addrOf); name != index.NoHandle && !a.cfg.Timing {
		c := &a.chunks.rows[name-1]
		below, above = a.freeBytes(c.prev), a.freeBytes(c.next)
	}
	return below, above
}

func (a *Allocator) freeBytes(h handle) device.Size {
	if a.isFree(h) {
		return a.chunks.rows[h].size
	}
	return 0
}

// CanPlace implements [power.Placer]. In a two-ended arena and with timing it may be false although
// there will be room, because it does not predict the ends and forced merges. It costs O(chunks log
// addresses).
func (a *Allocator) CanPlace(r alloc.Request, freed []device.Addr) bool {
	if a.placer == nil {
		promises := a.cfg.Promises()
		if a.cfg.Timing && !a.cfg.Mended {
			promises.MustMerge = nil // of three neighbours that become safe at once, one may stay apart
		}
		a.placer = &forecast.Placer{Most: maxRequest, Promises: promises, Freed: a.foreseen, Join: joined}
	}
	unsure := a.cfg.Spatial && a.cfg.Timing // chunks change their end when they become safe
	return !a.front.Closed() && !unsure && a.placer.CanPlace(a.Walk, r, freed)
}

// foreseen yields the free chunk that a live chunk becomes.
func (a *Allocator) foreseen(c alloc.Chunk, yield func(alloc.Chunk)) {
	if a.cfg.Timing {
		c.FreedAt = ^uint64(0)
	}
	yield(c)
}

// joined returns the chunk that merge makes of two free chunks.
func joined(left, right alloc.Chunk) alloc.Chunk {
	left.Size += right.Size
	if left.Owner != right.Owner {
		left.Owner = OwnerGap
	}
	return left
}
