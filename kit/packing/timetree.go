package packing

import (
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// timeTree maps time to occupied ranges: a binary tree whose leaves are the sections. A buffer's
// life is covered by at most two nodes on each level.
//
// Invariant: spans[n] holds the ranges of all buffers that cover node n or live anywhere below it;
// whole[n] only the ranges of buffers that cover n. A new buffer must avoid spans in the nodes it
// covers, and whole in their ancestors.
type timeTree struct {
	leaves int // a power of two
	whole  []ranges
	spans  []ranges
	steps  uint64 // ranges examined
	meets  []meet // scratch of place
}

// meet is ranges that a buffer must avoid, and how many of them are below its offset so far.
type meet struct {
	ranges
	below int
}

func newTimeTree(sections int) *timeTree {
	n := 1 << bits.Len(uint(max(sections, 1)-1))
	return &timeTree{leaves: n, whole: make([]ranges, 2*n), spans: make([]ranges, 2*n)}
}

// place puts a buffer at the lowest offset that is free in all its sections, and returns the
// offset.
func (t *timeTree) place(s Span, size, align device.Size) device.Size {
	t.meets = t.meets[:0]
	t.gather(1, 0, int32(t.leaves), s)
	var at device.Size
	for agreed := 0; agreed < len(t.meets); {
		for k := range t.meets {
			t.steps++
			next := t.meets[k].fit(at, size, align, &t.steps)
			if next != at {
				at, agreed = next, 0
			}
			if agreed++; agreed >= len(t.meets) {
				break
			}
		}
	}
	t.insert(1, 0, int32(t.leaves), s, at, at+size)
	return at
}

// gather collects the ranges that a buffer in sections s must avoid, below node n of sections [lo,
// hi).
func (t *timeTree) gather(n int, lo, hi int32, s Span) {
	if s.First <= lo && hi <= s.Last {
		if len(t.spans[n]) > 0 {
			t.meets = append(t.meets, meet{ranges: t.spans[n]})
		}
		return
	}
	if len(t.spans[n]) == 0 {
		return // nothing below either
	}
	if len(t.whole[n]) > 0 {
		t.meets = append(t.meets, meet{ranges: t.whole[n]})
	}
	mid := (lo + hi) / 2
	if s.First < mid {
		t.gather(2*n, lo, mid, s)
	}
	if s.Last > mid {
		t.gather(2*n+1, mid, hi, s)
	}
}

// insert adds the bytes [from, to) for sections s, below node n of sections [lo, hi).
func (t *timeTree) insert(n int, lo, hi int32, s Span, from, to device.Size) {
	t.spans[n].add(from, to)
	if s.First <= lo && hi <= s.Last {
		if n < t.leaves { // a leaf is always covered
			t.whole[n].add(from, to)
		}
		return
	}
	mid := (lo + hi) / 2
	if s.First < mid {
		t.insert(2*n, lo, mid, s, from, to)
	}
	if s.Last > mid {
		t.insert(2*n+1, mid, hi, s, from, to)
	}
}

// ranges are disjoint, non-touching byte ranges in order.
type ranges []taken

// taken is the bytes [from, to).
type taken struct{ from, to device.Size }

// after returns the index of the first range from lo on that ends at or after an offset.
func (r ranges) after(at device.Size, lo int) int {
	hi := len(r)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if r[mid].to < at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// fit returns the lowest aligned offset from at on with size free bytes, and counts the ranges it
// examined. The offsets of further calls must not be below at.
func (m *meet) fit(at, size, align device.Size, steps *uint64) device.Size {
	r, i := m.ranges, m.below
	if i < len(r) && r[i].to <= at {
		i = r.after(at+1, i+1)
	}
	first := i
	for ; i < len(r) && r[i].from < at+size; i++ {
		at = device.AlignUp(r[i].to, max(align, 1))
	}
	m.below = i
	*steps += uint64(i - first)
	return at
}

// add adds a range and joins it with those it overlaps or touches.
func (r *ranges) add(from, to device.Size) {
	old := *r
	i := old.after(from, 0)
	j := i
	for ; j < len(old) && old[j].from <= to; j++ {
		from, to = min(from, old[j].from), max(to, old[j].to)
	}
	if j > i {
		old[i] = taken{from, to}
		*r = slices.Delete(old, i+1, j)
		return
	}
	old = append(old, taken{})
	copy(old[i+1:], old[i:])
	old[i] = taken{from, to}
	*r = old
}
