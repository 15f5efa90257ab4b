package dlmalloc

import (
	"fmt"

	"github.com/vramyard/vramyard/kit/tiles"
)

// invariantNames has short names of the invariants of the package comment, by number.
var invariantNames = [...]string{
	1: "bins, dv and top hold the free chunks",
	2: "a small bin holds one size",
	3: "a bit says whether its bin is empty",
	4: "a trie follows the bits of sizes",
	5: "a ring holds one size, the oldest in the trie",
	6: "top is the end of the active region",
}

func broken(number int, format string, args ...any) error {
	return fmt.Errorf("invariant E%d (%s): %s", number, invariantNames[number], fmt.Sprintf(format, args...))
}

// Check implements tiles.Index. There are as many entries as free chunks and none is there
// twice, so they are the free chunks.
func (x *freeIndex) Check(n int) error {
	found := 0
	for _, h := range []tiles.Handle{x.dv, x.top} {
		if h == tiles.None {
			continue
		}
		found++
		if !x.core.IsFree(h) {
			return broken(1, "chunk %d is dv or top, and not free", h)
		}
		if x.isTop(h) != (h == x.top) {
			return broken(6, "chunk at %v, active region ends at %v", x.core.AddrOf(h), x.end)
		}
	}
	for bin := range uint32(smallBins + treeBins) {
		k, err := x.checkBin(bin, n)
		if err != nil {
			return err
		}
		if k > 0 != (x.marks>>bin&1 == 1) {
			return broken(3, "bin %d has %d chunks", bin, k)
		}
		found += k
	}
	if found != n {
		return broken(1, "%d entries, %d free chunks", found, n)
	}
	return nil
}

// checkBin checks a bin, which cannot have more than n chunks, and returns how many.
func (x *freeIndex) checkBin(bin uint32, n int) (count int, err error) {
	if bin >= smallBins {
		root := x.roots[bin-smallBins]
		return x.checkTrie(root, root, bin, 0, 0, n)
	}
	prev := x.small[bin]
	for h := x.core.After(prev); h != x.small[bin]; prev, h = h, x.core.After(h) {
		if count++; count > n || x.core.Before(h) != prev {
			return 0, broken(2, "chunk %d is number %d of bin %d", h, count, bin)
		}
		if err := x.checkBinned(h, bin); err != nil {
			return 0, err
		}
	}
	return count, nil
}

// checkBinned checks that a chunk may be in a bin.
func (x *freeIndex) checkBinned(h tiles.Handle, bin uint32) error {
	switch size := x.core.Rows[h].Size; {
	case !x.core.IsFree(h) || h == x.dv:
		return broken(1, "chunk %d of bin %d is live, or dv", h, bin)
	case x.bin(size) != bin:
		return broken(2, "chunk %d of %d bytes in bin %d", h, uint64(size), bin)
	case x.isTop(h):
		return broken(6, "chunk at %v in bin %d", x.core.AddrOf(h), bin)
	}
	return nil
}

// checkTrie checks a trie below a parent, whose chunks have the first depth bits of their paths
// from the parent on, and returns the number of its chunks.
func (x *freeIndex) checkTrie(h, parent tiles.Handle, bin uint32, above uint64, depth, n int) (count int, err error) {
	if h == tiles.None {
		return 0, nil
	}
	size := x.core.Rows[h].Size
	if int(h) >= len(x.nodes) || x.nodes[h].parent != parent || x.path(size, bin)>>1>>(63-depth) != above {
		return 0, broken(4, "chunk %d of %d bytes is below chunk %d in bin %d, at depth %d", h, uint64(size),
			parent, bin, depth)
	}
	if count, err = x.checkRing(h, bin, n); err != nil {
		return 0, err
	}
	for side, child := range x.nodes[h].child {
		k, err := x.checkTrie(child, h, bin, above<<1|uint64(side), depth+1, n)
		if err != nil {
			return 0, err
		}
		count += k
	}
	return count, nil
}

// checkRing checks the chunks of one size, which cannot be more than n, and returns how many.
func (x *freeIndex) checkRing(first tiles.Handle, bin uint32, n int) (count int, err error) {
	for h := first; ; {
		if count++; count > n || x.core.Rows[h].Size != x.core.Rows[first].Size || x.core.Before(x.core.After(h)) != h {
			return 0, broken(5, "chunk %d is number %d of the ring of chunk %d", h, count, first)
		}
		if err := x.checkBinned(h, bin); err != nil {
			return 0, err
		}
		if h = x.core.After(h); h == first {
			return count, nil
		}
		if int(h) >= len(x.nodes) || x.nodes[h].parent != tiles.None {
			return 0, broken(5, "chunk %d is in the trie and in the ring of chunk %d", h, first)
		}
	}
}
