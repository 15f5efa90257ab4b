package packing

import (
	"cmp"
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
		return cmp.Or(CompareArea(a, b), life, size)
	case ByLifetime:
		return cmp.Or(life, size)
	}
	return cmp.Or(size, life)
}

// CompareArea compares bytes times lifetime of two buffers in 128 bits, larger first.
func CompareArea(a, b *Buffer) int {
	hiA, loA := bits.Mul64(uint64(a.Size), uint64(a.Upper-a.Lower))
	hiB, loB := bits.Mul64(uint64(b.Size), uint64(b.Upper-b.Lower))
	return cmp.Or(cmp.Compare(hiB, hiA), cmp.Compare(loB, loA))
}

// Sorted returns the indices of the buffers in an order.
func (p *Problem) Sorted(o Order) []int32 {
	list := make([]int32, len(p.buffers))
	for i := range list {
		list[i] = int32(i)
	}
	slices.SortStableFunc(list, func(a, b int32) int { return o.compare(&p.buffers[a], &p.buffers[b]) })
	return list
}

// Packing is the result of [Problem.Pack].
type Packing struct {
	Height device.Size // end of the highest buffer, in bytes
	Steps  uint64      // ranges examined
	Above  int         // buffers in slots above the others, because the steps were spent
}

// Pack places the buffers of a list, in its order, each at the lowest offset that is free during
// its life, and stores the offsets by index. The fixed buffers are obstacles: they stay at their
// offsets, and may overlap each other. No other buffer matters.
//
// A tree over time holds the occupied ranges, joined where they touch, so that a buffer examines
// the ranges of some 2 log n nodes instead of all overlapping buffers. O(n log n) times the ranges
// in a node, which are few if the lower part is densely packed. After the given steps the remaining
// buffers go into slots above all others.
//
// Precondition: a fixed buffer ends below 2^62.
func (p *Problem) Pack(list, fixed []int32, offsets []device.Size, steps uint64) (k Packing) {
	t := newTimeTree(len(p.peaks))
	for _, i := range fixed {
		if b := &p.buffers[i]; b.Size > 0 {
			end := offsets[i] + b.Size
			t.insert(1, 0, int32(t.leaves), p.spans[i], offsets[i], end)
			k.Height = max(k.Height, end)
		}
	}
	for n, i := range list {
		b := &p.buffers[i]
		offsets[i] = 0
		if b.Size == 0 {
			continue
		}
		if t.steps > steps {
			k.Above = len(list) - n
			p.slots(&k, offsets, list[n:])
			break
		}
		offsets[i] = t.place(p.spans[i], b.Size, b.Align)
		k.Height = max(k.Height, offsets[i]+b.Size)
	}
	k.Steps = t.steps
	return k
}

// slots puts buffers above a packing, in slots of powers of two, largest slots lowest. A slot is
// reused when its buffer has died. O(n log n).
func (p *Problem) slots(k *Packing, offsets []device.Size, list []int32) {
	slot := func(i int32) device.Size {
		b := &p.buffers[i]
		return max(device.Size(1)<<bits.Len64(uint64(max(b.Size, 1)-1)), b.Align)
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b int32) int {
		return cmp.Or(cmp.Compare(slot(b), slot(a)), cmp.Compare(p.spans[a].First, p.spans[b].First))
	})
	for len(list) > 0 {
		size := slot(list[0])
		n := 1
		for n < len(list) && slot(list[n]) == size {
			n++
		}
		p.fill(k, offsets, list[:n], size)
		list = list[n:]
	}
}

// fill puts buffers, in order of birth, into slots of one size above a packing.
func (p *Problem) fill(k *Packing, offsets []device.Size, list []int32, size device.Size) {
	base := device.AlignUp(k.Height, size)
	dying := slices.Clone(list)
	slices.SortStableFunc(dying, func(a, b int32) int { return cmp.Compare(p.spans[a].Last, p.spans[b].Last) })
	var free []device.Size
	next := base
	for _, i := range list {
		for p.spans[dying[0]].Last <= p.spans[i].First {
			free = append(free, offsets[dying[0]])
			dying = dying[1:]
		}
		at := next
		if n := len(free); n > 0 {
			at, free = free[n-1], free[:n-1]
		} else {
			next += size
		}
		offsets[i] = at
		k.Height = max(k.Height, at+p.buffers[i].Size)
	}
}
