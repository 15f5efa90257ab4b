package tiles

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// View is the public part of a strategy over a core, for the strategy to embed: the inspector, the
// powers and Close.
type View struct {
	front.View
	core *Core
}

var (
	_ alloc.Inspector  = View{}
	_ power.Holes      = View{}
	_ power.FreeWalker = View{}
	_ power.Trimmer    = View{}
	_ power.Metered    = View{}
	_ power.Locator    = View{}
)

// LargestFree implements [power.Holes], at the cost of Index.Largest.
func (v View) LargestFree() device.Size {
	if v.core.Closed() {
		return 0
	}
	return v.core.index.Largest()
}

// MetadataBytes implements [power.Metered]. O(1).
func (v View) MetadataBytes() device.Size {
	c := v.core
	return c.Bytes() + c.pool.Bytes() + c.live.Bytes() + c.index.Bytes()
}

// Trim implements [power.Trimmer]. It releases the empty regions, the highest address first.
// O(regions).
func (v View) Trim() (device.Size, error) {
	c := v.core
	if c.Closed() {
		return 0, alloc.ErrClosed
	}
	return c.trim()
}

// Close implements [alloc.Strategy]. It releases the regions, the oldest first. Walk yields each
// region that the device does not release as one chunk of slack.
func (v View) Close() error {
	c := v.core
	c.Front.Close()
	c.Table, c.live = NewTable(), index.NewAddrBuckets()
	return c.pool.ReleaseAll()
}

// Walk implements [alloc.Inspector]. Free chunks have the class that the index gives them,
// live ones have none.
func (v View) Walk(yield func(alloc.Chunk) bool) {
	v.core.walk(yield)
}

func (c *Core) walk(yield func(alloc.Chunk) bool) {
	if c.Closed() {
		c.pool.WalkSlack(yield)
		return
	}
	for i := range c.pool.Len() {
		held := c.pool.At(i)
		used := device.Size(0)
		for h := Handle(held.Label); h != None; h = c.Rows[h].Next {
			if !yield(c.show(held.Addr, h)) {
				return
			}
			used += c.Rows[h].Size
		}
		if !regions.Excess(held.Region, used, yield) {
			return
		}
	}
}

// Blocks yields the live blocks in the order of Walk, each with its reference.
func (c *Core) Blocks(yield func(alloc.Block) bool) {
	for i := range c.pool.Len() {
		for h := Handle(c.pool.At(i).Label); h != None; h = c.Rows[h].Next {
			if r := &c.Rows[h]; r.state() == live && !yield(alloc.Block{Addr: r.Addr, Size: r.Size, Ref: h}) {
				return
			}
		}
	}
}

// BlockAt implements [power.Locator]. O(log regions).
func (v View) BlockAt(a device.Addr) (alloc.Chunk, error) {
	c := v.core
	if !c.Closed() {
		if h := c.find(a); h != None {
			held, _ := c.pool.Under(a)
			return c.show(held.Addr, h), nil
		}
	}
	return alloc.Chunk{}, c.NoBlock()
}

func (c *Core) show(region device.Addr, h Handle) alloc.Chunk {
	r := &c.Rows[h]
	v := alloc.Chunk{Region: region, Addr: r.Addr, Size: r.Size, Class: alloc.NoClass}
	if c.IsFree(h) {
		v.Class, v.Owner = c.index.Show(h)
		return v
	}
	l := c.LabelOf(h)
	v.State, v.Requested, v.Tag, v.Stream = alloc.Live, c.Requested(h), l.Tag, l.Stream
	return v
}

func (v View) WalkFree(yield func(alloc.Chunk) bool) {
	c := v.core
	if c.Closed() {
		return
	}
	for h := range c.index.All {
		held, _ := c.pool.Under(c.Rows[h].Addr)
		if !yield(c.show(held.Addr, h)) {
			return
		}
	}
}

// CapacitySpan implements [power.Spanned].
func (v View) CapacitySpan() device.Span { return v.core.pool.CapacitySpan() }
