// Package ledger is a table of live blocks, kept by address.
//
// It answers the one question that stands before every free: does a live block start
// here, and what was it? The answer costs one probe of an open-addressing index and one
// read of a 32-byte record, and gives the caller back a word of its own, so that a
// strategy finds the tree node or the slab chunk of a block without a search over its
// regions. In steady state nothing is allocated; the table grows with the most blocks
// that ever lived at once and never shrinks.
package ledger

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/addrmap"
)

// recordBytes is the host memory of one Block.
const recordBytes = 32

// Block is what is remembered of a live block.
type Block struct {
	Requested device.Size   // bytes asked for
	Stream    device.Stream // stream of the request
	Tag       uint64        // label of the request
	Place     uint64        // where the block is, in the terms of the strategy that keeps the table
}

// Table is a set of live blocks. The zero Table is empty and ready.
type Table struct {
	index  addrmap.Map
	blocks []Block // records by handle; unused ones are linked through Place
	unused uint64  // one more than the handle of the first unused record; 0 for none
}

// Len returns the number of live blocks.
func (t *Table) Len() int { return t.index.Len() }

// Bytes returns the host memory of the table, unused capacity included.
func (t *Table) Bytes() device.Size {
	return t.index.Bytes() + device.Size(cap(t.blocks))*recordBytes
}

// Add enters the block that starts at a. O(1) expected; it allocates only when more
// blocks live than ever before.
//
// Precondition: no block in the table starts at a.
func (t *Table) Add(a device.Addr, b Block) {
	if t.unused == 0 {
		t.index.Put(a, uint32(len(t.blocks)))
		t.blocks = append(t.blocks, b)
		return
	}
	h := t.unused - 1
	t.unused = t.blocks[h].Place
	t.blocks[h] = b
	t.index.Put(a, uint32(h))
}

// Get returns the block that starts at a, and whether there is one. O(1) expected.
func (t *Table) Get(a device.Addr) (Block, bool) {
	h, ok := t.index.Get(a)
	if !ok {
		return Block{}, false
	}
	return t.blocks[h], true
}

// Take removes the block that starts at a and returns it, and whether there was one.
// O(1) expected.
func (t *Table) Take(a device.Addr) (Block, bool) {
	h, ok := t.index.Delete(a)
	if !ok {
		return Block{}, false
	}
	b := t.blocks[h]
	t.blocks[h] = Block{Place: t.unused}
	t.unused = uint64(h) + 1
	return b, true
}

// Range yields every live block and its start, in no useful order: it is for checks that
// look at all of them, never for choosing one. The table must not be changed meanwhile.
func (t *Table) Range(yield func(device.Addr, Block) bool) {
	for a, h := range t.index.Range {
		if !yield(a, t.blocks[h]) {
			return
		}
	}
}
