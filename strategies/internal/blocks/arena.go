package blocks

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// maskWords hold one bit for each class.
const maskWords = mostClasses / 64

// mask is a set of classes.
type mask [maskWords]uint64

// region is the record of one region: a pool region of roots that are split and merged, or a direct
// one, which is a single block. It takes two cache lines; a grant and a free read the first.
type region struct {
	base   device.Addr
	upper  places      // of a pool region with halves, its free blocks of the uppermost levels
	units  uint32      // of a pool region, the units in its roots
	used   uint32      // granted units
	rank   uint32      // of a pool region, its place in the order of choice
	slot   uint32      // its number
	top    uint8       // with halves, log2 of the units, rounded up
	least  uint8       // the smallest class of the uppermost levels
	bucket uint8       // of a pool region with RegionChoice "fullest", how empty it is
	free   bool        // of a direct region: its block is kept for reuse
	held   bool        // false for a spare number
	has    mask        // classes of which it has a free block
	size   device.Size // as the device granted it, excess included
	direct device.Size // of a direct region, bytes of its block; 0 for a pool region
	age    uint64      // number of regions and kept direct blocks before it
	sets   []places    // free blocks by class below least, each as start >> classes.log; nil before the first
}

// listing is the free blocks of a region by age.
type listing struct {
	lists []list // of each class
	links []link // by start
}

// list holds the ends of a list of free blocks, as starts plus one; zero for an empty list.
type list struct{ newest, oldest uint32 }

// link holds the neighbors of a free block in its list, as starts plus one; zero at the ends.
type link struct{ newer, older uint32 }

func (m mask) all(yield func(int) bool) {
	for word, w := range m {
		for ; w != 0; w &= w - 1 {
			if !yield(word<<6 + bits.TrailingZeros64(w)) {
				return
			}
		}
	}
}

// from returns the smallest class of the set that is at least c, or mostClasses.
func (m *mask) from(c int) int {
	word := c >> 6
	for w := m[word] >> (c & 63) << (c & 63); ; w = m[word] {
		if w != 0 {
			return word<<6 + bits.TrailingZeros64(w)
		}
		if word++; word == maskWords {
			return mostClasses
		}
	}
}

// largest returns the largest class of the set, or -1.
func (m *mask) largest() int {
	for word := maskWords - 1; word >= 0; word-- {
		if m[word] != 0 {
			return word<<6 + bits.Len64(m[word]) - 1
		}
	}
	return -1
}

// key returns the number of a region in b.ranked: its rank, with the bucket above it.
func (b *Engine) key(r *region) uint32 { return uint32(r.bucket)*b.stride + r.rank }

// keys returns the bound of all keys.
func (b *Engine) keys() int {
	if b.fullest {
		return buckets * int(b.stride)
	}
	return int(b.stride)
}

// add makes block n of region r free.
func (b *Engine) add(r *region, n node) {
	if r.isUpper(n.class) {
		b.addUpper(r, r.number(n.at, n.class), n.class)
	} else {
		b.addLower(r, n)
	}
	if b.lists {
		b.push(r, n)
	}
}

// addUpper is add by number for a block of the uppermost levels, without the lists.
func (b *Engine) addUpper(r *region, i uint32, class int) {
	if i>>wordLog < uint32(r.upper.room) { // the usual case, inlined
		b.store.put(&r.upper, i)
	} else {
		b.store.add(&r.upper, i)
	}
	b.gain(r, class)
}

// addLower is add for a block below the uppermost levels, without the lists.
func (b *Engine) addLower(r *region, n node) {
	if len(r.sets) == 0 {
		b.makeSets(r)
	}
	b.store.add(&r.sets[n.class], n.at>>(b.classes.log[n.class]&31))
	b.gain(r, n.class)
}

// remove takes free block n of region r out of its sets: it is granted, split or merged.
func (b *Engine) remove(r *region, n node) {
	var last uint64
	if r.isUpper(n.class) {
		last = b.store.dropOf(&r.upper, r.number(n.at, n.class), r.level(n.class))
	} else if b.store.remove(&r.sets[n.class], n.at>>(b.classes.log[n.class]&31)) {
		last = 1
	}
	if b.lists {
		b.unlink(r, n)
	}
	b.lose(r, n.class, last)
}

// gain counts a free block of a class. The bits are set every time: a test whether it is the first
// would be mispredicted.
func (b *Engine) gain(r *region, class int) {
	b.count[class]++
	word, bit := class>>6, uint64(1)<<(class&63)
	r.has[word] |= bit
	b.some[word] |= bit
	s, key := &b.ranked[class], b.key(r)
	if key>>wordLog < uint32(s.room) {
		b.store.put(s, key)
	} else {
		b.store.add(s, key)
	}
}

