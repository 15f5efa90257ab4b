package tlsf

import (
	"fmt"
	"math"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/tiles"
)

// The owners of free chunks, as they appear in alloc.Chunk.Owner.
const (
	OwnerHole uint8 = iota // a live chunk follows it, or tails are treated as holes
	OwnerTail              // the last chunk of its region
)

// freeIndex holds the free chunks: holes in lists by class, and tails, at most one for each region,
// in a map. It implements tiles.Index.
type freeIndex struct {
	lists
	apart      bool          // tails are in the map instead of the lists
	exhaustive bool          // the search visits every chunk before it fails
	scan       int           // number of chunks of the request's own class that are tried first
	tails      index.SizeMap // the note of a tail is its entry here
}

// isApart reports whether a free chunk belongs into the map. This does not change while it is free,
// because regions do not change.
func (x *freeIndex) isApart(h tiles.Handle) bool {
	return x.apart && x.core.IsTail(h)
}

// Insert implements tiles.Index. O(1), but for order address O(chunks of the class below it).
//
// It sets the bits even if they are set: whether the ring was empty is unpredictable, and this
// takes no branch.
func (x *freeIndex) Insert(h tiles.Handle) {
	r := &x.core.Rows[h]
	if r.Next == tiles.None && x.isApart(h) {
		x.insertTail(h)
		return
	}
	class := x.class(r.Size)
	if class >= uint32(len(x.rings)) {
		x.extend(class)
	}
	ring := x.rings[class]
	if x.order != lifo {
		ring = x.place(ring, x.core.Rows[h].Addr)
	}
	x.core.Link(h, ring)
	x.first |= 1 << (class >> 6 & 63)
	x.lists.second[class>>6&63] |= 1 << (class & 63)
}

func (x *freeIndex) insertTail(h tiles.Handle) {
	r := &x.core.Rows[h]
	x.core.SetNote(h, x.tails.Insert(r.Size, r.Addr, h))
}

// Remove implements tiles.Index. A no-op for None.
func (x *freeIndex) Remove(h tiles.Handle) {
	if x.isApart(h) && h != tiles.None {
		x.removeTail(h)
		return
	}
	x.remove(h)
}

func (x *freeIndex) removeTail(h tiles.Handle) {
	if !x.tails.Remove(x.core.Note(h), h) {
		panic("tlsf: invariant L4 (the map holds the tails): the chunk at " + x.core.AddrOf(h).String() + " is not there")
	}
}

// take removes and returns a chunk for n bytes, or returns tiles.None. O(1 + scan), unless every
// chunk is visited.
func (x *freeIndex) take(n, align device.Size) tiles.Handle {
	need := x.core.Need(n, align)
	sure := x.sure(need)
	if x.scan > 0 {
		if own := x.class(need); own != sure {
			if h := x.search(own, x.scan, n, align); h != tiles.None {
				return h
			}
		}
	}
	if class, ok := x.lowest(sure); ok {
		if x.scan > 1 {
			return x.search(class, x.scan, n, align)
		}
		h := x.core.After(x.rings[class])
		if x.core.Unlink(h) {
			x.unmark(h)
		}
		return h
	}
	if x.exhaustive {
		for class := x.class(n); class < sure; class++ {
			if h := x.search(class, math.MaxInt, n, align); h != tiles.None {
				return h
			}
		}
	}
	return x.takeTail(n, align)
}

// search takes the first of at most looks chunks of a class that serves.
func (x *freeIndex) search(class uint32, looks int, n, align device.Size) tiles.Handle {
	if class >= uint32(len(x.rings)) {
		return tiles.None
	}
	ring := x.rings[class]
	best, lowest := tiles.None, ^device.Addr(0)
	for h := x.core.After(ring); h != ring && looks > 0; looks-- {
		if a := x.core.Rows[h].Addr; a < lowest && x.core.Serves(h, n, align) {
			best, lowest = h, a
		}
		h = x.core.After(h)
	}
	if best != tiles.None {
		x.remove(best)
	}
	return best
}

// takeTail removes and returns the smallest tail that serves. There are at most as many tails as
// regions.
func (x *freeIndex) takeTail(n, align device.Size) tiles.Handle {
	at := x.tails.First(n, func(h uint32) bool {
		return x.core.Serves(h, n, align)
	})
	if at == index.NoEntry {
		return tiles.None
	}
	return x.tails.Take(at)
}

