package tlsf

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/tiles"
)

// lists are the rings of free chunks by class, with a two-level bitmap of the nonempty ones. The
// words of the bitmap are not aligned to doublings of the size, which makes no difference to the
// search and saves variable shifts.
type lists struct {
	scale
	core  *tiles.Core
	order order

	first  uint64         // bit f: second[f] is not zero
	second [64]uint64     // bit s of [f]: the ring of class f<<6|s is not empty
	rings  []tiles.Handle // anchors, as many as the highest class so far needed
}

// order is the order of the chunks in a ring.
type order uint8

const (
	lifo    order = iota // the chunk freed last comes first
	fifo                 // the chunk freed first comes first
	address              // the lowest comes first
)

// extend makes rings for a class and those below.
func (l *lists) extend(class uint32) {
	for n := (class>>l.scale.second + 1) << l.scale.second; uint32(len(l.rings)) < n; {
		l.rings = append(l.rings, l.core.Anchor())
	}
}

// place returns the chunk or anchor after which a new chunk is inserted in a ring of order fifo or
// address.
func (l *lists) place(ring tiles.Handle, at device.Addr) tiles.Handle {
	h := l.core.Before(ring)
	if l.order == address {
		for h != ring && l.core.Rows[h].Addr > at {
			h = l.core.Before(h)
		}
	}
	return h
}

// remove removes a free chunk from its ring. A no-op for None. O(1).
func (l *lists) remove(h tiles.Handle) {
	if l.core.Unlink(h) {
		l.unmark(h)
	}
}

// unmark clears the bit of the ring of a removed chunk, because the ring is empty.
func (l *lists) unmark(h tiles.Handle) {
	class := l.class(l.core.Rows[h].Size)
	word := &l.second[class>>6&63]
	if *word &^= 1 << (class & 63); *word == 0 {
		l.first &^= 1 << (class >> 6 & 63)
	}
}

// lowest returns the first class from a given one whose ring is not empty. O(1).
func (l *lists) lowest(class uint32) (uint32, bool) {
	f := class >> 6 & 63
	m := l.second[f] >> (class & 63) << (class & 63)
	if m == 0 {
		above := l.first >> f >> 1 << f << 1
		if above == 0 {
			return 0, false
		}
		f = uint32(bits.TrailingZeros64(above)) & 63
		m = l.second[f]
	}
	return f<<6 | uint32(bits.TrailingZeros64(m)), true
}

// highest returns the last class whose ring is not empty, and whether there is one. O(1).
func (l *lists) highest() (uint32, bool) {
	if l.first == 0 {
		return 0, false
	}
	f := uint32(bits.Len64(l.first)) - 1
	return f<<6 | uint32(bits.Len64(l.second[f])-1), true
}

// bytes returns the host memory of the array of anchors; the anchors are rows of the table
// and the bitmap part of the allocator.
func (l *lists) bytes() device.Size { return device.Size(cap(l.rings)) * 4 }
