package bestfit

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/tiles"
)

// The owners of free chunks, as they appear in alloc.Chunk.Owner.
const (
	OwnerHole uint8 = iota // a live chunk follows it, or tails are treated as holes
	OwnerTail              // the last chunk of its region
)

// freeIndex holds the free chunks by size and address. The note of a free chunk is its entry in its
// map. It implements tiles.Index.
type freeIndex struct {
	core   *tiles.Core
	apart  bool // tails are kept apart
	looks  int
	spread device.Size // chunks that exceed the smallest by a spread-th of the request are too large
	holes  index.SizeMap
	tails  index.SizeMap

	tracked bool // places holds the free chunks too
	places  tiles.Places
}

// mapOf returns the map that a free chunk belongs to. A chunk remains a tail or a hole
// while it is free, because regions do not change.
func (x *freeIndex) mapOf(h tiles.Handle) *index.SizeMap {
	if x.apart && x.core.IsTail(h) {
		return &x.tails
	}
	return &x.holes
}

func (x *freeIndex) Insert(h tiles.Handle) {
	r := &x.core.Rows[h]
	x.core.SetNote(h, x.mapOf(h).Insert(r.Size, r.Addr, h))
	if x.tracked {
		x.places.Enter(h)
	}
}

func (x *freeIndex) Remove(h tiles.Handle) {
	if !x.mapOf(h).Remove(x.core.Note(h), h) {
		panic("bestfit: invariant F1 (the maps hold the free chunks): the chunk at " + x.core.AddrOf(h).String() +
			" is in none")
	}
	if x.tracked {
		x.places.Leave(h)
	}
}

// take takes the chunk for n bytes out of the index, or returns tiles.None. O(looks), and for an
// alignment above the quantum O(chunks that are large enough but misplaced).
func (x *freeIndex) take(n, align device.Size) tiles.Handle {
	h := x.search(n, align)
	if x.tracked && h != tiles.None {
		x.places.Leave(h)
	}
	return h
}

func (x *freeIndex) search(n, align device.Size) tiles.Handle {
	need := x.core.Need(n, align)
	if need > n {
		return x.takeAligned(n, align)
	}
	if at := x.holes.Near(n, n/x.spread, x.looks); at != index.NoEntry {
		return x.holes.Take(at)
	}
	if at := x.tails.Ceil(n); at != index.NoEntry {
		return x.tails.Take(at)
	}
	return tiles.None
}

// takeAligned is take for an alignment that not every chunk of the size serves: the smallest
// that does.
func (x *freeIndex) takeAligned(n, align device.Size) tiles.Handle {
	if h := x.firstAligned(&x.holes, n, align); h != tiles.None {
		return h
	}
	return x.firstAligned(&x.tails, n, align)
}

// firstAligned is takeAligned in one map. The walk ends at the first size that fits at any start.
func (x *freeIndex) firstAligned(m *index.SizeMap, n, align device.Size) tiles.Handle {
	if at := m.First(n, func(h uint32) bool { return x.core.Serves(h, n, align) }); at != index.NoEntry {
		return m.Take(at)
	}
	return tiles.None
}

// Largest implements tiles.Index. O(1).
func (x *freeIndex) Largest() device.Size {
	return max(x.holes.Largest(), x.tails.Largest())
}

func (x *freeIndex) Bytes() device.Size {
	return x.holes.Bytes() + x.tails.Bytes() + x.places.Bytes()
}

// All implements tiles.Index: holes before tails, smallest first, among equals the lowest.
func (x *freeIndex) All(yield func(tiles.Handle) bool) {
	for _, m := range []*index.SizeMap{&x.holes, &x.tails} {
		for e := range m.All {
			if !yield(e.Handle) {
				return
			}
		}
	}
}

// Show implements tiles.Index. There are no classes.
func (x *freeIndex) Show(h tiles.Handle) (class int32, owner uint8) {
	if x.apart && x.core.IsTail(h) {
		return alloc.NoClass, OwnerTail
	}
	return alloc.NoClass, OwnerHole
}

// Check implements tiles.Index. Every entry is the key of a free chunk, keys are unique, and
// there are as many as free chunks: so they are the free chunks.
func (x *freeIndex) Check(n int) error {
	if got := x.holes.Len() + x.tails.Len(); got != n {
		return fmt.Errorf("invariant F1 (the maps hold the free chunks): %d entries, %d free chunks", got, n)
	}
	for _, m := range []*index.SizeMap{&x.holes, &x.tails} {
		if err := m.Check(); err != nil {
			return fmt.Errorf("invariant F1 (the maps hold the free chunks): %w", err)
		}
		for e := range m.All {
			r := &x.core.Rows[e.Handle]
			if !x.core.IsFree(e.Handle) || r.Addr != e.Addr || r.Size != e.Size {
				return fmt.Errorf("invariant F1 (the maps hold the free chunks): entry %v, chunk of %d bytes at %v",
					e, uint64(r.Size), r.Addr)
			}
			if tail := x.apart && x.core.IsTail(e.Handle); tail != (m == &x.tails) {
				return fmt.Errorf("invariant F2 (tails are apart): the chunk at %v is in the wrong map", e.Addr)
			}
		}
	}
	return x.checkPlaces(n)
}
