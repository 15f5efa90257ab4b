package buddy

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/bitset"
	"github.com/vramyard/vramyard/internal/planted"
)

// The shapes of places, by how many numbers there are.
const (
	oneWord   uint8 = iota // up to 64: the members are the bits of top
	manyWords              // up to 4096: top has a bit for each word of low
	manyPages              // more: all is in big
)

const (
	wordLog  = 6
	wordBits = 1 << wordLog
	wordMask = wordBits - 1
)

// places is the free blocks of one class in one region, as a set of small numbers. Most
// classes of a region have few places, so that the set is one word here, or 64 and a summary;
// only for small blocks in large regions it is a [bitset.Set]. The zero places has room for
// 64 numbers.
type places struct {
	top   uint64
	low   []uint64 // up to the word of the highest member that ever was
	big   *bitset.Set
	shape uint8
}

// reserve makes room for n numbers. A shape for more is kept.
//
// Precondition: the set is empty.
func (s *places) reserve(n int) {
	switch {
	case n > wordBits*wordBits:
		s.shape, s.low = manyPages, nil
	case n > wordBits:
		s.shape = max(s.shape, manyWords)
	}
}

// add makes i a member, and reports whether it is the only one. It allocates only above the
// highest member that ever was.
//
// Precondition: i is none.
func (s *places) add(i uint32) (only bool) {
	switch s.shape {
	case oneWord:
		only = s.top == 0
		s.top |= 1 << (i & wordMask)
		return only
	case manyWords:
		w := i >> wordLog
		if int(w) >= len(s.low) {
			s.widen(int(w) + 1)
		}
		only = s.top == 0
		s.low[w] |= 1 << (i & wordMask)
		if !planted.Enabled || !planted.Is("buddy/summary-not-set") {
			s.top |= 1 << (w & wordMask)
		}
		return only
	}
	if s.big == nil {
		s.big = new(bitset.Set)
	}
	if int(i) >= s.big.Room() {
		s.big.Grow(int(i) + 1)
	}
	s.big.Add(i)
	return s.big.Len() == 1
}

// widen makes room for n words, at least twice as many as there are.
func (s *places) widen(n int) {
	wide := make([]uint64, min(max(n, 2*len(s.low)), wordBits))
	copy(wide, s.low)
	s.low = wide
}

// remove makes i no member, and reports whether it was the last.
//
// Precondition: it is one.
func (s *places) remove(i uint32) (last bool) {
	switch s.shape {
	case oneWord:
		s.top &^= 1 << (i & wordMask)
		return s.top == 0
	case manyWords:
		w := &s.low[i>>wordLog]
		if *w &^= 1 << (i & wordMask); *w == 0 {
			s.top &^= 1 << (i >> wordLog & wordMask)
		}
		return s.top == 0
	}
	s.big.Remove(i)
	return s.big.Len() == 0
}

// has reports whether i is a member.
//
// Precondition: i is below the numbers that there are, rounded up to an even number.
func (s *places) has(i uint32) bool {
	switch s.shape {
	case oneWord:
		return s.top>>(i&wordMask)&1 != 0
	case manyWords:
		w := i >> wordLog
		return int(w) < len(s.low) && s.low[w]>>(i&wordMask)&1 != 0
	}
	return s.big != nil && s.big.Has(i)
}

// min returns the smallest member.
//
// Precondition: there is one.
func (s *places) min() uint32 {
	switch s.shape {
	case oneWord:
		return uint32(bits.TrailingZeros64(s.top))
	case manyWords:
		w := uint32(bits.TrailingZeros64(s.top))
		return w<<wordLog + uint32(bits.TrailingZeros64(s.low[w]))
	}
	i, _ := s.big.Min()
	return i
}

// max returns the largest member.
//
// Precondition: there is one.
func (s *places) max() uint32 {
	switch s.shape {
	case oneWord:
		return uint32(bits.Len64(s.top) - 1)
	case manyWords:
		w := uint32(bits.Len64(s.top) - 1)
		return w<<wordLog + uint32(bits.Len64(s.low[w])-1)
	}
	i, _ := s.big.Max()
	return i
}

// next returns the smallest member that is at least i, and whether there is one.
func (s *places) next(i uint32) (uint32, bool) {
	if s.shape == manyPages {
		if s.big == nil {
			return 0, false
		}
		return s.big.Next(i)
	}
	w := i >> wordLog
	if s.shape == oneWord {
		if rest := s.top >> (i & wordMask); w == 0 && rest != 0 {
			return i + uint32(bits.TrailingZeros64(rest)), true
		}
		return 0, false
	}
	if int(w) >= len(s.low) {
		return 0, false
	}
	if rest := s.low[w] >> (i & wordMask); rest != 0 {
		return i + uint32(bits.TrailingZeros64(rest)), true
	}
	above := s.top >> w >> 1 << 1 << w // words above that of i; a shift of 64 leaves none
	if above == 0 {
		return 0, false
	}
	w = uint32(bits.TrailingZeros64(above))
	return w<<wordLog + uint32(bits.TrailingZeros64(s.low[w])), true
}

// all yields every member in ascending order.
func (s *places) all(yield func(uint32) bool) {
	for i, ok := s.next(0); ok && yield(i); i, ok = s.next(i + 1) {
	}
}

// len returns the number of members. It costs O(words).
func (s *places) len() (n int) {
	switch {
	case s.shape == oneWord:
		return bits.OnesCount64(s.top)
	case s.shape == manyPages && s.big != nil:
		return s.big.Len()
	}
	for _, w := range s.low {
		n += bits.OnesCount64(w)
	}
	return n
}

// clear removes every member. It costs a step for each.
func (s *places) clear() {
	for i := range s.all {
		s.remove(i)
	}
}

// sound reports whether the summary is that of the words.
func (s *places) sound() bool {
	for w, members := range s.low {
		if (members != 0) != (s.top>>w&1 != 0) {
			return false
		}
	}
	return s.shape != manyWords || s.top>>len(s.low) == 0
}

// bytes returns the host memory beyond the record itself.
func (s *places) bytes() device.Size {
	n := device.Size(cap(s.low)) * 8
	if s.big != nil {
		n += setBytes + s.big.Bytes()
	}
	return n
}
