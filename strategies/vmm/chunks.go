package vmm

import "github.com/vramyard/vramyard/device"

// handle names a chunk: its row in the table. None is no chunk.
type handle = uint32

const none handle = 0

// state is the state of a chunk.
type state uint8

const (
	free     state = iota // memory that may be granted
	live                  // memory that is granted
	unmapped              // whole pages of addresses without memory
	stuck                 // whole pages with memory that could neither be opened nor taken away
	spare                 // no chunk: the row waits to be used again
)

// chunk is one row of the table.
type chunk struct {
	addr       device.Addr
	size       device.Size
	requested  device.Size // of a live one
	tag        uint64      // likewise
	stream     device.Stream
	prev, next handle // the neighbours in the range
	at         uint32 // where the index has a free one
	state      state
}

func (c *chunk) end() device.Addr { return c.addr.Add(c.size) }

// table is the chunks of all ranges, each of which they tile. The first chunk of a range
// keeps its handle.
type table struct {
	rows   []chunk // rows[none] is no chunk
	spares handle  // a list of rows that are not used
	unused int     // its length
}

func (t *table) len() int { return len(t.rows) - 1 - t.unused }

// is reports whether a chunk is in a state. None is in no state that is asked for.
func (t *table) is(h handle, s state) bool { return h != none && t.rows[h].state == s }

// add returns a new chunk. It allocates only if there are more than ever.
func (t *table) add(c chunk) handle {
	h := t.spares
	if h == none {
		t.rows = append(t.rows, c)
		return handle(len(t.rows) - 1)
	}
	t.spares = t.rows[h].next
	t.unused--
	t.rows[h] = c
	return h
}

// drop makes a row spare.
func (t *table) drop(h handle) {
	t.rows[h] = chunk{state: spare, next: t.spares}
	t.spares = h
	t.unused++
}

// split cuts a chunk behind its first n bytes and returns the second part, of the same state.
//
// Precondition: 0 < n < size; the chunk is in no index.
func (t *table) split(h handle, n device.Size) handle {
	c := t.rows[h]
	tail := t.add(chunk{addr: c.addr.Add(n), size: c.size - n, prev: h, next: c.next, state: c.state})
	if c.next != none {
		t.rows[c.next].prev = tail
	}
	t.rows[h].size, t.rows[h].next = n, tail
	return tail
}

// absorb makes a chunk and the next one a single chunk.
func (t *table) absorb(h handle) {
	gone := t.rows[h].next
	c := &t.rows[h]
	c.size += t.rows[gone].size
	c.next = t.rows[gone].next
	if c.next != none {
		t.rows[c.next].prev = h
	}
	t.drop(gone)
}

// carve cuts a chunk so that the pages from low to high are a chunk of their own, and returns that.
//
// Precondition: the pages are in the chunk, which is in no index.
func (t *table) carve(h handle, low, high device.Addr) handle {
	if n := low.Sub(t.rows[h].addr); n > 0 {
		h = t.split(h, n)
	}
	if n := high.Sub(low); n < t.rows[h].size {
		t.split(h, n)
	}
	return h
}

// unite makes a chunk that is not free one with the neighbours of its state, and returns it.
func (t *table) unite(h handle) handle {
	s := t.rows[h].state
	if t.is(t.rows[h].next, s) {
		t.absorb(h)
	}
	// The left one survives, so that the first chunk of a range keeps its handle.
	if p := t.rows[h].prev; t.is(p, s) {
		t.absorb(p)
		h = p
	}
	return h
}
