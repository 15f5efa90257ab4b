package slab

import (
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

var (
	_ alloc.Neighbours = (*Caches)(nil)
	_ alloc.Neighbours = (*Runs)(nil)
	_ alloc.Neighbours = (*Lists)(nil)
)

// FreeNeighbours implements [alloc.Neighbours]: nothing, unless the block is the last of its slab. Then it is all of
// the slab. O(1).
func (a *Caches) FreeNeighbours(p device.Addr) (below, above device.Size) {
	a.busy.Enter("slab")
	if !a.closed {
		below, above, _ = a.cells.FreeNeighbours(p)
	}
	a.busy.Leave()
	return below, above
}

// FreeNeighbours returns the bytes of a slab below and above a live slot that would become one free chunk with it if
// it were returned now, and the slab if that would go back to the parent, else a negative number. A slot that would
// go to a magazine has none, nor has what is no live slot. O(1).
func (a *Cells) FreeNeighbours(p device.Addr) (below, above device.Size, gone int32) {
	n := uint64(a.where.Get(p)) - 1
	if n >= uint64(len(a.slabs)) || a.cached.rounds != 0 {
		return 0, 0, none
	}
	s := &a.slabs[n]
	k := &a.kinds[s.class]
	slot := k.slotAt(s, p)
	if slot >= uint64(k.slots) || a.isFree(cell{int32(n), uint32(slot)}) || uint32(s.left)+1 != k.slots {
		return 0, 0, none
	}
	gone = none
	if a.stocks[a.stockOf(int32(n), s)].empties >= a.keep {
		gone = int32(n)
	}
	below = device.Size(slot) * k.slot
	return below, k.slab - k.slot - below, gone
}

// FreeNeighbours implements [alloc.Neighbours]: the free units around the block in its chunk of 64. O(1).
func (a *Runs) FreeNeighbours(p device.Addr) (below, above device.Size) {
	a.busy.Enter("slab")
	if b, ok := a.live.Get(p); ok {
		c, unit := &a.all[b.Place/chunkUnits], int(b.Place%chunkUnits)
		end := unit + c.units(unit)
		below = device.Size(bits.LeadingZeros64(^(c.free << (chunkUnits - unit)))) * a.cfg.UnitBytes
		above = device.Size(bits.TrailingZeros64(^(c.free >> end))) * a.cfg.UnitBytes
	}
	a.busy.Leave()
	return below, above
}

// FreeNeighbours implements [alloc.Neighbours]: blocks are never merged.
func (*Lists) FreeNeighbours(device.Addr) (below, above device.Size) { return 0, 0 }
