package offline

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/packing"
)

// outcome is the result of a search.
type outcome uint8

const (
	refuted outcome = iota // no placement is low enough
	found                  // offsets holds a placement
	aborted                // limit or cancellation
)

// preorder is a static order of the buffers of a part, for ties in offset. T is the most open bytes
// in a section of a buffer, W its lifetime, A bytes times lifetime.
type preorder string

// preorders are the orders that solve most in turns, according to MiniMalloc's authors.
var preorders = [...]preorder{"TWA", "TAW", "WAT"}

// engine decides whether buffers fit in a capacity, by depth-first search from the bottom up.
// doc.go describes the pruning.
//
// It holds one partial placement, changed and restored in place. An open buffer is one not yet
// placed. Tables are by buffer or by section.
type engine struct {
	p        *Problem
	capacity device.Size
	order    preorder
	meter    *meter
	limit    uint64 // steps at which this attempt ends

	class   []uint64      // equal for interchangeable buffers
	off     []device.Size // lowest offset of an open buffer, above all placed buffers that overlap it
	rank    []int32       // rank of an open buffer in the static order of its part
	top     []device.Size // end of the placed buffers in a section
	rest    []device.Size // bytes of the open buffers in a section
	cuts    []int32       // open buffers live in a section and the next
	offsets []device.Size // of the found placement

	dead   map[state]struct{} // refuted states
	levels [][]int32          // order of the open buffers by depth
	held   int                // capacity of levels
	raised []raise            // undo log of off
	tops   []device.Size      // undo log of top
	next   []int32            // scratch of paint
	keep   []int32            // scratch of place
	lift   []int32            // scratch of place
}

// raise is the previous offset of a raised buffer.
type raise struct {
	buffer int32
	off    device.Size
}

// state is a 128-bit hash of the remaining problem: the open buffers, their offsets, and those
// passed over.
type state struct{ hi, lo uint64 }

// mostDead bounds the refuted states, at about 50 bytes each. When full, all are forgotten.
const mostDead = 1 << 20

// mostHeld bounds the capacity of levels, in buffers: 256 MiB.
const mostHeld = 1 << 26

func newEngine(p *Problem, m *meter) *engine {
	n, sections := len(p.buffers), len(p.peaks)
	e := &engine{
		p: p, meter: m, class: make([]uint64, n), off: make([]device.Size, n), rank: make([]int32, n),
		offsets: make([]device.Size, n), top: make([]device.Size, sections), rest: slices.Clone(p.peaks),
		cuts: p.cuts(), next: make([]int32, sections+1), dead: map[state]struct{}{},
	}
	type likeness struct {
		packing.Span
		size, align device.Size
	}
	classes := map[likeness]uint64{}
	for i, b := range p.buffers {
		like := likeness{p.spans[i], b.Size, b.Align}
		if _, ok := classes[like]; !ok {
			classes[like] = uint64(len(classes)) + 1
		}
		e.class[i] = classes[like]
	}
	return e
}

func (e *engine) attempt(t part, capacity device.Size, o preorder, steps uint64) outcome {
	e.capacity, e.order = capacity, o
	e.limit = e.meter.steps + steps
	return e.solve(t, 0)
}

// part is a set of open buffers that no others overlap, with its sections [lo, hi).
type part struct {
	buffers []int32
	lo, hi  int32
}

// solve searches a part. depth is the number of placed buffers.
func (e *engine) solve(t part, depth int) outcome {
	before := make([]int32, len(t.buffers))
	for i, b := range t.buffers {
		before[i] = e.rank[b]
	}
	e.rankAll(t.buffers)
	order := append(e.level(depth, len(t.buffers)), t.buffers...)
	slices.SortFunc(order, e.compare)
	result := e.descend(part{order, t.lo, t.hi}, depth, 0, 0)
	for i, b := range t.buffers {
		e.rank[b] = before[i]
	}
	return result
}

// level returns space for n open buffers at a depth. Exceeding mostHeld ends the search.
func (e *engine) level(depth, n int) []int32 {
	for len(e.levels) <= depth {
		e.levels = append(e.levels, nil)
	}
	if cap(e.levels[depth]) < n {
		e.held += n - cap(e.levels[depth])
		e.levels[depth] = make([]int32, 0, n)
		if e.held > mostHeld {
			e.meter.stopped = stoppedMemory
		}
	}
	return e.levels[depth]
}

