package blocks

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// This file is the fast path of nearly every request: blocks are powers of two and granted whole,
// regions are taken by rank, and no alignment or high end is requested. The result is that of the
// general path, in fewer steps: the class of a block follows from the bytes asked for, and a block
// keeps its number from when it is found until its last half is split off.

func (b *Engine) halfOf(n device.Size) int {
	return bits.Len64(uint64((n - 1) >> (b.shift & 63)))
}

// grabHalf is Grab from the uppermost levels. If it returns false nothing has changed.
//
// Precondition: n is at most b.halves and not zero.
func (b *Engine) grabHalf(n device.Size) (addr device.Addr, granted device.Size, place uint64, ok bool) {
	class := b.halfOf(n)
	larger := b.some[0] >> (class & 63) << (class & 63) // there are 32 classes
	if larger == 0 {
		return 0, 0, 0, false
	}
	c := bits.TrailingZeros64(larger)
	var key uint32
	if first := &b.ranked[c]; first.room != 0 {
		key = b.store.lowest(first)
	} else {
		key = b.store.min(first)
	}
	slot := b.byRank[key&(b.stride-1)]
	r := &b.regs[slot]
	if !r.isUpper(class) {
		return 0, 0, 0, false
	}
	i := b.store.lowestOf(&r.upper, r.level(c))
	b.lose(r, c, b.store.dropOf(&r.upper, i, r.level(c)))
	for c > class {
		c--
		i <<= 1
		b.addUpper(r, i+1, c)
	}
	b.occupy(r, 1<<(class&31))
	granted = 1 << ((uint(class) + uint(b.shift)) & 63)
	b.freed -= granted
	return r.base.Add(device.Size(i-1<<(r.level(class)&31)) << ((uint(class) + uint(b.shift)) & 63)), granted,
		uint64(slot), true
}

func (b *Engine) returnHalf(slot uint32, r *region, addr device.Addr, n device.Size) device.Size {
	class := b.halfOf(n)
	at := uint32(addr.Sub(r.base) >> (b.shift & 63))
	granted := device.Size(1) << ((uint(class) + uint(b.shift)) & 63)
	b.freed += granted
	if r.isUpper(class) {
		b.mergeUpper(r, r.number(at, class), class)
	} else {
		b.mergeBinary(r, at, class)
	}
	b.relieve(slot, r, 1<<(class&31))
	return granted
}
