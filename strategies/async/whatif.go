package async

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

var _ alloc.Neighbours = (*Allocator)(nil)

// FreeNeighbours implements [alloc.Neighbours]. It costs a step for each free chunk.
func (a *Allocator) FreeNeighbours(at device.Addr) (below, above device.Size) {
	a.busy.Enter("async")
	if h, err := a.find(at); err == nil {
		below, above = a.pool.FreeNeighbours(h)
	}
	a.busy.Leave()
	return below, above
}
