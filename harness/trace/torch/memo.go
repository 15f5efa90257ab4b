package torch

// memoPage is the number of entries in a page of the memo.
const memoPage = 1024

// memo holds the values that a file may refer to again, by index. Most are never used: a million
// entries of a history are in it. So an entry takes 4 bytes: the kind in the upper 5 bits, x in the
// others. In a page that is no longer written it takes 2 if its values are close together.
type memo struct {
	pages []page32
	n     uint32   // entries in use
	spare []uint32 // a plain page for reuse, or nil
	bytes int      // bytes of the pages
}

// page32 is memoPage entries of the memo, plain or packed. An empty page has neither.
type page32 struct {
	plain  []uint32
	packed *page16
}

// page16 is a page with few kinds of values, and close values of each kind.
type page16 struct {
	bases  [maxBases]uint32 // lowest value of each kind
	places [memoPage]uint16 // index of a base in the upper bits, offset from it in the others
}

// plainBytes and packedBytes are the heap memory of a page.
const (
	plainBytes  = 4 * memoPage
	packedBytes = 2304
)

// offsetBits is the number of bits for the offset in a packed entry. The others hold the index of a
// base.
const (
	offsetBits = 13
	maxBases   = 1 << (16 - offsetBits)
)

// kindShift is the position of the kind in a memo entry. The bits below limit x.
const kindShift = 27

// put stores the top value in the memo. Each entry takes at least a byte of the file, so an index
// is below the offset.
func (m *machine) put(place uint32) error {
	if int64(place) >= m.at {
		return m.errorf("memo index %d, want less than the bytes read so far", place)
	}
	k := len(m.stack) - 1
	if k < m.floor() {
		return m.errorf("nothing on the stack, want a value for the memo")
	}
	v := m.stack[k]
	switch {
	case v.kind == isList || v.kind == isDict:
		nd := m.nodes.ref(v.x)
		nd.shared = nd.shared || nd.memo >= 0
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

// memoize stores the top value at the next index.
func (m *machine) memoize() error { return m.put(m.memo.n) }

// get pushes a memo entry. That completes a container that was still being filled.
func (m *machine) get(place uint32) error {
	v := m.memo.at(place)
	if v.kind == 0 {
		return m.errorf("memo index %d is empty, want a stored value", place)
	}
	if v.kind == isList || v.kind == isDict {
		m.nodes.ref(v.x).shared = true
		var err error
		if v, err = m.finish(v); err != nil {
			return err
		}
	}
	m.push(v)
	return nil
}

// page returns the page of an index for writing.
func (m *memo) page(place uint32) []uint32 {
	k := int(place / memoPage)
	for len(m.pages) <= k {
		// The page before the last may still have incomplete values. The first page has all keys.
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

// pack packs a page if its values allow.
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

// word returns an entry of a page that is not plain.
func (p *page32) word(at uint32) uint32 {
	if p.packed == nil {
		return 0
	}
	w := p.packed.places[at]
	return p.packed.bases[w>>offsetBits] + uint32(w&(1<<offsetBits-1))
}

// at returns a memo entry. Its kind is 0 if the entry is empty.
func (m *memo) at(place uint32) value {
	k := int(place / memoPage)
	if k >= len(m.pages) {
		return value{}
	}
	p, at := &m.pages[k], place%memoPage
	var w uint32
	if p.plain != nil { // such as the first page, whose keys are most of the look-ups
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

// replace replaces a container in the memo by its row, unless the entry was overwritten. A row
// whose index does not fit is dropped: files do not refer to an entry again.
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
