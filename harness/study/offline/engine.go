package offline

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// outcome is what became of a search.
type outcome uint8

const (
	refuted outcome = iota // no placement is low enough
	found                  // one is; its offsets are known
	aborted                // the limit or the caller ended it
)

// preorder is a static order of the buffers of a part: which of two that could lie equally low
// goes first. T is the most open bytes in a section of a buffer, W its life, A bytes times life.
type preorder string

// preorders are those that MiniMalloc's authors found to solve most in turns.
var preorders = [...]preorder{"TWA", "TAW", "WAT"}

// engine decides whether buffers fit in a capacity: a search in depth that places buffers from the
// bottom up. doc.go says which placements it tries and which it need not.
//
// It holds one partial placement, changed and restored on the way. A buffer is open while it has no
// place. All tables are by buffer or by section.
type engine struct {
	p        *Problem
	capacity device.Size
	order    preorder
	meter    *meter
	limit    uint64 // steps at which this attempt ends

	class   []uint64      // the same for buffers that can stand for each other
	off     []device.Size // lowest offset of an open buffer, above all that are placed and overlap it
	rank    []int32       // place of an open buffer in the static order of its part
	top     []device.Size // end of what is placed in a section
	rest    []device.Size // bytes of the open buffers in a section
	cuts    []int32       // open buffers that live in a section and in the next
	offsets []device.Size // of the placement that was found

	dead   map[state]struct{} // states that are refuted
	levels [][]int32          // the order of the open buffers, by how many are placed above
	held   int                // room in levels
	raised []raise            // what to restore of off
	tops   []device.Size      // what to restore of top
	next   []int32            // scratch of paint
	keep   []int32            // scratch of place
	lift   []int32            // likewise
}

// raise is an offset before it was raised.
type raise struct {
	buffer int32
	off    device.Size
}

// state names what is left to do: the open buffers with their offsets and those that may not lie
// there any more, hashed to 128 bits.
type state struct{ hi, lo uint64 }

// mostDead bounds the memory for refuted states, at about 50 bytes each. When there are as many,
// all are forgotten.
const mostDead = 1 << 20

// mostHeld bounds the room for orders, in buffers: 256 MiB.
const mostHeld = 1 << 26

