package buddy

import "math/bits"

// This file is the placement of mode "xdl"; all else the modes share.

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
// left half can serve, even if the right half has a smaller hole that fits. Which half
// serves is as good as random, so the step is arithmetic, not a branch.
//
// Precondition: the root has a run of that order.
func (t *tree) lowest(order int) uint32 {
	i, bottom := uint32(1), max(order, t.leaf)
	for range t.top - bottom {
		i *= 2
		i += uint32(int32(t.longest[i])-int32(order)-1) >> 31 // right if left reads at most order
	}
	at := (i - 1<<(t.top-bottom)) << bottom
	if order < bottom {
		at += uint32(bits.TrailingZeros64(starts(t.words[at>>t.leaf].free, order)))
	}
	return at
}
