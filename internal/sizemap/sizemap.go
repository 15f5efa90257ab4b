package sizemap

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/planted"
)

// At names an entry of a map from its Insert to its Remove.
type At = uint32

// None is the name of no entry.
const None At = 0

// Entry is one free chunk.
type Entry struct {
	Size   device.Size // bytes
	Addr   device.Addr // first byte
	Handle uint32      // the caller's name of the chunk, at most MostHandle
}

// MostHandle is the largest handle.
const MostHandle = 1<<32 - 2

const (
	fineBits  = 8 // a doubling of the size has 2^fineBits classes
	pageBits  = 6 // log2 of the classes in a page
	pageCells = 1 << pageBits
	mostPages = (65 - fineBits) << fineBits >> pageBits // what all sizes take
	sumWords  = (mostPages + 63) / 64
)

// node is one entry. It takes 32 bytes, so that none straddles two cache lines.
type node struct {
	size   device.Size
	addr   device.Addr
	handle uint32 // spareHandle if the node is not in use
	child  At     // first of those below it
	next   At     // next of those below the same entry; of a root, the next root; of a node not in use, the next such
	prev   uint32 // the one before it, or the one above the first; of a root, rootBit and the members of the group
}

const (
	nodeBytes   = 32
	spareHandle = MostHandle + 1
	rootBit     = 1 << 31
)

// page is the cells of some classes in a row.
type page struct {
	used  uint64            // a bit for each cell that has any
	cells [pageCells]uint32 // by class: the root of its smallest group, or dirBit and a directory
}

const pageBytes = 8 + 4*pageCells

// Map holds free chunks by size and address. Use [New]. It is not safe for concurrent use.
type Map struct {
	nodes []node // nodes[0] is no entry: whoever has no neighbour has it for one
	pages []page
	sums  [sumWords]uint64 // a bit for each page that has any
	dirs  []dir

	spare    At     // list of nodes not in use
	spareDir uint32 // list of directories not in use, one more than the index; 0 ends it
	unit     uint8  // log2 of what sizes are multiples of
	n        int
	queue    []At // scratch of First
}

// New returns an empty map for sizes that are multiples of unit, a power of two. Other sizes
// are in order too, but share classes and cost more.
func New(unit device.Size) Map {
	return Map{unit: uint8(bits.TrailingZeros64(uint64(unit)))}
}

// Len returns the number of entries.
func (m *Map) Len() int { return m.n }

// Bytes returns the host memory of the map beyond the Map itself, unused room included.
func (m *Map) Bytes() device.Size {
	return device.Size(cap(m.nodes))*nodeBytes + device.Size(cap(m.pages))*pageBytes +
		device.Size(cap(m.dirs))*dirBytes + 4*device.Size(cap(m.queue))
}

// Entry returns what was inserted under a name.
//
// Precondition: at is in the map.
func (m *Map) Entry(at At) Entry {
	e := &m.nodes[at]
	return Entry{e.size, e.addr, e.handle}
}

// classOf returns the class of a size: itself, in units, as far as that has at most fineBits+1
// bits; above, its leading one and the fineBits bits behind it. Classes ascend with sizes.
func (m *Map) classOf(size device.Size) uint32 {
	u := uint64(size) >> (m.unit & 63)
	k := uint32(bits.Len64(u|1<<fineBits)) - fineBits - 1
	return k<<fineBits + uint32(u>>(k&63))
}

// widthOf returns log2 of the bytes that the sizes of a class span.
func (m *Map) widthOf(class uint32) uint32 {
	return max(class>>fineBits, 1) - 1 + uint32(m.unit)
}

// cellOf returns the cell that the group of a size belongs to.
//
// Precondition: the class of the size has a page.
func (m *Map) cellOf(size device.Size) *uint32 {
	class := m.classOf(size)
	cell := &m.pages[class>>pageBits].cells[class%pageCells]
	for *cell&dirBit != 0 {
		d := &m.dirs[*cell&^dirBit]
		cell = &d.cells[d.digit(size)]
	}
	return cell
}

