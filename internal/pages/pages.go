package pages

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/addrlist"
)

const (
	leafLog  = 8
	leafMask = 1<<leafLog - 1
	// leastRoot and mostRoot bound the words of the root. A word spans 256 pages: with pages of
	// 16 KiB the latter come to 16 GiB, and to more with more leaves, by perLeaf.
	leastRoot = 16
	mostRoot  = 4096
	perLeaf   = 16

	leafBytes   = 4 << leafLog
	rootBytes   = 8
	spareBytes  = 4
	numberBytes = 8 // of a leaf's number in a list, with padding
)

// leaf is the labels of pages in a row.
type leaf [1 << leafLog]uint32

// none is the leaf where nothing is. It is never written.
var none leaf

// Map is labels by address. Use [New]. It is not safe for concurrent use.
type Map struct {
	root   []*leaf // from the leaf of page base on; &none where there is none
	base   uint64  // a page that begins a leaf
	shift  uint8   // log2 of a page
	leaves []*leaf // by number
	spare  []uint32
	order  addrlist.List[uint32] // numbers of the leaves with a label, by their first address
}

// New returns a map without labels, for pages of 2^log bytes.
//
// Precondition: log <= 56, so that a leaf is no longer than the space of addresses.
func New(log uint8) Map { return Map{shift: log} }

// Page returns the bytes of a page.
func (m *Map) Page() device.Size { return 1 << m.shift }

// Bytes returns the host memory of the map, unused capacity included. O(leaves / 32).
func (m *Map) Bytes() device.Size {
	n := device.Size(cap(m.root)+cap(m.leaves))*rootBytes + device.Size(len(m.leaves))*leafBytes
	return n + device.Size(cap(m.spare))*spareBytes + m.order.Bytes(numberBytes)
}

// Get returns the label of the page that a lies in, 0 if it has none. O(1), or O(log leaves)
// where the leaf is too far from others for the root.
func (m *Map) Get(a device.Addr) uint32 {
	p := uint64(a)>>(m.shift&63) - m.base
	if i := p >> leafLog; i < uint64(len(m.root)) {
		return m.root[i][p&leafMask]
	}
	return m.far(a)
}

// far is Get outside the root, kept apart so that Get stays short.
//
//go:noinline
func (m *Map) far(a device.Addr) uint32 {
	p := uint64(a) >> (m.shift & 63)
	return m.leafAt(p)[p&leafMask]
}

// leafAt returns the leaf of a page, &none if there is none.
func (m *Map) leafAt(p uint64) *leaf {
	if i := (p - m.base) >> leafLog; i < uint64(len(m.root)) {
		return m.root[i]
	}
	if at, ok := m.order.Search(m.firstOf(p)); ok {
		return m.leaves[m.order.Entry(at).Value]
	}
	return &none
}

// firstOf returns the first address of the leaf of a page.
func (m *Map) firstOf(p uint64) device.Addr { return device.Addr(p &^ leafMask << m.shift) }

// Range yields every page that has a label, by its first address, and the label. The map must
// not be changed meanwhile. O(256 * leaves).
func (m *Map) Range(yield func(device.Addr, uint32) bool) {
	for e := range m.order.All {
		for i, label := range m.leaves[e.Value] {
			if label != 0 && !yield(e.Addr.Add(device.Size(i)<<m.shift), label) {
				return
			}
		}
	}
}

// Set gives the pages whose first byte is among the n bytes from a on a label, or with 0 none.
// It costs a step for each page, and for each leaf that gets its first label or loses its last
// one O(log leaves), or O(leaves + root) when the root moves. It allocates only where there are
// more leaves than ever, or farther apart.
//
// Precondition: n is not zero, and the range ends within the space of addresses.
func (m *Map) Set(a device.Addr, n device.Size, label uint32) {
	first, end := uint64(a)>>m.shift, (uint64(a)+uint64(n)-1)>>m.shift+1
	if uint64(a)&(1<<m.shift-1) != 0 {
		first++
	}
	for first < end {
		next := min(end, first|leafMask+1)
		m.fill(first, next, label)
		first = next
	}
}

// fill gives pages of one leaf a label, from the first up to the end.
func (m *Map) fill(first, end uint64, label uint32) {
	l := m.leafAt(first)
	if l == &none {
		if label == 0 {
			return
		}
		l = m.enter(first)
	}
	for p := first; p < end; p++ {
		l[p&leafMask] = label
	}
	if label == 0 && *l == none {
		m.retire(first)
	}
}

// enter makes a leaf for a page that has none.
func (m *Map) enter(p uint64) *leaf {
	number := uint32(len(m.leaves))
	if n := len(m.spare); n > 0 {
		number, m.spare = m.spare[n-1], m.spare[:n-1]
	} else {
		m.leaves = append(m.leaves, new(leaf))
	}
	first := m.firstOf(p)
	at, _ := m.order.Search(first)
	m.order.Insert(at, addrlist.Entry[uint32]{Addr: first, Value: number})
	if i := (p - m.base) >> leafLog; i < uint64(len(m.root)) {
		m.root[i] = m.leaves[number]
	} else {
		m.move(p)
	}
	return m.leaves[number]
}

// retire makes the leaf of a page, which has no label any more, one to be used again.
func (m *Map) retire(p uint64) {
	at, _ := m.order.Search(m.firstOf(p))
	m.spare = append(m.spare, m.order.Entry(at).Value)
	m.order.Delete(at)
	if i := (p - m.base) >> leafLog; i < uint64(len(m.root)) {
		m.root[i] = &none
	}
}

// move makes the root span all leaves, if they do not lie too far apart, with room to spare on
// the side where page p is, for which it had no word.
func (m *Map) move(p uint64) {
	lowest := uint64(m.order.Entry(m.order.Nth(0)).Addr) >> m.shift
	above, _ := m.order.Below(m.order.End())
	highest := uint64(above.Addr) >> m.shift
	span := (highest-lowest)>>leafLog + 1
	if span > max(mostRoot, perLeaf*uint64(m.order.Len())) {
		return
	}
	words := max(leastRoot, span+span/2, uint64(cap(m.root)))
	if uint64(cap(m.root)) < words {
		m.root = make([]*leaf, words)
	}
	m.root = m.root[:words]
	for i := range m.root {
		m.root[i] = &none
	}
	m.base = lowest
	if p&^leafMask == lowest && p&^leafMask != highest { // it grows downwards
		m.base = highest + 1<<leafLog - min(highest+1<<leafLog, words<<leafLog)
	}
	for e := range m.order.All {
		m.root[(uint64(e.Addr)>>m.shift-m.base)>>leafLog] = m.leaves[e.Value]
	}
}