func newEngine(p *Problem, m *meter) *engine {
	n, sections := len(p.buffers), len(p.peaks)
	e := &engine{
		p: p, meter: m, class: make([]uint64, n), off: make([]device.Size, n), rank: make([]int32, n),
		offsets: make([]device.Size, n), top: make([]device.Size, sections), rest: slices.Clone(p.peaks),
		cuts: p.cuts(), next: make([]int32, sections+1), dead: map[state]struct{}{},
	}
	type likeness struct {
		span
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

// part is a set of open buffers that no others overlap, and the sections [lo, hi) they live in.
type part struct {
	buffers []int32
	lo, hi  int32
}

// solve searches a part by itself. depth is the number of buffers placed above.
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

// level returns room for the order of so many open buffers below a depth. Too much room for all
// depths together ends the search.
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
		all[i] = features{b, slices.Max(e.rest[s.first:s.last]), &e.p.buffers[b]}
	}
	slices.SortFunc(all, func(x, y features) int {
		t, w := cmp.Compare(y.total, x.total), cmp.Compare(y.Upper-y.Lower, x.Upper-x.Lower)
		a, first := compareArea(x.Buffer, y.Buffer), cmp.Compare(x.b, y.b)
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

// compare orders open buffers by how low they could lie, then by rank.
func (e *engine) compare(a, b int32) int {
	if c := cmp.Compare(e.off[a], e.off[b]); c != 0 {
		return c
	}
	return cmp.Compare(e.rank[a], e.rank[b])
}

// descend places one buffer of a part after the other where it could lie, and goes on behind each.
// The buffers come in order. Those in front of (from, rank) have had their turn at their offsets.
func (e *engine) descend(t part, depth int, from device.Size, rank int32) outcome {
	if len(t.buffers) == 0 {
		return found
	}
	if !e.meter.spend(uint64(len(t.buffers)), e.limit) {
		return aborted
	}
	e.meter.nodes++
	done := e.hadTurn(t.buffers, from, rank)
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
			break // nothing will lie on it: it has no better place, whatever comes first
		}
	}
	if len(e.dead) >= mostDead {
		clear(e.dead)
	}
	e.dead[key] = struct{}{}
	return refuted
}

// hadTurn returns how many buffers stand in front of (from, rank).
func (e *engine) hadTurn(order []int32, from device.Size, rank int32) int {
	n := 0
	for n < len(order) && (e.off[order[n]] < from || e.off[order[n]] == from && e.rank[order[n]] < rank) {
		n++
	}
	return n
}

// highest returns the highest offset at which the next buffer of a part may lie. Whatever comes
// then lies no lower, so that the open bytes of the fullest section must fit above; and nobody may
// leave a hole in which an open buffer could lie as a whole.
func (e *engine) highest(t part) device.Size {
	var most device.Size
	for _, n := range e.rest[t.lo:t.hi] {
		most = max(most, n)
	}
	limit := e.capacity - most // paint has seen to it that this is no less than 0, or solve to the capacity
	for _, b := range t.buffers {
		limit = min(limit, e.off[b]+e.p.buffers[b].Size-1)
	}
	return limit
}

// key names the state of a part. Buffers of one class are alike, so the sum does not tell them
// apart.
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

// place puts buffer i of a part on its offset and searches what is left. bare says that no open
// buffer overlaps it.
func (e *engine) place(t part, i, depth int) (result outcome, bare bool) {
	e.meter.steps += uint64(len(t.buffers))
	b := t.buffers[i]
	at, size, s := e.off[b], e.p.buffers[b].Size, e.p.spans[b]
	undo, undoTops := len(e.raised), len(e.tops)
	rest := part{e.raiseAbove(t.buffers, b, depth), t.lo, t.hi}
	split := false
	e.tops = append(e.tops, e.top[s.first:s.last]...)
	for k := s.first; k < s.last; k++ {
		e.top[k] = at + size
		e.rest[k] -= size
		if k+1 < s.last {
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
	copy(e.top[s.first:s.last], e.tops[undoTops:])
	e.tops = e.tops[:undoTops]
	for k := s.first; k < s.last; k++ {
		e.rest[k] += size
		if k+1 < s.last {
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
// order. All that overlap are noted, raised or not.
func (e *engine) raiseAbove(order []int32, b int32, depth int) []int32 {
	end, s := e.off[b]+e.p.buffers[b].Size, e.p.spans[b]
	keep, lift := e.keep[:0], e.lift[:0]
	for _, x := range order {
		if x == b {
			continue
		}
		if !s.overlaps(e.p.spans[x]) {
			keep = append(keep, x)
			continue
		}
		e.raised = append(e.raised, raise{x, e.off[x]})
		if e.off[x] >= end {
			keep = append(keep, x)
			continue
		}
		e.off[x] = alignUp(end, e.p.buffers[x].Align)
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

// fits reports whether the open bytes of each section fit above what lies in it. The floor of a
// section is where its lowest open buffer could lie. A buffer that has had its turn must be raised
// by one that is yet to come, and so at least by the smallest.
func (e *engine) fits(t part, from device.Size, rank int32) bool {
	for k := t.lo; k <= t.hi; k++ {
		e.next[k] = k
	}
	done := e.hadTurn(t.buffers, from, rank)
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

// paint judges the sections of buffers, those lowest first, that nobody lower has judged.
func (e *engine) paint(order []int32, floor device.Size) bool {
	for _, b := range order {
		s := e.p.spans[b]
		low := max(e.off[b], floor)
		for k := e.unpainted(s.first); k < s.last; k = e.unpainted(k + 1) {
			if max(e.top[k], low)+e.rest[k] > e.capacity {
				return false
			}
			e.next[k] = k + 1
		}
	}
	return true
}

// unpainted returns the first section from k on that is not judged, and shortens the way there.
func (e *engine) unpainted(k int32) int32 {
	for e.next[k] != k {
		e.next[k] = e.next[e.next[k]]
		k = e.next[k]
	}
	return k
}

// solveParts searches the parts into which a part falls where nothing open lives in a section and
// in the next any more. All such places lie in s. The smallest goes first: it is refuted soonest.
func (e *engine) solveParts(t part, s span, depth int) outcome {
	parts := e.split(t, s)
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(len(a.buffers), len(b.buffers)) })
	for _, sub := range parts {
		if result := e.solve(sub, depth); result != found {
			return result
		}
	}
	return found
}

func (e *engine) split(t part, s span) []part {
	var parts []part
	lo := t.lo
	for k := s.first; k < s.last; k++ {
		hi := k + 1
		switch {
		case hi == s.last:
			hi = t.hi
		case e.cuts[k] != 0:
			continue
		}
		var list []int32
		for _, b := range t.buffers {
			if first := e.p.spans[b].first; first >= lo && first < hi {
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
