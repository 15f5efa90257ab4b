package index

import "math/bits"

// join adds an entry to the group whose root a link refers to. O(1).
func (m *SizeMap) join(link *uint32, at SizeAt) {
	root := *link
	e, r := &m.nodes[at], &m.nodes[root]
	if e.addr < r.addr {
		e.child, e.next, e.prev = root, r.next, r.prev+1
		r.next, r.prev = NoEntry, at
		*link = at
		return
	}
	r.prev++
	e.next, e.prev = r.child, root
	m.nodes[r.child].prev = at
	r.child = at
}

// cut removes an entry that is not the root from its group. Its children are melded and take its
// place; their parent's address is still lower.
func (m *SizeMap) cut(at SizeAt) {
	e := &m.nodes[at]
	next, prev, heir := e.next, e.prev, e.next
	if e.child != NoEntry {
		heir = m.gather(e.child)
		m.nodes[heir].next = next
		m.nodes[next].prev = heir
	}
	m.nodes[heir].prev = prev
	if p := &m.nodes[prev]; p.child == at {
		p.child = heir
	} else {
		p.next = heir
	}
}

// gather melds the entries of a sibling list into one heap and returns its root: in pairs from
// first to last, then the pairs from last to first. The caller sets the root's own links.
func (m *SizeMap) gather(first SizeAt) SizeAt {
	pairs := NoEntry
	for at := first; at != NoEntry; {
		other := m.nodes[at].next
		if other == NoEntry {
			m.nodes[at].next = pairs
			pairs = at
			break
		}
		rest := m.nodes[other].next
		low := m.meld(at, other)
		m.nodes[low].next = pairs
		pairs, at = low, rest
	}
	top := pairs
	for at := m.nodes[top].next; at != NoEntry; {
		rest := m.nodes[at].next
		top = m.meld(top, at)
		at = rest
	}
	return top
}

// meld makes the higher of two entries a child of the lower, which it returns. Which one is lower
// is unpredictable, so it swaps them without a branch.
func (m *SizeMap) meld(low, high SizeAt) SizeAt {
	_, swap := bits.Sub64(uint64(m.nodes[high].addr), uint64(m.nodes[low].addr), 0)
	differ := (low ^ high) & -SizeAt(swap)
	low, high = low^differ, high^differ
	l, h := &m.nodes[low], &m.nodes[high]
	h.next, h.prev = l.child, low
	m.nodes[l.child].prev = high
	l.child = high
	return low
}
