package tiles

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Handle names a chunk: its row in the table.
type Handle = uint32

// None is the zero handle. Row 0 exists as a sentinel: it is never free and has no size. Links can
// thus be updated and neighbors merged without a branch for a missing neighbor, which would be
// unpredictable.
const None Handle = 0

// Row is one chunk.
type Row struct {
	Addr device.Addr // first byte
	Size device.Size // bytes
	Prev Handle      // chunk before it in its region; None at the start
	Next Handle      // chunk after it in its region; None at the end. Retired: the row retired before it
	link
}

// End returns the address just above the chunk.
func (r *Row) End() device.Addr { return r.Addr.Add(r.Size) }

// wideSlack marks a slack that does not fit; a column has the requested size.
const wideSlack = ^uint32(0)

// Label is the caller's label of a block.
type Label struct {
	Tag    uint64        // Request.Tag
	Stream device.Stream // Request.Stream
}

// Table holds the chunks of all regions. Use [NewTable].
type Table struct {
	// Rows by handle. They move when the table grows, which Split and Add may cause.
	Rows []Row

	spare   Handle // row retired last
	spares  int    // retired rows
	anchors int    // rows that are rings, not chunks

	labels Column[Label]
	wide   Column[device.Size] // requested bytes of live chunks whose slack does not fit a word
	// log2 of the requested alignment of live chunks; the column exists only together with labels
	aligns Column[uint8]
}

// NewTable returns an empty table.
func NewTable() Table { return Table{Rows: append([]Row(nil), noRing[:]...)} }

// Len returns the number of chunks.
func (t *Table) Len() int { return len(t.Rows) - len(noRing) - t.anchors - t.spares }

// Bytes returns the host memory of the table and its own columns, unused capacity included.
func (t *Table) Bytes() device.Size {
	return index.BytesOf(t.Rows) + t.labels.Bytes() + t.wide.Bytes() + t.aligns.Bytes()
}

// IsFree reports whether the handle names a free chunk.
func (t *Table) IsFree(h Handle) bool { return h != None && t.Rows[h].state() == free }

// IsTail reports whether a chunk is the last of its region.
func (t *Table) IsTail(h Handle) bool { return t.Rows[h].Next == None }

// Fills reports whether a chunk is its whole region.
func (t *Table) Fills(h Handle) bool {
	r := &t.Rows[h]
	return r.Prev|r.Next == None
}

// AddrOf returns the start of a chunk.
func (t *Table) AddrOf(h Handle) device.Addr { return t.Rows[h].Addr }

// Add returns a new free chunk without neighbours, in no ring. It allocates only if there is no
// retired row.
func (t *Table) Add(at device.Addr, size device.Size) Handle {
	h := t.take()
	t.Rows[h] = Row{Addr: at, Size: size}
	return h
}

// take returns the row retired last, which is most likely in the cache, or a new row.
func (t *Table) take() Handle {
	h := t.spare
	if h == None {
		return t.extend()
	}
	t.spare = t.Rows[h].Next
	t.spares--
	return h
}

// extend returns a new row. The table grows by an eighth, because it is most of the host memory of
// a block; a row is then copied eight times on average.
func (t *Table) extend() Handle {
	n := len(t.Rows)
	if n == cap(t.Rows) {
		most := n + max(n/8, 64)
		rows := make([]Row, n, most)
		copy(rows, t.Rows)
		t.Rows = rows
	}
	t.Rows = t.Rows[:n+1]
	return Handle(n)
}

// Retire removes a chunk from the table. Its handle will be reused. Branch-free; a no-op for None.
func (t *Table) Retire(h Handle) {
	t.spare = t.Rows[h].retire(h, t.spare)
	t.spares += int(-h >> 31)
}

// retire puts the row of a free chunk in front of the retired rows and returns the first of them. A
// no-op for None. The sign bit of -h is set unless h is None, and is the state retired. Like Join
// and FreeNeighbors it is branch-free: the compiler turns such ifs into conditional moves.
func (r *Row) retire(h, spare Handle) (first Handle) {
	r.Next = spare
	r.after |= -h & (retired << stateShift)
	if h != None {
		spare = h
	}
	return spare
}

// Split cuts a free chunk after its first n bytes and returns the new free chunk after the cut.
// Neither is in a ring.
//
// Precondition: 0 < n < size.
func (t *Table) Split(h Handle, n device.Size) Handle {
	tail := t.take()
	rows := t.Rows
	r, s := &rows[h], &rows[tail]
	next := r.Next
	*s = Row{Addr: r.Addr.Add(n), Size: r.Size - n, Prev: h, Next: next}
	rows[next].Prev = tail
	r.Size, r.Next = n, tail
	return tail
}

// FreeNeighbors returns the adjacent free chunks, or None. Branch-free: whether the neighbors of a
// block are free is unpredictable.
func (t *Table) FreeNeighbors(h Handle) (prev, next Handle) {
	rows := t.Rows
	prev, next = rows[h].Prev, rows[h].Next
	if rows[prev].state() != free {
		prev = None
	}
	if rows[next].state() != free {
		next = None
	}
	return prev, next
}

// Join merges a free chunk with its adjacent free chunks, either of which may be None, and returns
// the result. The left chunk survives, so the first chunk of a region keeps its handle.
// Branch-free.
//
// Precondition: the chunks are adjacent and in no ring.
func (t *Table) Join(prev, h, next Handle) Handle {
	rows := t.Rows
	l, r, n := &rows[prev], &rows[h], &rows[next]
	size := l.Size + r.Size + n.Size // the size of None is 0
	right, after := r.Next, n.Next
	if next != None {
		right = after
	}
	keep, gone := h, h&uint32(int32(-prev)>>31)
	if prev != None {
		keep = prev
	}
	t.spare = rows[gone].retire(gone, n.retire(next, t.spare))
	t.spares += int(-next>>31 + -gone>>31)
	k := &rows[keep]
	k.Size, k.Next = size, right
	rows[right].Prev = keep
	return keep
}

// setLive makes a free chunk, which is in no ring, a live one with a requested size, and chain the
// next chunk in its bucket. It reports whether the slack is too wide for the row. In that case, and
// if any chunk has or had a label, annotate must be called.
//
// Precondition: requested is at most the size.
func (r *Row) setLive(requested device.Size, chain Handle) (wide bool) {
	slack := min(r.Size-requested, device.Size(wideSlack))
	r.link = link{live<<stateShift | chain, uint32(slack)}
	return slack == device.Size(wideSlack)
}

// annotate stores in the columns the properties that do not fit a row.
func (t *Table) annotate(h Handle, requested device.Size, l Label, align uint8) {
	if t.Rows[h].back == wideSlack {
		t.wide.Set(h, requested, len(t.Rows))
	}
	if align != 0 && t.labels.cells == nil {
		// From now on every chunk is annotated, so none inherits the alignment of an earlier chunk.
		t.labels.cells = make([]Label, len(t.Rows))
	}
	t.labels.Set(h, l, len(t.Rows))
	t.aligns.Set(h, align, len(t.Rows))
}

// setFree makes a live chunk a free chunk in no ring.
func (t *Table) setFree(h Handle) { t.Rows[h].link = link{} }

// Requested returns the requested bytes of a live chunk.
func (t *Table) Requested(h Handle) device.Size {
	if slack := t.Rows[h].back; slack != wideSlack {
		return t.Rows[h].Size - device.Size(slack)
	}
	return t.wide.Get(h)
}

// LabelOf returns the caller's label of a live chunk.
func (t *Table) LabelOf(h Handle) Label { return t.labels.Get(h) }
