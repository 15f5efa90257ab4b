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
	stuck                 // whole pages with memory that could be neither made accessible nor unmapped
	spare                 // an unused row
)

// chunk is one row of the table.
type chunk struct {
	addr       device.Addr
	size       device.Size
	requested  device.Size // of a live chunk
	tag        uint64      // of a live chunk
	stream     device.Stream
	prev, next handle // adjacent chunks in the range
	at         uint32 // entry of a free chunk in the index
	state      state
}

func (c *chunk) end() device.Addr { return c.addr.Add(c.size) }

// table holds the chunks of all ranges. The chunks of a range tile it, and the first one keeps its
// handle.
type table struct {
	rows   []chunk // rows[none] is no chunk
	spares handle  // first of the list of unused rows
	unused int     // number of unused rows
}

func (t *table) len() int { return len(t.rows) - 1 - t.unused }

// is reports whether a chunk is in a state. It is false for none.
func (t *table) is(h handle, s state) bool { return h != none && t.rows[h].state == s }

// add returns a new chunk. It allocates host memory only if there is no unused row.
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

// drop gives up the row of a chunk.
func (t *table) drop(h handle) {
	t.rows[h] = chunk{state: spare, next: t.spares}
	t.spares = h
	t.unused++
}

// split cuts a chunk after its first n bytes and returns the second part, of the same state.
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

// absorb merges the next chunk into a chunk.
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

// carve splits the pages from low to high off a chunk and returns them as a chunk.
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

// unite merges a chunk that is not free with the adjacent chunks of its state, and returns the
// result.
func (t *table) unite(h handle) handle {
	s := t.rows[h].state
	if t.is(t.rows[h].next, s) {
		t.absorb(h)
	}
	// The left chunk survives, so the first chunk of a range keeps its handle.
	if p := t.rows[h].prev; t.is(p, s) {
		t.absorb(p)
		h = p
	}
	return h
}
