package blocks

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

const (
	wordLog  = 6
	wordBits = 1 << wordLog
	wordMask = wordBits - 1
)

// places is a set of small numbers: the free blocks of one class in one region, or the regions that
// have such a block. Up to 4096 numbers are words in a [store] with one summary word; more are an
// [index.BitSet]. The record takes 16 bytes, so that four share a cache line. The zero places is
// empty and has room for 4096 numbers.
type places struct {
	top  uint64 // which of the words are not zero; unused in a wide set
	at   uint32 // first of the words in the store, or number of the wide set there, plus one; 0 for none
	room uint8  // words up to the highest member so far; 0 for a wide set
	wide bool   // more than 4096 numbers
}

// store holds the words of all sets side by side, so that no set needs a pointer to its own.
type store struct {
	words []uint64
	// by log2 of their length, the first unused run, plus one; each leads to the next. 0 for none
	runs [wordLog + 1]uint32
	wide []index.BitSet
}

// reserve makes room for n numbers in an empty set.
func (p *store) reserve(s *places, n int) {
	if n > wordBits*wordBits && !s.wide {
		p.free(s)
		*s = places{wide: true}
	}
}

// add adds i, which is not a member. It allocates only above the highest member ever.
func (p *store) add(s *places, i uint32) {
	if w := i >> wordLog; w >= uint32(s.room) {
		if s.wide {
			p.addWide(s, i)
			return
		}
		p.widen(s, w+1)
	}
	p.put(s, i)
}

// put is add for a set whose words include i. It is inlined.
func (p *store) put(s *places, i uint32) {
	w := i >> wordLog
	p.words[s.at+w] |= 1 << (i & wordMask)
	s.top |= 1 << (w & wordMask)
}

func (p *store) addWide(s *places, i uint32) {
	if s.at == 0 {
		p.wide = append(p.wide, index.BitSet{})
		s.at = uint32(len(p.wide))
	}
	set := &p.wide[s.at-1]
	if int(i) >= set.Room() {
		set.Grow(int(i) + 1)
	}
	set.Add(i)
}

// widen gives a set at least n words, a power of two up to 64.
func (p *store) widen(s *places, n uint32) {
	log := bits.Len32(n - 1)
	at := p.runs[log]
	if at != 0 {
		at--
		p.runs[log] = uint32(p.words[at])
		clear(p.words[at:][:1<<log])
	} else {
		at = uint32(len(p.words))
		for range 1 << log {
			p.words = append(p.words, 0)
		}
	}
	copy(p.words[at:], p.words[s.at:][:s.room])
	p.free(s)
	s.at, s.room = at, 1<<log
}

// free makes the words of a set spare.
func (p *store) free(s *places) {
	if s.room != 0 {
		log := bits.Len8(s.room) - 1
		p.words[s.at] = uint64(p.runs[log])
		p.runs[log] = s.at + 1
	}
}

// remove removes member i, and reports whether it was the last.
func (p *store) remove(s *places, i uint32) (last bool) {
	if s.room == 0 {
		set := &p.wide[s.at-1]
		set.Remove(i)
		return set.Len() == 0
	}
	return p.drop(s, i, 1) != 0
}

// drop removes member i if one is 1, and nothing if it is 0. It returns 1 if the set is empty now.
// It is inlined, for sets with words, and has no branch to mispredict.
func (p *store) drop(s *places, i uint32, one uint64) (empty uint64) {
	w := i >> wordLog
	at := &p.words[s.at+w]
	*at &^= one << (i & wordMask)
	s.top &^= ifZero(*at) << (w & wordMask)
	return ifZero(s.top)
}

// ifZero returns 1 for zero, else 0.
func ifZero(n uint64) (one uint64) {
	if n == 0 {
		one = 1
	}
	return one
}

func (p *store) has(s *places, i uint32) bool {
	w := i >> wordLog
	if w >= uint32(s.room) {
		return s.wide && s.at != 0 && p.wide[s.at-1].Has(i)
	}
	return p.words[s.at+w]>>(i&wordMask)&1 != 0
}

// min returns the smallest member. There must be one.
func (p *store) min(s *places) uint32 {
	if s.room == 0 {
		i, _ := p.wide[s.at-1].Min()
		return i
	}
	return p.lowest(s)
}

// lowest is min for a set with words. It is inlined.
func (p *store) lowest(s *places) uint32 {
	w := uint32(bits.TrailingZeros64(s.top))
	return w<<wordLog + uint32(bits.TrailingZeros64(p.words[s.at+w]))
}

// max returns the largest member. There must be one.
func (p *store) max(s *places) uint32 {
	if s.wide {
		i, _ := p.wide[s.at-1].Max()
		return i
	}
	w := uint32(bits.Len64(s.top) - 1)
	return w<<wordLog + uint32(bits.Len64(p.words[s.at+w])-1)
}

// next returns the smallest member that is at least i, and whether there is one.
func (p *store) next(s *places, i uint32) (uint32, bool) {
	if s.wide {
		if s.at == 0 {
			return 0, false
		}
		return p.wide[s.at-1].Next(i)
	}
	w := i >> wordLog
	if w >= uint32(s.room) {
		return 0, false
	}
	if rest := p.words[s.at+w] >> (i & wordMask); rest != 0 {
		return i + uint32(bits.TrailingZeros64(rest)), true
	}
	above := s.top >> w >> 1 << 1 << w // words above i's; a shift of 64 yields 0
	if above == 0 {
		return 0, false
	}
	w = uint32(bits.TrailingZeros64(above))
	return w<<wordLog + uint32(bits.TrailingZeros64(p.words[s.at+w])), true
}

// all yields the members, ascending. Members may be removed during the iteration.
func (p *store) all(s *places) func(yield func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for i, ok := p.next(s, 0); ok && yield(i); i, ok = p.next(s, i+1) {
		}
	}
}

func (p *store) len(s *places) (n int) {
	if s.wide {
		if s.at == 0 {
			return 0
		}
		return p.wide[s.at-1].Len()
	}
	for _, w := range p.words[s.at:][:s.room] {
		n += bits.OnesCount64(w)
	}
	return n
}

func (p *store) clear(s *places) {
	if !s.wide {
		s.top = 0
		clear(p.words[s.at:][:s.room])
	} else if s.at != 0 {
		p.wide[s.at-1].Clear()
	}
}

// sound reports whether the summary matches the words.
func (p *store) sound(s *places) bool {
	if s.wide {
		return true
	}
	for w, members := range p.words[s.at:][:s.room] {
		if (members != 0) != (s.top>>w&1 != 0) {
			return false
		}
	}
	return s.top>>s.room == 0
}

func (p *store) bytes() device.Size {
	n := device.Size(cap(p.words))*8 + device.Size(cap(p.wide))*setBytes
	for i := range p.wide {
		n += p.wide[i].Bytes()
	}
	return n
}
