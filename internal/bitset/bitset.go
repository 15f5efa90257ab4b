package bitset

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

const (
	wordLog  = 6
	wordMask = 1<<wordLog - 1
	// A page of the bitmap has 64 words, 4096 numbers: one bit of the second level above.
	pageLog   = 6
	pageWords = 1 << pageLog
	pageMask  = pageWords - 1
	// maxLevels serve any 32-bit number: 64^6 > 2^32.
	maxLevels = 6
	// headerBytes is what the table of pages has for each.
	headerBytes = 24
)

// Set is a set of numbers below its room. The zero Set is empty and has no room. It is not
// safe for concurrent use.
type Set struct {
	pages [][]uint64        // the bitmap, pageWords words each; nil where no member is, or none ever was
	spare [][]uint64        // empty pages to use again: there are as many pages as were ever in use at once
	upper []uint64          // the levels above it, the lowest first
	base  [maxLevels]uint32 // where each of these starts
	top   int               // number of the highest level, which is a single word; 0 is the bitmap
	room  int               // numbers below it may be members
	n     int               // members
}

// New returns an empty set with room for the numbers below n.
//
// Precondition: 0 <= n <= 2^32.
func New(n int) Set {
	s := Set{room: n}
	if n == 0 {
		return s
	}
	total := 0
	words := wordsFor(n)
	s.pages = make([][]uint64, (words+pageWords-1)/pageWords)
	for words > 1 {
		words = wordsFor(words)
		s.top++
		s.base[s.top] = uint32(total)
		total += words
	}
	s.upper = make([]uint64, total)
	return s
}

// wordsFor returns the words that n bits take.
func wordsFor(n int) int { return (n + wordMask) >> wordLog }

// Room returns the number below which members lie.
func (s *Set) Room() int { return s.room }

// Len returns the number of members. O(1).
func (s *Set) Len() int { return s.n }

// Bytes returns the host memory of the levels. It costs O(room / 4096).
func (s *Set) Bytes() device.Size {
	n := device.Size(cap(s.upper))*8 + device.Size(cap(s.pages))*headerBytes
	for _, p := range s.pages {
		n += device.Size(cap(p)) * 8
	}
	n += device.Size(cap(s.spare))*headerBytes + device.Size(len(s.spare))*pageWords*8
	return n
}

// Grow makes room for the numbers below n, if there is less. It costs O(room / 64) and at
// least doubles the room, so that growing step by step costs next to nothing a number.
func (s *Set) Grow(n int) {
	if n <= s.room {
		return
	}
	wide := New(max(n, int(min(2*uint64(s.room), 1<<32-1))))
	for i, p := range s.pages {
		if full := wide.pageSize(i); p != nil && len(p) < full {
			p = append(make([]uint64, 0, full), p...)[:full]
		}
		wide.pages[i] = p
		for j, w := range p {
			if w != 0 && wide.top > 0 {
				k := i<<pageLog + j
				wide.upper[k>>wordLog] |= 1 << (k & wordMask)
			}
		}
	}
	for level := 1; level < wide.top; level++ {
		for i, w := range wide.upper[wide.base[level]:wide.base[level+1]] {
			if w != 0 {
				wide.upper[int(wide.base[level+1])+i>>wordLog] |= 1 << (i & wordMask)
			}
		}
	}
	wide.n, wide.spare = s.n, s.spare
	*s = wide
}

// pageSize returns the words of page i: the last one has no more than the room needs.
func (s *Set) pageSize(i int) int { return min(pageWords, wordsFor(s.room)-i<<pageLog) }

// leaf returns word i of the bitmap, 0 where there is no page.
func (s *Set) leaf(i uint32) uint64 {
	if p := s.pages[i>>pageLog]; p != nil {
		return p[i&pageMask]
	}
	return 0
}

// at returns word i of a level.
func (s *Set) at(level int, i uint32) uint64 {
	if level == 0 {
		return s.leaf(i)
	}
	return s.upper[s.base[level]+i]
}

// Has reports whether i is a member.
func (s *Set) Has(i uint32) bool {
	return int(i) < s.room && s.leaf(i>>wordLog)>>(i&wordMask)&1 != 0
}

// Add makes i a member. Adding a member changes nothing. It allocates only where no member
// ever was near.
//
// Precondition: i is below the room.
func (s *Set) Add(i uint32) {
	page := s.pages[i>>(wordLog+pageLog)]
	if page == nil {
		page = s.newPage(int(i >> (wordLog + pageLog)))
	}
	w := &page[i>>wordLog&pageMask]
	old, bit := *w, uint64(1)<<(i&wordMask)
	if old&bit != 0 {
		return
	}
	*w |= bit
	s.n++
	for level := 1; old == 0 && level <= s.top; level++ {
		i >>= wordLog
		w = &s.upper[s.base[level]+i>>wordLog]
		old = *w
		*w |= 1 << (i & wordMask)
	}
}