// Largest implements tiles.Index. It reads the list of the highest class, unless a tail is larger
// than that class.
func (x *freeIndex) Largest() (largest device.Size) {
	largest = x.tails.Largest()
	class, ok := x.highest()
	if !ok || largest > 0 && x.class(largest) > class {
		return largest
	}
	ring := x.rings[class]
	for h := x.core.After(ring); h != ring; h = x.core.After(h) {
		largest = max(largest, x.core.Rows[h].Size)
	}
	return largest
}

func (x *freeIndex) Bytes() device.Size { return x.bytes() + x.tails.Bytes() }

// All implements tiles.Index: the lists from the lowest class up, then tails by size.
func (x *freeIndex) All(yield func(tiles.Handle) bool) {
	for class, ok := x.lowest(0); ok; class, ok = x.lowest(class + 1) {
		ring := x.rings[class]
		for h := x.core.After(ring); h != ring; h = x.core.After(h) {
			if !yield(h) {
				return
			}
		}
	}
	for e := range x.tails.All {
		if !yield(e.Handle) {
			return
		}
	}
}

// Show implements tiles.Index. Tails have the class of their size too.
func (x *freeIndex) Show(h tiles.Handle) (class int32, owner uint8) {
	if x.apart && x.core.IsTail(h) {
		owner = OwnerTail
	}
	return int32(x.class(x.core.Rows[h].Size)), owner
}

// Check implements tiles.Index. The entries are distinct and as many as the free chunks, so they
// are the free chunks.
func (x *freeIndex) Check(n int) error {
	holes := 0
	for class := range uint32(len(x.rings)) {
		k, err := x.checkList(class, n)
		if err != nil {
			return err
		}
		holes += k
		word := x.lists.second[class>>6]
		if k > 0 != (word>>(class&63)&1 == 1) || (word != 0) != (x.first>>(class>>6)&1 == 1) {
			return fmt.Errorf("invariant L2 (bits say which lists are not empty): class %d has %d chunks", class, k)
		}
	}
	if holes+x.tails.Len() != n {
		return fmt.Errorf("invariant L1 (the lists hold the free chunks): %d holes and %d tails, %d free chunks", holes,
			x.tails.Len(), n)
	}
	if err := x.tails.Check(); err != nil {
		return fmt.Errorf("invariant L4 (the map holds the tails): %w", err)
	}
	for e := range x.tails.All {
		r := &x.core.Rows[e.Handle]
		if !x.apart || !x.core.IsTail(e.Handle) || !x.core.IsFree(e.Handle) || r.Addr != e.Addr || r.Size != e.Size {
			return fmt.Errorf("invariant L4 (the map holds the tails): entry %v, chunk of %d bytes at %v", e,
				uint64(r.Size), r.Addr)
		}
	}
	return nil
}

// checkList checks one list, which cannot have more than n chunks, and returns how many.
func (x *freeIndex) checkList(class uint32, n int) (count int, err error) {
	ring := x.rings[class]
	prev := ring
	for h := x.core.After(ring); h != ring; h = x.core.After(h) {
		r := &x.core.Rows[h]
		if count++; count > n || !x.core.IsFree(h) || x.class(r.Size) != class || x.core.Before(h) != prev {
			return 0, fmt.Errorf("invariant L1 (the lists hold the free chunks): chunk %d of %d bytes is number %d of class %d",
				h, uint64(r.Size), count, class)
		}
		if x.order == address && count > 1 && x.core.Rows[prev].Addr >= r.Addr {
			return 0, fmt.Errorf("invariant L3 (order of the lists): %v comes before %v", x.core.Rows[prev].Addr, r.Addr)
		}
		if x.apart && x.core.IsTail(h) {
			return 0, fmt.Errorf("invariant L4 (the map holds the tails): the chunk at %v is in a list", r.Addr)
		}
		prev = h
	}
	if last := x.core.Before(ring); last != prev {
		return 0, fmt.Errorf("invariant L1 (the lists hold the free chunks): class %d ends with chunk %d, not %d", class,
			prev, last)
	}
	return count, nil
}
