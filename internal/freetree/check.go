package freetree

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// Check verifies the invariants of the package comment and returns an error that names the
// broken one. O(n).
func (t *Tree) Check() error {
	if len(t.leaves) == 0 {
		if t.n != 0 {
			return fmt.Errorf("freetree: invariant T4 (length): %d without a leaf", t.n)
		}
		return nil
	}
	walk := checker{t: t, last: none}
	if err := walk.node(t.root, 0, Entry{}, Entry{Size: ^Entry{}.Size, Addr: ^Entry{}.Addr}); err != nil {
		return err
	}
	switch {
	case walk.n != t.n:
		return fmt.Errorf("freetree: invariant T4 (length): %d entries, length says %d", walk.n, t.n)
	case walk.last != t.last || t.leaves[t.last].next != none:
		return fmt.Errorf("freetree: invariant T4 (ends): the last leaf is %d, the tree says %d", walk.last, t.last)
	}
	return nil
}

// vacant reports whether the slots from n on are as vacate leaves them.
func vacant(sizes *[fanout]device.Size, n uint32) bool {
	for _, s := range sizes[n:] {
		if s != ^device.Size(0) {
			return false
		}
	}
	return true
}

// checker is a walk over the nodes from left to right.
type checker struct {
	t    *Tree
	n    int    // entries seen
	last uint32 // leaf seen last
}

// node checks a node on a level, all of whose keys must lie in [lo, hi].
func (c *checker) node(at uint32, level int32, lo, hi Entry) error {
	if level == c.t.height {
		return c.leaf(at, lo, hi)
	}
	in := &c.t.inners[at]
	if least := uint32(minFill); level > 0 && in.n < least || in.n < 2 {
		return fmt.Errorf("freetree: invariant T3 (fill): node %d has %d children", at, in.n)
	}
	if !vacant(&in.sizes, in.n) {
		return fmt.Errorf("freetree: invariant T5 (unused slots): node %d", at)
	}
	for i := range in.n {
		from, to := lo, hi
		if i > 0 {
			from = Entry{Size: in.sizes[i], Addr: in.addrs[i]}
		}
		if i+1 < in.n {
			to = Entry{Size: in.sizes[i+1], Addr: in.addrs[i+1]}
		}
		if err := c.node(in.kids[i], level+1, from, to); err != nil {
			return err
		}
	}
	return nil
}

// leaf checks a leaf and its place in the list.
func (c *checker) leaf(at uint32, lo, hi Entry) error {
	l := &c.t.leaves[at]
	if c.t.height > 0 && l.n < minFill {
		return fmt.Errorf("freetree: invariant T3 (fill): leaf %d has %d entries", at, l.n)
	}
	if l.prev != c.last || c.last == none && c.t.first != at || c.last != none && c.t.leaves[c.last].next != at {
		return fmt.Errorf("freetree: invariant T1 (leaf list): leaf %d does not follow leaf %d", at, c.last)
	}
	for i := range l.n {
		e := l.entry(i)
		if e.less(lo) || hi.less(e) || i > 0 && !l.entry(i-1).less(e) {
			return fmt.Errorf("freetree: invariant T2 (order): entry %v of leaf %d lies outside %v to %v, or not above its left neighbour",
				e, at, lo, hi)
		}
	}
	if !vacant(&l.sizes, l.n) {
		return fmt.Errorf("freetree: invariant T5 (unused slots): leaf %d", at)
	}
	c.last = at
	c.n += int(l.n)
	return nil
}
