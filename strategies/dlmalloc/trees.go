package dlmalloc

import (
	"cmp"
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/tiles"
)

const (
	smallBins = 32 // bin i has the chunks of i quanta
	treeBins  = 32 // two for each doubling from smallBins quanta on; the last has all larger chunks
	log2Small = 5
)

// scale maps sizes to bins: below smallBins the number of quanta, then the trees.
type scale struct {
	quantum uint8 // log2 of the quantum
}

// bin returns the bin of a chunk of a size.
func (s scale) bin(size device.Size) uint32 {
	u := uint64(size) >> (s.quantum & 63)
	if u < smallBins {
		return uint32(u)
	}
	k := uint32(bits.Len64(u)) - 1 - log2Small
	if k >= treeBins/2 {
		return smallBins + treeBins - 1
	}
	return smallBins + 2*k + uint32(u>>(k+log2Small-1)&1)
}

// path returns the bits of a size that its bin leaves open, the first at the top.
func (s scale) path(size device.Size, bin uint32) uint64 {
	u := uint64(size) >> (s.quantum & 63)
	if bin == smallBins+treeBins-1 {
		return u
	}
	return u << (64 - (log2Small - 1) - (bin-smallBins)>>1)
}

// trees are bitwise tries of free chunks, one for each tree bin. A chunk below the left child of a
// chunk has a zero in the next bit of its size, below the right child a one; the chunk itself is in
// no order to these. Chunks of one size are a ring from the oldest on, which alone is in the trie.
type trees struct {
	scale
	core  *tiles.Core
	marks uint64 // bit i: bin i is not empty; the small bins are below the trees
	roots [treeBins]tiles.Handle
	nodes []node // by handle
}

// node is the place of a chunk in its trie.
type node struct {
	child  [2]tiles.Handle
	parent tiles.Handle // of a root the root itself; None outside of the trie
}

// insert enters a chunk into the tree of its bin. O(bits of a size).
func (t *trees) insert(h tiles.Handle, bin uint32) {
	if int(h) >= len(t.nodes) {
		t.nodes = append(t.nodes, make([]node, len(t.core.Rows)-len(t.nodes))...)
	}
	t.nodes[h] = node{}
	size := t.core.Rows[h].Size
	link, parent := &t.roots[bin-smallBins], h
	for path := t.path(size, bin); *link != tiles.None; path <<= 1 {
		parent = *link
		if t.core.Rows[parent].Size == size {
			t.core.Link(h, t.core.Before(parent))
			return
		}
		link = &t.nodes[parent].child[path>>63]
	}
	*link = h
	t.nodes[h].parent = parent
	t.core.Alone(h)
}

// remove takes a chunk out of the tree of its bin. O(bits of a size).
func (t *trees) remove(h tiles.Handle, bin uint32) {
	n := &t.nodes[h]
	heir := t.core.After(h)
	if heir != h {
		t.core.Unlink(h)
		if n.parent == tiles.None {
			return // an older chunk of the size is in the trie
		}
	} else {
		heir = t.cutLeaf(h)
	}
	root := &t.roots[bin-smallBins]
	link := root
	if *root != h {
		siblings := &t.nodes[n.parent].child
		link = &siblings[0]
		if *link != h {
			link = &siblings[1]
		}
	}
	*link = heir
	switch {
	case heir != tiles.None:
		t.adopt(h, heir)
	case *root == tiles.None:
		t.marks &^= 1 << bin
	}
	n.parent = tiles.None
}

// cutLeaf takes a leaf out of the trie below a chunk and returns it, or None if it is a leaf
// itself. A leaf may replace any chunk above it, because the bits on the path of both are the same.
func (t *trees) cutLeaf(h tiles.Handle) tiles.Handle {
	var link *tiles.Handle
	leaf := tiles.None
	for next := h; ; {
		child := &t.nodes[next].child
		switch {
		case child[1] != tiles.None:
			link = &child[1]
		case child[0] != tiles.None:
			link = &child[0]
		default:
			if link != nil {
				*link = tiles.None
			}
			return leaf
		}
		leaf = *link
		next = leaf
	}
}

// adopt gives the place of h in the trie to heir.
func (t *trees) adopt(h, heir tiles.Handle) {
	n := t.nodes[h]
	if n.parent == h {
		n.parent = heir
	}
	t.nodes[heir] = n
	for _, child := range n.child {
		if child != tiles.None {
			t.nodes[child].parent = heir
		}
	}
}

// ceil returns the smallest chunk of at least a size, the oldest of equals, or None. Chunks of the
// size's own tree that it looks at are on its path; all others that are large enough are right of
// the path, the smallest in the subtree that leaves it last. O(bits of a size).
func (t *trees) ceil(size device.Size) tiles.Handle {
	bin := t.bin(size)
	best, right := tiles.None, tiles.None
	path := t.path(size, bin)
	for h := t.roots[bin-smallBins]; h != tiles.None; path <<= 1 {
		if best = t.better(best, h, size); t.core.Rows[best].Size == size {
			return best
		}
		child := t.nodes[h].child
		h = child[path>>63]
		if path>>63 == 0 && child[1] != tiles.None {
			right = child[1]
		}
	}
	if right == tiles.None && best == tiles.None {
		above := t.marks >> bin >> 1 << 1 << bin
		if above == 0 {
			return tiles.None
		}
		right = t.roots[bits.TrailingZeros64(above)-smallBins]
	}
	return t.better(best, t.smallest(right), size)
}

// better returns the smaller of two chunks that has at least a size. Either may be None.
func (t *trees) better(best, h tiles.Handle, size device.Size) tiles.Handle {
	rows := t.core.Rows
	if rows[h].Size >= size && (best == tiles.None || rows[h].Size < rows[best].Size) {
		return h
	}
	return best
}

// smallest returns the smallest chunk of a trie, the oldest of equals, or None: it is on the
// leftmost path. O(bits of a size).
func (t *trees) smallest(root tiles.Handle) tiles.Handle {
	best := root
	for h := root; h != tiles.None; h = cmp.Or(t.nodes[h].child[0], t.nodes[h].child[1]) {
		best = t.better(best, h, 1)
	}
	return best
}

// below appends the chunks of a trie that are in it themselves.
func (t *trees) below(root tiles.Handle, all []tiles.Handle) []tiles.Handle {
	if root == tiles.None {
		return all
	}
	child := t.nodes[root].child
	return t.below(child[1], t.below(child[0], append(all, root)))
}

// bytes returns the host memory of the nodes; the chunks are rows of the table.
func (t *trees) bytes() device.Size { return index.BytesOf(t.nodes) }
