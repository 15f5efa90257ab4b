package xdl

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
)

var (
	_ alloc.Strategy   = (*Allocator)(nil)
	_ power.Holes      = (*Allocator)(nil)
	_ power.FreeWalker = (*Allocator)(nil)
	_ power.Metered    = (*Allocator)(nil)
	_ power.Neighbours = (*Allocator)(nil)
	_ power.Placer     = (*Allocator)(nil)
)

// LargestFree implements [power.Holes]. It reads one byte per region of the buddy part.
func (a *Allocator) LargestFree() device.Size {
	if a.front.Closed() {
		return 0
	}
	return max(a.slab.LargestFree(), a.buddy.LargestFree())
}

func (a *Allocator) freeBytes() device.Size { return a.slab.FreeBytes() + a.buddy.FreeBytes() }

func (a *Allocator) MetadataBytes() device.Size {
	n := a.regions.Bytes() + a.direct.Bytes()
	if !a.front.Closed() {
		n += a.slab.MetadataBytes() + a.buddy.MetadataBytes()
	}
	return n
}

// Walk implements [alloc.Inspector]. The regions of all parts are yielded by address; Owner is the
// part.
func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	var owner uint8
	owned := func(c alloc.Chunk) bool {
		c.Owner = owner
		return yield(c)
	}
	for i := range a.regions.Len() {
		h := a.regions.At(i)
		owner = uint8(h.Label)
		if !a.walkHeld(h, owned) {
			return
		}
	}
}

// walkHeld yields the chunks of one region. It reports whether the walk goes on.
func (a *Allocator) walkHeld(h regions.Held, yield func(alloc.Chunk) bool) bool {
	switch {
	case a.front.Closed():
		return regions.Excess(h.Region, 0, yield)
	case uint8(h.Label) == slabbuddy.OwnerSlab:
		return a.slab.WalkRegion(h.Addr, yield)
	case uint8(h.Label) == slabbuddy.OwnerBuddy:
		return a.buddy.WalkRegion(h.Addr, yield)
	}
	b, ok := a.direct.Get(h.Addr)
	if !ok {
		return regions.Excess(h.Region, 0, yield)
	}
	return yield(alloc.Chunk{
		Region: h.Addr, Addr: h.Addr, Size: b.Requested, Requested: b.Requested, State: alloc.Live,
		Class: alloc.NoClass, Stream: b.Stream, Tag: b.Tag,
	}) && regions.Excess(h.Region, b.Requested, yield)
}

// WalkFree implements [power.FreeWalker]: the slab part in its order, then the buddy part.
func (a *Allocator) WalkFree(yield func(alloc.Chunk) bool) {
	if a.front.Closed() {
		return
	}
	more := true
	a.slab.WalkFree(func(c alloc.Chunk) bool {
		c.Owner = slabbuddy.OwnerSlab
		more = yield(c)
		return more
	})
	if !more {
		return
	}
	a.buddy.WalkFree(func(c alloc.Chunk) bool {
		c.Owner = slabbuddy.OwnerBuddy
		return yield(c)
	})
}

// Check implements [alloc.Inspector]. It checks both parts and what joins them.
func (a *Allocator) Check() error {
	if !a.front.Closed() {
		if err := a.slab.Check(); err != nil {
			return fmt.Errorf("slabbuddy: invariant R5 (each part keeps its own): %w", err)
		}
		if err := a.buddy.Check(); err != nil {
			return fmt.Errorf("slabbuddy: invariant R5 (each part keeps its own): %w", err)
		}
		if err := a.checkOwners(); err != nil {
			return err
		}
	}
	if err := front.CompareStats(a.front.Stats, a.Walk); err != nil {
		return fmt.Errorf("slabbuddy: invariant R6 (counters match the walk): %w", err)
	}
	return nil
}

func (a *Allocator) checkOwners() error {
	for c := range a.Walk {
		if c.State == alloc.Live && a.route(c.Requested) != c.Owner {
			return fmt.Errorf("slabbuddy: invariant R1 (the size alone routes): block %v of %d bytes is with owner %d",
				c.Addr, c.Requested, c.Owner)
		}
	}
	var held [slabbuddy.OwnerDirect + 1]int
	for i := range a.regions.Len() {
		held[a.regions.At(i).Label]++
	}
	if s, b := a.slab.Stats().Regions, a.buddy.Stats().Regions; held[slabbuddy.OwnerSlab] != s ||
		held[slabbuddy.OwnerBuddy] != b {
		return fmt.Errorf("slabbuddy: invariant R2 (a region has one owner): slab %d of %d, buddy %d of %d",
			s, held[slabbuddy.OwnerSlab], b, held[slabbuddy.OwnerBuddy])
	}
	for at := range a.direct.Range {
		if h, ok := a.regions.Find(at); !ok || uint8(h.Label) != slabbuddy.OwnerDirect {
			return fmt.Errorf("slabbuddy: invariant R3 (direct blocks are regions): block %v", at)
		}
	}
	if n, stale := a.direct.Len(), a.regions.Stale(); n+stale != held[slabbuddy.OwnerDirect] {
		return fmt.Errorf("slabbuddy: invariant R3 (direct blocks are regions): %d blocks, %d stale, %d regions", n, stale,
			held[slabbuddy.OwnerDirect])
	}
	return nil
}
