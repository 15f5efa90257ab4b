// Package ledger is a table of live blocks, kept by address.
//
// It answers the one question that stands before every free: does a live block start
// here, and what was it? The answer gives the caller back a word of its own, so that a
// strategy finds the tree node or the slab chunk of a block without a search over its
// regions.
//
// # Data structure
//
// An open-addressing hash table with linear probing and the records in its cells, 24
// bytes each. Package addrmap would give a handle to records kept elsewhere; the second
// cache miss of that, which cannot start before the first has come back, made a free and
// an alloc of the buddy 15 % slower with 100000 live blocks (386 against 328 ns, best of
// four runs each). As there, the hash is multiplicative
// (Knuth, volume 3, section 6.4), deletion moves later cells back and leaves no
// tombstones, and the table doubles at three quarters full and never shrinks: in steady
// state nothing is allocated.
//
// Streams and tags lie in a column beside the cells, 16 bytes for each, that exists from the
// first block that has one on: most callers have none.
package ledger

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/planted"
)

const (
	minLog     = 6                  // smallest table: 64 cells
	golden     = 0x9E3779B97F4A7C15 // 2^64 / golden ratio, odd
	cellBytes  = 24
	labelBytes = 16
)

// Block is what is remembered of a live block.
type Block struct {
	Requested device.Size   // bytes asked for
	Stream    device.Stream // stream of the request
	Tag       uint64        // label of the request
	Place     uint64        // where the block is, in the terms of the strategy that keeps the table
}

// cell holds one block. No block starts at address zero, so that a zero start means empty.
type cell struct {
	start     device.Addr
	requested device.Size
	place     uint64
}

// label is what a caller attaches to a block.
type label struct {
	tag    uint64
	stream device.Stream
}

// Table is a set of live blocks. The zero Table is empty and ready.
type Table struct {
	cells  []cell
	labels []label // of each cell, zero where it is empty; nil until one is not zero
	shift  uint8   // 64 - log2(len(cells))
	n      int
}

// Len returns the number of live blocks.
func (t *Table) Len() int { return t.n }

// Bytes returns the host memory of the table, unused capacity included.
func (t *Table) Bytes() device.Size {
	return device.Size(cap(t.cells))*cellBytes + device.Size(cap(t.labels))*labelBytes
}

// home returns the cell in which the search for a begins.
func (t *Table) home(a device.Addr) uint64 { return uint64(a) * golden >> (t.shift & 63) }

// find returns the cell of a, or the empty cell in which its search ends.
//
// Precondition: the table has cells.
func (t *Table) find(a device.Addr) uint64 {
	mask := uint64(len(t.cells) - 1)
	i := t.home(a)
	for t.cells[i&mask].start != a && t.cells[i&mask].start != 0 {
		i++
	}
	return i & mask
}

// Add enters the block that starts at a. O(1) expected; it allocates only when more
// blocks live than ever before.
//
// Precondition: a is not zero and no block in the table starts there.
func (t *Table) Add(a device.Addr, b Block) {
	if 4*(t.n+1) > 3*len(t.cells) {
		t.grow()
	}
	i := t.find(a)
	t.cells[i] = cell{a, b.Requested, b.Place}
	if t.labels != nil || b.Tag != 0 || b.Stream != 0 {
		t.label(i, label{b.Tag, b.Stream})
	}
	t.n++
}

// label attaches a label to a cell.
func (t *Table) label(i uint64, l label) {
	if t.labels == nil {
		t.labels = make([]label, len(t.cells))
	}
	t.labels[i] = l
}

// block returns the block of a cell.
func (t *Table) block(i uint64) Block {
	c := &t.cells[i]
	b := Block{Requested: c.requested, Place: c.place}
	if t.labels != nil {
		b.Tag, b.Stream = t.labels[i].tag, t.labels[i].stream
	}
	return b
}

// Get returns the block that starts at a, and whether there is one. O(1) expected.
func (t *Table) Get(a device.Addr) (Block, bool) {
	if t.n == 0 || a == 0 {
		return Block{}, false
	}
	i := t.find(a)
	if t.cells[i].start != a {
		return Block{}, false
	}
	return t.block(i), true
}

// Take removes the block that starts at a and returns it, and whether there was one.
// O(1) expected.
func (t *Table) Take(a device.Addr) (Block, bool) {
	if t.n == 0 || a == 0 {
		return Block{}, false
	}
	i := t.find(a)
	if t.cells[i].start != a {
		return Block{}, false
	}
	b := t.block(i)
	if planted.Enabled && planted.Is("ledger/stale-entry") {
		t.n--
		return b, true
	}
	t.closeGap(i)
	t.n--
	if planted.Enabled && planted.Is("ledger/count-drift") {
		t.n++
	}
	return b, true
}

// closeGap empties cell i and moves back every later cell of the run that the gap would
// cut off from its home.
func (t *Table) closeGap(i uint64) {
	mask := uint64(len(t.cells) - 1)
	if planted.Enabled && planted.Is("ledger/gap-left-open") {
		t.empty(i & mask)
		return
	}
	for j := (i + 1) & mask; t.cells[j&mask].start != 0; j = (j + 1) & mask {
		// The cell may move to i unless its home lies cyclically in (i, j].
		if (j-t.home(t.cells[j&mask].start))&mask >= (j-i)&mask {
			t.move(j&mask, i&mask)
			i = j
		}
	}
	t.empty(i & mask)
}

// move copies a cell and its label.
func (t *Table) move(from, to uint64) {
	t.cells[to] = t.cells[from]
	if t.labels != nil {
		t.labels[to] = t.labels[from]
	}
}

// empty makes a cell one of no block.
func (t *Table) empty(i uint64) {
	t.cells[i] = cell{}
	if t.labels != nil {
		t.labels[i] = label{}
	}
}

// Range yields every live block and its start, in no useful order: it is for checks that
// look at all of them, never for choosing one. The table must not be changed meanwhile.
func (t *Table) Range(yield func(device.Addr, Block) bool) {
	for i := range t.cells {
		if c := &t.cells[i]; c.start != 0 && !yield(c.start, t.block(uint64(i))) {
			return
		}
	}
}

// grow doubles the table.
func (t *Table) grow() {
	old, labels := t.cells, t.labels
	log := max(minLog, bits.Len(uint(len(old))))
	t.cells, t.shift = make([]cell, 1<<log), uint8(64-log)
	if labels != nil {
		t.labels = make([]label, 1<<log)
	}
	for i, c := range old {
		if c.start == 0 {
			continue
		}
		j := t.find(c.start)
		t.cells[j] = c
		if labels != nil {
			t.labels[j] = labels[i]
		}
	}
}
