package rmm

import (
	"math"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

var (
	_ power.Holes   = (*Allocator)(nil)
	_ power.Metered = (*Allocator)(nil)
	_ power.Locator = (*Allocator)(nil)
)

// LargestFree implements [power.Holes]. O(streams) for a pool, O(free chunks) for an arena.
func (a *Allocator) LargestFree() device.Size {
	if a.heap.front.Closed() {
		return 0
	}
	return a.res.largest()
}

// MetadataBytes implements [power.Metered]. O(streams + regions / 32).
func (a *Allocator) MetadataBytes() device.Size {
	return index.BytesOf(a.heap.rows) + a.heap.live.Bytes() + a.heap.held.Bytes() + a.res.bytes()
}

// classOf returns the class of the free chunks in the list or the arena of a stream: the low 31
// bits of its number.
func classOf(s device.Stream) int32 { return int32(s & math.MaxInt32) }

// Walk implements [alloc.Inspector]. The class of a free chunk shows the stream whose list or arena
// holds it, its owner the bin. Bytes beyond whole quanta at the end of a region are slack.
func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	t := &a.heap
	if t.front.Closed() {
		t.held.WalkSlack(yield)
		return
	}
	for i := range t.held.Len() {
		region := t.held.At(i)
		used := device.Size(0)
		for h := handle(region.Label); h != none; h = t.rows[h].next {
			c := a.show(region.Addr, h)
			if used += c.Size; c.Size > 0 && !yield(c) {
				return
			}
		}
		if !regions.Excess(region.Region, used, yield) {
			return
		}
	}
}

// BlockAt implements [power.Locator]. O(log regions).
func (a *Allocator) BlockAt(at device.Addr) (alloc.Chunk, error) {
	h := a.heap.find(at)
	if h == none {
		return alloc.Chunk{}, a.heap.front.NoBlock()
	}
	region, _ := a.heap.held.Under(at)
	return a.show(region.Addr, h), nil
}

// show returns a chunk as Walk shows it, in whole quanta.
func (a *Allocator) show(region device.Addr, h handle) alloc.Chunk {
	r := &a.heap.rows[h]
	c := alloc.Chunk{
		Region: region, Addr: r.addr, Size: device.AlignDown(r.size, quantum), Requested: r.requested,
		Class: alloc.NoClass, Stream: r.stream, Tag: r.tag,
	}
	if r.state == live {
		c.State = alloc.Live
	} else {
		c.Class, c.Owner = a.res.show(h)
	}
	return c
}
