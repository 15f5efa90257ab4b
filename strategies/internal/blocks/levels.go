package blocks

import "math/bits"

// With halves the blocks of a region are nodes of a binary tree: the block of the whole region is
// number 1, and the halves of number i are 2i and 2i+1. Those of its uppermost levels are one set. So
// buddy and parent are found by a bit and a shift, six levels share a word, and nine a cache line.
// Level k has the numbers from 2^k up to 2^(k+1). A region of no power of two has only some of them.
//
// BenchmarkSteady of buddy takes 1.39 times as long without this set at 1e3 live blocks, and 1.1 to
// 1.3 times at 1e5. Without halves.go it takes 1.02 times as long at 1e3, and 1.04 to 1.17 at 1e5.

// upperLevels is how many levels are in that set: as many as a set has words for.
const upperLevels = 2 * wordLog

// levels tells where the members of each level are looked for, by masks, for nobody could predict
// what a branch would depend on: up to level 5, which share the first word, in that, and from there on
// in the words that the summary tells.
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

// isUpper reports whether the blocks of a class of region r are in the set of the uppermost levels.
func (r *region) isUpper(class int) bool { return class >= int(r.least) }

// level returns the level of a class.
//
// Precondition: isUpper(class).
func (r *region) level(class int) uint8 { return r.top - uint8(class) }

// number returns the number of the block of a class that starts at a unit.
//
// Precondition: isUpper(class).
func (r *region) number(at uint32, class int) uint32 {
	return 1<<(r.level(class)&31) + at>>(class&31)
}

// unit returns where the block of a class with a number starts.
func (r *region) unit(i uint32, class int) uint32 {
	return (i - 1<<(r.level(class)&31)) << (class & 31)
}

// dropOf removes i, of level k, from a tree. It returns one if no other of that level is left, else
// zero.
//
// Precondition: it is a member.
func (p *store) dropOf(s *places, i uint32, k uint8) (none uint64) {
	at, l := &p.words[s.at+i>>wordLog], &levels[k&15]
	*at &^= 1 << (i & wordMask)
	s.top &^= ifZero(*at) << (i >> wordLog & wordMask)
	return ifZero(*at&l.first | s.top&l.summary)
}

// lowestOf returns the smallest member of level k of a tree.
//
// Precondition: there is one.
func (p *store) lowestOf(s *places, k uint8) uint32 {
	w := uint32(bits.TrailingZeros64(s.top&levels[k&15].summary)) & wordMask // none is the first
	return w<<wordLog + uint32(bits.TrailingZeros64(p.words[s.at+w]&levels[k&15].members))
}

// highestOf is lowestOf for the largest member.
func (p *store) highestOf(s *places, k uint8) uint32 {
	w := uint32(max(bits.Len64(s.top&levels[k&15].summary), 1) - 1)
	return w<<wordLog + uint32(bits.Len64(p.words[s.at+w]&levels[k&15].members)-1)
}

// lenOf returns the number of members of level k of a tree. It costs O(words).
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

// What follows is about the free blocks of one class in a region, whichever set they are in.

// isFree reports whether n is a free block of region r.
func (b *Engine) isFree(r *region, n node) bool {
	if r.isUpper(n.class) {
		return b.store.has(&r.upper, r.number(n.at, n.class))
	}
	return n.class < len(r.sets) && b.store.has(&r.sets[n.class], n.at>>b.classes.log[n.class])
}

// lowest returns where the lowest one starts.
//
// Precondition: there is one.
func (b *Engine) lowest(r *region, class int) uint32 {
	if r.isUpper(class) {
		return r.unit(b.store.lowestOf(&r.upper, r.level(class)), class)
	}
	return b.store.min(&r.sets[class]) << b.classes.log[class]
}

// highest returns where the highest one starts.
//
// Precondition: there is one.
func (b *Engine) highest(r *region, class int) uint32 {
	if r.isUpper(class) {
		return r.unit(b.store.highestOf(&r.upper, r.level(class)), class)
	}
	return b.store.max(&r.sets[class]) << b.classes.log[class]
}

// next returns where the lowest one at or above a unit starts, r.units if there is none.
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

// all yields where each starts, in ascending order. Blocks may be removed meanwhile.
func (b *Engine) all(r *region, class int) func(yield func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for at := b.next(r, class, 0); at < r.units && yield(at); at = b.next(r, class, at+1) {
		}
	}
}

// len returns how many there are. It costs O(words).
func (b *Engine) len(r *region, class int) int {
	switch {
	case r.isUpper(class):
		return b.store.lenOf(&r.upper, r.level(class))
	case class < len(r.sets):
		return b.store.len(&r.sets[class])
	}
	return 0
}

// makeSets gives a region sets for the classes that are not upper ones, of which it may have some
// from a region before. None has a member.
func (b *Engine) makeSets(r *region) {
	if most := min(b.classes.within(r.units)+1, int(r.least)); most > len(r.sets) {
		r.sets = append(make([]places, 0, most), r.sets...)[:most]
	}
	for c := range r.sets {
		b.store.reserve(&r.sets[c], int((r.units-1)>>b.classes.log[c])+1)
	}
}
