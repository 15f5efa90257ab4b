package async

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
	"github.com/vramyard/vramyard/kit/streampool"
)

var (
	_ power.Neighbours = (*Allocator)(nil)
	_ power.Placer     = (*Allocator)(nil)
)

// FreeNeighbours implements [power.Neighbours]. It costs a step for each free chunk.
func (a *Allocator) FreeNeighbours(at device.Addr) (below, above device.Size) {
	if h, err := a.find(at); err == nil {
		below, above = a.pool.FreeNeighbours(h)
	}
	return below, above
}

// CanPlace implements [power.Placer]. Chunks of other streams and pending chunks do not count,
// because only the device knows whether their work has finished. It costs O(chunks log addresses).
func (a *Allocator) CanPlace(r alloc.Request, freed []device.Addr) bool {
	if a.placer == nil {
		a.placer = &forecast.Placer{Most: streampool.MaxRequest, Promises: a.cfg.Promises(), Freed: a.foreseen, Join: joined}
		a.placer.Promises.MustMerge = merges
	}
	return !a.front.Closed() && a.placer.CanPlace(a.Walk, r, freed)
}

func (a *Allocator) foreseen(c alloc.Chunk, yield func(alloc.Chunk)) {
	switch h := a.pool.Find(c.Addr); {
	case a.pool.Awaits(h): // it is pending
	case a.pool.Ordered():
		c.Owner = OwnerStream
		yield(c)
	default:
		c.Owner, c.Stream = OwnerNone, 0
		yield(c)
	}
}

// merges reports whether two free chunks coalesce when either is freed. An unowned chunk coalesces
// with any other.
func merges(left, right alloc.Chunk) bool {
	return left.Owner == OwnerNone || right.Owner == OwnerNone || left.Stream == right.Stream
}

// joined returns the chunk that two merging free chunks become.
func joined(left, right alloc.Chunk) alloc.Chunk {
	if left.Owner == OwnerNone {
		left.Owner, left.Stream = right.Owner, right.Stream
	}
	left.Size += right.Size
	return left
}