func (e *engine) rankAll(list []int32) {
	type features struct {
		b     int32
		total device.Size
		*Buffer
	}
	all := make([]features, len(list))
	for i, b := range list {
		s := e.p.spans[b]
		all[i] = features{b, slices.Max(e.rest[s.First:s.Last]), &e.p.buffers[b]}
	}
	slices.SortFunc(all, func(x, y features) int {
		t, w := cmp.Compare(y.total, x.total), cmp.Compare(y.Upper-y.Lower, x.Upper-x.Lower)
		a, first := packing.CompareArea(x.Buffer, y.Buffer), cmp.Compare(x.b, y.b)
		switch e.order {
		case "TAW":
			return cmp.Or(t, a, w, first)
		case "WAT":
			return cmp.Or(w, a, t, first)
		}
		return cmp.Or(t, w, a, first)
	})
	for i := range all {
		e.rank[all[i].b] = int32(i)
	}
}

// compare orders open buffers by lowest offset, then by rank.
func (e *engine) compare(a, b int32) int {
	if c := cmp.Compare(e.off[a], e.off[b]); c != 0 {
		return c
	}
	return cmp.Compare(e.rank[a], e.rank[b])
}

// descend tries to place each buffer of a part next, in order, and searches on. Buffers before
// (from, rank) have been passed over.
func (e *engine) descend(t part, depth int, from device.Size, rank int32) outcome {
	if len(t.buffers) == 0 {
		return found
	}
	if !e.meter.spend(uint64(len(t.buffers)), e.limit) {
		return aborted
	}
	e.meter.nodes++
	done := e.passedOver(t.buffers, from, rank)
	key := e.key(t.buffers, done, from)
	if _, ok := e.dead[key]; ok {
		return refuted
	}
	highest := e.highest(t)
	for i := done; i < len(t.buffers) && e.off[t.buffers[i]] <= highest; i++ {
		result, bare := e.place(t, i, depth)
		if result != refuted {
			return result
		}
		if bare {
			break // nothing will lie on it, so no other choice is better
		}
	}
	if len(e.dead) >= mostDead {
		clear(e.dead)
	}
	e.dead[key] = struct{}{}
	return refuted
}

// passedOver returns the number of buffers before (from, rank).
func (e *engine) passedOver(order []int32, from device.Size, rank int32) int {
	n := 0
	for n < len(order) && (e.off[order[n]] < from || e.off[order[n]] == from && e.rank[order[n]] < rank) {
		n++
	}
	return n
}

// highest returns the highest offset for the next buffer of a part. Later buffers lie no lower, so
// the open bytes of the fullest section must fit above; and no hole may be left in which an open
// buffer fits entirely.
func (e *engine) highest(t part) device.Size {
	var most device.Size
	for _, n := range e.rest[t.lo:t.hi] {
		most = max(most, n)
	}
	limit := e.capacity - most // at least 0: paint or solve has checked the capacity
	for _, b := range t.buffers {
		limit = min(limit, e.off[b]+e.p.buffers[b].Size-1)
	}
	return limit
}

// key returns the state of a part. The sum is the same for interchangeable buffers.
func (e *engine) key(order []int32, done int, from device.Size) state {
	sum := state{lo: uint64(e.capacity)}
	for i, b := range order {
		x := e.class[b] * 0xd6e8feb86659fd93
		if i < done {
			x ^= uint64(from)*0xc2b2ae3d27d4eb4f + 1
		}
		hi, lo := bits.Mul64(x^0x9e3779b97f4a7c15, uint64(e.off[b])^0xa0761d6478bd642f^bits.RotateLeft64(x, 23))
		hi2, lo2 := bits.Mul64(hi^x, lo^0xe7037ed1a0b428db)
		sum.hi += hi2 ^ lo
		sum.lo += lo2 ^ hi
	}
	return sum
}

// place places buffer i of a part at its offset and searches on. bare is true if no open buffer
// overlaps it.
func (e *engine) place(t part, i, depth int) (result outcome, bare bool) {
	e.meter.steps += uint64(len(t.buffers))
	b := t.buffers[i]
	at, size, s := e.off[b], e.p.buffers[b].Size, e.p.spans[b]
	undo, undoTops := len(e.raised), len(e.tops)
	rest := part{e.raiseAbove(t.buffers, b, depth), t.lo, t.hi}
	split := false
	e.tops = append(e.tops, e.top[s.First:s.Last]...)
	for k := s.First; k < s.Last; k++ {
		e.top[k] = at + size
		e.rest[k] -= size
		if k+1 < s.Last {
			e.cuts[k]--
			split = split || e.cuts[k] == 0
		}
	}
	if e.fits(rest, at, e.rank[b]) {
		if split {
			result = e.solveParts(rest, s, depth+1)
		} else {
			result = e.descend(rest, depth+1, at, e.rank[b])
		}
	}
	if result == found {
		e.offsets[b] = at
	}
	copy(e.top[s.First:s.Last], e.tops[undoTops:])
	e.tops = e.tops[:undoTops]
	for k := s.First; k < s.Last; k++ {
		e.rest[k] += size
		if k+1 < s.Last {
			e.cuts[k]++
		}
	}
	bare = true
	for _, r := range e.raised[undo:] {
		e.off[r.buffer] = r.off
		bare = false
	}
	e.raised = e.raised[:undo]
	return result, bare
}

