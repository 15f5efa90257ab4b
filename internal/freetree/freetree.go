package freetree

import "github.com/vramyard/vramyard/device"

// Entry is one free chunk.
type Entry struct {
	Size   device.Size // bytes; first part of the key
	Addr   device.Addr // first byte; second part of the key
	Handle uint32      // the caller's name of the chunk
}

// less reports whether the key of e comes before that of f.
func (e Entry) less(f Entry) bool {
	return e.Size < f.Size || e.Size == f.Size && e.Addr < f.Addr
}

// step is one level of a path: an inner node and the child taken.
type step struct {
	node uint32
	slot uint32
}

// Tree is an ordered set of entries. The zero Tree is empty and ready. It is not safe for
// concurrent use.
type Tree struct {
	leaves []leaf
	inners []inner

	spareLeaf  uint32 // list of unused leaves, one more than the index; 0 ends it
	spareInner uint32 // likewise

	root        uint32 // a leaf if height is 0
	first, last uint32 // ends of the leaf list
	height      int32  // levels above the leaves
	n           int

	// path is the way of the last descent, from the root. It lives here because a local
	// array would be zeroed by every call.
	path [maxHeight]step
}

// Len returns the number of entries.
func (t *Tree) Len() int { return t.n }

// Bytes returns the host memory of the nodes, spare ones included.
func (t *Tree) Bytes() device.Size {
	return device.Size(cap(t.leaves))*leafBytes + device.Size(cap(t.inners))*innerBytes
}

// Max returns the largest entry, and among the largest the one at the highest address. O(1).
func (t *Tree) Max() (Entry, bool) {
	if t.n == 0 {
		return Entry{}, false
	}
	l := &t.leaves[t.last]
	return l.entry(l.n - 1), true
}

// descend walks to the leaf whose range holds the key, keeps the path and returns the leaf.
//
// Precondition: the tree has a root.
func (t *Tree) descend(size device.Size, addr device.Addr) uint32 {
	node := t.root
	for level := range t.height {
		in := &t.inners[node]
		slot := in.find(size, addr)
		t.path[level] = step{node, slot}
		node = in.kids[slot]
	}
	return node
}

// Insert adds an entry. It allocates only if a node splits and none is spare.
//
// Precondition: no entry has the same size and address.
func (t *Tree) Insert(e Entry) {
	if len(t.leaves) == 0 {
		t.root = t.newLeaf()
		t.leaves[t.root].prev, t.leaves[t.root].next = none, none
		t.first, t.last = t.root, t.root
	}
	at := t.descend(e.Size, e.Addr)
	t.n++
	if l := &t.leaves[at]; l.n < fanout {
		l.insert(l.find(e.Size, e.Addr), e)
		return
	}
	right := t.splitLeaf(at)
	sep := t.leaves[right].entry(0)
	if sep.less(e) {
		at = right
	}
	l := &t.leaves[at]
	l.insert(l.find(e.Size, e.Addr), e)
	t.link(sep.Size, sep.Addr, right)
}

// Delete removes the entry with the given key and returns its handle, and whether there
// was one.
func (t *Tree) Delete(size device.Size, addr device.Addr) (handle uint32, ok bool) {
	if t.n == 0 {
		return 0, false
	}
	at := t.descend(size, addr)
	l := &t.leaves[at]
	i := l.find(size, addr)
	if i == l.n || l.sizes[i] != size || l.addrs[i] != addr {
		return 0, false
	}
	return t.removeAt(at, i), true
}

// Ceil returns the first entry of at least size bytes in the order of best fit.
func (t *Tree) Ceil(size device.Size) (Entry, bool) {
	c := t.Seek(size)
	return t.At(c)
}

// TakeCeil removes the entry that Ceil would return and returns its handle, and whether
// there was one. It costs one descent.
func (t *Tree) TakeCeil(size device.Size) (handle uint32, ok bool) {
	if t.n == 0 {
		return 0, false
	}
	at := t.descend(size, 0)
	l := &t.leaves[at]
	i := l.find(size, 0)
	if i == l.n {
		// Everything in this leaf is too small; the next one starts with the answer.
		if at, ok = t.advance(); !ok {
			return 0, false
		}
		i = 0
	}
	return t.removeAt(at, i), true
}

