package index

// [SizeMap] is the index of a best fit: it finds the smallest free chunk that is large enough, the
// lowest of equals. It has the order of a search tree with keys (size, address) at the cost of
// lists by size class.
//
// # Data structure
//
// Three layers, each resolving the ties of the one above:
//
// Classes. The class of a size in units is its leading one and the eight bits after it, as in a
// floating-point number, so classes ascend with sizes. Up to 512 units a class is a single size.
// One bit per class shows whether it has chunks, and one bit per word of these shows whether the
// word is zero. A search reads the bits of 64 classes starting at its own class, across word
// boundaries, so no branch depends on them.
//
// Groups. The chunks of one size are a group. The groups of a class are a list in the order of
// their sizes. A fifth group turns the list into a directory of sixteen lists by the next four bits
// of the size, and so on below. A directory is undone only when it is empty, so a population at the
// limit costs nothing.
//
// Heaps. A group is a pairing heap by address. The root is the lowest member and counts the
// members. A new chunk is compared with the root only. A chunk that leaves is replaced by the
// lowest chunk below it, which is found by melding those in pairs.
//
// Nodes have 32 bytes and name each other by index. The caller keeps the index of a chunk and
// removes the chunk without a search. Unused nodes and directories are recycled, so nothing is
// allocated in steady state.
//
// # Why not a tree
//
// For each block a strategy inserts and removes four chunks and searches once. In a B+ tree each of
// these is a descent that ends in moving half a leaf, about 55 ns. But most inserted chunks are
// remainders that are never granted again, and thousands share few sizes: among 100,000 blocks of
// the workload w1, 30,000 free chunks have 1,700 sizes. So addresses are ordered only where a
// search needs the lowest.
//
// # Cost
//
// Insert, Ceil and Near (for each group passed) cost O(1), and at most 14 steps where directories
// are. Remove too, unless other chunks lie below the chunk: O(log n) amortized for n chunks of the
// size (Fredman and others; Pettie). First looks at all chunks that it passes; All and From sort
// each group.
//
// A chunk takes 32 bytes, the table of classes 1 KiB for each doubling between the smallest and the
// largest size so far, a directory 72 bytes.
//
// # Invariants
//
// Invariant M1: the chunks of a group have one size; children in a heap have higher addresses;
// links are symmetric; the root holds the count.
// Invariant M2: a group is in the cell of its size; a cell has at most four groups, ordered by
// size.
// Invariant M3: a bit of a class, a word or a directory is set if and only if its part is not
// empty.
// Invariant M4: a directory in use is not empty; it distinguishes the four bits below the ones that
// lead to it.
// Invariant M5: every node is an entry or spare; Len counts the entries.
//
// # Source
//
// Classes: Masmano and others, TLSF, 2004. Pairing heaps: Fredman, Sedgewick, Sleator and Tarjan,
// 1986. Directories by digits: Fredkin, Trie Memory, 1960. Their combination is ours.

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// SizeAt identifies an entry from its Insert to its Remove.
type SizeAt = uint32

// NoEntry identifies no entry.
const NoEntry SizeAt = 0

// SizeEntry is one free chunk.
type SizeEntry struct {
	Size   device.Size // bytes
	Addr   device.Addr // first byte
	Handle uint32      // handle of the chunk, at most MostHandle
}

// MostHandle is the largest handle.
const MostHandle = 1<<32 - 2

const (
	fineBits  = 8 // a doubling of the size has 2^fineBits classes
	wordBits  = 6 // log2 of the bits in a word
	classMask = 1<<wordBits - 1
	mostWords = (65 - fineBits) << fineBits >> wordBits // words for the classes of all sizes
	sumWords  = (mostWords + classMask) >> wordBits
)

// node is one entry. It takes 32 bytes, so that none straddles two cache lines.
type sizeNode struct {
	size   device.Size
	addr   device.Addr
	handle uint32 // spareHandle if unused
	child  SizeAt // first child
	next   SizeAt // next sibling; of a root, the next root; of an unused node, the next unused one
	prev   uint32 // previous sibling, or the parent of the first child; of a root, rootBit and the number of members
}

const (
	spareHandle = MostHandle + 1
	rootBit     = 1 << 31
)

// SizeMap holds free chunks by size and address. Use [NewSizeMap]. It is not safe for concurrent
// use.
type SizeMap struct {
	nodes []sizeNode       // nodes[0] is the sentinel NoEntry
	cells []uint32         // by class less base: root of the smallest group, or dirBit and a directory
	words []uint64         // one bit per nonempty cell; one word more than the cells fill
	sums  [sumWords]uint64 // one bit per nonzero word
	dirs  []dir

	base     uint32 // class of the first cell, a multiple of the word size; smaller classes were never used
	spare    SizeAt // list of unused nodes
	spareDir uint32 // list of unused directories, index plus one; 0 ends it
	unit     uint8  // log2 of the unit of sizes
	n        int
}

// NewSizeMap returns an empty map for sizes that are multiples of unit, a power of two. Other sizes
// work, but share classes and cost more.
func NewSizeMap(unit device.Size) SizeMap {
	return SizeMap{unit: uint8(bits.TrailingZeros64(uint64(unit)))}
}

// Len returns the number of entries.
func (m *SizeMap) Len() int { return m.n }

// Bytes returns the host memory of the tables, unused capacity included.
func (m *SizeMap) Bytes() device.Size {
	return BytesOf(m.nodes) + BytesOf(m.dirs) + BytesOf(m.cells) + BytesOf(m.words)
}

// Entry returns an entry.
//
// Precondition: at is in the map.
func (m *SizeMap) Entry(at SizeAt) SizeEntry {
	e := &m.nodes[at]
	return SizeEntry{e.size, e.addr, e.handle}
}

