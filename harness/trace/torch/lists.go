package torch

import (
	"cmp"
	"slices"
)

// list converts a list of equal rows to a value of its kind. Other lists give the zero value.
func (m *machine) list(nd *node) (value, error) {
	items := nd.items
	if len(items) == 0 {
		return value{kind: isEmpty}, nil
	}
	if len(items) == 2 {
		a, okA := items[0].count()
		b, okB := items[1].count()
		if okA && okB {
			return m.pairOf([2]uint64{a, b}), nil
		}
	}
	first := items[0]
	for _, v := range items[1:] {
		if v.kind != first.kind {
			return value{}, nil
		}
	}
	switch first.kind {
	case isFrame:
		return m.stackOf(items)
	case isEntry:
		return m.historyOf(items)
	case isBlock:
		return gather(m, isBlocks, &m.blocks, items)
	case isSegment:
		return gather(m, isSegments, &m.segments, items)
	case isAnnotation:
		return gather(m, isAnnotations, &m.annotations, items)
	}
	return value{}, nil
}

func (m *machine) pairOf(p [2]uint64) value {
	at, ok := m.pairAt[p]
	if !ok {
		at = uint64(len(m.pairs))
		m.pairAt[p] = at
		m.pairs = append(m.pairs, p)
	}
	return value{kind: isPair, x: at}
}

// maxDepth is the maximum number of frames of a stack. Python's default limit is 1,000.
const maxDepth = 1 << 16

func (m *machine) stackOf(items []value) (value, error) {
	m.scratch = m.scratch[:0]
	for _, v := range items {
		if uint64(len(m.scratch))+uint64(v.n) > maxDepth {
			return value{}, m.errorf("more than %d frames, want a shorter stack", maxDepth)
		}
		for i := range v.n {
			m.scratch = append(m.scratch, uint32(v.x)+i)
		}
	}
	return value{kind: isStack, x: uint64(m.Stack(m.scratch))}, nil
}

// historyOf returns a list of entries as a history. The growing history is used without a copy if
// the list is all of its entries, as in every file that PyTorch writes.
func (m *machine) historyOf(items []value) (value, error) {
	growing := m.streams != nil
	m.streams, m.pools = nil, nil
	if growing && len(items) == 1 {
		last := m.grown[len(m.grown)-1]
		if v := items[0]; v.x == last.first && int(v.n) == last.hist.Len() {
			return value{kind: isHistory, x: uint64(len(m.histories) - 1)}, nil
		}
	}
	to := m.history()
	for _, v := range items {
		for i := range uint64(v.n) {
			if err := m.copyEntry(to, v.x+i); err != nil {
				return value{}, err
			}
		}
	}
	m.streams, m.pools = nil, nil
	return value{kind: isHistory, x: uint64(len(m.histories) - 1)}, nil
}

func (m *machine) copyEntry(to *History, number uint64) error {
	k, ok := slices.BinarySearchFunc(m.grown, number, func(g growth, n uint64) int { return cmp.Compare(g.first, n) })
	if !ok {
		k--
	}
	from := m.grown[k].hist
	e := from.At(int(number - m.grown[k].first))
	stream, ok := m.streamOf(from.Streams[e.Stream])
	if ok && from.Pools != nil {
		e.Pool, ok = m.poolOf(m.pairOf(from.Pools[e.Pool]))
	}
	if !ok {
		return m.errorf("%v", errTooMany)
	}
	e.Stream = stream
	if e.Action == ActionConf {
		to.addConf(&e, from.Confs[e.Category])
	}
	before := to.packed
	to.Append(e)
	m.rowBytes += to.packed - before
	if to.packed > before { // one operation can copy an entry for each two bytes of the file
		return m.charge()
	}
	return nil
}

// gather converts a list of rows to consecutive rows of an arena.
func gather[T any](m *machine, k kind, a *arena[T], items []value) (value, error) {
	r := run{uint32(items[0].x), items[0].n}
	if len(items) > 1 {
		r = run{first: uint32(a.n)}
		for _, v := range items {
			for i := range v.n {
				a.add(a.at(uint32(v.x) + i))
				if r.n++; r.n%arenaRows == 0 { // one operation can copy a row for each two bytes of the file
					if err := m.charge(); err != nil {
						return value{}, err
					}
				}
			}
		}
	}
	m.listed += int(r.n) * a.rowBytes()
	m.runs = append(m.runs, r)
	return value{kind: k, x: uint64(len(m.runs) - 1)}, nil
}
