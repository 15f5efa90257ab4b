package offline

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// Order is the order in which a greedy placement takes the buffers.
type Order string

// The orders. Ties are broken by lifetime, then size, then index.
const (
	BySize     Order = "size"     // largest first
	ByArea     Order = "area"     // largest bytes times lifetime first
	ByLifetime Order = "lifetime" // longest first
)

// Orders returns every order.
func Orders() []Order { return []Order{BySize, ByArea, ByLifetime} }

func (o Order) compare(a, b *Buffer) int {
	size, life := cmp.Compare(b.Size, a.Size), cmp.Compare(b.Upper-b.Lower, a.Upper-a.Lower)
	switch o {
	case ByArea:
		return cmp.Or(compareArea(a, b), life, size)
	case ByLifetime:
		return cmp.Or(life, size)
	}
	return cmp.Or(size, life)
}

// compareArea compares two areas in 128 bits, larger first.
func compareArea(a, b *Buffer) int {
	hiA, loA := bits.Mul64(uint64(a.Size), uint64(a.Upper-a.Lower))
	hiB, loB := bits.Mul64(uint64(b.Size), uint64(b.Upper-b.Lower))
	return cmp.Or(cmp.Compare(hiB, hiA), cmp.Compare(loB, loA))
}

func (p *Problem) sorted(o Order) []int32 {
	list := make([]int32, len(p.buffers))
	for i := range list {
		list[i] = int32(i)
	}
	slices.SortStableFunc(list, func(a, b int32) int { return o.compare(&p.buffers[a], &p.buffers[b]) })
	return list
}

// mostGreedy bounds the steps of a greedy placement to some tens of seconds. Traces of training and
// serving need 10 to 300 steps a buffer; more only occur with thousands of live buffers of random
// sizes and lifetimes.
const mostGreedy = 1 << 29

// Greedy places the buffers in the given order, each at the lowest offset that is free during its
// life.
//
// A tree over time holds the occupied ranges, joined where they touch, so that a buffer examines
// the ranges of some 2 log n nodes instead of all overlapping buffers. O(n log n) times the ranges
// in a node, which are few if the lower part is densely packed. After 2^29 steps the remaining
// buffers go into slots above all others, and Stopped reports it.
func (p *Problem) Greedy(o Order) *Solution {
	return p.greedy(p.sorted(o), "greedy by "+string(o), mostGreedy)
}

// greedy packs the buffers in the order of a list, within a limit of steps.
func (p *Problem) greedy(list []int32, method string, limit uint64) *Solution {
	s := &Solution{Offsets: make([]device.Size, len(p.buffers)), Bound: p.total, Method: method}
	t := newTimeTree(len(p.peaks))
	for k, i := range list {
		b := &p.buffers[i]
		if b.Size == 0 {
			continue // empty, lies at 0
		}
		if t.steps > limit {
			s.Stopped = fmt.Sprintf("%s: %d of %d buffers lie in slots above the others", stoppedSteps, len(list)-k, len(list))
			p.slots(s, list[k:])
			break
		}
		at := t.place(p.spans[i], b.Size, b.Align)
		s.Offsets[i] = at
		s.Height = max(s.Height, at+b.Size)
	}
	s.Steps = t.steps
	s.Optimal = s.Height == p.total
	return s
}

// slots puts buffers above a solution, in slots of powers of two, largest slots lowest. A slot is
// reused when its buffer has died. O(n log n).
func (p *Problem) slots(s *Solution, list []int32) {
	slot := func(i int32) device.Size {
		b := &p.buffers[i]
		return max(device.Size(1)<<bits.Len64(uint64(max(b.Size, 1)-1)), b.Align)
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b int32) int {
		return cmp.Or(cmp.Compare(slot(b), slot(a)), cmp.Compare(p.spans[a].first, p.spans[b].first))
	})
	for len(list) > 0 {
		size := slot(list[0])
		n := 1
		for n < len(list) && slot(list[n]) == size {
			n++
		}
		p.fill(s, list[:n], size)
		list = list[n:]
	}
}

// fill puts buffers, in order of birth, into slots of one size above a solution.
func (p *Problem) fill(s *Solution, list []int32, size device.Size) {
	base := alignUp(s.Height, size)
	dying := slices.Clone(list)
	slices.SortStableFunc(dying, func(a, b int32) int { return cmp.Compare(p.spans[a].last, p.spans[b].last) })
	var free []device.Size
	next := base
	for _, i := range list {
		for p.spans[dying[0]].last <= p.spans[i].first {
			free = append(free, s.Offsets[dying[0]])
			dying = dying[1:]
		}
		at := next
		if n := len(free); n > 0 {
			at, free = free[n-1], free[:n-1]
		} else {
			next += size
		}
		s.Offsets[i] = at
		s.Height = max(s.Height, at+p.buffers[i].Size)
	}
}
