package index

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// invariants are the invariants of the file comment in short, by number.
var invariants = [...]string{
	1: "a group is a heap by address",
	2: "a group is in the cell of its size",
	3: "bits mark the nonempty cells",
	4: "directories are not empty",
	5: "every node is an entry or spare",
}

func broken(number int, format string, args ...any) error {
	return fmt.Errorf("sizemap: invariant M%d (%s): %s", number, invariants[number], fmt.Sprintf(format, args...))
}

// Check verifies the invariants of the package comment and returns an error that names the
// broken one. O(n).
func (m *SizeMap) Check() error {
	c := checker{m: m}
	if len(m.words) > 0 && m.words[len(m.words)-1] != 0 {
		return broken(3, "classes that have no cell: %b", m.words[len(m.words)-1])
	}
	for first := 0; first < len(m.cells); first += 1 << wordBits {
		if err := c.word(uint32(first)); err != nil {
			return err
		}
	}
	return c.spares()
}

// checker holds the counts of a check.
type checker struct {
	m       *SizeMap
	entries int
	dirs    int
	queue   []SizeAt // scratch of group
}

// word checks the cells of one word of bits, given its first class less base.
func (c *checker) word(first uint32) error {
	m, w := c.m, first>>wordBits
	members, cells := m.words[w], m.cells[first:min(int(first)+1<<wordBits, len(m.cells))]
	if (m.sums[w>>wordBits]>>(w&classMask)&1 != 0) != (members != 0) {
		return broken(3, "word %d is %b, its bit in the level above differs", w, members)
	}
	if members == 0 && empty(cells) {
		return nil // most words are zero
	}
	for i := range cells {
		class := first + uint32(i)
		if got, want := members>>i&1 != 0, cells[i] != NoEntry; got != want {
			return broken(3, "class %d: %v, its bit says %v", class, want, got)
		}
		if cells[i] == NoEntry {
			continue
		}
		if err := c.cell(&cells[i], m.widthOf(m.base+class)); err != nil {
			return err
		}
	}
	return nil
}

// empty reports whether all cells are empty. Branch-free: a check after every call spends most of
// its time here.
func empty(cells []uint32) bool {
	var all uint32
	for _, c := range cells {
		all |= c
	}
	return all == NoEntry
}

func (c *checker) cell(cell *uint32, width uint32) error {
	if *cell&dirBit != 0 {
		return c.dir(*cell&^dirBit, width)
	}
	roots, last := 0, device.Size(0)
	for at := *cell; at != NoEntry; at = c.m.nodes[at].next {
		if int(at) >= len(c.m.nodes) {
			return broken(5, "there is no node %d", at)
		}
		size := c.m.nodes[at].size
		if roots++; roots > mostRoots || !c.m.hasCell(size) || c.m.cellOf(size) != cell || roots > 1 && size <= last {
			return broken(2, "size %d is number %d in its cell, behind %d", uint64(size), roots, uint64(last))
		}
		last = size
		if err := c.group(at); err != nil {
			return err
		}
	}
	return nil
}

func (m *SizeMap) hasCell(size device.Size) bool { return int(m.classOf(size)-m.base) < len(m.cells) }

func (c *checker) dir(i, width uint32) error {
	if c.dirs++; int(i) >= len(c.m.dirs) || c.dirs > len(c.m.dirs) {
		return broken(4, "directory %d of %d", i, len(c.m.dirs))
	}
	d := &c.m.dirs[i]
	if d.used == 0 || d.shift != max(width, digitBits)-digitBits {
		return broken(4, "directory %d for %d bits has shift %d, bits %b", i, width, d.shift, d.used)
	}
	for k := range d.cells {
		if got, want := d.used>>k&1 != 0, d.cells[k] != NoEntry; got != want {
			return broken(3, "directory %d: %v, bit %d says %v", i, want, k, got)
		}
		if err := c.cell(&d.cells[k], d.shift); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) group(root SizeAt) error {
	m := c.m
	c.queue = append(c.queue[:0], root)
	for i := 0; i < len(c.queue); i++ {
		before := c.queue[i]
		up := &m.nodes[before]
		if up.handle == spareHandle {
			return broken(5, "node %d is spare and in a group", before)
		}
		for at := up.child; at != NoEntry; at = m.nodes[at].next {
			e := &m.nodes[at]
			if len(c.queue) > len(m.nodes) || e.prev != before || e.size != up.size || e.addr <= up.addr {
				return broken(1, "node %d of %d bytes at %v lies behind %d, below %d bytes at %v",
					at, uint64(e.size), e.addr, e.prev, uint64(up.size), up.addr)
			}
			before = at
			c.queue = append(c.queue, at)
		}
	}
	n := len(c.queue)
	if got := m.nodes[root].prev; got != rootBit|uint32(n) {
		return broken(1, "%d entries of %d bytes, the root says %x", n, uint64(m.nodes[root].size), got)
	}
	c.entries += n
	return nil
}

func (c *checker) spares() error {
	m, nodes, dirs := c.m, 0, 0
	for at := m.spare; at != NoEntry && nodes <= len(m.nodes); at = m.nodes[at].next {
		if m.nodes[at].handle != spareHandle {
			return broken(5, "node %d is in use and spare", at)
		}
		nodes++
	}
	for i := m.spareDir; i != 0 && dirs <= len(m.dirs); i = m.dirs[i-1].cells[0] {
		dirs++
	}
	switch {
	case c.entries != m.n || max(len(m.nodes), 1) != 1+m.n+nodes:
		return broken(5, "%d entries, the length says %d, and %d spare nodes of %d", c.entries, m.n, nodes, len(m.nodes))
	case c.dirs+dirs != len(m.dirs):
		return broken(4, "%d directories in use, %d spare, of %d", c.dirs, dirs, len(m.dirs))
	}
	return nil
}
