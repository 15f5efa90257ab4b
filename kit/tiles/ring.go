package tiles

// The states of a row, in the bits above the handle in link.after.
const (
	free    uint32 = 0 // a free chunk; also None and the anchors of rings
	live    uint32 = 1 // a granted chunk
	retired uint32 = 2 // an unused row
)

// stateShift leaves 30 bits for a handle: a table with more rows would take more than 32 GiB.
const (
	stateShift = 30
	handleBits = 1<<stateShift - 1
)

// link is the part of a row whose meaning depends on the state of the chunk.
type link struct {
	// after holds the state, and the next chunk: of a free chunk in its ring, of a live chunk in the
	// bucket of its address.
	after uint32
	// back of a free chunk is the previous chunk in its ring, or its note. Of a live chunk it is the
	// slack, that is the size less the requested bytes, or wideSlack.
	back uint32
}

func (l link) state() uint32 { return l.after >> stateShift }

// Rings are circular lists of free chunks. Each goes through an anchor, a row without a chunk, so
// its first and last chunk are no special cases; one from Alone has none. A chunk is in at most one
// ring. The methods are branch-free, and only Anchor allocates.

// Anchor returns the handle of a new, empty ring. Rings are never removed.
func (t *Table) Anchor() Handle {
	h := t.take()
	t.anchors++
	t.Rows[h] = Row{link: link{h, h}}
	return h
}

// noRing holds the first rows of a table. Row 0, None, is in a ring of its own with two rows that
// have no other use. So None can be unlinked like any chunk, and it is never the last one of its
// ring.
var noRing = [...]Row{{link: link{1, 2}}, {link: link{2, None}}, {link: link{None, 1}}}

// After returns the chunk after a free chunk or an anchor in its ring; at the end the anchor.
func (t *Table) After(h Handle) Handle { return t.Rows[h].after }

// Before returns the chunk before a free chunk or an anchor in its ring; at the start the anchor.
func (t *Table) Before(h Handle) Handle { return t.Rows[h].back }

// Note returns the note of a free chunk that is in no ring.
func (t *Table) Note(h Handle) uint32 { return t.Rows[h].back }

// SetNote attaches a note to a free chunk that is in no ring, such as its entry in the index. It is
// valid until the chunk is granted or joined.
func (t *Table) SetNote(h Handle, note uint32) { t.Rows[h].back = note }

// Alone makes a free chunk a ring of its own, without an anchor.
func (t *Table) Alone(h Handle) { t.Rows[h].link = link{h, h} }

// Link inserts a free chunk into a ring, after a chunk or the anchor.
func (t *Table) Link(h, before Handle) {
	rows := t.Rows
	b := &rows[before]
	after := b.after
	b.after = h
	rows[after].back = h
	rows[h].link = link{after, before}
}

// Unlink removes a free chunk, or None, from its ring, and reports whether the ring is empty now.
func (t *Table) Unlink(h Handle) (last bool) {
	rows := t.Rows
	l := rows[h].link
	rows[l.after].back = l.back
	rows[l.back].after = l.after
	return l.after == l.back
}
