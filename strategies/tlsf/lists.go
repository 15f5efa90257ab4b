package tlsf

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/planted"
	"github.com/vramyard/vramyard/internal/tiles"
)

// lists are the lists of free chunks by class, and the two levels of bitmaps that tell which
// are not empty. The links lie in the rows of the chunks.
type lists struct {
	scale
	core  *tiles.Core
	order order

	first  uint64         // bit f: some list of first level f is not empty
	second [64]uint64     // [f], bit s: the list of class f<<second|s is not empty
	heads  []tiles.Handle // first of each list; as long as the highest class needed it
	lasts  []tiles.Handle // last of each list, of order fifo only
}

// order is how a list is ordered.
type order uint8

const (
	lifo    order = iota // the chunk freed last comes first
	fifo                 // the chunk freed first comes first
	address              // the lowest comes first
)

// extend makes room for the lists of a class and those below.
func (l *lists) extend(class uint32) {
	for n := (class>>l.scale.second + 1) << l.scale.second; uint32(len(l.heads)) < n; {
		l.heads = append(l.heads, tiles.None)
		if l.order == fifo {
			l.lasts = append(l.lasts, tiles.None)
		}
	}
}

// insert enters a free chunk. O(1), but for order address O(chunks of the class below it).
func (l *lists) insert(h tiles.Handle) {
	rows := l.core.Rows
	r := &rows[h]
	class := l.class(r.Size)
	if class >= uint32(len(l.heads)) {
		l.extend(class)
	}
	if l.order != lifo {
		l.insertInOrder(h, class)
		return
	}
	// The bits are set without asking whether they are, and the link back is written even if
	// that is to the row of None: whether the list was empty is a toss-up.
	l.mark(class)
	after := l.heads[class]
	l.heads[class] = h
	r.SetAfter(after)
	r.SetBefore(tiles.None)
	rows[after].SetBefore(h)
}

// mark notes that the list of a class is not empty.
func (l *lists) mark(class uint32) {
	if planted.Enabled && planted.Is("tlsf/bit-not-set") {
		return
	}
	f, s := l.levels(class)
	l.first |= 1 << f
	l.second[f] |= 1 << s
}

// insertInOrder is insert for lists that are not stacks.
func (l *lists) insertInOrder(h tiles.Handle, class uint32) {
	rows := l.core.Rows
	before, after := l.place(class, rows[h].Addr)
	l.mark(class)
	rows[h].SetAfter(after)
	rows[h].SetBefore(before)
	rows[after].SetBefore(h)
	if before == tiles.None {
		l.heads[class] = h
	} else {
		rows[before].SetAfter(h)
	}
	if l.order == fifo {
		l.lasts[class] = h
	}
}

// place returns the neighbours of a new chunk in a list.
func (l *lists) place(class uint32, at device.Addr) (before, after tiles.Handle) {
	if l.order == fifo {
		return l.lasts[class], tiles.None
	}
	before, after = tiles.None, l.heads[class]
	for after != tiles.None && l.core.Rows[after].Addr < at {
		before, after = after, l.core.Rows[after].After()
	}
	if planted.Enabled && planted.Is("tlsf/unordered") {
		return tiles.None, l.heads[class]
	}
	return before, after
}

// levels returns the first and second level of a class.
func (l *lists) levels(class uint32) (first, second uint32) {
	k := l.scale.second & 31
	return class >> k & 63, class & (1<<k - 1) & 63
}

// remove takes out a free chunk that is in its list. O(1).
func (l *lists) remove(h tiles.Handle) {
	rows := l.core.Rows
	r := &rows[h]
	before, after := r.Before(), r.After()
	if !planted.Enabled || !planted.Is("tlsf/unlinked-one-way") {
		rows[after].SetBefore(before)
	}
	if l.order == fifo && after == tiles.None {
		l.lasts[l.class(r.Size)] = before
	}
	if before != tiles.None {
		rows[before].SetAfter(after)
		return
	}
	class := l.class(r.Size)
	if l.heads[class] != h {
		panic("tlsf: invariant L1 (the lists hold the free chunks): the chunk at " + r.Addr.String() + " heads no list")
	}
	l.heads[class] = after
	if after == tiles.None {
		if planted.Enabled && planted.Is("tlsf/bit-left") {
			return
		}
		f, s := l.levels(class)
		if l.second[f] &^= 1 << s; l.second[f] == 0 {
			l.first &^= 1 << f
		}
	}
}

// lowest returns the first class from a given one whose list is not empty. O(1).
func (l *lists) lowest(class uint32) (uint32, bool) {
	f, s := l.levels(class)
	m := l.second[f] >> s << s
	if m == 0 {
		above := l.first >> f >> 1 << f << 1
		if above == 0 {
			return 0, false
		}
		f = uint32(bits.TrailingZeros64(above)) & 63
		m = l.second[f]
	}
	return f<<(l.scale.second&31) | uint32(bits.TrailingZeros64(m)), true
}

// head returns the first chunk of a class, tiles.None if there is none.
func (l *lists) head(class uint32) tiles.Handle {
	if class >= uint32(len(l.heads)) {
		return tiles.None
	}
	return l.heads[class]
}

// bytes returns the host memory of the heads; the bitmaps are part of the allocator.
func (l *lists) bytes() device.Size { return device.Size(cap(l.heads)+cap(l.lasts)) * 4 }
