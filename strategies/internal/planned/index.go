package planned

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/tiles"
)

// The owners of free chunks, as they appear in alloc.Chunk.Owner.
const (
	OwnerFallback uint8 = iota // outside of the arena
	OwnerArena                 // in the arena: only planned blocks lie there
)

// freeIndex holds the free chunks. The note of a free chunk is its entry in its map. It implements
// tiles.Index.
type freeIndex struct {
	core   *tiles.Core
	loose  index.SizeMap
	fixed  index.SizeMap // those in the arena
	places tiles.Places  // the same by address
	base   device.Addr   // of the arena
	end    device.Addr   // 0 without an arena
	first  tiles.Handle  // its first chunk, which keeps its handle
	busy   int           // live blocks in the arena
}

// within reports whether an address is in the arena.
func (x *freeIndex) within(a device.Addr) bool { return x.base <= a && a < x.end }

func (x *freeIndex) Insert(h tiles.Handle) {
	r := &x.core.Rows[h]
	if !x.within(r.Addr) {
		x.core.SetNote(h, x.loose.Insert(r.Size, r.Addr, h))
		return
	}
	x.core.SetNote(h, x.fixed.Insert(r.Size, r.Addr, h))
	x.places.Enter(h)
}

func (x *freeIndex) Remove(h tiles.Handle) {
	m, a := &x.loose, x.core.Rows[h].Addr
	if x.within(a) {
		m = &x.fixed
		x.places.Leave(h)
	}
	if !m.Remove(x.core.Note(h), h) {
		panic("planned: invariant Y1 (the maps hold the free chunks): the chunk at " + a.String() + " is in none")
	}
}

// take takes the smallest chunk of the fallback that serves out of its map, or returns tiles.None.
func (x *freeIndex) take(n, align device.Size) tiles.Handle {
	at := x.loose.Ceil(n)
	if x.core.Need(n, align) > n {
		at = x.loose.First(n, func(h uint32) bool { return x.core.Serves(h, n, align) })
	}
	if at == index.NoEntry {
		return tiles.None
	}
	return x.loose.Take(at)
}

// Largest implements tiles.Index. O(1).
func (x *freeIndex) Largest() device.Size { return max(x.loose.Largest(), x.fixed.Largest()) }

func (x *freeIndex) Bytes() device.Size {
	return x.loose.Bytes() + x.fixed.Bytes() + x.places.Bytes()
}

// All implements tiles.Index: the fallback before the arena, smallest first, among equals the
// lowest.
func (x *freeIndex) All(yield func(tiles.Handle) bool) {
	for _, m := range [...]*index.SizeMap{&x.loose, &x.fixed} {
		for e := range m.All {
			if !yield(e.Handle) {
				return
			}
		}
	}
}

// Show implements tiles.Index. There are no classes.
func (x *freeIndex) Show(h tiles.Handle) (class int32, owner uint8) {
	if x.within(x.core.Rows[h].Addr) {
		return alloc.NoClass, OwnerArena
	}
	return alloc.NoClass, OwnerFallback
}

// Check implements tiles.Index. Every entry is the key of a free chunk, keys are unique, and there
// are as many as free chunks: so they are the free chunks.
func (x *freeIndex) Check(n int) error {
	if got := x.loose.Len() + x.fixed.Len(); got != n {
		return fmt.Errorf("invariant Y1 (the maps hold the free chunks): %d entries, %d free chunks", got, n)
	}
	for _, m := range [...]*index.SizeMap{&x.loose, &x.fixed} {
		if err := m.Check(); err != nil {
			return fmt.Errorf("invariant Y1 (the maps hold the free chunks): %w", err)
		}
		for e := range m.All {
			r := &x.core.Rows[e.Handle]
			if !x.core.IsFree(e.Handle) || r.Addr != e.Addr || r.Size != e.Size || x.within(r.Addr) != (m == &x.fixed) {
				return fmt.Errorf("invariant Y1 (the maps hold the free chunks): entry %v, chunk of %d bytes at %v",
					e, uint64(r.Size), r.Addr)
			}
		}
	}
	return x.checkArena()
}

// checkArena checks the list by address and the count of live blocks.
func (x *freeIndex) checkArena() error {
	for e := range x.places.All {
		if r := &x.core.Rows[e.Value]; r.Addr != e.Addr || !x.core.IsFree(e.Value) || !x.within(e.Addr) {
			return fmt.Errorf("invariant Y1 (the list holds the free chunks of the arena): entry %v, chunk at %v", e.Addr,
				r.Addr)
		}
	}
	if x.places.Len() != x.fixed.Len() {
		return fmt.Errorf("invariant Y1 (the list holds the free chunks of the arena): %d entries, %d in the map",
			x.places.Len(), x.fixed.Len())
	}
	if x.end == 0 || x.busy == 0 && x.places.Len() == 0 { // none, or released since
		return nil
	}
	live, at := 0, x.base
	for h := x.first; h != tiles.None; h = x.core.Rows[h].Next {
		if !x.core.IsFree(h) {
			live++
		}
		at = x.core.Rows[h].End()
	}
	if live != x.busy || at != x.end {
		return fmt.Errorf("invariant Y2 (the live blocks of the arena are counted): %d live up to %v, counted %d up to %v",
			live, at, x.busy, x.end)
	}
	return nil
}