// lose counts a free block of a class less. Last is 1 if the region has no other, else 0: there is
// no branch to mispredict.
func (b *Engine) lose(r *region, class int, last uint64) {
	b.count[class]--
	b.forgetClass(r, class, last)
}

// forgetClass clears the bits of a class of a region if last is 1.
func (b *Engine) forgetClass(r *region, class int, last uint64) {
	word, at := class>>6, class&63
	r.has[word] &^= last << at
	var none uint64
	if s := &b.ranked[class]; s.room != 0 {
		none = b.store.drop(s, b.key(r), last)
	} else if last != 0 && b.store.remove(s, b.key(r)) {
		none = 1
	}
	b.some[word] &^= none << at
}

func (b *Engine) push(r *region, n node) {
	o := &b.listed[r.slot]
	if int(n.at) >= len(o.links) {
		wide := make([]link, min(int(r.units), max(2*len(o.links), int(n.at)+1, 64)))
		copy(wide, o.links)
		o.links = wide
	}
	l := &o.lists[n.class]
	o.links[n.at] = link{older: l.newest}
	if l.newest != 0 {
		o.links[l.newest-1].newer = n.at + 1
	} else {
		l.oldest = n.at + 1
	}
	l.newest = n.at + 1
}

func (b *Engine) unlink(r *region, n node) {
	o := &b.listed[r.slot]
	l, k := &o.lists[n.class], o.links[n.at]
	if k.newer != 0 {
		o.links[k.newer-1].older = k.older
	} else {
		l.newest = k.older
	}
	if k.older != 0 {
		o.links[k.older-1].newer = k.newer
	} else {
		l.oldest = k.newer
	}
}

// buckets is the number of steps by which regions are ranked as full. The first is for nearly full
// ones; the others are a fifteenth of the region each.
const buckets = 16

// occupy counts units of region r as granted.
func (b *Engine) occupy(r *region, units uint32) {
	if r.used == 0 {
		b.pool.Occupied(r.size)
	}
	r.used += units
	if b.fullest {
		b.rebucket(r)
	}
}

// relieve counts units of region r as free. The region may go back to the device.
func (b *Engine) relieve(slot uint32, r *region, units uint32) {
	r.used -= units
	if b.fullest {
		b.rebucket(r)
	}
	if r.used == 0 {
		b.vacate(slot, r)
	}
}

func bucketOf(r *region) uint8 {
	return uint8(buckets - 1 - uint64(r.used)*(buckets-1)/uint64(r.units))
}

// rebucket moves a region to its bucket after a change of used.
func (b *Engine) rebucket(r *region) {
	bucket := bucketOf(r)
	if bucket == r.bucket {
		return
	}
	before := b.key(r)
	r.bucket = bucket
	after := b.key(r)
	for c := range r.has.all {
		b.store.remove(&b.ranked[c], before)
		b.store.add(&b.ranked[c], after)
	}
}

// gone marks a released region in the order of choice.
const gone = ^uint32(0)

func (b *Engine) enrol(slot uint32, r *region) {
	n := len(b.byRank)
	late := b.choice == Lowest && n > 0 && b.regs[b.byRank[n-1]].base > r.base
	r.rank = uint32(n)
	b.byRank = append(b.byRank, slot)
	if late || n >= 2*b.pool.Len()+64 || r.rank >= b.stride {
		b.renumber()
	}
}

func (b *Engine) strike(r *region) {
	for c := range r.has.all {
		b.forgetClass(r, c, 1)
	}
	b.byRank[r.rank] = gone
	for n := len(b.byRank); n > 0 && b.byRank[n-1] == gone; n-- {
		b.byRank = b.byRank[:n-1]
	}
}

// renumber assigns every pool region a new rank in O(regions * classes). It is called when a new
// region has no free rank between its neighbours.
func (b *Engine) renumber() {
	b.byRank = slices.DeleteFunc(b.byRank, func(slot uint32) bool { return slot == gone })
	if b.choice == Lowest {
		slices.SortFunc(b.byRank, func(x, y uint32) int { return cmp.Compare(b.regs[x].base, b.regs[y].base) })
	}
	for int(b.stride) <= 2*len(b.byRank)+64 {
		b.stride *= 2
	}
	for c := range b.ranked {
		b.store.clear(&b.ranked[c])
		b.store.reserve(&b.ranked[c], b.keys())
	}
	for rank, slot := range b.byRank {
		r := &b.regs[slot]
		r.rank = uint32(rank)
		for c := range r.has.all {
			b.store.add(&b.ranked[c], b.key(r))
		}
	}
}
