package snapshot

// What may be taken while a file is read. Without a bound a small compressed file could fill any
// machine. Entries of histories and their places in the memo may take maxRows: a hundred million of them
// take less. No program has as much of anything else; all of that may take maxRest.
const (
	maxRows = 1536 << 20
	maxRest = 512 << 20
)

// weighEach is how many bytes of a file lie between two weighings.
const weighEach = 64 << 10

// weigh refuses a file that takes too much memory. It is called for every weighEach bytes of the file,
// and by the steps that can take much more than their length.
func (m *machine) weigh() error {
	m.weighAt = m.at + weighEach
	const memoEach = 64 // places in the memo for an entry: itself, its strings and its frames
	memo := m.memo.bytes + cap(m.memo.pages)*32
	rest := m.rest() + max(0, memo-memoEach*int(m.entries))
	switch {
	case rest > m.maxRest:
		return m.errorf("more than fits %d MiB besides entries of histories, want a smaller snapshot", m.maxRest>>20)
	case m.rowBytes+memo > m.maxRows:
		return m.errorf("entries of histories that take more than %d MiB, want fewer", m.maxRows>>20)
	}
	return nil
}

// rest returns the bytes that all takes but packed entries and the memo. The stack and what lies in
// containers count twice: they are what a bomb fills, and as a slice grows the old one is there too.
func (m *machine) rest() int {
	const ( // with what the heap rounds up
		textEach = 16 // of what a text refers to
		noted    = maxNoted + 40
		pairEach = 128 // most of it in the map
		history  = 64  // two pointers, an element of grown, and on average what growing leaves
	)
	n := 2*(cap(m.stack)*valueBytes+m.itemBytes) + m.nodes.bytes() + cap(m.spare)*8
	n += m.texts.bytes() + m.texts.n*textEach + m.textBytes + len(m.textAt.slots)*4 + len(m.s.Unknown)*noted
	n += cap(m.s.Strings)*16 + cap(m.s.Frames)*16 + len(m.frames.slots)*4
	n += m.s.Calls.bytes() + len(m.calls.slots)*4 + (cap(m.frameOf)+cap(m.callOf)+cap(m.scratch))*4
	n += len(m.pairs)*pairEach + cap(m.runs)*8
	n += m.blocks.bytes() + m.segments.bytes() + m.annotations.bytes() + m.listed
	n += m.shutBytes + len(m.histories)*history
	if k := len(m.histories); k > 0 && m.histories[k-1] != nil {
		n += m.histories[k-1].room()
	}
	return n
}
