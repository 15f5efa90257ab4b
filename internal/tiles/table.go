package tiles

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/planted"
)

// Handle names a chunk: its row in the table.
type Handle = uint32

// None is the handle of no chunk. There is a row of that number all the same: it is never
// free, and what is written to it is never read. So whoever looks at a neighbour, or mends
// its links, need not ask first whether there is one, which is a toss-up for the branch
// predictor.
const None Handle = 0

// The states of a row, as they stand above the link in it.
const (
	free    uint32 = 0 // a chunk that may be granted
	live    uint32 = 1 // a chunk that is granted, or the row of None
	retired uint32 = 2 // no chunk: the handle waits to be used again
)

// stateShift is where the state stands in Row.link. It leaves 30 bits to a handle: a table of
// so many rows would take 32 GiB, so none grows that far.
const stateShift = 30

// Row is one chunk. It takes 32 bytes, so that none straddles two cache lines; what most
// chunks lack lies in columns beside the table.
type Row struct {
	Addr device.Addr // first byte
	Size device.Size // bytes
	Prev Handle      // chunk before it in its region; None at the start
	Next Handle      // chunk behind it in its region; None at the end. Of a retired row the one retired before

	// link is the state and, of a free chunk, the next one in the list that it stands in.
	link uint32
	// back of a free chunk is the one before it in its list; of a live chunk it is the slack,
	// size less requested, or wideSlack.
	back uint32
}

// End returns the address just above the chunk.
func (r *Row) End() device.Addr { return r.Addr.Add(r.Size) }

// IsFree reports whether the row is a chunk that may be granted.
func (r *Row) IsFree() bool { return r.link>>stateShift == free }

// After returns the next chunk in the list of a free chunk.
//
// Precondition: the chunk is free, so that the state does not show.
func (r *Row) After() Handle { return r.link }

// SetAfter makes h the next chunk in the list of a free chunk.
//
// Precondition: the chunk is free. The row of None must not be written to.
func (r *Row) SetAfter(h Handle) { r.link = h }

// Before returns the chunk before a free chunk in its list.
func (r *Row) Before() Handle { return r.back }

// SetBefore makes h the chunk before a free chunk, or before None, in its list.
func (r *Row) SetBefore(h Handle) { r.back = h }

// wideSlack says that the slack does not fit and a column has the requested size.
const wideSlack = ^uint32(0)

// Label is what a caller attaches to a block.
type Label struct {
	Tag    uint64        // Request.Tag
	Stream device.Stream // Request.Stream
}

// rowBytes is what a row takes; a test compares it with the type.
const rowBytes = 32

// Table holds the chunks of all regions. Use [NewTable].
type Table struct {
	// Rows by handle. They move when the table grows, which Split and Add may cause.
	Rows []Row

	spare  Handle // row retired last
	spares int    // retired rows

	labels Column[Label]
	wide   Column[device.Size] // requested bytes of live chunks whose slack does not fit a word
}

// NewTable returns an empty table.
func NewTable() Table { return Table{Rows: []Row{{link: live << stateShift}}} }

// Len returns the number of chunks.
func (t *Table) Len() int { return len(t.Rows) - 1 - t.spares }

// Bytes returns the host memory of the table and its own columns, unused capacity included.
func (t *Table) Bytes() device.Size {
	return device.Size(cap(t.Rows))*rowBytes + t.labels.Bytes() + t.wide.Bytes()
}

// IsFree reports whether there is a free chunk of that handle.
func (t *Table) IsFree(h Handle) bool { return t.Rows[h].IsFree() }

// IsTail reports whether a chunk is the last of its region.
func (t *Table) IsTail(h Handle) bool { return t.Rows[h].Next == None }

// Fills reports whether a chunk is its whole region.
func (t *Table) Fills(h Handle) bool {
	r := &t.Rows[h]
	return r.Prev == None && r.Next == None
}

