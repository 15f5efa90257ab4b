package remat

import (
	"math/bits"
	"slices"
)

// sparse is a set of storages: a sorted list of non-empty words of 64 bits. Storages that depend on
// each other have close indices, so the set is smaller than a list of them, and a small set merges
// into a large one at a cost that depends on the small one.
type sparse []word

// word holds a bit for each of the storages 64·at to 64·at+63: whether it is in the set.
type word struct {
	at   int32
	bits uint64
}

// find returns the index of a word, or the index to insert it at. It is written out because a call
// of the standard library's search costs a third of the time of all golden rows.
func (p sparse) find(at int32) (int, bool) {
	low, high := 0, len(p)
	for low < high {
		if middle := (low + high) / 2; p[middle].at < at {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(p) && p[low].at == at
}

// merge adds the storages of a word and returns the bits of the new ones.
func (p *sparse) merge(w word) uint64 {
	i, ok := p.find(w.at)
	if !ok {
		*p = slices.Insert(*p, i, w)
		return w.bits
	}
	fresh := w.bits &^ (*p)[i].bits
	(*p)[i].bits |= fresh
	return fresh
}

func (p *sparse) add(s int32) { p.merge(word{s / 64, 1 << (s % 64)}) }

func (p sparse) has(s int32) bool {
	i, ok := p.find(s / 64)
	return ok && p[i].bits>>(s%64)&1 != 0
}

func (p *sparse) drop(s int32) bool {
	i, ok := p.find(s / 64)
	if !ok || (*p)[i].bits>>(s%64)&1 == 0 {
		return false
	}
	if (*p)[i].bits &^= 1 << (s % 64); (*p)[i].bits == 0 {
		*p = slices.Delete(*p, i, i+1)
	}
	return true
}

// all yields the storages in order. The set must not change during iteration.
func (p sparse) all(yield func(s int32) bool) {
	for _, w := range p {
		for b := w.bits; b != 0; b &= b - 1 {
			if !yield(w.at*64 + int32(bits.TrailingZeros64(b))) {
				return
			}
		}
	}
}

// dense collects storages in any order, to build a sparse set.
type dense struct {
	words   []uint64
	touched []int32 // indices of non-zero words
}

func newDense(storages int) dense { return dense{words: make([]uint64, (storages+63)/64)} }

func (d *dense) add(s int32) {
	if d.words[s/64] == 0 {
		d.touched = append(d.touched, s/64)
	}
	d.words[s/64] |= 1 << (s % 64)
}

// into moves everything into an empty sparse set.
func (d *dense) into(p *sparse) {
	slices.Sort(d.touched)
	for _, at := range d.touched {
		*p = append(*p, word{at, d.words[at]})
		d.words[at] = 0
	}
	d.touched = d.touched[:0]
}
