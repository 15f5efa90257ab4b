package stitch

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// The owners of chunks, as they appear in alloc.Chunk.Owner.
const (
	OwnerSmall    = uint8(small)    // the small pool
	OwnerPages    = uint8(pages)    // a segment
	OwnerStitched = uint8(stitched) // the range of an sBlock
)

var (
	_ power.Holes      = (*Allocator)(nil)
	_ power.FreeWalker = (*Allocator)(nil)
	_ power.Trimmer    = (*Allocator)(nil)
	_ power.Metered    = (*Allocator)(nil)
	_ power.Locator    = (*Allocator)(nil)
)

// LargestFree implements [power.Holes]: the largest free chunk. Stitching may serve a larger
// request, up to the sum of all free pBlocks. O(1).
func (a *Allocator) LargestFree() device.Size {
	if a.front.Closed() {
		return 0
	}
	return a.largest()
}

// largest returns the size of the largest free chunk.
func (a *Allocator) largest() device.Size {
	return max(a.free[small].Largest(), a.free[pages].Largest())
}

// MetadataBytes implements [power.Metered]. O(regions).
func (a *Allocator) MetadataBytes() device.Size {
	n := index.BytesOf(a.chunks) + index.BytesOf(a.regions) + index.BytesOf(a.pieces) + index.BytesOf(a.gathered) +
		a.order.Bytes(8) +
		a.free[small].Bytes() + a.free[pages].Bytes() + a.idle.Bytes() + a.live.Bytes()
	for i := range a.regions {
		r := &a.regions[i]
		n += index.BytesOf(r.handles) + index.BytesOf(r.owner)
	}
	return n
}

// Trim implements [power.Trimmer]. It undoes idle sBlocks and releases free pages and free regions
// of the small pool. A range stays until all its pages are released. It costs O(regions + pages)
// and about one device call for each.
func (a *Allocator) Trim() (device.Size, error) {
	if a.front.Closed() {
		return 0, alloc.ErrClosed
	}
	return a.trim()
}

// trim is Trim of an allocator that may be closed.
func (a *Allocator) trim() (device.Size, error) {
	before := a.front.Stats.Reserved
	err := a.giveBackAll(stitched, stitched, ^device.Size(0))
	if e := a.giveBackAll(small, pages, ^device.Size(0)); err == nil {
		err = e
	}
	return before - a.front.Stats.Reserved, err
}

// Close implements [alloc.Strategy]: it frees every block and trims. Walk shows memory that the
// device does not take back as slack, and ranges as address space without memory of their own.
func (a *Allocator) Close() error {
	if !a.front.Closed() {
		a.front.Close()
		for _, b := range a.live.Range {
			a.vacate(uint32(b.Place))
		}
		a.live = front.Ledger{}
	}
	_, err := a.trim()
	return err
}

// Walk implements [alloc.Inspector]. The memory of a block lies in one chunk. A used sBlock is Live
// and the pBlocks under it are Aliased; an idle sBlock is Aliased too. Released pages are Unmapped.
func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	for e := range a.order.All {
		r := &a.regions[e.Value]
		if !a.walkRegion(r, yield) {
			return
		}
	}
}

// walkRegion yields the chunks of one region and reports whether the walk continues.
func (a *Allocator) walkRegion(r *region, yield func(alloc.Chunk) bool) bool {
	if r.chunk == none { // an sBlock that is being undone
		return r.space(0, r.mapped, alloc.Aliased, yield) && r.space(r.mapped, r.size, alloc.Unmapped, yield)
	}
	used := device.Size(0)
	for h := r.chunk; h != none; h = a.chunks[h].next {
		c := &a.chunks[h]
		if c.state == gone && r.mapped > 0 { // a segment that could not be made, nor undone
			if !r.space(0, r.mapped, alloc.Slack, yield) || !r.space(r.mapped, c.size, alloc.Unmapped, yield) {
				return false
			}
		} else if !yield(a.show(h)) {
			return false
		}
		used += c.size
	}
	if r.kind == small {
		return regions.Excess(device.Region{Addr: r.addr, Size: r.size}, used, yield)
	}
	return r.space(used, r.size, alloc.Unmapped, yield)
}

// space yields the part of a region between two distances from its start, if there is any, and
// reports whether the walk continues.
func (r *region) space(from, to device.Size, s alloc.State, yield func(alloc.Chunk) bool) bool {
	return from == to || yield(alloc.Chunk{
		Region: r.addr, Addr: r.addr.Add(from), Size: to - from, State: s, Class: alloc.NoClass, Owner: uint8(r.kind),
	})
}

// show returns a chunk as Walk shows it.
func (a *Allocator) show(h uint32) alloc.Chunk {
	c := &a.chunks[h]
	r := &a.regions[c.region]
	v := alloc.Chunk{Region: r.addr, Addr: c.addr, Size: c.size, Class: alloc.NoClass, Owner: uint8(r.kind)}
	switch c.state {
	case free:
		if a.front.Closed() {
			v.State = alloc.Slack
		}
	case live:
		b, _ := a.live.Get(c.addr)
		v.State, v.Requested, v.Tag, v.Stream = alloc.Live, b.Requested, b.Tag, b.Stream
	case held, idle:
		v.State = alloc.Aliased
	case gone:
		v.State = alloc.Unmapped
	}
	return v
}

// BlockAt implements [power.Locator]. O(1).
func (a *Allocator) BlockAt(at device.Addr) (alloc.Chunk, error) {
	b, ok := a.live.Get(at)
	if !ok {
		return alloc.Chunk{}, a.front.NoBlock()
	}
	return a.show(uint32(b.Place)), nil
}

// WalkFree implements [power.FreeWalker]: the small pool, then the pBlocks, smallest first. The
// memory of idle sBlocks is shown as its pBlocks.
func (a *Allocator) WalkFree(yield func(alloc.Chunk) bool) {
	if a.front.Closed() {
		return
	}
	for _, m := range [...]*index.SizeMap{&a.free[small], &a.free[pages]} {
		for e := range m.All {
			if !yield(a.show(e.Handle)) {
				return
			}
		}
	}
}

// CapacitySpan implements [power.Spanned].
func (a *Allocator) CapacitySpan() device.Span { return a.span }
