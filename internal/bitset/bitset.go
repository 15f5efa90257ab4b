package bitset

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/planted"
)

const (
	wordLog  = 6
	wordMask = 1<<wordLog - 1
	// maxLevels serve any 32-bit number: 64^6 > 2^32.
	maxLevels = 6
)

// Set is a set of numbers below its room. The zero Set is empty and has no room. It is not
// safe for concurrent use.
type Set struct {
	words []uint64          // every level, the bitmap first
	base  [maxLevels]uint32 // where each level starts
	top   int               // number of the highest level, which is a single word
	room  int               // numbers below it may be members
	n     int               // members
}

// New returns an empty set with room for the numbers below n.
//
// Precondition: 0 <= n <= 2^32.
func New(n int) Set {
	var s Set
	s.room = n
	if n == 0 {
		return s
	}
	total := 0
	for words := n; ; s.top++ {
		words = (words + wordMask) >> wordLog
		s.base[s.top] = uint32(total)
		total += words
		if words == 1 {
			break
		}
	}
	s.words = make([]uint64, total)
	return s
}

// Room returns the number below which members lie.
func (s *Set) Room() int { return s.room }

// Len returns the number of members. O(1).
func (s *Set) Len() int { return s.n }

// Bytes returns the host memory of the levels.
func (s *Set) Bytes() device.Size { return device.Size(cap(s.words)) * 8 }

// Grow makes room for the numbers below n, if there is less. It costs O(room) and at least
// doubles the room, so that growing step by step costs O(1) a number.
func (s *Set) Grow(n int) {
	if n <= s.room {
		return
	}
	wide := New(max(n, int(min(2*uint64(s.room), 1<<32-1))))
	copy(wide.words, s.words[:(s.room+wordMask)>>wordLog])
	for level := range wide.top {
		below := wide.words[wide.base[level]:wide.base[level+1]]
		for i, w := range below {
			if w != 0 {
				wide.words[int(wide.base[level+1])+i>>wordLog] |= 1 << (i & wordMask)
			}
		}
	}
	wide.n = s.n
	*s = wide
}

// Has reports whether i is a member.
func (s *Set) Has(i uint32) bool {
	return int(i) < s.room && s.words[i>>wordLog]>>(i&wordMask)&1 != 0
}

// Add makes i a member. Adding a member changes nothing.
//
// Precondition: i is below the room.
func (s *Set) Add(i uint32) {
	if s.Has(i) {
		return
	}
	s.n++
	for level := 0; level <= s.top; level++ {
		w := &s.words[s.base[level]+i>>wordLog]
		old := *w
		*w |= 1 << (i & wordMask)
		if old != 0 {
			return
		}
		if planted.Enabled && planted.Is("bitset/summary-not-set") {
			return
		}
		i >>= wordLog
	}
}

// Remove makes i no member. Removing what is none changes nothing.
func (s *Set) Remove(i uint32) {
	if !s.Has(i) {
		return
	}
	s.n--
	for level := 0; level <= s.top; level++ {
		w := &s.words[s.base[level]+i>>wordLog]
		*w &^= 1 << (i & wordMask)
		if *w != 0 {
			return
		}
		i >>= wordLog
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
		if w := s.words[s.base[level]+i>>wordLog] >> (i & wordMask); w != 0 {
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
		if w := s.words[s.base[level]+i>>wordLog] << (wordMask - i&wordMask); w != 0 {
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
	clear(s.words)
	s.n = 0
}

// bitsOf returns the number of bits that a level has, those of its last word included.
func (s *Set) bitsOf(level int) int {
	end := len(s.words)
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
	for ; level >= 0; level-- {
		i = i<<wordLog + uint32(bits.TrailingZeros64(s.words[s.base[level]+i]))
	}
	return i
}

// highest is lowest for the largest member.
func (s *Set) highest(i uint32, level int) uint32 {
	for ; level >= 0; level-- {
		i = i<<wordLog + uint32(wordMask-bits.LeadingZeros64(s.words[s.base[level]+i]))
	}
	return i
}
