package blocks

import (
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
)

// FreeNeighbours returns the free bytes below and above the live block of n bytes at addr that
// would be one free block with it if it were returned now: none if its parts would stay apart. It
// costs a step for each class.
func (b *Engine) FreeNeighbours(addr device.Addr, n device.Size, place uint64) (below, above device.Size) {
	if place&directPlace != 0 {
		return 0, 0
	}
	r := &b.regs[slotOf(place)]
	from, units := uint32(addr.Sub(r.base)>>b.shift), b.grantedOf(n)
	whole, ok := b.merged(r, from, from+units)
	if !ok {
		return 0, 0
	}
	end := whole.at + b.classes.size[whole.class]
	return device.Size(from-whole.at) << b.shift, device.Size(end-from-units) << b.shift
}

// merged returns the block that used units of region r would merge into, if to one.
func (b *Engine) merged(r *region, from, end uint32) (node, bool) {
	t := &b.classes
	var w way
	w.to(t, t.rootOf(r.units, from), from)
	n := node{from, min(t.within(end-from), w.turns[w.n].top)}
	// A block granted in parts becomes whole if the rest of the smallest block around it is free.
	for n.at+t.size[n.class] < end {
		_, parent, ok := w.up(t, n)
		if !ok || b.lazy {
			return node{}, false
		}
		n = parent
	}
	if !b.freeBut(r, n, from, end) {
		return node{}, false
	}
	for b.count[n.class] >= b.slack {
		buddy, parent, ok := w.up(t, n)
		if !ok || !b.isFree(r, buddy) {
			break
		}
		n = parent
	}
	return n, true
}

// freeBut reports whether all units of a block are free except those in a range.
func (b *Engine) freeBut(r *region, n node, from, end uint32) bool {
	t := &b.classes
	stop := n.at + t.size[n.class]
	switch {
	case from <= n.at && stop <= end:
		return true
	case stop <= from || end <= n.at:
		return b.isFree(r, n)
	}
	left := node{n.at, n.class - 1}
	right := node{n.at + t.size[left.class], int(t.right[n.class])}
	return b.freeBut(r, left, from, end) && b.freeBut(r, right, from, end)
}

// CanGrab reports whether [Engine.Grab] would find a block without a reservation after the blocks
// at the addresses were returned. The walk shows tiles as [Engine.Spans] does. It costs O(tiles log
// addresses).
func (b *Engine) CanGrab(walk forecast.Walk, r alloc.Request, freed []device.Addr) bool {
	if b.placer == nil {
		b.placer = &forecast.Placer{Most: MostRequest}
	}
	// Made here and not by New, which returned a copy, because the functions keep b.
	p := b.placer
	p.Promises.Honours = func(r alloc.Request) bool { return honours(r.Align) }
	p.Promises.Serves, p.Freed = b.serves, b.foreseen
	if b.binary {
		p.Promises.MustMerge = promise.MergeBuddies // also of blocks that were left unmerged, before a request fails
	}
	return p.CanPlace(walk, r, freed)
}

func (b *Engine) serves(c alloc.Chunk, r alloc.Request) bool {
	if c.Class == alloc.NoClass {
		size := device.AlignUp(r.Size, device.Size(1)<<b.shift)
		return r.Size > b.direct && c.Size >= size && c.Size <= mostKept(size)
	}
	w := b.needOf(r.Size, r.Align)
	return w.class >= 0 && c.Size >= device.Size(b.classes.size[w.class])<<b.shift
}

// foreseen yields the blocks that a live one becomes when it is returned.
func (b *Engine) foreseen(c alloc.Chunk, yield func(alloc.Chunk)) {
	place, _ := b.PlaceOf(c.Addr)
	switch {
	case place&directPlace != 0:
		c.Class = alloc.NoClass
		yield(c)
	case b.binary:
		for units := uint32(c.Size >> b.shift); units != 0; {
			log := bits.Len32(units) - 1
			part := c
			part.Class, part.Size = int32(log), device.Size(1)<<log<<b.shift
			yield(part)
			c.Addr, units = part.End(), units-1<<log
		}
	case !b.trims:
		c.Class = int32(b.classes.within(uint32(c.Size >> b.shift)))
		yield(c)
	}
}
