package tiles

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

var (
	_ power.Neighbours = View{}
	_ power.Placer     = View{}
)

// FreeNeighbours implements [power.Neighbours]. O(1).
func (v View) FreeNeighbours(at device.Addr) (below, above device.Size) {
	c := v.core
	if h := c.find(at); h != None {
		prev, next := c.FreeNeighbors(h)
		below, above = c.Rows[prev].Size, c.Rows[next].Size // the size of None is 0
	}
	return below, above
}

// CanPlace implements [power.Placer]. It costs O(chunks log addresses).
func (v View) CanPlace(r alloc.Request, freed []device.Addr) bool {
	return !v.core.Closed() && v.core.placer.CanPlace(v.core.walk, r, freed)
}

// freedAs yields the free chunk that a live one becomes.
func (c *Core) freedAs(live alloc.Chunk, yield func(alloc.Chunk)) {
	live.Class, live.Owner = c.index.Show(c.find(live.Addr))
	yield(live)
}

// merge merges two free chunks. The upper one determines whether the result ends its region.
func merge(left, right alloc.Chunk) alloc.Chunk {
	left.Size += right.Size
	left.Class, left.Owner = right.Class, right.Owner
	return left
}
