package snapshot

// memoPage is the number of places of the memo that are made together.
const memoPage = 4096

// memo holds the values that a file wants again, by number. A million entries of a history lie in it
// that nobody asks for, so a place takes 8 bytes: kind in the upper 8 bits, x in the others.
type memo struct {
	pages [][]uint64
	n     uint32 // places taken
}

// kindShift is where a place of the memo has the kind.
const kindShift = 56

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
	if v.x>>kindShift != 0 || v.kind < isText {
		return m.errorf("%s in the memo, want a container or a string", kindNames[v.kind])
	}
	page := m.memo.page(place)
	if page[place%memoPage] == 0 {
		m.memo.n++
	}
	page[place%memoPage] = v.x | uint64(v.kind)<<kindShift
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
func (m *memo) page(place uint32) []uint64 {
	k := int(place / memoPage)
	for len(m.pages) <= k {
		m.pages = append(m.pages, nil)
	}
	if m.pages[k] == nil {
		m.pages[k] = make([]uint64, memoPage)
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
	v := value{kind: kind(w >> kindShift), x: w & (1<<kindShift - 1)}
	if v.isRow() {
		v.n = 1
	}
	return v
}

// replace puts what a container became in its place, unless something else lies there by now.
func (m *memo) replace(place uint32, old, as value) {
	if v := m.at(place); v.kind == old.kind && v.x == old.x {
		m.pages[place/memoPage][place%memoPage] = as.x | uint64(as.kind)<<kindShift
	}
}
