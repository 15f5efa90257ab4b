package blocks

import (
	"math/bits"
	"sort"

	"github.com/vramyard/vramyard/device"
)

const (
	// mostUnits bounds the units of a region, so that they are numbered with 32 bits. A
	// unit is Config.BlockBytes.
	mostUnits = 1 << 31
	// mostUneven is the bound for families whose blocks do not start at multiples of their
	// size: the bitmaps of a region take up to 3.5 bits a unit then, 112 MiB of host memory.
	mostUneven = 1 << 28
	// mostListed is the bound for Fibonacci blocks, which start anywhere, so that each class
	// takes a bit a unit, and for lists of free blocks, whose links take 8 bytes a unit: 512 MiB.
	mostListed = 1 << 26
	// mostClasses is above the classes of every family: the largest, eight to a doubling,
	// has 232 up to mostUnits.
	mostClasses = 256
	// mostTurns bounds the right turns on the path from a root to a block: a right part has at most
	// half the size of its parent.
	mostTurns = 32
)

// classes are the sizes of blocks in units, ascending. Class i splits into class i-1 on the left
// and right[i] on the right. This one rule makes every family and determines every buddy.
type classes struct {
	size  []uint32             // units
	right []uint8              // class of the right part
	log   []uint8              // every block of the class starts at a multiple of 2^log units
	last  [bits.UintSize]uint8 // the largest class of less than 2^i units, for i > 0
	per   uint8                // log2 of the classes in a doubling
	fib   bool                 // sizes are Fibonacci numbers instead
}

// classesOf returns the classes of a family, one of the values of Config.Family.
func classesOf(family string) classes {
	var t classes
	switch family {
	case Fibonacci:
		t.fib = true
		for a, b := uint32(1), uint32(2); a <= mostUnits; a, b = b, a+b {
			t.size = append(t.size, a)
		}
	default:
		t.per = map[string]uint8{Binary: 0, Weighted: 1, FourPerDoubling: 2, EightPerDoubling: 3}[family]
		k := uint64(1) << t.per
		for n := uint64(1); n < k; n++ { // below k units every size is a class
			t.size = append(t.size, uint32(n))
		}
		for n := k; n <= mostUnits; n += 1 << (bits.Len64(n) - 1 - int(t.per)) {
			t.size = append(t.size, uint32(n))
		}
	}
	t.right = make([]uint8, len(t.size))
	for i := 1; i < len(t.size); i++ {
		t.right[i] = t.search(t.size[i] - t.size[i-1])
	}
	for i := range t.last {
		if i > 0 {
			t.last[i] = uint8(sort.Search(len(t.size), func(c int) bool { return uint64(t.size[c]) >= 1<<min(i, 32) }) - 1)
		}
	}
	t.align()
	return t
}

func (t *classes) search(n uint32) uint8 {
	return uint8(sort.Search(len(t.size), func(i int) bool { return t.size[i] >= n }))
}

// align computes the alignment of the blocks of each class, from the largest down. A left part
// starts where the whole does, a right part above the left one, and a root above the roots before
// it.
func (t *classes) align() {
	t.log = make([]uint8, len(t.size))
	multiple := make([]uint32, len(t.size)) // the lowest set bit is the alignment; zero is a multiple of everything
	for c := len(t.size) - 1; c >= 0; c-- {
		// A root of class c may follow one of class j if more than it was left over: the
		// next class was too large then.
		for j := c + 1; j < len(t.size); j++ {
			if j+1 == len(t.size) || t.size[c] < t.size[j+1]-t.size[j] {
				multiple[c] |= lowest(multiple[j] | t.size[j])
			}
		}
		if c > 0 {
			multiple[c-1] |= multiple[c]
			multiple[t.right[c]] |= multiple[c] | t.size[c-1]
		}
	}
	for c := range multiple {
		t.log[c] = uint8(min(bits.TrailingZeros32(multiple[c]), 31))
	}
}

func lowest(n uint32) uint32 { return n & -n }

// holding returns the smallest class of at least n units.
//
// Precondition: 1 <= n <= mostUnits, and there is such a class.
func (t *classes) holding(n uint32) int {
	if t.per == 0 && !t.fib {
		return bits.Len32(n - 1)
	}
	return t.holdingUneven(n)
}

// holdingUneven is holding for families other than binary. It is separate so that holding is
// inlined.
//
//go:noinline
func (t *classes) holdingUneven(n uint32) int {
	if t.fib {
		c := int(t.last[bits.Len32(n)-1])
		for t.size[c] < n {
			c++
		}
		return c
	}
	if n <= 2<<t.per {
		return int(n) - 1
	}
	b := bits.Len32(n-1) - 1 - int(t.per) // classes lie 2^b apart here
	return int(n-1)>>b + (b-1)<<t.per + 1<<t.per
}

// within returns the largest class of at most n units, which is not 0.
func (t *classes) within(n uint32) int {
	c := int(t.last[bits.Len32(n)])
	for t.size[c] > n {
		c--
	}
	return c
}

// node is a block in the split tree of one root: where it starts, and of which class.
type node struct {
	at    uint32 // units from the start of the region
	class int
}

// turn is the start of the way down a split tree or a right turn on it: from a block of class from
// to the block at, whose left parts all start there.
type turn struct {
	at   uint32
	top  int // class of the block there
	from int // class of the block it is the right part of
}

// way is the only way from a root to the blocks that start at a unit.
type way struct {
	turns [mostTurns + 1]turn
	n     int
}

// to finds the way from a root to the blocks that start at a unit. Only right turns are kept.
//
// Precondition: the root contains the unit, and some block starts there.
func (w *way) to(t *classes, root node, at uint32) {
	w.turns[0] = turn{at: root.at, top: root.class}
	w.n = 0
	for now := root; now.at != at; {
		// The unit is in the right part of the smallest block here that reaches it.
		left := t.within(at - now.at)
		now = node{now.at + t.size[left], int(t.right[left+1])}
		w.n++
		w.turns[w.n] = turn{at: now.at, top: now.class, from: left + 1}
	}
}

// up returns buddy and parent of block p, at the end of the way, and climbs. It returns false for
// the root.
func (w *way) up(t *classes, p node) (buddy, parent node, ok bool) {
	here := w.turns[w.n]
	if p.class < here.top {
		return node{p.at + t.size[p.class], int(t.right[p.class+1])}, node{p.at, p.class + 1}, true
	}
	if w.n == 0 {
		return node{}, node{}, false
	}
	w.n--
	at := w.turns[w.n].at
	return node{at, here.from - 1}, node{at, here.from}, true
}

// cut yields the roots of a region of n units, largest first.
func (t *classes) cut(n uint32, yield func(node) bool) {
	for at := uint32(0); at < n; {
		c := t.within(n - at)
		if !yield(node{at, c}) {
			return
		}
		at += t.size[c]
	}
}

func (t *classes) rootOf(n, unit uint32) (root node) {
	for at := uint32(0); ; {
		c := t.within(n - at)
		if at+t.size[c] > unit {
			return node{at, c}
		}
		at += t.size[c]
	}
}

func (t *classes) bytes() device.Size {
	return device.Size(cap(t.size))*4 + device.Size(cap(t.right)) + device.Size(cap(t.log))
}
