package tiles

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
)

var _ alloc.Neighbours = View{}

// FreeNeighbours implements [alloc.Neighbours]. O(1).
func (v View) FreeNeighbours(at device.Addr) (below, above device.Size) {
	c := v.core
	if h := c.find(at); h != None {
		prev, next := c.FreeNeighbors(h)
		below, above = c.Rows[prev].Size, c.Rows[next].Size // that of None is 0
	}
	return below, above
}

// Placer returns what tells whether requests find room after frees, by the promises of a strategy
// over the core.
func (v View) Placer(p alloc.Promises) *forecast.Placer {
	c := v.core
	return &forecast.Placer{
		Most: MaxRequest, Promises: p,
		Freed: func(live alloc.Chunk, yield func(alloc.Chunk)) {
			live.Class, live.Owner = c.index.Show(c.find(live.Addr))
			yield(live)
		},
		// Whether a chunk is the end of its region its upper part tells.
		Join: func(left, right alloc.Chunk) alloc.Chunk {
			left.Size += right.Size
			left.Class, left.Owner = right.Class, right.Owner
			return left
		},
	}
}

// CanPlace answers for a strategy with a placer. O(chunks log addresses).
func (v View) CanPlace(p *forecast.Placer, r alloc.Request, freed []device.Addr) bool {
	return !v.core.Closed() && p.CanPlace(v.core.walk, r, freed)
}
