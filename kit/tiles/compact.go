package tiles

import (
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/regions"
)

var _ power.Mover = View{}

// Compact implements [power.Mover]. It costs O(chunks) and two changes of the index for each block.
func (v View) Compact(may func(alloc.Chunk) bool, moved func(from, to alloc.Block)) (bytes device.Size, err error) {
	c := v.core
	if c.Closed() {
		return 0, alloc.ErrClosed
	}
	for i := range c.pool.Len() {
		s := slide{core: c, held: c.pool.At(i), may: may, moved: moved}
		s.run()
		bytes += s.bytes
	}
	return bytes, nil
}

// slide moves the blocks of one region down. A hole moves up through the blocks and absorbs the
// holes above it.
type slide struct {
	core  *Core
	held  regions.Held
	may   func(alloc.Chunk) bool
	moved func(from, to alloc.Block)
	bytes device.Size // moved
}

func (s *slide) run() {
	c, hole := s.core, None
	for h := Handle(s.held.Label); h != None; {
		last := h
		switch {
		case c.IsFree(h):
			c.index.Remove(h)
			// The lower chunk survives: the hole, or the first chunk of the region.
			hole = c.Join(hole, h, None)
			last = hole
		case hole != None:
			if s.moveDown(hole, h) {
				hole = h // it changed places with the block
			} else {
				hole = None
			}
		}
		h = c.Rows[last].Next
	}
	if hole != None {
		c.index.Insert(hole)
	}
}

// moveDown moves a live chunk down into the hole below it, as far as its alignment allows, and
// reports whether it moved. If so, h is the handle of the hole afterwards; otherwise the hole is in
// the index.
func (s *slide) moveDown(hole, h Handle) bool {
	c := s.core
	pad := Pad(c.Rows[hole].Addr, c.alignOf(h))
	if pad == c.Rows[hole].Size || !s.may(c.show(s.held.Addr, h)) {
		c.index.Insert(hole)
		return false
	}
	if pad != 0 {
		rest := c.Split(hole, pad)
		c.index.Insert(hole)
		hole = rest
	}
	from := alloc.Block{Addr: c.Rows[h].Addr, Size: c.Rows[h].Size, Ref: h}
	c.exchange(hole, h)
	s.bytes += from.Size
	s.moved(from, alloc.Block{Addr: c.Rows[hole].Addr, Size: from.Size, Ref: hole})
	return true
}

// exchange swaps a hole, which is in no ring, with the live chunk after it. The order of the rows
// in the region stays, so the first chunk keeps its handle.
func (c *Core) exchange(hole, h Handle) {
	indexed, chain := !c.live.Dropped(), None
	if indexed {
		c.unlist(h)
	}
	requested, label, log := c.Requested(h), c.LabelOf(h), c.aligns.Get(h)
	low, high := &c.Rows[hole], &c.Rows[h]
	low.Size, high.Size = high.Size, low.Size
	high.Addr = low.End()
	c.setFree(h)
	if indexed {
		chain = c.live.Enter(low.Addr, hole)
	}
	low.setLive(requested, chain)
	c.annotate(hole, requested, label, log)
}

// alignOf returns the requested alignment of a live chunk, 1 for none.
func (c *Core) alignOf(h Handle) device.Size { return 1 << c.aligns.Get(h) }

// logOf returns log2 of the alignment of a request, 0 for none.
func logOf(align device.Size) uint8 { return uint8(bits.TrailingZeros64(uint64(max(align, 1)))) }
