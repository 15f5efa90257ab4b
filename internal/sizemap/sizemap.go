package sizemap

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
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
	wordBits  = 6 // log2 of the bits in a word
	wordMask  = 1<<wordBits - 1
	mostWords = (65 - fineBits) << fineBits >> wordBits // what the classes of all sizes take
	sumWords  = (mostWords + wordMask) >> wordBits
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

// Map holds free chunks by size and address. Use [New]. It is not safe for concurrent use.
type Map struct {
	nodes []node           // nodes[0] is no entry: whoever has no neighbour has it for one
	cells []uint32         // by class less base: the root of its smallest group, or dirBit and a directory
	words []uint64         // a bit for each cell that has any; one word more than cells fill
	sums  [sumWords]uint64 // a bit for each word that is not zero
	dirs  []dir

	base     uint32 // class of the first cell, of which no smaller one is or was in use; the first of a word
	spare    At     // list of nodes not in use
	spareDir uint32 // list of directories not in use, one more than the index; 0 ends it
	unit     uint8  // log2 of what sizes are multiples of
	n        int
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
	return device.Size(cap(m.nodes))*nodeBytes + device.Size(cap(m.dirs))*dirBytes +
		4*device.Size(cap(m.cells)) + 8*device.Size(cap(m.words))
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
// Precondition: the class of the size has a cell.
func (m *Map) cellOf(size device.Size) *uint32 {
	cell := &m.cells[m.classOf(size)-m.base]
	for *cell&dirBit != 0 {
		d := &m.dirs[*cell&^dirBit]
		cell = &d.cells[d.digit(size)]
	}
	return cell
}

// find returns the link, from a cell on, to the first root of at least a size. The node of None
// has the largest.
func (m *Map) find(cell *uint32, size device.Size) *uint32 {
	for m.nodes[*cell].size < size {
		cell = &m.nodes[*cell].next
	}
	return cell
}

// Insert adds an entry and returns its name. It allocates only if there were never as many
// entries, or none so small or so large. O(1), and O(64 - fineBits) in a class of many sizes.
//
// Precondition: no other entry has the same address.
func (m *Map) Insert(size device.Size, addr device.Addr, handle uint32) At {
	class := m.classOf(size)
	if int(class-m.base) >= len(m.cells) {
		m.extend(class)
	}
	if m.spare == None {
		m.grow()
	}
	at := m.spare
	e := &m.nodes[at]
	m.spare = e.next
	m.n++
	// One by one, because a composite literal is built elsewhere and copied by twice as many
	// bytes at a time, which waits for the stores.
	e.size, e.addr, e.handle, e.child = size, addr, handle, None
	class -= m.base
	cell := &m.cells[class]
	if *cell&dirBit != 0 {
		m.insertBelow(*cell, at)
		return at
	}
	link := m.find(cell, size)
	root := *link
	if m.nodes[root].size == size && root != None {
		m.join(link, at)
		return at
	}
	e.next, e.prev = root, rootBit|1
	*link = at
	w := class >> wordBits
	m.words[w] |= 1 << (class & wordMask)
	m.sums[w>>wordBits%sumWords] |= 1 << (w & wordMask)
	if (root != None || link != cell) && m.isLong(*cell) {
		*cell = m.divide(*cell, m.widthOf(m.base+class))
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
	m.Take(at)
	return true
}

// Take takes the entry of a name out and returns its handle. It costs what Remove does.
//
// Precondition: at is in the map.
func (m *Map) Take(at At) (handle uint32) {
	e := &m.nodes[at]
	cell := &m.cells[m.classOf(e.size)-m.base]
	if *cell&dirBit != 0 {
		cell = m.cellOf(e.size)
	}
	link := m.find(cell, e.size)
	switch {
	case e.prev&rootBit == 0:
		m.nodes[*link].prev--
		m.cut(at)
	case *link != at:
		panic("sizemap: invariant M2 (a group stands where its size belongs): that of the chunk at " + e.addr.String() + " does not")
	case e.child != None:
		heir := m.gather(e.child)
		h := &m.nodes[heir]
		h.next, h.prev = e.next, e.prev-1
		*link = heir
	default:
		*link = e.next
		if *cell == None {
			m.vacate(e.size)
		}
	}
	handle = e.handle
	e.handle, e.next, m.spare = spareHandle, m.spare, at
	m.n--
	return handle
}

// vacate notes that the cell of a size is empty.
func (m *Map) vacate(size device.Size) {
	class := m.classOf(size) - m.base
	if c := m.cells[class]; c&dirBit != 0 {
		if !m.vacateBelow(c, size) {
			return
		}
		m.cells[class] = None
	}
	w := class >> wordBits
	if m.words[w] &^= 1 << (class & wordMask); m.words[w] == 0 {
		m.sums[w>>wordBits%sumWords] &^= 1 << (w & wordMask)
	}
}

// grow adds unused nodes, a sixteenth of those there are.
func (m *Map) grow() {
	n := len(m.nodes)
	if n == cap(m.nodes) {
		nodes := make([]node, n, n+max(n/16, 16))
		copy(nodes, m.nodes)
		m.nodes = nodes
	}
	if n == 0 {
		m.nodes = append(m.nodes, node{handle: spareHandle, size: ^device.Size(0)})
		n++
	}
	m.nodes = append(m.nodes, node{handle: spareHandle})
	m.spare = At(n)
}

// extend makes room for a class below the first cell or beyond the last.
func (m *Map) extend(class uint32) {
	word := class >> wordBits
	first, end := word, word+1
	if n := len(m.cells); n > 0 {
		first = min(first, m.base>>wordBits)
		end = max(end, (m.base+uint32(n))>>wordBits)
	}
	cells, words := make([]uint32, (end-first)<<wordBits), make([]uint64, end-first+1)
	if len(m.cells) > 0 {
		copy(cells[m.base-first<<wordBits:], m.cells)
		copy(words[m.base>>wordBits-first:], m.words)
	}
	m.base, m.cells, m.words = first<<wordBits, cells, words
	m.sums = [sumWords]uint64{}
	for w, used := range words {
		if used != 0 {
			m.sums[w>>wordBits] |= 1 << (w & wordMask)
		}
	}
}