// classOf returns the class of a size in units: the size itself up to fineBits+1 bits, above that
// the leading one and the fineBits bits after it. Classes ascend with sizes.
func (m *SizeMap) classOf(size device.Size) uint32 {
	u := uint64(size) >> (m.unit & 63)
	k := uint32(bits.Len64(u|1<<fineBits)) - fineBits - 1
	return k<<fineBits + uint32(u>>(k&63))
}

// widthOf returns log2 of the bytes that the sizes of a class span.
func (m *SizeMap) widthOf(class uint32) uint32 {
	return max(class>>fineBits, 1) - 1 + uint32(m.unit)
}

// cellOf returns the cell of the group of a size.
//
// Precondition: the class of the size has a cell.
func (m *SizeMap) cellOf(size device.Size) *uint32 {
	cell := &m.cells[m.classOf(size)-m.base]
	for *cell&dirBit != 0 {
		d := &m.dirs[*cell&^dirBit]
		cell = &d.cells[d.digit(size)]
	}
	return cell
}

// find returns the link, starting at a cell, to the first root of at least a size. The size of the
// sentinel is the largest.
func (m *SizeMap) find(cell *uint32, size device.Size) *uint32 {
	for m.nodes[*cell].size < size {
		cell = &m.nodes[*cell].next
	}
	return cell
}

// Insert adds an entry. It allocates only beyond the largest number of entries or the range of
// sizes so far. O(1), and O(64 - fineBits) in a class of many sizes.
//
// Precondition: no other entry has the same address.
func (m *SizeMap) Insert(size device.Size, addr device.Addr, handle uint32) SizeAt {
	class := m.classOf(size)
	if int(class-m.base) >= len(m.cells) {
		m.extend(class)
	}
	if m.spare == NoEntry {
		m.grow()
	}
	at := m.spare
	e := &m.nodes[at]
	m.spare = e.next
	m.n++
	// Assign field by field: a composite literal would be copied in wider words, which wait for the
	// narrower stores.
	e.size, e.addr, e.handle, e.child = size, addr, handle, NoEntry
	class -= m.base
	cell := &m.cells[class]
	if *cell&dirBit != 0 {
		m.insertBelow(*cell, at)
		return at
	}
	link := m.find(cell, size)
	root := *link
	if m.nodes[root].size == size && root != NoEntry {
		m.join(link, at)
		return at
	}
	e.next, e.prev = root, rootBit|1
	*link = at
	w := class >> wordBits
	m.words[w] |= 1 << (class & classMask)
	m.sums[w>>wordBits%sumWords] |= 1 << (w & classMask)
	if (root != NoEntry || link != cell) && m.isLong(*cell) {
		*cell = m.divide(*cell, m.widthOf(m.base+class))
	}
	return at
}

// Remove removes an entry and reports whether it exists with that handle. If not, nothing changes.
// O(1), and amortized O(log entries of the size) if entries of the same size have higher addresses.
func (m *SizeMap) Remove(at SizeAt, handle uint32) bool {
	if int(at) >= len(m.nodes) || m.nodes[at].handle != handle {
		return false
	}
	m.Take(at)
	return true
}

// Take removes an entry and returns its handle, at the cost of Remove.
//
// Precondition: at is in the map.
func (m *SizeMap) Take(at SizeAt) (handle uint32) {
	e := &m.nodes[at]
	class := m.classOf(e.size) - m.base
	cell := &m.cells[class]
	if *cell&dirBit != 0 {
		cell = m.cellOf(e.size)
	}
	link := m.find(cell, e.size)
	switch {
	case e.prev&rootBit == 0:
		m.nodes[*link].prev--
		m.cut(at)
	case *link != at:
		panic("sizemap: invariant M2 (a group is in the cell of its size): the group of the chunk at " + e.addr.String() +
			" does not")
	case e.child != NoEntry:
		heir := m.gather(e.child)
		h := &m.nodes[heir]
		h.next, h.prev = e.next, e.prev-1
		*link = heir
	default:
		*link = e.next
		if *cell == NoEntry && m.cells[class]&dirBit != 0 && m.vacateBelow(m.cells[class], e.size) {
			m.cells[class] = NoEntry
		}
		m.unmark(class)
	}
	handle = e.handle
	e.handle, e.next, m.spare = spareHandle, m.spare, at
	m.n--
	return handle
}

// unmark clears the bit of a class, given less base, if its cell is empty, and the bit of its word
// if that is zero now. Branch-free: whether a cell or a word is empty is unpredictable.
func (m *SizeMap) unmark(class uint32) {
	w := class >> wordBits
	word := m.words[w] &^ ((uint64(m.cells[class]) - 1) >> 63 << (class & classMask))
	m.words[w] = word
	m.sums[w>>wordBits%sumWords] &^= ((word|-word)>>63 ^ 1) << (w & classMask)
}

// grow adds unused nodes: a sixteenth of the present number.
func (m *SizeMap) grow() {
	n := len(m.nodes)
	if n == cap(m.nodes) {
		nodes := make([]sizeNode, n, n+max(n/16, 16))
		copy(nodes, m.nodes)
		m.nodes = nodes
	}
	if n == 0 {
		m.nodes = append(m.nodes, sizeNode{handle: spareHandle, size: ^device.Size(0)})
		n++
	}
	m.nodes = append(m.nodes, sizeNode{handle: spareHandle})
	m.spare = SizeAt(n)
}

// extend adds cells so that a class has one.
func (m *SizeMap) extend(class uint32) {
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
			m.sums[w>>wordBits] |= 1 << (w & classMask)
		}
	}
}
