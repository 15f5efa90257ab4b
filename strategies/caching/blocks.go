package caching

import "github.com/vramyard/vramyard/device"

// handle names a block: its row in the table. None is no block.
type handle = uint32

const none handle = 0

// States of a block, in the low bits of its home.
const (
	free     uint32 = iota // memory that may be granted, in the index of its shelf; zero: a home with only a shelf is free
	live                   // memory that is granted
	pending                // freed, but a stream may still use it
	unmapped               // whole pages of addresses without memory
	stuck                  // whole pages with memory that could be neither made accessible nor unmapped
	spare                  // an unused row

	stateMask = 7
	usedBit   = 8  // other streams use the block
	growsBit  = 16 // the segment of the block is expandable
	shelfBit  = 5  // the shelf is in the bits from here up
)

// block is one row of the table.
type block struct {
	addr       device.Addr
	size       device.Size
	asked      device.Size // requested bytes of the present or last request
	prev, next handle      // the neighbours in the segment
	link       uint32      // free: its entry in the index; live: the next one of its bucket; spare: the next spare row
	home       uint32      // shelf, whether its segment is expandable and other streams use it, and state
}

func (b *block) end() device.Addr { return b.addr.Add(b.size) }

func (b *block) state() uint32 { return b.home & stateMask }

func (b *block) become(state uint32) { b.home = b.home&^stateMask | state }

// grows reports whether the segment of the block is expandable.
func (b *block) grows() bool { return b.home&growsBit != 0 }

// isSplit reports whether the block shares its segment.
func (b *block) isSplit() bool { return b.prev|b.next != none }

// table holds the blocks of all segments. The blocks of a segment tile it, and the first one keeps
// its handle. Row 0 stands for no block; is reports false for it.
type table struct {
	rows   []block
	spares handle // first of the list of unused rows
	unused int    // number of unused rows
}

func newTable() table { return table{rows: []block{{home: spare}}} }

func (t *table) len() int { return len(t.rows) - 1 - t.unused }

func (t *table) is(h handle, state uint32) bool { return t.rows[h].home&stateMask == state }

// take returns an unused row. It allocates only beyond the highest number of blocks so far. The
// table grows by an eighth, because it is most of the host memory of a block.
func (t *table) take() handle {
	h := t.spares
	if h != none {
		t.spares = t.rows[h].link
		t.unused--
		return h
	}
	n := len(t.rows)
	if n == cap(t.rows) {
		rows := make([]block, n, n+max(n/8, 64))
		copy(rows, t.rows)
		t.rows = rows
	}
	t.rows = t.rows[:n+1]
	return handle(n)
}

func (t *table) drop(h handle) {
	b := &t.rows[h]
	b.home, b.link = spare, t.spares
	t.spares = h
	t.unused++
}

// split splits a block after n bytes and returns the second part, which has the same state, shelf
// and uses.
//
// Precondition: 0 < n < size; the block is in no index.
func (t *table) split(h handle, n device.Size) handle {
	rest := t.take()
	b, r := &t.rows[h], &t.rows[rest]
	// Assign field by field: a composite literal would be copied in wider words, which wait for the
	// narrower stores.
	r.addr, r.size, r.asked = b.addr.Add(n), b.size-n, b.asked
	r.prev, r.next, r.link, r.home = h, b.next, none, b.home
	t.rows[b.next].prev = rest
	b.size, b.next = n, rest
	return rest
}

// absorb merges the next block into a block.
func (t *table) absorb(h handle) {
	b := &t.rows[h]
	gone := b.next
	g := &t.rows[gone]
	b.size += g.size
	b.next = g.next
	t.rows[g.next].prev = h
	t.drop(gone)
}
