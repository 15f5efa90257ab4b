package index

// [BitSet] is a set of small numbers with its minimum, maximum, successor and predecessor.
//
// # Data structure
//
// A bitmap with summaries above it: a bit of a level is set if a word of the level below is not
// zero. A search reads at most two words a level, log64 of the room.
//
// The bitmap lies in pages of 64 words, 4096 numbers. A page stores only its nonzero words: in a
// run of 1 to 32 words by rank, or of 64 words by position. The page's word in the level above is
// the set of its nonzero words. Pages lie in parts of 64, which exist only while they have a
// member. A small set, of up to 2^18 numbers, has runs of 64 words only and never moves them.
//
// # Cost
//
// Add and Remove change one bit. They climb only if a word becomes nonzero or zero; in a set that
// is not small they then move up to 32 words of the page. The host memory is 1 KiB for each 2^18
// numbers with a member, 8 bytes for each word with a member, up to four times that in a page that
// had more, and 1/1000 bit for each number of the room.
//
// Source: van Emde Boas, Preserving Order in a Forest in Less Than Logarithmic Time, 1975, with the
// fan-out of a machine word.

import (
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/device"
)

const (
	wordLog  = 6
	wordMask = 1<<wordLog - 1
	// A page is 64 words of the bitmap, 4096 numbers, and a part of the directory is 64 pages.
	pageLog   = 6
	pageMask  = 1<<pageLog - 1
	partLog   = 6
	partPages = 1 << partLog
	partMask  = partPages - 1
	// smallTop is the highest level of a small set, of at most 2^18 numbers: all its runs have 64
	// words, which costs it 32 KiB at most.
	smallTop = 2
	// maxLevels serve any 32-bit number: 64^6 > 2^32.
	maxLevels = 6
)

// BitSet is a set of numbers below its room. The zero value is empty and has no room. It is not
// safe for concurrent use.
type BitSet struct {
	parts [][]page // the directory, partPages pages each; nil where no member is
	spare [][]page // empty parts, for reuse
	words []uint64 // the words of all pages, in runs
	// by log2 of the length, the first unused run plus one; its first word is the next, 0 is the end
	runs  [pageLog + 1]uint32
	least uint8             // log2 of the length of the shortest run: 0, or 6 in a small set
	upper []uint64          // the levels above the pages, the lowest first
	base  [maxLevels]uint32 // where each of these starts, from level 2 on
	top   int               // number of the highest level, which is a single word; 0 is the bitmap, 1 the pages
	room  int               // numbers below it may be members
	n     int               // members
}

// page is 64 words of the bitmap. Words that are not zero lie in a run of 2^log words, in order. In
// a run of 64 words each word has its own place, and the others are zero.
type page struct {
	has uint64 // words that are not zero
	run uint32 // first word of the run, if there is one: has is not zero, or the run has 64 words
	log uint8  // log2 of its length
}

// at returns the index of word w of the page.
//
// Precondition: the word is not zero, or the run has 64 words.
func (p *page) at(w uint32) uint32 {
	if p.log == pageLog {
		return p.run + w
	}
	return p.run + uint32(bits.OnesCount64(p.has&(1<<w-1)))
}

// NewBitSet returns an empty set with room for the numbers below n.
//
// Precondition: 0 <= n <= 2^32.
func NewBitSet(n int) BitSet {
	s := BitSet{room: n}
	if n == 0 {
		return s
	}
	total := 0
	words := wordsFor(wordsFor(n))
	s.parts = make([][]page, (words+partMask)>>partLog)
	for s.top = 1; words > 1; {
		words = wordsFor(words)
		s.top++
		s.base[s.top] = uint32(total)
		total += words
	}
	s.upper = make([]uint64, total)
	if s.top <= smallTop {
		s.least = pageLog
	}
	if s.top == 1 { // the only page has its words from the start
		s.words = make([]uint64, wordsFor(n))
		s.parts[0] = []page{{log: pageLog}}
	}
	return s
}

