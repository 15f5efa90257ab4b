package index

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// Ceil returns the smallest entry of at least size bytes, the lowest of equals, or NoEntry.
func (m *SizeMap) Ceil(size device.Size) SizeAt {
	own := max(m.classOf(size), m.base) - m.base
	if int(own) >= len(m.cells) {
		return NoEntry
	}
	for base, rest := own, m.window(own); ; rest &= rest - 1 {
		if rest == 0 {
			if base, rest = m.beyond(base); rest == 0 {
				return NoEntry
			}
		}
		class := base + uint32(bits.TrailingZeros64(rest))
		at := m.cells[class]
		if at&dirBit != 0 {
			if at = m.ceilBelow(at, m.from(size, class)); at != NoEntry {
				return at
			}
			continue
		}
		for ; at != NoEntry; at = m.nodes[at].next {
			if m.nodes[at].size >= size {
				return at
			}
		}
	}
}

// from returns the size to search for below a cell: 0 if the cell is of a higher class, whose sizes
// are all larger.
func (m *SizeMap) from(size device.Size, cell uint32) device.Size {
	if m.classOf(size) != m.base+cell {
		return 0
	}
	return size
}

// window returns the bits of 64 classes, starting at one. A search rarely goes further.
//
// Precondition: the map has cells.
func (m *SizeMap) window(class uint32) uint64 {
	w, shift := class>>wordBits, class&classMask
	return m.words[w]>>shift | m.words[w+1]<<1<<(classMask-shift)
}

// beyond returns the class and bits of the next window, or of the next nonzero word if that is
// empty. The bits are 0 at the end.
func (m *SizeMap) beyond(class uint32) (base uint32, rest uint64) {
	base = class + 1<<wordBits
	if int(base) >= len(m.cells) {
		return base, 0
	}
	if rest = m.window(base); rest != 0 {
		return base, rest
	}
	w := base>>wordBits + 1
	i := w >> wordBits
	if i >= sumWords {
		return base, 0
	}
	sum := m.sums[i] >> (w & classMask) << (w & classMask)
	for sum == 0 {
		if i++; i == sumWords {
			return base, 0
		}
		sum = m.sums[i]
	}
	w = i<<wordBits | uint32(bits.TrailingZeros64(sum))
	return w << wordBits, m.words[w]
}

// Near returns one of the first looks entries that are large enough: the one at the lowest address
// that exceeds the first by at most spread bytes; NoEntry if none is large enough. Entries of one
// size count singly, but only the lowest is read.
//
// Precondition: looks >= 1; size + spread does not overflow.
func (m *SizeMap) Near(size, spread device.Size, looks int) SizeAt {
	own := max(m.classOf(size), m.base) - m.base
	if int(own) >= len(m.cells) {
		return NoEntry
	}
	l := nearSearch{lowest: ^device.Addr(0), most: ^device.Size(0), left: looks}
	for base, rest := own, m.window(own); ; rest &= rest - 1 {
		if rest == 0 {
			if base, rest = m.beyond(base); rest == 0 {
				return l.best
			}
		}
		class := base + uint32(bits.TrailingZeros64(rest))
		at := m.cells[class]
		if at&dirBit != 0 {
			if l = m.nearBelow(at, m.from(size, class), spread, l); l.left <= 0 {
				return l.best
			}
			continue
		}
		for ; at != NoEntry; at = m.nodes[at].next {
			e := &m.nodes[at]
			if e.size < size {
				continue
			}
			if e.size > l.most {
				return l.best
			}
			l.most = min(l.most, e.size+spread) // of the first, which is the smallest
			if e.addr <= l.lowest {             // addresses are unique, except for the highest, where lowest begins
				l.best = at
			}
			l.lowest = min(l.lowest, e.addr)
			if l.left -= int(e.prev &^ rootBit); l.left <= 0 {
				return l.best
			}
		}
	}
}

// nearSearch is the state of Near.
type nearSearch struct {
	best   SizeAt      // lowest entry so far
	lowest device.Addr // its address
	most   device.Size // larger entries are not candidates
	left   int         // entries still to look at; 0 if one was too large
}

