package tiles

// The states of a row, as they stand above the handle in link.after.
const (
	free    uint32 = 0 // a chunk that may be granted, or no chunk: None and the anchors of rings
	live    uint32 = 1 // a chunk that is granted
	retired uint32 = 2 // no chunk: the handle waits to be used again
)

// stateShift leaves 30 bits for a handle: a table with more rows would take more than 32 GiB.
const (
	stateShift = 30
	handleBits = 1<<stateShift - 1
)

// link is the state of a row and what else differs with it. Links lie beside the rows, because
// who asks whether a neighbour is free, or mends a ring, needs nothing else of it: eight of
// them share a cache line.
type link struct {
	// after is the state and, of a free chunk, the one behind it in its ring; of a live chunk
	// the one behind it in the bucket of its address.
	after uint32
	// back of a free chunk is the one before it in its ring, or its note; of a live chunk it is
	// the slack, size less requested, or wideSlack.
	back uint32
}

func (l link) state() uint32 { return l.after >> stateShift }

// freeMask returns all ones for a free chunk, else 0.
func (l link) freeMask() uint32 { return uint32(int32(l.state()-1) >> 31) }

// Rings hold free chunks for strategies that keep lists: circular, through an anchor that is no
// chunk, so that neither a ring's first nor its last chunk is a special case. A chunk stands
// in one ring at most. Nothing here has a branch or allocates but for Anchor.

// Anchor returns the handle of a new, empty ring. Rings are for ever.
func (t *Table) Anchor() Handle {
	h := t.take()
	t.anchors++
	t.Rows[h] = Row{link: link{h, h}}
	return h
}

// noRing are the first rows of a table. None stands in a ring of its own, between two rows that
// are nothing else, so that it can be taken out like any chunk, and is never the last one.
var noRing = [...]Row{{link: link{1, 2}}, {link: link{2, None}}, {link: link{None, 1}}}

// After returns what is behind a free chunk, or an anchor, in its ring; at the end the anchor.
func (t *Table) After(h Handle) Handle { return t.Rows[h].after }

// Before returns what is before a free chunk, or an anchor, in its ring.
func (t *Table) Before(h Handle) Handle { return t.Rows[h].back }

// Note returns what was noted of a free chunk that stands in no ring.
func (t *Table) Note(h Handle) uint32 { return t.Rows[h].back }

// SetNote notes something of a free chunk that stands in no ring, for as long as it is free and
// not joined: where the index has it, say.
func (t *Table) SetNote(h Handle, note uint32) { t.Rows[h].back = note }

// Link enters a free chunk into the ring of another, or of an anchor, behind it.
func (t *Table) Link(h, before Handle) {
	rows := t.Rows
	b := &rows[before]
	after := b.after
	b.after = h
	rows[after].back = h
	rows[h].link = link{after, before}
}

// Unlink takes a free chunk, or None, out of its ring, and reports whether that is empty now.
func (t *Table) Unlink(h Handle) (last bool) {
	rows := t.Rows
	l := rows[h].link
	rows[l.after].back = l.back
	rows[l.back].after = l.after
	return l.after == l.back
}
