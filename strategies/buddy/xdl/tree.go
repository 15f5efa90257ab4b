package xdl

import (
	"bytes"
	"math/bits"
)

// wordOrder is the order of the run that one word of a bitmap covers: 64 blocks.
const wordOrder = 6

// word is the state of 64 neighbouring blocks, the lowest in the lowest bit.
type word struct {
	free  uint64 // the block is free
	heads uint64 // a run of at most 64 blocks that was granted starts here
}

// tree is the state of one region: words at the leaves and above them the summaries in level order.
// The root is node 1, the children of node i are 2i and 2i+1.
type tree struct {
	longest []byte // per node: 1 + order of the longest free aligned run; 0 for none
	words   []word
	top     int // order of the root
	leaf    int // order of the lowest nodes: wordOrder, or top where that is less
}

func newTree(top int) tree {
	leaf := min(top, wordOrder)
	t := tree{longest: make([]byte, 2<<(top-leaf)), words: make([]word, 1<<(top-leaf)), top: top, leaf: leaf}
	for i := range t.words {
		t.words[i].free = run(leaf)
	}
	for order := top; order >= leaf; order-- {
		nodes := t.below(1, top-order)
		for i := range nodes {
			nodes[i] = byte(order + 1)
		}
	}
	return t
}

// run returns the bits of the lowest run of an order, which is at most wordOrder.
func run(order int) uint64 { return runs[order&7] }

// runs has, at k, the lowest 2^k bits.
var runs = [8]uint64{0x1, 0x3, 0xf, 0xff, 0xffff, 0xffffffff, 0xffffffffffffffff}

// starts returns the blocks of a word at which a free aligned run of an order starts: step k keeps
// the candidates whose upper half of 2^k blocks is free as well.
func starts(free uint64, order int) uint64 {
	for k := range order & 7 {
		free &= free >> (1 << (k & 7) & 63)
	}
	return free & aligned[order&7]
}

// aligned has, at k, a bit at every multiple of 2^k.
var aligned = [8]uint64{
	0xffffffffffffffff, 0x5555555555555555, 0x1111111111111111, 0x0101010101010101,
	0x0001000100010001, 0x0000000100000001, 0x0000000000000001,
}

// longestIn returns the summary of a word. It is starts for every order in turn, written out so
// that it has no branch to mispredict.
func longestIn(free uint64) byte {
	n := nonzero(free)
	free &= free >> 1 & aligned[1]
	n += nonzero(free)
	free &= free >> 2 & aligned[2]
	n += nonzero(free)
	free &= free >> 4 & aligned[3]
	n += nonzero(free)
	free &= free >> 8 & aligned[4]
	n += nonzero(free)
	free &= free >> 16 & aligned[5]
	n += nonzero(free)
	return n + byte(free&(free>>32)&1)
}

func nonzero(x uint64) (n byte) {
	if x != 0 {
		n = 1
	}
	return n
}

// below returns the nodes depth levels below node i.
func (t *tree) below(i uint32, depth int) []byte {
	return t.longest[uint64(i)<<depth : uint64(i+1)<<depth]
}

// nodeOf returns the node of the run of an order, at least t.leaf, at a block.
func (t *tree) nodeOf(at uint32, order int) uint32 { return 1<<((t.top-order)&31) + at>>(order&31) }

func (t *tree) wordsOf(i uint32, order int) []word {
	first, n := (uint64(i)-1<<(t.top-order))<<(order-t.leaf), uint64(1)<<(order-t.leaf)
	return t.words[first : first+n]
}

// grant marks the free run of an order at a block as granted. A run longer than a word is marked in
// its node alone.
func (t *tree) grant(at uint32, order int) {
	if order > t.leaf {
		t.renew(t.nodeOf(at, order), order, 0)
		return
	}
	w := &t.words[at>>(t.leaf&31)]
	w.free &^= run(order) << (at % 64)
	w.heads |= 1 << (at % 64)
	t.renew(t.nodeOf(at, t.leaf), t.leaf, longestIn(w.free))
}

