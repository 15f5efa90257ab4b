package blocks

import "math/bits"

// With halves the blocks of a region are nodes of a binary tree: the block of the whole region is
// number 1, and the halves of number i are 2i and 2i+1. Those of its uppermost levels are one set.
// So buddy and parent are found by a bit and a shift, six levels share a word, and nine a cache
// line. Level k has the numbers from 2^k up to 2^(k+1). A region of no power of two has only some
// of them.
//
// BenchmarkSteady of buddy takes 1.39 times as long without this set at 1e3 live blocks, and 1.1 to
// 1.3 times at 1e5. Without halves.go it takes 1.02 times as long at 1e3, and 1.04 to 1.17 at 1e5.

// upperLevels is the number of levels in that set: as many as a set has words for.
const upperLevels = 2 * wordLog

// levels has masks that select the members of a level, without a branch that would be mispredicted:
// up to level 5 in the first word, beyond in the words that the summary names.
var levels = func() (all [16]struct{ first, summary, members uint64 }) {
	for k := range upperLevels {
		lowest := uint64(1) << (k % wordLog)
		own := (uint64(1)<<lowest - 1) << lowest
		if k < wordLog {
			all[k].first, all[k].members = own, own
		} else {
			all[k].summary, all[k].members = own, ^uint64(0)
		}
	}
	return all
}()

// isUpper reports whether the blocks of a class of region r are in the set of uppermost levels.
func (r *region) isUpper(class int) bool { return class >= int(r.least) }

// level returns the level of a class for which isUpper holds.
func (r *region) level(class int) uint8 { return r.top - uint8(class) }

// number returns the number of the block of a class, for which isUpper holds, at a unit.
func (r *region) number(at uint32, class int) uint32 {
	return 1<<(r.level(class)&31) + at>>(class&31)
}

// unit is the inverse of number.
func (r *region) unit(i uint32, class int) uint32 {
	return (i - 1<<(r.level(class)&31)) << (class & 31)
}

// dropOf removes member i, of level k. It returns 1 if that was the last of its level, else 0.
func (p *store) dropOf(s *places, i uint32, k uint8) (none uint64) {
	at, l := &p.words[s.at+i>>wordLog], &levels[k&15]
	*at &^= 1 << (i & wordMask)
	s.top &^= ifZero(*at) << (i >> wordLog & wordMask)
	return ifZero(*at&l.first | s.top&l.summary)
}

// lowestOf returns the smallest member of level k, which is not empty.
func (p *store) lowestOf(s *places, k uint8) uint32 {
	w := uint32(bits.TrailingZeros64(s.top&levels[k&15].summary)) & wordMask // none is the first
	return w<<wordLog + uint32(bits.TrailingZeros64(p.words[s.at+w]&levels[k&15].members))
}

// highestOf returns the largest member of level k, which is not empty.
func (p *store) highestOf(s *places, k uint8) uint32 {
	w := uint32(max(bits.Len64(s.top&levels[k&15].summary), 1) - 1)
	return w<<wordLog + uint32(bits.Len64(p.words[s.at+w]&levels[k&15].members)-1)
}

// lenOf returns the number of members of level k. It costs O(words).
func (p *store) lenOf(s *places, k uint8) (n int) {
	if k < wordLog {
		if s.room != 0 {
			n = bits.OnesCount64(p.words[s.at] & levels[k].first)
		}
		return n
	}
	for left := s.top & levels[k].summary; left != 0; left &= left - 1 {
		n += bits.OnesCount64(p.words[s.at+uint32(bits.TrailingZeros64(left))])
	}
	return n
}

// The functions below are about the free blocks of one class in a region, in either kind of set.

func (b *Engine) isFree(r *region, n node) bool {
	if r.isUpper(n.class) {
		return b.store.has(&r.upper, r.number(n.at, n.class))
	}
	return n.class < len(r.sets) && b.store.has(&r.sets[n.class], n.at>>b.classes.log[n.class])
}

// lowest returns the start of the lowest one. There must be one.
func (b *Engine) lowest(r *region, class int) uint32 {
	if r.isUpper(class) {
		return r.unit(b.store.lowestOf(&r.upper, r.level(class)), class)
	}
	return b.store.min(&r.sets[class]) << b.classes.log[class]
}

// highest returns the start of the highest one. There must be one.
func (b *Engine) highest(r *region, class int) uint32 {
	if r.isUpper(class) {
		return r.unit(b.store.highestOf(&r.upper, r.level(class)), class)
	}
	return b.store.max(&r.sets[class]) << b.classes.log[class]
}

// next returns the start of the lowest one at or above a unit, or r.units.
func (b *Engine) next(r *region, class int, at uint32) uint32 {
	log := b.classes.log[class]
	first := (at + 1<<log - 1) >> log
	if r.isUpper(class) {
		k := r.level(class)
		if i, ok := b.store.next(&r.upper, 1<<k+first); ok && first>>k == 0 && i>>k == 1 {
			return r.unit(i, class)
		}
		return r.units
	}
	if class < len(r.sets) {
		if i, ok := b.store.next(&r.sets[class], first); ok {
			return i << log
		}
	}
	return r.units
}

// all yields the starts, ascending. Blocks may be removed during the iteration.
func (b *Engine) all(r *region, class int) func(yield func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for at := b.next(r, class, 0); at < r.units && yield(at); at = b.next(r, class, at+1) {
		}
	}
}

func (b *Engine) len(r *region, class int) int {
	switch {
	case r.isUpper(class):
		return b.store.lenOf(&r.upper, r.level(class))
	case class < len(r.sets):
		return b.store.len(&r.sets[class])
	}
	return 0
}

// makeSets gives a region empty sets for the classes below the uppermost levels. Those of an
// earlier region are used again.
func (b *Engine) makeSets(r *region) {
	if most := min(b.classes.within(r.units)+1, int(r.least)); most > len(r.sets) {
		r.sets = append(make([]places, 0, most), r.sets...)[:most]
	}
	for c := range r.sets {
		b.store.reserve(&r.sets[c], int((r.units-1)>>b.classes.log[c])+1)
	}
}
