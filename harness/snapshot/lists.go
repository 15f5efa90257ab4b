package snapshot

// list makes a list of rows of a list, or nothing if it holds anything else.
func (m *machine) list(nd *node) (value, error) {
	items := nd.items
	if len(items) == 0 {
		return value{kind: isEmpty}, nil
	}
	first := items[0]
	for _, v := range items[1:] {
		if v.kind != first.kind {
			return value{}, nil
		}
	}
	switch first.kind {
	case isFrame:
		return m.stackOf(items), nil
	case isEntry:
		return m.historyOf(items)
	case isBlock:
		return m.runOf(isBlocks, gather(&m.blocks, items)), nil
	case isSegment:
		return m.runOf(isSegments, gather(&m.segments, items)), nil
	case isAnnotation:
		return m.runOf(isAnnotations, gather(&m.annotations, items)), nil
	}
	if len(items) == 2 {
		if v, ok := pairOf(items[0], items[1]); ok {
			return v, nil
		}
	}
	return value{}, nil
}

// stackOf returns the stack of frames.
func (m *machine) stackOf(items []value) value {
	m.scratch = m.scratch[:0]
	for _, v := range items {
		for i := range v.n {
			m.scratch = append(m.scratch, uint32(v.x)+i)
		}
	}
	return value{kind: isStack, x: uint64(m.Stack(m.scratch))}
}

// historyOf returns a history. The one that is growing is taken as it is if these are all of its
// entries, as in every file but those that somebody has put together by hand.
func (m *machine) historyOf(items []value) (value, error) {
	last := uint64(len(m.histories) - 1)
	growing := m.streams != nil
	if v := items[0]; growing && len(items) == 1 && v.x == last<<32 && int(v.n) == m.histories[last].Len() {
		m.streams, m.pools = nil, nil
		return value{kind: isHistory, x: last}, nil
	}
	m.streams, m.pools = nil, nil
	to := m.history()
	for _, v := range items {
		from := m.histories[v.x>>32]
		for i := range int(v.n) {
			if err := m.copyEntry(to, from, int(uint32(v.x))+i); err != nil {
				return value{}, err
			}
		}
	}
	m.streams, m.pools = nil, nil
	return value{kind: isHistory, x: uint64(len(m.histories) - 1)}, nil
}

// copyEntry appends an entry of another history.
func (m *machine) copyEntry(to, from *History, i int) error {
	e := from.At(i)
	stream, ok := m.streamOf(from.Streams[e.Stream])
	if ok && from.Pools != nil {
		pool := from.Pools[e.Pool]
		e.Pool, ok = m.poolOf(value{kind: isPair, x: pool[0]<<pairShift | pool[1]})
	}
	if !ok {
		return m.errTooMany()
	}
	e.Stream = stream
	to.Append(e)
	return nil
}

// gather makes rows follow each other.
func gather[T any](a *arena[T], items []value) run {
	if len(items) == 1 {
		return run{uint32(items[0].x), items[0].n}
	}
	r := run{first: uint32(a.n)}
	for _, v := range items {
		for i := range v.n {
			a.add(a.at(uint32(v.x) + i))
			r.n++
		}
	}
	return r
}

// runOf returns a list of rows.
func (m *machine) runOf(k kind, r run) value {
	m.runs = append(m.runs, r)
	return value{kind: k, x: uint64(len(m.runs) - 1)}
}