// release frees the granted run of an order at a block and merges it with its buddies.
func (t *tree) release(at uint32, order int) {
	if order > t.leaf {
		t.renew(t.nodeOf(at, order), order, byte(order+1))
		return
	}
	w := &t.words[at>>(t.leaf&31)]
	w.free |= run(order) << (at % 64)
	w.heads &^= 1 << (at % 64)
	t.renew(t.nodeOf(at, t.leaf), t.leaf, longestIn(w.free))
}

// renew sets node i, of the given order, to v and updates the nodes above, up to the first that
// does not change. Each step reads the buddy only and merges by arithmetic: with two loads and a
// branch the climb took half as long again.
func (t *tree) renew(i uint32, order int, v byte) {
	nodes := t.longest
	nodes[i] = v
	for full := byte(order + 1); i > 1; full++ {
		buddy := nodes[i^1]
		v = max(v, buddy) + isZero((v^full)|(buddy^full))
		i >>= 1
		if nodes[i] == v {
			return
		}
		nodes[i] = v
	}
}

// isZero returns 1 for 0, else 0, without a branch.
func isZero(b byte) byte { return byte((uint32(b) - 1) >> 31) }

func (t *tree) isFree(i uint32, order int) bool { return int(t.longest[i]) == order+1 }

// isGranted reports whether the run of node i was granted as one and is longer than a word: it
// reads 0 although its halves do not.
//
// Precondition: no node above i is granted.
func (t *tree) isGranted(i uint32, order int) bool {
	return order > t.leaf && t.longest[i] == 0 && t.longest[2*i] != 0
}

// span is a granted run or a maximal free one.
type span struct {
	at    uint32 // first block
	order int
	free  bool
}

func (t *tree) spans(yield func(span) bool) { t.spansOf(1, t.top, yield) }

// spansOf yields the runs of node i, of the given order. It reports whether the walk goes on.
func (t *tree) spansOf(i uint32, order int, yield func(span) bool) bool {
	at := (i - 1<<(t.top-order)) << order
	switch {
	case t.isFree(i, order) || t.isGranted(i, order):
		return yield(span{at: at, order: order, free: t.longest[i] != 0})
	case order == t.leaf:
		return t.spansIn(at, yield)
	}
	return t.spansOf(2*i, order-1, yield) && t.spansOf(2*i+1, order-1, yield)
}

// spansIn yields the runs of the word with first block at.
func (t *tree) spansIn(at uint32, yield func(span) bool) bool {
	w := t.words[at>>t.leaf]
	for p := 0; p < 1<<t.leaf; {
		s := w.spanAt(p, t.leaf)
		s.at += at
		if !yield(s) {
			return false
		}
		p += 1 << s.order
	}
	return true
}

// spanAt returns the run that starts at bit p of a word of the given order.
func (w word) spanAt(p, leaf int) span {
	s := span{at: uint32(p), free: w.free>>p&1 != 0}
	if !s.free {
		next := (w.free | w.heads) >> p >> 1 // end of the granted run
		s.order = bits.Len(uint(min(bits.TrailingZeros64(next)+1, 1<<leaf-p))) - 1
		return s
	}
	for s.order < leaf && starts(w.free, s.order+1)>>p&1 != 0 {
		s.order++
	}
	return s
}

// allFree reports whether everything below node i reads wholly free, in O(nodes and words below i).
func (t *tree) allFree(i uint32, order int) bool {
	for depth := 1; depth <= order-t.leaf; depth++ {
		nodes := t.below(i, depth)
		if bytes.Count(nodes, []byte{byte(order - depth + 1)}) != len(nodes) {
			return false
		}
	}
	for _, w := range t.wordsOf(i, order) {
		if w != (word{free: run(t.leaf)}) {
			return false
		}
	}
	return true
}
