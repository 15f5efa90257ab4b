package xdl

import "math/bits"

// oldestWith returns the oldest region with a free run of the order. Roots are compared
// one by one, oldest first, as the original does; they lie side by side.
func (a *Allocator) oldestWith(order int) (region int, ok bool) {
	for i, longest := range a.roots {
		if int(longest) > order {
			return i, true
		}
	}
	return 0, false
}

// lowest returns the first block of the lowest free run of the order: left whenever the
// left half can serve, even if the right half has a smaller hole that fits.
//
// Which half serves is as good as random, so the steps are arithmetic, not branches, and
// go two levels at a time: the bytes that decide the second are read before the first is
// decided, which takes a load off every other step of the chain.
//
// Precondition: the root has a run of that order.
func (t *tree) lowest(order int) uint32 {
	i, bottom, want := uint32(1), max(order, t.leaf), uint32(order+1)
	depth := t.top - bottom
	for ; depth >= 2; depth -= 2 {
		i *= 4
		ifLeft, ifRight := uint32(t.longest[i]), uint32(t.longest[i+2])
		right := less(uint32(t.longest[i/2]), want)
		i += 2*right + less(ifLeft^(ifLeft^ifRight)&-right, want)
	}
	if depth > 0 {
		i *= 2
		i += less(uint32(t.longest[i]), want)
	}
	at := (i - 1<<(t.top-bottom)) << bottom
	if order < bottom {
		at += uint32(bits.TrailingZeros64(starts(t.words[at>>t.leaf].free, order)))
	}
	return at
}

// less returns 1 if a < b, and 0 otherwise, without a branch.
//
// Precondition: both are below 2^31.
func less(a, b uint32) uint32 { return (a - b) >> 31 }
