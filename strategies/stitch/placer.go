package stitch

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
)

var (
	_ power.Neighbours = (*Allocator)(nil)
	_ power.Placer     = (*Allocator)(nil)
)

// FreeNeighbours implements [power.Neighbours]. A block that was stitched becomes as many chunks as
// it has pieces, none of which lies at its address. O(1).
func (a *Allocator) FreeNeighbours(at device.Addr) (below, above device.Size) {
	if b, ok := a.live.Get(at); ok {
		// A block that was stitched gives its pieces back, which are as large as it is.
		if c := &a.chunks[b.Place]; a.regions[c.region].kind != stitched {
			below, above = a.freeBytes(c.prev), a.freeBytes(c.next)
		}
	}
	return below, above
}

// freeBytes returns the size of a chunk if it is a free one, else 0.
func (a *Allocator) freeBytes(h uint32) device.Size {
	if h != none && a.chunks[h].state == free {
		return a.chunks[h].size
	}
	return 0
}

// CanPlace implements [power.Placer]. Free whole pages count at every address: they can be
// stitched, or released before the request is retried. It costs O(chunks log addresses).
func (a *Allocator) CanPlace(r alloc.Request, freed []device.Addr) bool {
	if a.placer == nil {
		a.placer = &forecast.Placer{Most: a.MaxRequest(), Promises: a.cfg.Promises(), Freed: a.foreseen}
	}
	if !a.placer.Legal(r) || !a.front.Accepts(&r) {
		return false
	}
	if r.Size < a.cfg.ChunkBytes {
		return a.placer.CanPlace(a.Walk, r, freed)
	}
	// Free memory may be in too many pieces to stitch or in too many ranges. It is then released
	// and reserved again in one piece. The limit leaves room, because no more is held afterwards
	// than before.
	have := a.freed[pages]
	for i, at := range freed {
		b, ok := a.live.Get(at)
		if !ok || slices.Contains(freed[:i], at) {
			continue
		}
		if c := &a.chunks[b.Place]; a.regions[c.region].kind != small {
			have += c.size
		}
	}
	return have >= device.AlignUp(r.Size, a.cfg.ChunkBytes)
}

// foreseen yields the free chunk that a live block becomes. A stitched block leaves none at its
// address.
func (a *Allocator) foreseen(c alloc.Chunk, yield func(alloc.Chunk)) {
	if b, ok := a.live.Get(c.Addr); ok && a.regions[a.chunks[b.Place].region].kind != stitched {
		yield(c)
	}
}