// find returns the link, from a cell on, to the first root of at least a size.
func (m *Map) find(cell *uint32, size device.Size) *uint32 {
	for *cell != None && m.nodes[*cell].size < size {
		cell = &m.nodes[*cell].next
	}
	return cell
}

// Insert adds an entry and returns its name. It allocates only if there were never as many
// entries. O(1), and O(64 - fineBits) in a class of many sizes.
//
// Precondition: no other entry has the same address.
func (m *Map) Insert(size device.Size, addr device.Addr, handle uint32) At {
	class := m.classOf(size)
	if int(class>>pageBits) >= len(m.pages) {
		m.extend(class)
	}
	if m.spare == None {
		m.grow()
	}
	if planted.Enabled && planted.Is("sizemap/class-below") {
		class &^= 1
	}
	at := m.spare
	e := &m.nodes[at]
	m.spare = e.next
	m.n++
	// One by one, because a composite literal is built elsewhere and copied by twice as many
	// bytes at a time, which waits for the stores.
	e.size, e.addr, e.handle, e.child = size, addr, handle, None
	p := &m.pages[class>>pageBits]
	cell := &p.cells[class%pageCells]
	if *cell&dirBit != 0 {
		m.insertBelow(*cell, at)
		return at
	}
	link := m.find(cell, size)
	root := *link
	e.next, e.prev = root, rootBit|1
	if root == None {
		*link = at
		p.used |= 1 << (class % pageCells)
		m.sums[class>>(2*pageBits)%sumWords] |= 1 << (class >> pageBits % 64)
		if link == cell {
			return at
		}
	} else if m.nodes[root].size == size {
		m.join(link, at)
		return at
	} else {
		*link = at
	}
	if m.isLong(*cell) {
		*cell = m.divide(*cell, m.widthOf(class))
	}
	return at
}

// Remove takes the entry of a name out and reports whether it is there under that handle. If
// not, nothing changes. O(1), and amortized O(log entries of the size) if entries of the same
// size lie above it.
func (m *Map) Remove(at At, handle uint32) bool {
	if int(at) >= len(m.nodes) || m.nodes[at].handle != handle {
		return false
	}
	if planted.Enabled && planted.Is("sizemap/stale-entry") {
		return true
	}
	e := &m.nodes[at]
	class := m.classOf(e.size)
	p := &m.pages[class>>pageBits]
	cell := &p.cells[class%pageCells]
	deep := *cell&dirBit != 0
	if deep {
		cell = m.cellOf(e.size)
	}
	link := m.find(cell, e.size)
	switch root := *link; {
	case root != at:
		m.nodes[root].prev--
		m.cut(at)
	case e.child != None:
		heir := m.gather(e.child)
		h := &m.nodes[heir]
		h.next, h.prev = e.next, e.prev-1
		*link = heir
	default:
		*link = e.next
		if *cell == None {
			if deep {
				m.vacate(class, e.size)
			} else {
				m.unmark(class)
			}
		}
	}
	e.handle, e.next, m.spare = spareHandle, m.spare, at
	m.n--
	if planted.Enabled && planted.Is("sizemap/length-drift") {
		m.n++
	}
	return true
}

// unmark notes that a class is empty.
func (m *Map) unmark(class uint32) {
	if planted.Enabled && planted.Is("sizemap/bit-left") {
		return
	}
	p := &m.pages[class>>pageBits]
	if p.used &^= 1 << (class % pageCells); p.used == 0 {
		m.sums[class>>(2*pageBits)%sumWords] &^= 1 << (class >> pageBits % 64)
	}
}

// grow adds unused nodes, an eighth of those there are.
func (m *Map) grow() {
	n := len(m.nodes)
	if n == cap(m.nodes) {
		nodes := make([]node, n, n+max(n/8, 16))
		copy(nodes, m.nodes)
		m.nodes = nodes
	}
	if n == 0 {
		m.nodes = append(m.nodes, node{handle: spareHandle})
		n++
	}
	m.nodes = append(m.nodes, node{handle: spareHandle})
	m.spare = At(n)
}

// extend makes room for the classes up to the page of one.
func (m *Map) extend(class uint32) {
	pages := make([]page, class>>pageBits+1)
	copy(pages, m.pages)
	m.pages = pages
}
