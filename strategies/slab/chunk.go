package slab

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

const (
	chunkUnits = 64 // units in a chunk: the bits of a word
	maxUnits   = 4  // units in the largest block
	none       = -1 // no chunk
	chunkBytes = 40 // host memory of a chunk
)

// chunk is the state of 64 neighbouring units, the lowest in the lowest bit. It is in one
// list of its segment, that of its class.
type chunk struct {
	free       uint64      // the unit is free
	heads      uint64      // a block starts at the unit
	base       device.Addr // address of unit 0
	next, prev int32       // neighbours in the list
	segment    int32
	run        uint8 // units in the longest free run, 0 to 64
}

// class returns the list of a chunk whose longest free run has the given length.
func class(run uint8) uint8 { return min(run, maxUnits) }

// lowest returns the lowest unit at which n consecutive units are free.
//
// Precondition: there is one, and 1 <= n <= 4.
func lowest(free uint64, n int) int {
	starts := free
	for k := 1; k < n; k++ {
		starts &= free >> k
	}
	return bits.TrailingZeros64(starts)
}

// mask returns n bits from bit b up.
//
// Precondition: 1 <= n and b+n <= 64.
func mask(b, n int) uint64 { return ^uint64(0) >> (64 - n) << b }

// take marks n free units from unit b up as one block.
func (c *chunk) take(b, n int) {
	c.free &^= mask(b, n)
	c.heads |= 1 << b
	c.run = longest(c.free)
}

// give marks the block that starts at unit b as free and returns how many units it had.
// Sizes are not stored: a block ends before the next one, the next free unit, or the end.
func (c *chunk) give(b int) int {
	n := c.units(b)
	c.free |= mask(b, n)
	c.heads &^= 1 << b
	c.run = longest(c.free)
	return n
}

// units returns how many units the block that starts at unit b has.
func (c *chunk) units(b int) int {
	ends := (c.free | c.heads) >> b >> 1
	return min(bits.TrailingZeros64(ends)+1, chunkUnits-b)
}

// longest returns the length of the longest run of ones.
//
// While runs of twice the length exist the length doubles; what is left of it is then
// found bit by bit from the top. That is at most 12 steps for any word, where stripping one unit
// of every run at a time would take one step per unit.
func longest(word uint64) uint8 {
	if word == 0 {
		return 0
	}
	n := 1 // every bit of word starts a run of n ones
	for n < chunkUnits {
		twice := word & (word >> n)
		if twice == 0 {
			break
		}
		word, n = twice, 2*n
	}
	for step := n / 2; step > 0; step /= 2 {
		if more := word & (word >> step); more != 0 {
			word, n = more, n+step
		}
	}
	return uint8(n)
}
