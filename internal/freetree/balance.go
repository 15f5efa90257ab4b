package freetree

import "github.com/vramyard/vramyard/device"

// newLeaf returns an unused leaf. It allocates only when none is spare.
func (t *Tree) newLeaf() uint32 {
	if t.spareLeaf == 0 {
		t.leaves = append(t.leaves, leaf{})
		t.leaves[len(t.leaves)-1].n = fanout
		t.spareLeaf = uint32(len(t.leaves))
	}
	i := t.spareLeaf - 1
	l := &t.leaves[i]
	t.spareLeaf = l.next
	vacate(&l.sizes, 0, l.n)
	l.n = 0
	return i
}

// newInner returns an unused inner node. It allocates only when none is spare.
func (t *Tree) newInner() uint32 {
	if t.spareInner == 0 {
		t.inners = append(t.inners, inner{})
		t.inners[len(t.inners)-1].n = fanout
		t.spareInner = uint32(len(t.inners))
	}
	i := t.spareInner - 1
	in := &t.inners[i]
	t.spareInner = in.kids[0]
	vacate(&in.sizes, 0, in.n)
	in.n = 0
	return i
}

// dropLeaf takes a leaf out of the leaf list and makes it spare.
func (t *Tree) dropLeaf(i uint32) {
	l := &t.leaves[i]
	if l.prev == none {
		t.first = l.next
	} else {
		t.leaves[l.prev].next = l.next
	}
	if l.next == none {
		t.last = l.prev
	} else {
		t.leaves[l.next].prev = l.prev
	}
	l.next, t.spareLeaf = t.spareLeaf, i+1
}

// dropInner makes an inner node spare. Nothing but its parent names it.
func (t *Tree) dropInner(i uint32) {
	t.inners[i].kids[0], t.spareInner = t.spareInner, i+1
}

// splitLeaf moves the upper half of a full leaf to a new one behind it, which it returns.
func (t *Tree) splitLeaf(at uint32) uint32 {
	right := t.newLeaf()
	l, r := &t.leaves[at], &t.leaves[right]
	l.give(r, fanout/2)
	r.prev, r.next = at, l.next
	if l.next == none {
		t.last = right
	} else {
		t.leaves[l.next].prev = right
	}
	l.next = right
	return right
}

// link hangs a new node, which a split set behind the one that path leads to, into the
// level above, and splits that where it is full.
func (t *Tree) link(size device.Size, addr device.Addr, kid uint32) {
	for level := t.height - 1; level >= 0; level-- {
		s := t.path[level]
		in := &t.inners[s.node]
		if in.n < fanout {
			in.insert(s.slot+1, size, addr, kid)
			return
		}
		right := t.newInner()
		in, r := &t.inners[s.node], &t.inners[right]
		in.give(r, fanout/2, 0, 0)
		if s.slot+1 <= in.n {
			in.insert(s.slot+1, size, addr, kid)
		} else {
			r.insert(s.slot+1-in.n, size, addr, kid)
		}
		// Slot 0 of the new node is where its separator was left; it moves one level up.
		size, addr, kid = r.sizes[0], r.addrs[0], right
	}
	t.raise(size, addr, kid)
}

// raise makes a new root over the old one and its new right neighbour. The separator of
// the old root is never looked at; zero keeps the slots sorted.
func (t *Tree) raise(size device.Size, addr device.Addr, kid uint32) {
	top := t.newInner()
	in := &t.inners[top]
	in.insert(0, 0, 0, t.root)
	in.insert(1, size, addr, kid)
	t.root = top
	t.height++
}

// refill mends the leaf at the end of path that fell below a quarter, and what that does to the levels above.
//
// Precondition: the leaf is not the root.
func (t *Tree) refill() {
	if !t.refillLeaf() {
		return
	}
	for level := t.height - 1; level > 0; level-- {
		if t.inners[t.path[level].node].n >= minFill || !t.refillInner(level) {
			return
		}
	}
	if root := &t.inners[t.root]; root.n == 1 {
		old := t.root
		t.root = root.kids[0]
		t.dropInner(old)
		t.height--
	}
}

// siblings returns the parent of the node on a level, and the slots of the node and one
// neighbour, left one first.
func (t *Tree) siblings(level int32) (up *inner, i, j uint32) {
	s := t.path[level-1]
	up = &t.inners[s.node]
	if s.slot > 0 {
		return up, s.slot - 1, s.slot
	}
	return up, 0, 1
}

// refillLeaf merges the leaf at the end of path with a neighbour or shares with it, and
// reports whether the parent lost a child. The left of the two survives a merge, so that
// the separator that is lost is the one between them.
func (t *Tree) refillLeaf() bool {
	up, i, j := t.siblings(t.height)
	l, r := &t.leaves[up.kids[i]], &t.leaves[up.kids[j]]
	sum := l.n + r.n
	if sum <= maxMerged {
		l.take(r, r.n)
		t.dropLeaf(up.kids[j])
		up.remove(j)
		return true
	}
	if l.n < r.n {
		l.take(r, sum/2-l.n)
	} else {
		l.give(r, sum/2-r.n)
	}
	up.sizes[j], up.addrs[j] = r.sizes[0], r.addrs[0]
	return false
}

// refillInner does to an inner node what refillLeaf does to a leaf.
func (t *Tree) refillInner(level int32) bool {
	up, i, j := t.siblings(level)
	l, r := &t.inners[up.kids[i]], &t.inners[up.kids[j]]
	sum := l.n + r.n
	if sum <= maxMerged {
		l.take(r, r.n, up.sizes[j], up.addrs[j])
		t.dropInner(up.kids[j])
		up.remove(j)
		return true
	}
	if l.n < r.n {
		l.take(r, sum/2-l.n, up.sizes[j], up.addrs[j])
	} else {
		l.give(r, sum/2-r.n, up.sizes[j], up.addrs[j])
	}
	up.sizes[j], up.addrs[j] = r.sizes[0], r.addrs[0]
	return false
}