// newPage returns page i, which there was not, an empty one if there is a spare page.
func (s *Set) newPage(i int) []uint64 {
	size, last := s.pageSize(i), len(s.spare)-1
	if size == pageWords && last >= 0 {
		s.pages[i] = s.spare[last]
		s.spare = s.spare[:last]
	} else {
		s.pages[i] = make([]uint64, size)
	}
	return s.pages[i]
}

// Remove makes i no member. Removing what is none changes nothing.
func (s *Set) Remove(i uint32) {
	if !s.Has(i) {
		return
	}
	s.n--
	page := i >> (wordLog + pageLog)
	w := &s.pages[page][i>>wordLog&pageMask]
	*w &^= 1 << (i & wordMask)
	for level := 1; *w == 0 && level <= s.top; level++ {
		i >>= wordLog
		w = &s.upper[s.base[level]+i>>wordLog]
		*w &^= 1 << (i & wordMask)
		if level == 1 && *w == 0 && len(s.pages[page]) == pageWords {
			s.spare = append(s.spare, s.pages[page])
			s.pages[page] = nil
		}
	}
}

// Min returns the smallest member, and whether there is one.
func (s *Set) Min() (uint32, bool) {
	if s.n == 0 {
		return 0, false
	}
	return s.lowest(0, s.top), true
}

// Max returns the largest member, and whether there is one.
func (s *Set) Max() (uint32, bool) {
	if s.n == 0 {
		return 0, false
	}
	return s.highest(0, s.top), true
}

// Next returns the smallest member that is at least i, and whether there is one.
func (s *Set) Next(i uint32) (uint32, bool) {
	if int(i) >= s.room {
		return 0, false
	}
	for level := 0; level <= s.top; level++ {
		if w := s.at(level, i>>wordLog) >> (i & wordMask); w != 0 {
			return s.lowest(i+uint32(bits.TrailingZeros64(w)), level-1), true
		}
		if i = i>>wordLog + 1; level < s.top && int(i) >= s.bitsOf(level+1) {
			return 0, false
		}
	}
	return 0, false
}

// Prev returns the largest member that is at most i, and whether there is one.
func (s *Set) Prev(i uint32) (uint32, bool) {
	if s.n == 0 {
		return 0, false
	}
	i = min(i, uint32(s.room-1))
	for level := 0; level <= s.top; level++ {
		if w := s.at(level, i>>wordLog) << (wordMask - i&wordMask); w != 0 {
			return s.highest(i-uint32(bits.LeadingZeros64(w)), level-1), true
		}
		if i >>= wordLog; i == 0 {
			return 0, false
		}
		i--
	}
	return 0, false
}

// All yields every member in ascending order. The set must not be changed meanwhile.
func (s *Set) All(yield func(uint32) bool) {
	for i, ok := s.Next(0); ok && yield(i); i, ok = s.Next(i + 1) {
	}
}

// Clear removes every member and keeps the room.
func (s *Set) Clear() {
	for _, p := range s.pages {
		clear(p)
	}
	clear(s.upper)
	s.n = 0
}

// bitsOf returns the number of bits that a level above the bitmap has, those of its last
// word included.
func (s *Set) bitsOf(level int) int {
	end := len(s.upper)
	if level < s.top {
		end = int(s.base[level+1])
	}
	return (end - int(s.base[level])) << wordLog
}

// lowest returns the smallest member below bit i of the level above the given one, going
// down from there.
//
// Precondition: that bit is set.
func (s *Set) lowest(i uint32, level int) uint32 {
	for ; level > 0; level-- {
		i = i<<wordLog + uint32(bits.TrailingZeros64(s.upper[s.base[level]+i]))
	}
	if level == 0 {
		i = i<<wordLog + uint32(bits.TrailingZeros64(s.leaf(i)))
	}
	return i
}

// highest is lowest for the largest member.
func (s *Set) highest(i uint32, level int) uint32 {
	for ; level > 0; level-- {
		i = i<<wordLog + uint32(wordMask-bits.LeadingZeros64(s.upper[s.base[level]+i]))
	}
	if level == 0 {
		i = i<<wordLog + uint32(wordMask-bits.LeadingZeros64(s.leaf(i)))
	}
	return i
}
