package bestfit

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/freetree"
	"github.com/vramyard/vramyard/internal/planted"
	"github.com/vramyard/vramyard/internal/tiles"
)

// The owners of free chunks, as they appear in alloc.Chunk.Owner.
const (
	OwnerHole uint8 = iota // a live chunk lies behind it, or tails are holes
	OwnerTail              // the last chunk of its region
)

// index is the free chunks by size and address. It implements tiles.Index.
type index struct {
	core   *tiles.Core
	apart  bool // tails are kept apart
	looks  int
	spread device.Size // chunks that exceed the smallest by a spread-th of the request are too large
	holes  freetree.Tree
	tails  freetree.Tree
}

// treeOf returns the tree that a free chunk belongs to. A chunk remains a tail or a hole
// while it is free, because regions do not change.
func (x *index) treeOf(h tiles.Handle) *freetree.Tree {
	if x.apart && x.core.IsTail(h) && !(planted.Enabled && planted.Is("bestfit/tail-among-holes")) {
		return &x.tails
	}
	return &x.holes
}

// Insert implements tiles.Index.
func (x *index) Insert(h tiles.Handle) {
	if planted.Enabled && planted.Is("bestfit/lost-remainder") && x.core.IsTail(h) {
		return
	}
	r := &x.core.Rows[h]
	x.treeOf(h).Insert(freetree.Entry{Size: r.Size, Addr: r.Addr, Handle: h})
}

// Remove implements tiles.Index. Address and size are the key, so they must not have changed
// since the chunk was inserted.
func (x *index) Remove(h tiles.Handle) {
	r := &x.core.Rows[h]
	if _, ok := x.treeOf(h).Delete(r.Size, r.Addr); !ok {
		panic("bestfit: invariant F1 (the trees hold the free chunks): the chunk at " + r.Addr.String() + " is in none")
	}
}

// take takes the chunk that serves a request of n bytes out of the index and returns it,
// tiles.None if there is none. O(log chunks), and for an alignment above the quantum O(chunks
// that are large enough but misplaced).
func (x *index) take(n, align device.Size) tiles.Handle {
	need := x.core.Need(n, align)
	if need > n {
		return x.takeAligned(n, align)
	}
	if planted.Enabled && planted.Is("bestfit/passes-exact-fit") {
		n++
	}
	h, ok := x.holes.TakeNear(n, n/x.spread, x.looks)
	if ok {
		return h
	}
	if h, ok = x.tails.TakeCeil(n); ok {
		return h
	}
	return tiles.None
}

// takeAligned is take for an alignment that not every chunk of the size serves: the smallest
// that does.
func (x *index) takeAligned(n, align device.Size) tiles.Handle {
	if h := x.firstAligned(&x.holes, n, align); h != tiles.None {
		return h
	}
	return x.firstAligned(&x.tails, n, align)
}

// firstAligned is takeAligned in one tree. The walk ends at the first chunk that has room
// wherever it starts, so it is bounded by how many sizes lie below.
func (x *index) firstAligned(t *freetree.Tree, n, align device.Size) tiles.Handle {
	if planted.Enabled && planted.Is("bestfit/aligned-by-size") {
		n = x.core.Need(n, align)
	}
	for at := t.Seek(n); ; at = t.Next(at) {
		e, ok := t.At(at)
		if !ok {
			return tiles.None
		}
		if x.core.Serves(e.Handle, n, align) {
			t.Delete(e.Size, e.Addr)
			return e.Handle
		}
	}
}

// Largest implements tiles.Index. O(1).
func (x *index) Largest() (largest device.Size) {
	if e, ok := x.holes.Max(); ok {
		largest = e.Size
	}
	if e, ok := x.tails.Max(); ok && !(planted.Enabled && planted.Is("bestfit/hole-without-tails")) {
		largest = max(largest, e.Size)
	}
	return largest
}

// Bytes implements tiles.Index.
func (x *index) Bytes() device.Size { return x.holes.Bytes() + x.tails.Bytes() }

// All implements tiles.Index: holes before tails, smallest first, among equals the lowest.
func (x *index) All(yield func(tiles.Handle) bool) {
	for _, t := range []*freetree.Tree{&x.holes, &x.tails} {
		for e := range t.All {
			if !yield(e.Handle) {
				return
			}
		}
	}
}

// Show implements tiles.Index. There are no classes.
func (x *index) Show(h tiles.Handle) (class int32, owner uint8) {
	if x.apart && x.core.IsTail(h) {
		return alloc.NoClass, OwnerTail
	}
	return alloc.NoClass, OwnerHole
}

// Check implements tiles.Index. Every entry is the key of a free chunk, keys are unique, and
// there are as many as free chunks: so they are the free chunks.
func (x *index) Check(n int) error {
	if got := x.holes.Len() + x.tails.Len(); got != n {
		return fmt.Errorf("invariant F1 (the trees hold the free chunks): %d entries, %d free chunks", got, n)
	}
	for _, t := range []*freetree.Tree{&x.holes, &x.tails} {
		if err := t.Check(); err != nil {
			return fmt.Errorf("invariant F1 (the trees hold the free chunks): %w", err)
		}
		for e := range t.All {
			r := &x.core.Rows[e.Handle]
			if !r.IsFree() || r.Addr != e.Addr || r.Size != e.Size {
				return fmt.Errorf("invariant F1 (the trees hold the free chunks): entry %v, chunk of %d bytes at %v",
					e, uint64(r.Size), r.Addr)
			}
			if tail := x.apart && x.core.IsTail(e.Handle); tail != (t == &x.tails) {
				return fmt.Errorf("invariant F2 (tails are apart): the chunk at %v is in the wrong tree", e.Addr)
			}
		}
	}
	return nil
}