// nearBelow continues a search among the groups of at least a size below a cell.
//
// Precondition: the sizes below agree with the size in all bits above, or it is 0.
func (m *SizeMap) nearBelow(cell uint32, size, spread device.Size, l nearSearch) nearSearch {
	if cell&dirBit != 0 {
		d := &m.dirs[cell&^dirBit]
		from := d.digit(size)
		for used := d.used >> from << from; used != 0 && l.left > 0; used &= used - 1 {
			i := uint32(bits.TrailingZeros32(used)) % dirCells
			if i > from {
				size = 0
			}
			l = m.nearBelow(d.cells[i], size, spread, l)
		}
		return l
	}
	for at := *m.find(&cell, size); at != NoEntry && l.left > 0; at = m.nodes[at].next {
		e := &m.nodes[at]
		if e.size > l.most {
			l.left = 0
			return l
		}
		l.most = min(l.most, e.size+spread)
		if e.addr <= l.lowest {
			l.best, l.lowest = at, e.addr
		}
		l.left -= int(e.prev &^ rootBit)
	}
	return l
}

// First returns the smallest entry of at least size bytes for which fits is true, the lowest of
// equals, or NoEntry. It calls fits for every smaller entry that is large enough, and at most once
// for a child of each of these; each costs amortized O(log entries of the size), as Remove does.
func (m *SizeMap) First(size device.Size, fits func(handle uint32) bool) SizeAt {
	for root := m.Ceil(size); root != NoEntry; root = m.after(root) {
		if at := m.lowest(root, fits); at != NoEntry {
			return at
		}
	}
	return NoEntry
}

// after returns the root of the next larger group, or NoEntry.
func (m *SizeMap) after(root SizeAt) SizeAt {
	size := m.nodes[root].size
	if size == ^device.Size(0) {
		return NoEntry
	}
	return m.Ceil(size + 1)
}

// lowest returns the lowest entry of a group that fits, or NoEntry. Children of an entry that does
// not fit are melded below the next one and stay there: otherwise every search would visit
// thousands of them again.
func (m *SizeMap) lowest(root SizeAt, fits func(handle uint32) bool) SizeAt {
	at := root
	for !fits(m.nodes[at].handle) {
		e := &m.nodes[at]
		if e.child == NoEntry {
			return NoEntry
		}
		heir := m.gather(e.child)
		m.nodes[heir].next, m.nodes[heir].prev = NoEntry, at
		e.child, at = heir, heir
	}
	return at
}

// Largest returns the size of the largest entry, 0 if the map is empty.
func (m *SizeMap) Largest() device.Size {
	for i := uint32(sumWords); i > 0; i-- {
		if m.sums[i-1] == 0 {
			continue
		}
		w := i<<wordBits - 1 - uint32(bits.LeadingZeros64(m.sums[i-1]))
		at := m.cells[w<<wordBits|uint32(bits.Len64(m.words[w])-1)]
		for at&dirBit != 0 {
			d := &m.dirs[at&^dirBit]
			at = d.cells[31-bits.LeadingZeros32(d.used)]
		}
		for m.nodes[at].next != NoEntry {
			at = m.nodes[at].next
		}
		return m.nodes[at].size
	}
	return 0
}

// All yields every entry, smallest first, the lowest of equals first. It allocates room for the
// largest group and takes O(n log n).
func (m *SizeMap) All(yield func(SizeEntry) bool) {
	m.From(0)(yield)
}

// From is All starting at the first entry of at least size bytes.
func (m *SizeMap) From(size device.Size) func(yield func(SizeEntry) bool) {
	return func(yield func(SizeEntry) bool) {
		var group []SizeAt
		for root := m.Ceil(size); root != NoEntry; root = m.after(root) {
			group = m.members(root, group[:0])
			for _, at := range group {
				if !yield(m.Entry(at)) {
					return
				}
			}
		}
	}
}

// AppendTo appends every entry to all, in no order. It takes O(most entries ever).
func (m *SizeMap) AppendTo(all []SizeEntry) []SizeEntry {
	for at := 1; at < len(m.nodes); at++ {
		if e := m.Entry(SizeAt(at)); e.Handle != spareHandle {
			all = append(all, e)
		}
	}
	return all
}

// members appends the entries of a group by address.
func (m *SizeMap) members(root SizeAt, group []SizeAt) []SizeAt {
	group = append(group, root)
	for i := 0; i < len(group); i++ {
		for c := m.nodes[group[i]].child; c != NoEntry; c = m.nodes[c].next {
			group = append(group, c)
		}
	}
	slices.SortFunc(group, func(a, b SizeAt) int { return cmp.Compare(m.nodes[a].addr, m.nodes[b].addr) })
	return group
}
