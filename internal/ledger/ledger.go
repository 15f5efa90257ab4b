// Package ledger is a table of live blocks, kept by address.
//
// It answers the one question that stands before every free: does a live block start
// here, and what was it? The answer gives the caller back a word of its own, so that a
// strategy finds the tree node or the slab chunk of a block without a search over its
// regions.
//
// # Data structure
//
// An open-addressing hash table with linear probing and the records in its cells, 40
// bytes each. Package addrmap would give a handle to records kept elsewhere; the second
// cache miss of that, which cannot start before the first has come back, made a free and
// an alloc of the buddy 15 % slower with 100000 live blocks (386 against 328 ns, best of
// four runs each). As there, the hash is multiplicative
// (Knuth, volume 3, section 6.4), deletion moves later cells back and leaves no
// tombstones, and the table doubles at three quarters full and never shrinks: in steady
// state nothing is allocated.
package ledger

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/planted"
)

const (
	minLog    = 6                  // smallest table: 64 cells
	golden    = 0x9E3779B97F4A7C15 // 2^64 / golden ratio, odd
	cellBytes = 40
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
	start device.Addr
	block Block
}

// Table is a set of live blocks. The zero Table is empty and ready.
type Table struct {
	cells []cell
	shift uint8 // 64 - log2(len(cells))
	n     int
}

// Len returns the number of live blocks.
func (t *Table) Len() int { return t.n }

// Bytes returns the host memory of the table, unused capacity included.
func (t *Table) Bytes() device.Size { return device.Size(cap(t.cells)) * cellBytes }

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
	t.cells[t.find(a)] = cell{a, b}
	t.n++
}

// Get returns the block that starts at a, and whether there is one. O(1) expected.
func (t *Table) Get(a device.Addr) (Block, bool) {
	if t.n == 0 || a == 0 {
		return Block{}, false
	}
	c := &t.cells[t.find(a)]
	return c.block, c.start == a
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
	b := t.cells[i].block
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
		t.cells[i&mask] = cell{}
		return
	}
	for j := (i + 1) & mask; t.cells[j&mask].start != 0; j = (j + 1) & mask {
		// The cell may move to i unless its home lies cyclically in (i, j].
		if (j-t.home(t.cells[j&mask].start))&mask >= (j-i)&mask {
			t.cells[i&mask] = t.cells[j&mask]
			i = j
		}
	}
	t.cells[i&mask] = cell{}
}

// Range yields every live block and its start, in no useful order: it is for checks that
// look at all of them, never for choosing one. The table must not be changed meanwhile.
func (t *Table) Range(yield func(device.Addr, Block) bool) {
	for i := range t.cells {
		if c := &t.cells[i]; c.start != 0 && !yield(c.start, c.block) {
			return
		}
	}
}

// grow doubles the table.
func (t *Table) grow() {
	old := t.cells
	log := max(minLog, bits.Len(uint(len(old))))
	t.cells, t.shift = make([]cell, 1<<log), uint8(64-log)
	for _, c := range old {
		if c.start != 0 {
			t.cells[t.find(c.start)] = c
		}
	}
}
