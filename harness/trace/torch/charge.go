package torch

// chargeStep is the distance between two regular calls of charge, in bytes of the file.
const chargeStep = 64 << 10

// charge charges the memory added since its last call to the budget. It is called for every
// chargeStep bytes of the file, and by operations that can take much more memory than their length.
func (m *machine) charge() error {
	m.chargeAt = m.at + chargeStep
	now := int64(m.rest() + m.rowBytes + m.memo.bytes + cap(m.memo.pages)*32)
	before := m.charged
	if now < before {
		m.memory.Give(before - now)
	} else if err := m.memory.Take(now - before); err != nil {
		return err
	}
	m.charged = now
	return nil
}

// release returns the memory that only reading needs to the budget.
func (m *machine) release() {
	m.memo, m.stack, m.nodes, m.spare, m.itemBytes = memo{}, nil, arena[node]{}, nil, 0
	_ = m.charge() // cannot fail: it takes less than before
}

// rest returns the memory of everything except packed entries and the memo. The stack and the items
// of containers, which a decompression bomb would fill, count three times: while a slice grows its
// old array exists too, and the one before that until it is collected.
func (m *machine) rest() int {
	const ( // including the rounding of the heap
		textEach = 16 // beyond the string itself
		noted    = maxNoted + 40
		pairEach = 128 // mostly the map
		history  = 64  // two pointers, an element of grown, and the average waste of growing
	)
	n := 3*(cap(m.stack)*valueBytes+m.itemBytes) + m.nodes.bytes() + cap(m.spare)*8
	n += m.texts.bytes() + m.texts.n*textEach + m.textBytes + len(m.textAt.slots)*4 + len(m.s.Unknown)*noted
	n += cap(m.s.Strings)*16 + cap(m.s.Frames)*16 + len(m.frames.slots)*4
	n += m.s.Calls.bytes() + len(m.calls.slots)*4 + (cap(m.frameOf)+cap(m.callOf)+cap(m.scratch))*4
	n += len(m.pairs)*pairEach + cap(m.runs)*8
	n += m.blocks.bytes() + m.segments.bytes() + m.annotations.bytes() + m.listed
	n += m.shutBytes + len(m.histories)*history
	if k := len(m.histories); k > 0 && m.histories[k-1] != nil {
		n += m.histories[k-1].unpackedBytes()
	}
	return n
}
