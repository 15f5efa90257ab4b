package remat

import (
	"math/bits"
	"slices"
)

// sparse is a set of storages: words of 64 numbers, in order, less those that are empty. Storages
// that are made of each other have numbers close to each other, so it takes less room than a list,
// and a union of a small set with a large one costs what the small one takes.
type sparse []word

// word holds which of the storages 64·at to 64·at+63 are in a set.
type word struct {
	at   int32
	bits uint64
}

// find returns where the word is or would be. The library's search calls a function for each step,
// which took a third of the time of all golden rows.
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

// merge adds the storages of a word and returns those that are new.
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

// all goes through the storages in order. The set must not be changed meanwhile.
func (p sparse) all(yield func(s int32) bool) {
	for _, w := range p {
		for b := w.bits; b != 0; b &= b - 1 {
			if !yield(w.at*64 + int32(bits.TrailingZeros64(b))) {
				return
			}
		}
	}
}

// dense gathers storages in any order for a sparse set.
type dense struct {
	words   []uint64
	touched []int32 // words that are not 0
}

func newDense(storages int) dense { return dense{words: make([]uint64, (storages+63)/64)} }

func (d *dense) add(s int32) {
	if d.words[s/64] == 0 {
		d.touched = append(d.touched, s/64)
	}
	d.words[s/64] |= 1 << (s % 64)
}

// into moves everything to the end of an empty set.
func (d *dense) into(p *sparse) {
	slices.Sort(d.touched)
	for _, at := range d.touched {
		*p = append(*p, word{at, d.words[at]})
		d.words[at] = 0
	}
	d.touched = d.touched[:0]
}
