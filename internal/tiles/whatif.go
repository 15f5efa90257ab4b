package tiles

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

var _ alloc.Neighbours = View{}

// FreeNeighbours implements [alloc.Neighbours]. O(1).
func (v View) FreeNeighbours(at device.Addr) (below, above device.Size) {
	c := v.core
	c.Enter()
	if h := c.find(at); h != None {
		prev, next := c.FreeNeighbors(h)
		below, above = c.Rows[prev].Size, c.Rows[next].Size // that of None is 0
	}
	c.Leave()
	return below, above
}
