package xdl

import "math/bits"

// oldestWith returns the oldest region with a free run of the order, comparing roots one by one as
// the original does.
func (a *Allocator) oldestWith(order int) (region int, ok bool) {
	for i, longest := range a.roots {
		if int(longest) > order {
			return i, true
		}
	}
	return 0, false
}

// lowest returns the first block of the lowest free run of the order: left whenever the left half
// can serve. Which half serves is unpredictable, so the steps are arithmetic and go two levels at a
// time: the bytes for the second are read before the first is decided.
//
// Precondition: the root has a run of that order.
func (t *tree) lowest(order int) uint32 {
	i, bottom, want, nodes := uint32(1), max(order, t.leaf), uint32(order+1), t.longest
	depth := t.top - bottom
	for ; depth >= 2; depth -= 2 {
		i *= 4
		ifLeft, ifRight := uint32(nodes[i]), uint32(nodes[i+2])
		right := less(uint32(nodes[i/2]), want)
		i += 2*right + less(ifLeft^(ifLeft^ifRight)&-right, want)
	}
	if depth > 0 {
		i *= 2
		i += less(uint32(nodes[i]), want)
	}
	at := (i - 1<<((t.top-bottom)&31)) << (bottom & 31)
	if order < bottom {
		at += uint32(bits.TrailingZeros64(starts(t.words[at>>(t.leaf&31)].free, order)))
	}
	return at
}

// less returns 1 if a < b, else 0, without a branch. Both must be below 2^31.
func less(a, b uint32) uint32 { return (a - b) >> 31 }
