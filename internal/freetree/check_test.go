package freetree

import (
	"strings"
	"testing"

	"github.com/vramyard/vramyard/device"
)

// tall returns a tree of three levels: keys (i, 0) in random-looking order.
func tall(t *testing.T) *Tree {
	t.Helper()
	tree := new(Tree)
	const n = 4099 // prime, so that the steps visit every key once
	for i := range n {
		k := i * 1009 % n
		tree.Insert(Entry{Size: device.Size(k), Handle: uint32(k)})
	}
	if err := tree.Check(); err != nil || tree.height != 2 {
		t.Fatalf("height %d, %v", tree.height, err)
	}
	return tree
}

// TestCheckNamesWhatIsBroken plants one fault at a time.
func TestCheckNamesWhatIsBroken(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Tree)
		want  string
	}{
		"leaf order":       {func(t *Tree) { l := &t.leaves[t.first]; l.sizes[0], l.sizes[1] = l.sizes[1], l.sizes[0] }, "T2"},
		"equal keys":       {func(t *Tree) { l := &t.leaves[t.first]; l.sizes[1] = l.sizes[0] }, "T2"},
		"below separator":  {func(t *Tree) { t.leaves[t.last].sizes[0] = 1 }, "T2"},
		"separator":        {func(t *Tree) { t.inners[t.root].sizes[1] = 1 }, "T2"},
		"list":             {func(t *Tree) { t.leaves[t.first].next = t.last }, "T1"},
		"list, backwards":  {func(t *Tree) { t.leaves[t.last].prev = t.first }, "T1"},
		"first":            {func(t *Tree) { t.first = t.last }, "T1"},
		"last":             {func(t *Tree) { t.last = t.first }, "T4"},
		"length":           {func(t *Tree) { t.n++ }, "T4"},
		"leaf fill":        {func(t *Tree) { l := &t.leaves[t.last]; vacate(&l.sizes, minFill-1, l.n); l.n = minFill - 1 }, "T3"},
		"inner fill":       {func(t *Tree) { in := &t.inners[t.inners[t.root].kids[0]]; vacate(&in.sizes, 2, in.n); in.n = 2 }, "T3"},
		"unused leaf slot": {func(t *Tree) { l := &t.leaves[t.last]; vacate(&l.sizes, 9, l.n); l.n = 9; l.sizes[20] = 7 }, "T5"},
		"unused inner slot": {func(t *Tree) {
			in := &t.inners[t.root]
			in.sizes[in.n] = 7
		}, "T5"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := tall(t)
			c.spoil(tree)
			err := tree.Check()
			if err == nil || !strings.HasPrefix(err.Error(), "freetree: invariant "+c.want+" (") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestLengthWithoutLeavesIsBroken(t *testing.T) {
	if err := (&Tree{n: 1}).Check(); err == nil {
		t.Error("one entry in no leaf")
	}
}

// TestSearchFindsTheFirstKeyNotBelow compares search with a scan at every population and
// for keys on, between and beyond those of the node.
func TestSearchFindsTheFirstKeyNotBelow(t *testing.T) {
	for n := range uint32(fanout + 1) {
		for _, tie := range []uint32{1, 2, 5, fanout} { // entries of each size
			var l leaf
			vacate(&l.sizes, 0, fanout)
			for i := range n {
				l.insert(i, Entry{Size: device.Size(10 + i/tie), Addr: device.Addr(2 * i)})
			}
			for size := device.Size(9); size < 12+device.Size(n); size++ {
				for addr := range device.Addr(2*n + 2) {
					want := uint32(0)
					for want < n && l.entry(want).less(Entry{Size: size, Addr: addr}) {
						want++
					}
					if got := l.find(size, addr); got != want {
						t.Fatalf("%d entries, %d of a size: key (%d, %d) at %d, want %d", n, tie, size, addr, got, want)
					}
				}
			}
		}
	}
}

// TestOneKeyAtTheEdgeMovesNothing adds and removes one key after every kind of change to
// the shape, and counts nodes: the bounds for splits and merges must lie apart.
func TestOneKeyAtTheEdgeMovesNothing(t *testing.T) {
	tree := tall(t)
	for i := range 4000 {
		tree.Delete(device.Size(i), 0)
		nodes := func() int { return tree.nodes(tree.root, 0) }
		before, changes := nodes(), 0
		for range 6 {
			tree.Insert(Entry{Size: device.Size(i)})
			if n := nodes(); n != before {
				before, changes = n, changes+1
			}
			tree.Delete(device.Size(i), 0)
			if n := nodes(); n != before {
				before, changes = n, changes+1
			}
		}
		if changes > 1 {
			t.Fatalf("key %d: %d changes of shape", i, changes)
		}
	}
}

// nodes counts the nodes below one.
func (t *Tree) nodes(at uint32, level int32) int {
	if level == t.height {
		return 1
	}
	n := 1
	in := &t.inners[at]
	for _, kid := range in.kids[:in.n] {
		n += t.nodes(kid, level+1)
	}
	return n
}