func wordsFor(n int) int { return (n + wordMask) >> wordLog }

// Room returns the exclusive upper bound of members.
func (s *BitSet) Room() int { return s.room }

// Len returns the number of members. O(1).
func (s *BitSet) Len() int { return s.n }

// Bytes returns the host memory of the levels, unused capacity included. It costs O(room / 2^18).
func (s *BitSet) Bytes() device.Size {
	n := BytesOf(s.words) + BytesOf(s.upper) + BytesOf(s.parts) + BytesOf(s.spare)
	for _, parts := range [][][]page{s.parts, s.spare} {
		for _, p := range parts {
			n += BytesOf(p)
		}
	}
	return n
}

// Grow raises the room to at least n. It costs O(room / 4096) and at least doubles the room, so
// growing step by step is amortized.
func (s *BitSet) Grow(n int) {
	if n <= s.room {
		return
	}
	wide := NewBitSet(max(n, int(min(2*uint64(s.room), 1<<32-1))))
	switch {
	case s.n == 0:
		*s = wide
		return
	case s.top > 1:
		wide.words = s.words
	case wide.top > 1:
		wide.words = make([]uint64, 1<<pageLog)
		fallthrough
	default:
		copy(wide.words, s.words)
	}
	for i, p := range s.parts {
		if full := wide.partSize(i); p != nil && len(p) < full {
			p = append(make([]page, 0, full), p...)[:full]
		}
		wide.parts[i] = p
		for j := range p {
			if p[j].has != 0 && wide.top > 1 {
				wide.upper[i] |= 1 << j
			}
		}
	}
	for level := 2; level < wide.top; level++ {
		for i, w := range wide.upper[wide.base[level]:wide.base[level+1]] {
			if w != 0 {
				wide.upper[int(wide.base[level+1])+i>>wordLog] |= 1 << (i & wordMask)
			}
		}
	}
	wide.n, wide.spare, wide.runs = s.n, s.spare, s.runs
	*s = wide
}

func (s *BitSet) partSize(i int) int { return min(partPages, wordsFor(wordsFor(s.room))-i<<partLog) }

// word returns the word of number i in a page, or nil if the word is zero in a run shorter than 64
// words.
func (s *BitSet) word(p *page, i uint32) *uint64 {
	if p.log == pageLog {
		return &s.words[p.run+i>>wordLog&pageMask]
	}
	return s.wordOfRun(p, i>>wordLog&pageMask)
}

// wordOfRun is word for runs shorter than 64 words. It is separate so that word is inlined.
func (s *BitSet) wordOfRun(p *page, w uint32) *uint64 {
	if p.has>>w&1 == 0 {
		return nil
	}
	return &s.words[p.at(w)]
}

func (s *BitSet) leaf(i uint32) uint64 {
	part, n := s.parts[i>>(pageLog+partLog)], i>>pageLog&partMask
	if int(n) >= len(part) {
		return 0
	}
	p := &part[n]
	if i &= pageMask; p.has>>i&1 == 0 {
		return 0
	}
	if p.log == pageLog {
		return s.words[p.run+i]
	}
	return s.words[p.at(i)]
}

func (s *BitSet) at(level int, i uint32) uint64 {
	if level > 1 {
		return s.upper[s.base[level]+i]
	}
	if level == 0 {
		return s.leaf(i)
	}
	if part, n := s.parts[i>>partLog], i&partMask; int(n) < len(part) {
		return part[n].has
	}
	return 0
}

// Has reports whether i is a member.
func (s *BitSet) Has(i uint32) bool {
	return int(i) < s.room && s.leaf(i>>wordLog)>>(i&wordMask)&1 != 0
}

