package snapshot

// memoPage is the number of places of the memo that are made together.
const memoPage = 4096

// memo holds the values that a file wants again, by number. A million entries of a history lie in it
// that nobody asks for, so a place takes 4 bytes: kind in the upper 5 bits, x in the others.
type memo struct {
	pages [][]uint32
	n     uint32 // places taken
}

// kindShift is where a place of the memo has the kind. What x counts is at most so many of a kind.
const kindShift = 27

// put keeps the top value at a place. Places are numbered as values are kept, so none is beyond the
// bytes read so far.
func (m *machine) put(place uint32) error {
	if int64(place) >= m.at {
		return m.errorf("place %d of the memo, want less than bytes so far", place)
	}
	k := len(m.stack) - 1
	if k < m.floor() {
		return m.errorf("nothing on the stack, want a value for the memo")
	}
	v := m.stack[k]
	switch {
	case v.kind == isList || v.kind == isDict:
		nd := &m.nodes[v.x]
		nd.twice = nd.twice || nd.memo >= 0
		nd.memo = int64(place)
	case v.n > 1:
		v.x += uint64(v.n - 1)
	}
	if v.kind < isText {
		return m.errorf("%s in the memo, want a container or a string", kindNames[v.kind])
	}
	if v.x>>kindShift != 0 {
		return m.errorf("%s in the memo after %d others, want fewer", kindNames[v.kind], v.x)
	}
	page := m.memo.page(place)
	if page[place%memoPage] == 0 {
		m.memo.n++
	}
	page[place%memoPage] = uint32(v.x) | uint32(v.kind)<<kindShift
	return nil
}

// memoize keeps the top value at the next place.
func (m *machine) memoize() error { return m.put(m.memo.n) }

// get pushes the value at a place. A container that is still being filled is complete with that.
func (m *machine) get(place uint32) error {
	v := m.memo.at(place)
	if v.kind == 0 {
		return m.errorf("place %d of the memo, want one that was filled", place)
	}
	if v.kind == isList || v.kind == isDict {
		m.nodes[v.x].twice = true
		var err error
		if v, err = m.finish(v); err != nil {
			return err
		}
	}
	m.push(v)
	return nil
}

// page returns the page of a place.
func (m *memo) page(place uint32) []uint32 {
	k := int(place / memoPage)
	for len(m.pages) <= k {
		m.pages = append(m.pages, nil)
	}
	if m.pages[k] == nil {
		m.pages[k] = make([]uint32, memoPage)
	}
	return m.pages[k]
}

// at returns the value at a place; its kind is 0 if there is none.
func (m *memo) at(place uint32) value {
	k := int(place / memoPage)
	if k >= len(m.pages) || m.pages[k] == nil {
		return value{}
	}
	w := m.pages[k][place%memoPage]
	v := value{kind: kind(w >> kindShift), x: uint64(w & (1<<kindShift - 1))}
	if v.isRow() {
		v.n = 1
	}
	return v
}

// replace puts what a container became in its place, unless something else lies there by now. A row
// whose number does not fit is forgotten: of a hundred million entries nobody wants one again.
func (m *memo) replace(place uint32, old, as value) {
	if v := m.at(place); v.kind != old.kind || v.x != old.x {
		return
	}
	w := uint32(0)
	if as.x>>kindShift == 0 {
		w = uint32(as.x) | uint32(as.kind)<<kindShift
	}
	m.pages[place/memoPage][place%memoPage] = w
}
