package tlsf

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// scale maps sizes to classes. The first 2^second classes hold one size each, a number of
// quanta; from there on each doubling has 2^second classes of equal width. Classes have one
// number, whose upper bits are the first level and whose lower bits are the second.
type scale struct {
	quantum uint8 // log2 of the quantum
	second  uint8 // log2 of the classes in a doubling
}

// width returns the logarithm of how many sizes, in quanta, the class of u quanta holds. The
// bit that is set below keeps it from being negative without a branch.
func (s scale) width(u uint64) uint8 {
	return uint8(bits.Len64(u|1<<(s.second&63))) - 1 - s.second
}

// class returns the class of a chunk of a size.
//
// Precondition: size is at least a quantum.
func (s scale) class(size device.Size) uint32 {
	u := s.quanta(size)
	w := s.width(u)
	return uint32(w)<<(s.second&31) + uint32(u>>(w&63))
}

func (s scale) quanta(size device.Size) uint64 {
	return uint64(size) >> (s.quantum & 63)
}

// bound returns the size from which every chunk serves a request for size bytes: the start of
// the first class without smaller chunks. It is less than a 2^second-th above the size.
//
// Precondition: size is a multiple of the quantum, and at most 1<<63 + 1<<60.
func (s scale) bound(size device.Size) device.Size {
	u := uint64(size) >> (s.quantum & 63)
	last := uint64(1)<<(s.width(u)&63) - 1
	return device.Size((u+last)&^last) << (s.quantum & 63)
}

// sure returns the class that starts at the bound. Rounding up across a doubling carries into the
// class number.
//
// Precondition: as for bound.
func (s scale) sure(size device.Size) uint32 {
	u := s.quanta(size)
	w := s.width(u)
	last := uint64(1)<<(w&63) - 1
	return uint32(w)<<(s.second&31) + uint32((u+last)>>(w&63))
}
