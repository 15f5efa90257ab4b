package index

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

const (
	digitBits = 4
	dirCells  = 1 << digitBits
	dirBit    = 1 << 31 // of a cell: the other bits are the index of a directory, not of a node
	mostRoots = 4       // a cell with more roots becomes a directory
)

// dir is a directory: it distributes sizes that agree in all bits above a digit.
type dir struct {
	cells [dirCells]uint32 // by digit; cells[0] also links directories not in use
	used  uint32           // one bit per nonempty cell
	shift uint32           // position of the digit in a size
}

func (d *dir) digit(size device.Size) uint32 { return uint32(size>>(d.shift&63)) % dirCells }

// isLong reports whether a list has more roots than a cell may have.
func (m *SizeMap) isLong(root SizeAt) bool {
	n := 0
	for ; root != NoEntry; root = m.nodes[root].next {
		n++
	}
	return n > mostRoots
}

// insertBelow inserts a node into a class that has a directory.
func (m *SizeMap) insertBelow(cell uint32, at SizeAt) {
	e := &m.nodes[at]
	i := cell &^ dirBit
	d := &m.dirs[i]
	k := d.digit(e.size)
	for d.cells[k]&dirBit != 0 {
		i = d.cells[k] &^ dirBit
		d = &m.dirs[i]
		k = d.digit(e.size)
	}
	d.used |= 1 << k
	link := m.find(&d.cells[k], e.size)
	root := *link
	if m.nodes[root].size == e.size && root != NoEntry {
		m.join(link, at)
		return
	}
	e.next, e.prev = root, rootBit|1
	*link = at
	if m.isLong(d.cells[k]) {
		c := m.divide(d.cells[k], d.shift)
		m.dirs[i].cells[k] = c // directories may have been reallocated
	}
}

// divide moves roots, whose sizes agree in all bits above width, into a new directory, and
// recursively if too many share a digit. It returns the cell for the directory.
func (m *SizeMap) divide(root SizeAt, width uint32) uint32 {
	i := m.newDir(max(width, digitBits) - digitBits)
	d := &m.dirs[i]
	var ends [dirCells]SizeAt
	for root != NoEntry {
		e := &m.nodes[root]
		k := d.digit(e.size)
		if ends[k] == NoEntry {
			d.cells[k] = root
		} else {
			m.nodes[ends[k]].next = root
		}
		d.used |= 1 << k
		ends[k] = root
		root, e.next = e.next, NoEntry
	}
	for k, c := range d.cells {
		if m.isLong(c) {
			c = m.divide(c, m.dirs[i].shift)
			m.dirs[i].cells[k] = c // directories may have been reallocated
		}
	}
	return dirBit | i
}

func (m *SizeMap) newDir(shift uint32) uint32 {
	if m.spareDir == 0 {
		n := len(m.dirs)
		if n == cap(m.dirs) {
			dirs := make([]dir, n, n+max(n/8, 4))
			copy(dirs, m.dirs)
			m.dirs = dirs
		}
		m.dirs = m.dirs[:n+1]
		m.dirs[n].cells[0], m.spareDir = 0, uint32(n+1)
	}
	i := m.spareDir - 1
	m.spareDir = m.dirs[i].cells[0]
	m.dirs[i] = dir{shift: shift}
	return i
}

// vacateBelow records that the cell of a size is empty in its directory. It reports whether the
// directory became empty and was removed. A directory with one size stays, because more sizes are
// likely to come back.
func (m *SizeMap) vacateBelow(cell uint32, size device.Size) bool {
	d := &m.dirs[cell&^dirBit]
	i := d.digit(size)
	if c := d.cells[i]; c&dirBit != 0 && !m.vacateBelow(c, size) {
		return false
	}
	d.cells[i] = NoEntry
	if d.used &^= 1 << i; d.used != 0 {
		return false
	}
	d.cells[0], m.spareDir = m.spareDir, cell&^dirBit+1
	return true
}

// ceilBelow returns the root of the smallest group of at least a size below a cell, or NoEntry. A
// size of 0 selects the smallest group.
//
// Precondition: the sizes below agree with the size in all bits above, or it is 0.
func (m *SizeMap) ceilBelow(cell uint32, size device.Size) SizeAt {
	if cell&dirBit == 0 {
		return *m.find(&cell, size)
	}
	d := &m.dirs[cell&^dirBit]
	from := d.digit(size)
	for used := d.used >> from << from; used != 0; used &= used - 1 {
		i := uint32(bits.TrailingZeros32(used)) % dirCells
		if i > from {
			size = 0
		}
		if at := m.ceilBelow(d.cells[i], size); at != NoEntry {
			return at
		}
	}
	return NoEntry
}