// raiseAbove raises the open buffers that overlap b above it and returns all but b in their new
// order. All overlapping buffers are logged, raised or not.
func (e *engine) raiseAbove(order []int32, b int32, depth int) []int32 {
	end, s := e.off[b]+e.p.buffers[b].Size, e.p.spans[b]
	keep, lift := e.keep[:0], e.lift[:0]
	for _, x := range order {
		if x == b {
			continue
		}
		if !s.Overlaps(e.p.spans[x]) {
			keep = append(keep, x)
			continue
		}
		e.raised = append(e.raised, raise{x, e.off[x]})
		if e.off[x] >= end {
			keep = append(keep, x)
			continue
		}
		e.off[x] = device.AlignUp(end, max(e.p.buffers[x].Align, 1))
		lift = append(lift, x)
	}
	slices.SortFunc(lift, e.compare)
	e.keep, e.lift = keep, lift
	merged := e.level(depth+1, len(order))
	for len(keep) > 0 && len(lift) > 0 {
		if e.compare(keep[0], lift[0]) < 0 {
			merged, keep = append(merged, keep[0]), keep[1:]
		} else {
			merged, lift = append(merged, lift[0]), lift[1:]
		}
	}
	merged = append(append(merged, keep...), lift...)
	return merged
}

// fits reports whether the open bytes of each section fit above its floor, the lowest offset of an
// open buffer. A passed-over buffer will be raised by a later one, at least by the size of the
// smallest.
func (e *engine) fits(t part, from device.Size, rank int32) bool {
	for k := t.lo; k <= t.hi; k++ {
		e.next[k] = k
	}
	done := e.passedOver(t.buffers, from, rank)
	if done == 0 {
		return e.paint(t.buffers, 0)
	}
	smallest := e.capacity
	for _, b := range t.buffers {
		smallest = min(smallest, e.p.buffers[b].Size)
	}
	raised := from + smallest
	lower := done
	for lower < len(t.buffers) && e.off[t.buffers[lower]] < raised {
		lower++
	}
	return e.paint(t.buffers[done:lower], 0) && e.paint(t.buffers[:done], raised) && e.paint(t.buffers[lower:], 0)
}

// paint checks the sections of buffers, lowest first, that were not checked for a lower one.
func (e *engine) paint(order []int32, floor device.Size) bool {
	for _, b := range order {
		s := e.p.spans[b]
		low := max(e.off[b], floor)
		for k := e.unpainted(s.First); k < s.Last; k = e.unpainted(k + 1) {
			if max(e.top[k], low)+e.rest[k] > e.capacity {
				return false
			}
			e.next[k] = k + 1
		}
	}
	return true
}

// unpainted returns the first unchecked section from k on, with path compression.
func (e *engine) unpainted(k int32) int32 {
	for e.next[k] != k {
		e.next[k] = e.next[e.next[k]]
		k = e.next[k]
	}
	return k
}

// solveParts splits a part at sections within s where no open buffer lives on both sides, and
// solves the pieces, smallest first, since it is refuted soonest.
func (e *engine) solveParts(t part, s packing.Span, depth int) outcome {
	parts := e.split(t, s)
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(len(a.buffers), len(b.buffers)) })
	for _, sub := range parts {
		if result := e.solve(sub, depth); result != found {
			return result
		}
	}
	return found
}

func (e *engine) split(t part, s packing.Span) []part {
	var parts []part
	lo := t.lo
	for k := s.First; k < s.Last; k++ {
		hi := k + 1
		switch {
		case hi == s.Last:
			hi = t.hi
		case e.cuts[k] != 0:
			continue
		}
		var list []int32
		for _, b := range t.buffers {
			if first := e.p.spans[b].First; first >= lo && first < hi {
				list = append(list, b)
			}
		}
		if len(list) > 0 {
			parts = append(parts, part{list, lo, hi})
		}
		lo = hi
	}
	return parts
}
