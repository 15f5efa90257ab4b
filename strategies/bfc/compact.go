package bfc

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

var _ power.Mover = (*Allocator)(nil)

// moves reports whether blocks can be moved. They cannot in variant 2026, because a chunk does not
// record the alignment of its request; in an arena with two ends, which must stay apart; and with
// timing, because a stream may still read freed memory. The original never moves a block.
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

// exchange swaps a hole, which is in no bin, with the live chunk right behind it. The two records
// keep their order and exchange roles, so the first and last chunk of a region keep their handles.
func (a *Allocator) exchange(hole, h handle) {
	low, high := &a.chunks.rows[hole], &a.chunks.rows[h]
	requested, l, id := a.chunks.requested(h), a.chunks.label(h), a.chunks.id(h)
	a.live.Unlink(high.addr, h+1)
	low.size, high.size = high.size, low.size
	high.addr = low.end()
	low.tag, high.tag = low.tag.withState(live), high.tag.withState(free)
	a.chunks.setRequested(hole, requested)
	a.chunks.setLabel(hole, l)
	a.chunks.setID(hole, id)
	a.live.Put(low.addr, hole+1, a.chunks.addrOf)
}
