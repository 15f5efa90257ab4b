package torch

// memoPage is the number of places of the memo that are made together.
const memoPage = 1024

// memo holds the values that a file wants again, by number. A million entries of a history lie in
// it that nobody asks for, so a place takes 4 bytes: kind in the upper 5 bits, x in the others. In
// a page that the file has left behind it takes 2 where that is enough.
type memo struct {
	pages []page32
	n     uint32   // places taken
	spare []uint32 // a plain page that is not in use, or nil
	bytes int      // what the pages take
}

// page32 is memoPage places of the memo: plain, or packed. Of an empty one neither is there.
type page32 struct {
	plain  []uint32
	packed *page16
}

// page16 is a page in which few kinds of values lie, and of each kind values side by side.
type page16 struct {
	bases  [maxBases]uint32 // lowest value of each kind
	places [memoPage]uint16 // index of a base in the upper bits, what is added to it in the others
}

// plainBytes and packedBytes are what a page takes of the heap.
const (
	plainBytes  = 4 * memoPage
	packedBytes = 2304
)

// offsetBits is how many bits of a packed place are added to a base, and maxBases what the others
// tell apart.
const (
	offsetBits = 13
	maxBases   = 1 << (16 - offsetBits)
)

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
		nd := m.nodes.ref(v.x)
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
		m.nodes.ref(v.x).twice = true
		var err error
		if v, err = m.finish(v); err != nil {
			return err
		}
	}
	m.push(v)
	return nil
}

// page returns the page of a place, as it can be written.
func (m *memo) page(place uint32) []uint32 {
	k := int(place / memoPage)
	for len(m.pages) <= k {
		// The last values of the page before may not be complete. The first page has all keys.
		if last := len(m.pages) - 2; last > 0 {
			m.pack(&m.pages[last])
		}
		m.pages = append(m.pages, page32{})
	}
	p := &m.pages[k]
	if p.plain == nil {
		plain := m.spare
		if m.spare = nil; plain == nil {
			plain = make([]uint32, memoPage)
		}
		for i := range plain {
			plain[i] = p.word(uint32(i))
		}
		if p.packed != nil {
			m.bytes -= packedBytes
		}
		p.plain, p.packed = plain, nil
		m.bytes += plainBytes
	}
	return p.plain
}

// pack packs a page if that can be.
func (m *memo) pack(p *page32) {
	if p.plain == nil {
		return
	}
	var bases [1 << (32 - kindShift)]uint32
	var index [1 << (32 - kindShift)]uint16
	n := 0
	for _, word := range p.plain {
		k := word >> kindShift
		if index[k] == 0 {
			if n == maxBases {
				return
			}
			n++
			index[k], bases[k] = uint16(n), word
		}
		bases[k] = min(bases[k], word)
	}
	for _, word := range p.plain {
		if (word-bases[word>>kindShift])>>offsetBits != 0 {
			return
		}
	}
	q := &page16{}
	for i, word := range p.plain {
		k := word >> kindShift
		offset := word - bases[k]
		q.bases[index[k]-1] = bases[k]
		q.places[i] = (index[k]-1)<<offsetBits | uint16(offset)
	}
	m.spare, p.plain, p.packed = p.plain, nil, q
	m.bytes += packedBytes - plainBytes
}

// word returns what lies at a place of a page that is not plain.
func (p *page32) word(at uint32) uint32 {
	if p.packed == nil {
		return 0
	}
	w := p.packed.places[at]
	return p.packed.bases[w>>offsetBits] + uint32(w&(1<<offsetBits-1))
}

// at returns the value at a place; its kind is 0 if there is none.
func (m *memo) at(place uint32) value {
	k := int(place / memoPage)
	if k >= len(m.pages) {
		return value{}
	}
	p, at := &m.pages[k], place%memoPage
	var w uint32
	if p.plain != nil { // as that of the keys, which are most of what is wanted
		w = p.plain[at]
	} else {
		w = p.word(at)
	}
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
	m.page(place)[place%memoPage] = w
}
