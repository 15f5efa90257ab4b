package bfc

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

var _ power.Mover = (*Allocator)(nil)

// moves reports whether blocks can be moved: where none is aligned to more than the unit, because a
// chunk does not know what its request asked for, where the arena has no ends to keep apart, and
// where no stream may still read what was freed. The original has nothing like it.
func (c Config) moves() bool { return c.Variant != V2026 && !c.Spatial && !c.Timing }

// Compact implements [power.Mover]. It costs O(chunks log chunks).
func (a *Allocator) Compact(may func(alloc.Chunk) bool, moved func(from, to alloc.Block)) (bytes device.Size,
	err error) {
	switch {
	case a.front.Closed():
		return 0, alloc.ErrClosed
	case !a.cfg.moves():
		return 0, alloc.ErrUnsupported
	}
	for _, n := range a.regions.order {
		bytes += a.slide(a.regions.rows[n].first, may, moved)
	}
	return bytes, nil
}

// slide moves the live chunks of a region down, given its first chunk, and returns the bytes moved.
// A hole rises through them and absorbs the holes that it meets; while it moves it is in no bin.
func (a *Allocator) slide(first handle, may func(alloc.Chunk) bool,
	moved func(from, to alloc.Block)) (bytes device.Size) {
	hole := none
	for h := first; h != none; h = a.chunks.rows[h].next {
		switch {
		case a.isFree(h):
			a.unshelve(h)
			if hole != none {
				a.merge(hole, h)
				h = hole
			}
			hole = h
		case hole == none:
		case !may(a.view(h)):
			a.shelve(hole)
			hole = none
		default:
			from := alloc.Block{Addr: a.chunks.rows[h].addr, Size: a.chunks.rows[h].size, Ref: h + 1}
			a.exchange(hole, h)
			bytes += from.Size
			moved(from, alloc.Block{Addr: a.chunks.rows[hole].addr, Size: from.Size, Ref: hole + 1})
			hole = h // which is where the hole is now
		}
	}
	if hole != none {
		a.shelve(hole)
	}
	return bytes
}

// exchange makes a hole, in no bin, the live chunk right behind it, and that the hole. The records
// stay where they are in the region, so that its first and its last keep their handles.
func (a *Allocator) exchange(hole, h handle) {
	low, high := &a.chunks.rows[hole], &a.chunks.rows[h]
	requested, l := a.chunks.requested(h), a.chunks.label(h)
	a.live.Unlink(high.addr, h+1)
	low.size, high.size = high.size, low.size
	high.addr = low.end()
	low.tag, high.tag = low.tag.withState(live), high.tag.withState(free)
	a.chunks.setRequested(hole, requested)
	a.chunks.setLabel(hole, l)
	a.live.Put(low.addr, hole+1, a.chunks.addrOf)
}
