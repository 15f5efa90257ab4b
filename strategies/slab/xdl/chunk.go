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

// chunk is the state of 64 adjacent units, the lowest in the lowest bit. It is in the list of its
// class in its segment.
type chunk struct {
	free    uint64      // the unit is free
	heads   uint64      // a block starts at the unit
	base    device.Addr // address of unit 0
	segment int32
	class   int32 // of free
}

// class returns the length of the longest run of free units, 4 for all from four up. It has no
// branch to mispredict.
func class(free uint64) int32 {
	two := free & (free >> 1)
	return nonzero(free) + nonzero(two) + nonzero(two&(free>>2)) + nonzero(two&(two>>2))
}

func nonzero(x uint64) (n int32) {
	if x != 0 {
		n = 1
	}
	return n
}

// lowest returns the lowest unit at which n consecutive units, 1 to 4, are free. There must be one.
func lowest(free uint64, n int) int {
	starts := free
	for k := 1; k < n; k++ {
		starts &= free >> k
	}
	return bits.TrailingZeros64(starts)
}

// mask returns n bits, at least 1, from bit b up.
func mask(b, n int) uint64 { return ^uint64(0) >> (64 - n) << b }

func (c *chunk) take(b, n int) {
	c.free &^= mask(b, n)
	c.heads |= 1 << b
}

// give frees the block that starts at unit b and returns its units. Sizes are not stored: a block
// ends before the next one, the next free unit, or the end.
func (c *chunk) give(b int) int {
	n := c.units(b)
	c.free |= mask(b, n)
	c.heads &^= 1 << b
	return n
}

// runAt returns the length of the free run around unit b.
func runAt(free uint64, b int) int {
	return bits.LeadingZeros64(^(free << (chunkUnits - b))) + bits.TrailingZeros64(^(free >> b))
}

func (c *chunk) units(b int) int {
	ends := (c.free | c.heads) >> b >> 1
	return min(bits.TrailingZeros64(ends)+1, chunkUnits-b)
}

// longest returns the length of the longest run of ones: its length is doubled while such runs
// exist, and the rest found bit by bit from the top, in at most 12 steps.
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

// link is a place in a circular list. Each list has an anchor in front of the first and behind the
// last, so that moving a chunk needs no branch.
type link struct{ next, prev int32 }

func push(links []link, anchor, i int32) {
	first := links[anchor].next
	links[i] = link{next: first, prev: anchor}
	links[first].prev = i
	links[anchor].next = i
}

func unlink(links []link, i int32) {
	l := links[i]
	links[l.prev].next = l.next
	links[l.next].prev = l.prev
}

// hole remembers the longest free run of all chunks. A freed run can only raise it; find
// detects that a grant shortened it.
type hole struct {
	units int   // no run is longer
	at    int32 // a chunk that had one of that length
}

func (h *hole) raise(n int, i int32) {
	if n >= h.units {
		h.units, h.at = n, i
	}
}

// find returns the longest free run. It costs O(1) while the recorded chunk still has such a
// run; otherwise find examines the chunks up to the next one that does.
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