// Add adds i. It allocates only beyond the largest number of words or parts so far.
//
// Precondition: i is below the room.
func (s *BitSet) Add(i uint32) {
	part := s.parts[i>>(wordLog+pageLog+partLog)]
	if part == nil {
		part = s.newPart(int(i >> (wordLog + pageLog + partLog)))
	}
	p, bit := &part[i>>(wordLog+pageLog)&partMask], uint64(1)<<(i&wordMask)
	old := p.has
	if w := s.word(p, i); w == nil {
		s.insert(p, i>>wordLog&pageMask, bit)
	} else if *w&bit != 0 {
		return
	} else {
		*w |= bit
		p.has |= 1 << (i >> wordLog & pageMask)
	}
	s.n++
	i >>= wordLog
	for level := 2; old == 0 && level <= s.top; level++ {
		i >>= wordLog
		w := &s.upper[s.base[level]+i>>wordLog]
		old = *w
		*w |= 1 << (i & wordMask)
	}
}

// newPart creates part i, from a spare one if possible.
func (s *BitSet) newPart(i int) []page {
	size, last := s.partSize(i), len(s.spare)-1
	if size == partPages && last >= 0 {
		s.parts[i] = s.spare[last]
		s.spare = s.spare[:last]
	} else {
		s.parts[i] = make([]page, size)
	}
	return s.parts[i]
}

// insert sets word w of a page whose run has no place for it.
func (s *BitSet) insert(p *page, w uint32, value uint64) {
	count := bits.OnesCount64(p.has)
	if count == 0 {
		p.run, p.log = s.take(s.least), s.least
	} else if count == 1<<p.log {
		s.move(p, p.log+1)
	}
	at := p.at(w)
	if p.log < pageLog {
		end := p.run + uint32(count)
		copy(s.words[at+1:end+1], s.words[at:end])
	}
	s.words[at] = value
	p.has |= 1 << w
}

// remove removes word w, which became zero, from a page.
func (s *BitSet) remove(p *page, w uint32) {
	p.has &^= 1 << w
	count := bits.OnesCount64(p.has)
	if count == 0 {
		s.free(p)
		p.log = 0
		return
	}
	if p.log < pageLog {
		at, end := p.at(w), p.run+uint32(count)
		copy(s.words[at:end], s.words[at+1:end+1])
	}
	if count <= 1<<p.log>>2 && p.log > s.least { // at a quarter, so that alternating calls move nothing
		s.move(p, p.log-1)
	}
}

// move moves the words of a page to a run of another length.
func (s *BitSet) move(p *page, log uint8) {
	old := *p
	p.run, p.log = s.take(log), log
	for has := p.has; has != 0; has &= has - 1 {
		w := uint32(bits.TrailingZeros64(has))
		from := &s.words[old.at(w)]
		s.words[p.at(w)] = *from
		*from = 0
	}
	s.free(&old)
}

// take returns a run of 2^log words. A run of 64 words is zero.
func (s *BitSet) take(log uint8) (run uint32) {
	if run = s.runs[log]; run != 0 {
		run--
		s.runs[log] = uint32(s.words[run])
		s.words[run] = 0
		return run
	}
	run = uint32(len(s.words))
	s.words = slices.Grow(s.words, 1<<log)[:run+1<<log]
	clear(s.words[run:])
	return run
}

// free releases the run of a page.
func (s *BitSet) free(p *page) {
	s.words[p.run] = uint64(s.runs[p.log])
	s.runs[p.log] = p.run + 1
}

// Remove removes i, if it is a member.
func (s *BitSet) Remove(i uint32) {
	if int(i) >= s.room {
		return
	}
	part, n := s.parts[i>>(wordLog+pageLog+partLog)], i>>(wordLog+pageLog)&partMask
	if int(n) >= len(part) {
		return
	}
	p := &part[n]
	w := s.word(p, i)
	if w == nil || *w>>(i&wordMask)&1 == 0 {
		return
	}
	s.n--
	if *w &^= 1 << (i & wordMask); *w != 0 {
		return
	}
	if s.least == pageLog { // the page keeps its run
		p.has &^= 1 << (i >> wordLog & pageMask)
	} else {
		s.remove(p, i>>wordLog&pageMask)
	}
	s.climb(part, i, p.has)
}

