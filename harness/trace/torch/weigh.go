package torch

// weighEach is how many bytes of a file lie between two weighings.
const weighEach = 64 << 10

// weigh takes from the budget what was added since it was called last. It is called for every
// weighEach bytes of the file, and by the steps that can take much more than their length.
func (m *machine) weigh() error {
	m.weighAt = m.at + weighEach
	now := int64(m.rest() + m.rowBytes + m.memo.bytes + cap(m.memo.pages)*32)
	before := m.weighed
	if now < before {
		m.memory.Give(before - now)
	} else if err := m.memory.Take(now - before); err != nil {
		return err
	}
	m.weighed = now
	return nil
}

// release gives back what only reading takes, once there is a snapshot.
func (m *machine) release() {
	m.memo, m.stack, m.nodes, m.spare, m.itemBytes = memo{}, nil, arena[node]{}, nil, 0
	_ = m.weigh() // takes less than before
}

// rest returns the bytes that all takes but packed entries and the memo. The stack and what lies in
// containers count three times: they are what a bomb fills, and as a slice grows the old array is
// there too, and the one before it until it is collected.
func (m *machine) rest() int {
	const ( // with what the heap rounds up
		textEach = 16 // of what a text refers to
		noted    = maxNoted + 40
		pairEach = 128 // most of it in the map
		history  = 64  // two pointers, an element of grown, and on average what growing leaves
	)
	n := 3*(cap(m.stack)*valueBytes+m.itemBytes) + m.nodes.bytes() + cap(m.spare)*8
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