// TakeNear removes one of the first looks entries that are large enough: the one at the
// lowest address among those that exceed the first by at most spread bytes. It returns its
// handle, and whether there was one. It costs one descent and reads the looks entries.
//
// Precondition: looks >= 1; size + spread does not overflow.
func (t *Tree) TakeNear(size, spread device.Size, looks int) (handle uint32, ok bool) {
	if t.n == 0 {
		return 0, false
	}
	at := t.descend(size, 0)
	l := &t.leaves[at]
	i := l.find(size, 0)
	if i == l.n {
		if at, ok = t.advance(); !ok {
			return 0, false
		}
		l, i = &t.leaves[at], 0
	}
	most, lowest := l.sizes[i]+spread, l.addrs[i]
	best, hops, ahead := i, 0, 0 // hops is how many leaves on the best one lies
	for j := i + 1; looks > 1; j, looks = j+1, looks-1 {
		if j >= l.n {
			if l.next == none {
				break
			}
			l, j, ahead = &t.leaves[l.next], 0, ahead+1
		}
		if l.sizes[j%fanout] > most {
			break
		}
		if a := l.addrs[j%fanout]; a < lowest {
			lowest, best, hops = a, j, ahead
		}
	}
	for range hops {
		at, _ = t.advance()
	}
	return t.removeAt(at, best), true
}

// advance moves the path to the next leaf and returns it, false at the end. It climbs to
// the first level where there is a child further right and goes down its left edge.
func (t *Tree) advance() (uint32, bool) {
	level := t.height - 1
	for ; level >= 0; level-- {
		if s := &t.path[level]; s.slot+1 < t.inners[s.node].n {
			s.slot++
			break
		}
	}
	if level < 0 {
		return 0, false
	}
	s := t.path[level]
	node := t.inners[s.node].kids[s.slot]
	for level++; level < t.height; level++ {
		t.path[level] = step{node, 0}
		node = t.inners[node].kids[0]
	}
	return node, true
}

// removeAt removes entry i of a leaf, to which path leads, and returns its handle.
func (t *Tree) removeAt(at uint32, i uint32) uint32 {
	l := &t.leaves[at]
	handle := l.handles[i]
	l.remove(i)
	t.n--
	if l.n < minFill && t.height > 0 {
		t.refill()
	}
	return handle
}

// Clear removes every entry and keeps the room.
func (t *Tree) Clear() {
	*t = Tree{leaves: t.leaves[:0], inners: t.inners[:0]}
}

// Cursor is a place in the order of a tree. A change to the tree makes it invalid.
type Cursor struct {
	leaf uint32
	slot uint32
}

// Seek returns a cursor at the first entry of at least size bytes.
func (t *Tree) Seek(size device.Size) Cursor {
	if t.n == 0 {
		return Cursor{none, 0}
	}
	at := t.descend(size, 0)
	return t.settle(Cursor{at, t.leaves[at].find(size, 0)})
}

// Next returns the cursor after c.
//
// Precondition: there is an entry at c.
func (t *Tree) Next(c Cursor) Cursor { return t.settle(Cursor{c.leaf, c.slot + 1}) }

// settle moves a cursor that stands behind the last entry of its leaf to the next leaf.
// No leaf of a tree with entries is empty, so one step is enough.
func (t *Tree) settle(c Cursor) Cursor {
	if l := &t.leaves[c.leaf]; c.slot == l.n {
		return Cursor{l.next, 0}
	}
	return c
}

// At returns the entry at c, and false at the end.
func (t *Tree) At(c Cursor) (Entry, bool) {
	if c.leaf == none {
		return Entry{}, false
	}
	return t.leaves[c.leaf].entry(c.slot), true
}

// All yields every entry in order.
func (t *Tree) All(yield func(Entry) bool) {
	for c := t.Seek(0); ; c = t.Next(c) {
		e, ok := t.At(c)
		if !ok || !yield(e) {
			return
		}
	}
}
