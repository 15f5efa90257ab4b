package xdl

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

const (
	chunkUnits = 64 // units in a chunk: the bits of a word
	maxUnits   = 4  // units in the largest block
	classes    = 5  // lists of a segment: 0 to 4
	none       = -1 // no chunk, no block

	// Host memory in bytes.
	chunkBytes = 32
	linkBytes  = 8
)

// chunk is the state of 64 neighbouring units, the lowest in the lowest bit. It is in one
// list of its segment, that of its class.
type chunk struct {
	free    uint64      // the unit is free
	heads   uint64      // a block starts at the unit
	base    device.Addr // address of unit 0
	segment int32
	class   int32 // of free
}

// class returns the class of a word of free units: the length of its longest run, 4 for
// all from four up. It has no branch to mispredict.
func class(free uint64) int32 {
	two := free & (free >> 1)
	return nonzero(free) + nonzero(two) + nonzero(two&(free>>2)) + nonzero(two&(two>>2))
}

// nonzero returns 1, or 0 for 0.
func nonzero(x uint64) (n int32) {
	if x != 0 {
		n = 1
	}
	return n
}

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
}

// give marks the block that starts at unit b as free and returns how many units it had.
// Sizes are not stored: a block ends before the next one, the next free unit, or the end.
func (c *chunk) give(b int) int {
	n := c.units(b)
	c.free |= mask(b, n)
	c.heads &^= 1 << b
	return n
}

// runAt returns the length of the free run that unit b lies in.
func runAt(free uint64, b int) int {
	return bits.LeadingZeros64(^(free << (chunkUnits - b))) + bits.TrailingZeros64(^(free >> b))
}

// units returns how many units the block that starts at unit b has.
func (c *chunk) units(b int) int {
	ends := (c.free | c.heads) >> b >> 1
	return min(bits.TrailingZeros64(ends)+1, chunkUnits-b)
}

// longest returns the length of the longest run of ones.
//
// While runs of twice the length exist the length doubles; what is left of it is then
// found bit by bit from the top. That is at most 12 steps for any word, where stripping
// one unit of every run at a time would take one step per unit.
func longest(word uint64) int {
	if word == 0 {
		return 0
	}
	n := 1 // every bit of word starts a run of n ones
	for n < chunkUnits && word&(word>>n) != 0 {
		word, n = word&(word>>n), 2*n
	}
	for step := n / 2; step > 0; step /= 2 {
		if more := word & (word >> step); more != 0 {
			word, n = more, n+step
		}
	}
	return n
}

// link is a place in a circular list. Each list has an anchor, a link of its own that is
// in front of the first and behind the last, so that no link is ever at an end: moving a
// chunk needs no branch.
type link struct{ next, prev int32 }

// push puts link i behind link anchor.
func push(links []link, anchor, i int32) {
	first := links[anchor].next
	links[i] = link{next: first, prev: anchor}
	links[first].prev = i
	links[anchor].next = i
}

// unlink takes link i out of its list.
func unlink(links []link, i int32) {
	l := links[i]
	links[l.prev].next = l.next
	links[l.next].prev = l.prev
}

// hole remembers the longest free run of all chunks, as far as that is free of charge. A
// freed run can only raise it, and does; whether one that was granted from was the longest
// is found out when it is asked for.
type hole struct {
	units int   // no run is longer
	at    int32 // a chunk that had one of that length
}

// raise books a free run of n units in chunk i.
func (h *hole) raise(n int, i int32) {
	if n >= h.units {
		h.units, h.at = n, i
	}
}

// find returns the longest free run. It costs O(1) while the chunk that had it has it
// still, and one look at every chunk up to the next that has it otherwise.
func (h *hole) find(all []chunk) int {
	if len(all) == 0 || longest(all[h.at].free) == h.units {
		return h.units
	}
	most := hole{}
	for i := range all {
		if most.raise(longest(all[i].free), int32(i)); most.units == h.units {
			break
		}
	}
	*h = most
	return h.units
}