// AddrOf returns the start of a chunk.
func (t *Table) AddrOf(h Handle) device.Addr { return t.Rows[h].Addr }

// Add returns a new free chunk that has no neighbours and stands in no list. It allocates
// only when no retired handle is left.
func (t *Table) Add(at device.Addr, size device.Size) Handle {
	h := t.take()
	t.Rows[h] = Row{Addr: at, Size: size}
	return h
}

// take returns an unused row, the one retired last if there is one: it is the one most
// likely to be in the cache.
func (t *Table) take() Handle {
	h := t.spare
	if h == None {
		return t.extend()
	}
	t.spare = t.Rows[h].Next
	t.spares--
	return h
}

// extend returns a row behind the last. The table grows by an eighth, because its size is
// what a block costs in host memory; a row is then copied eight times on average.
func (t *Table) extend() Handle {
	n := len(t.Rows)
	if n == cap(t.Rows) {
		rows := make([]Row, n, n+max(n/8, 64))
		copy(rows, t.Rows)
		t.Rows = rows
	}
	t.Rows = t.Rows[:n+1]
	return Handle(n)
}

// Retire takes a chunk out of the table. Its handle will be used again.
func (t *Table) Retire(h Handle) {
	if planted.Enabled && planted.Is("tiles/handle-lost") {
		return
	}
	r := &t.Rows[h]
	r.Next, r.link = t.spare, retired<<stateShift
	t.spare = h
	t.spares++
}

// Split cuts a free chunk behind its first n bytes and returns the new free chunk behind
// the cut. Neither stands in a list.
//
// Precondition: 0 < n < size.
func (t *Table) Split(h Handle, n device.Size) Handle {
	tail := t.take()
	r, s := &t.Rows[h], &t.Rows[tail]
	next := r.Next
	*s = Row{Addr: r.Addr.Add(n), Size: r.Size - n, Prev: h, Next: next}
	t.Rows[next].Prev = tail
	if planted.Enabled && planted.Is("tiles/split-drops-prev") {
		t.Rows[next].Prev = h
	}
	if planted.Enabled && planted.Is("tiles/split-loses-bytes") && s.Size > 256 {
		s.Size -= 256
	}
	r.Size, r.Next = n, tail
	return tail
}

// Merge adds the chunk behind a free chunk to it and retires its handle. The left one
// survives, so that the first chunk of a region keeps its handle for ever.
//
// Precondition: right is free and follows left; neither stands in a list.
func (t *Table) Merge(left, right Handle) {
	l, r := &t.Rows[left], &t.Rows[right]
	l.Size += r.Size
	l.Next = r.Next
	t.Rows[r.Next].Prev = left
	t.Retire(right)
}

// SetLive makes a free chunk that stands in no list a live one that was requested with a
// size and a label.
//
// Precondition: requested is at most the size.
func (t *Table) SetLive(h Handle, requested device.Size, l Label) {
	r := &t.Rows[h]
	r.link = live << stateShift
	if slack := r.Size - requested; slack < device.Size(wideSlack) {
		r.back = uint32(slack)
	} else {
		r.back = wideSlack
		t.wide.Set(h, requested, len(t.Rows))
	}
	if l != (Label{}) || t.labels.cells != nil {
		t.labels.Set(h, l, len(t.Rows))
	}
}

// SetFree makes a live chunk a free one that stands in no list.
func (t *Table) SetFree(h Handle) { t.Rows[h].link, t.Rows[h].back = free<<stateShift, None }

// Requested returns the bytes asked for by a live chunk.
func (t *Table) Requested(h Handle) device.Size {
	r := &t.Rows[h]
	if r.back == wideSlack {
		return t.wide.Get(h)
	}
	return r.Size - device.Size(r.back)
}

// LabelOf returns what the caller attached to a live chunk.
func (t *Table) LabelOf(h Handle) Label { return t.labels.Get(h) }