// climb clears the bits of empty pages in the levels above. rest is the remaining set of words of
// the page of number i.
func (s *BitSet) climb(part []page, i uint32, rest uint64) {
	at := i >> (wordLog + pageLog + partLog)
	i >>= wordLog
	for level := 2; rest == 0 && level <= s.top; level++ {
		i >>= wordLog
		w := &s.upper[s.base[level]+i>>wordLog]
		*w &^= 1 << (i & wordMask)
		if rest = *w; level == 2 && rest == 0 && len(part) == partPages {
			s.spare = append(s.spare, part)
			s.parts[at] = nil
		}
	}
}

// Min returns the smallest member, or false.
func (s *BitSet) Min() (uint32, bool) {
	if s.n == 0 {
		return 0, false
	}
	return s.lowest(0, s.top), true
}

// Max returns the largest member, or false.
func (s *BitSet) Max() (uint32, bool) {
	if s.n == 0 {
		return 0, false
	}
	return s.highest(0, s.top), true
}

// Next returns the smallest member that is at least i, or false.
func (s *BitSet) Next(i uint32) (uint32, bool) {
	if int(i) >= s.room {
		return 0, false
	}
	for level := 0; level <= s.top; level++ {
		if w := s.at(level, i>>wordLog) >> (i & wordMask); w != 0 {
			return s.lowest(i+uint32(bits.TrailingZeros64(w)), level-1), true
		}
		if i = i>>wordLog + 1; uint64(i)<<(wordLog*(level+1)) >= uint64(s.room) {
			return 0, false
		}
	}
	return 0, false
}

// Prev returns the largest member that is at most i, or false.
func (s *BitSet) Prev(i uint32) (uint32, bool) {
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

// All yields every member in ascending order. The set must not change during the iteration.
func (s *BitSet) All(yield func(uint32) bool) {
	for i, ok := s.Next(0); ok && yield(i); i, ok = s.Next(i + 1) {
	}
}

// Clear removes every member and keeps the room.
func (s *BitSet) Clear() {
	for _, p := range s.parts {
		clear(p)
	}
	clear(s.upper)
	s.runs, s.n = [pageLog + 1]uint32{}, 0
	if s.top > 1 {
		s.words = s.words[:0]
	} else if s.top == 1 {
		clear(s.words)
		s.parts[0][0].log = pageLog
	}
}

// lowest returns the smallest member below bit i of the level above the given one. It reads a page
// once for its two levels.
//
// Precondition: the bit is set.
func (s *BitSet) lowest(i uint32, level int) uint32 {
	for ; level > 1; level-- {
		i = i<<wordLog + uint32(bits.TrailingZeros64(s.upper[s.base[level]+i]))
	}
	if level == 1 {
		p := &s.parts[i>>partLog][i&partMask]
		w := uint32(bits.TrailingZeros64(p.has))
		return (i<<wordLog+w)<<wordLog + uint32(bits.TrailingZeros64(s.words[p.at(w)]))
	}
	if level == 0 {
		i = i<<wordLog + uint32(bits.TrailingZeros64(s.leaf(i)))
	}
	return i
}

// highest is lowest for the largest member.
func (s *BitSet) highest(i uint32, level int) uint32 {
	for ; level > 1; level-- {
		i = i<<wordLog + uint32(wordMask-bits.LeadingZeros64(s.upper[s.base[level]+i]))
	}
	if level == 1 {
		p := &s.parts[i>>partLog][i&partMask]
		w := uint32(wordMask - bits.LeadingZeros64(p.has))
		return (i<<wordLog+w)<<wordLog + uint32(wordMask-bits.LeadingZeros64(s.words[p.at(w)]))
	}
	if level == 0 {
		i = i<<wordLog + uint32(wordMask-bits.LeadingZeros64(s.leaf(i)))
	}
	return i
}
