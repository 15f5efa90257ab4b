package caching

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
)

var (
	_ power.Neighbours = (*Allocator)(nil)
	_ power.Placer     = (*Allocator)(nil)
)

// FreeNeighbours implements [power.Neighbours]. A segment has one stream and pool, so adjacent free
// blocks coalesce with the block; pending and unmapped ones do not. A block with other streams
// would be pending after the free. O(1).
func (a *Allocator) FreeNeighbours(at device.Addr) (below, above device.Size) {
	if link, err := a.find(at); err == nil && a.rows[*link].home&usedBit == 0 {
		b := &a.rows[*link]
		below, above = a.freeBytes(b.prev), a.freeBytes(b.next)
	}
	return below, above
}

// freeBytes returns the size of a block if it is a free one, else 0.
func (t *table) freeBytes(h handle) device.Size {
	if t.is(h, free) {
		return t.rows[h].size
	}
	return 0
}

// CanPlace implements [power.Placer]: whether a block of the pool, stream and kind of the request
// will serve. That segments which become free go back to the device, which may give others for
// them, is left out. It costs O(chunks log addresses).
func (a *Allocator) CanPlace(r alloc.Request, freed []device.Addr) bool {
	if a.placer == nil {
		a.placer = &forecast.Placer{Most: mostRequest, Promises: a.cfg.Promises(), Freed: a.foreseen}
		a.placer.Promises.Serves = func(c alloc.Chunk, r alloc.Request) bool {
			return c.Pool == a.poolOf(r.Stream).id && a.set.serves(c, r)
		}
	}
	// Among segments that grow a lookup may prefer a block that reaches less far, and refuse it as too
	// large to be split.
	unsure := a.set.expandable && a.set.maxSplit != noLimit
	return !a.front.Closed() && !unsure && a.placer.CanPlace(a.Walk, r, freed)
}

// foreseen yields what a live block becomes when it is freed: nothing if other streams use it.
func (a *Allocator) foreseen(c alloc.Chunk, yield func(alloc.Chunk)) {
	if link, err := a.find(c.Addr); err == nil && a.rows[*link].home&usedBit == 0 {
		yield(c)
	}
}
