package remat

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// AdjacentFree implements [AdjacentReporter]. It walks all chunks of the strategy.
func (p *Space) AdjacentFree(b alloc.Block) (below, above device.Size) {
	end := b.Addr.Add(b.Size)
	p.Walk(func(c alloc.Chunk) bool {
		switch {
		case c.Addr == b.Addr:
			end = c.End() // the chunk may be larger than the granted block
		case c.State != alloc.Free:
		case c.End() == b.Addr:
			below = c.Size
		case c.Addr == end:
			above = c.Size
		}
		return true
	})
	return below, above
}
