package blaze

import (
	"fmt"
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
)

var (
	_ alloc.Strategy   = (*Allocator)(nil)
	_ power.Holes      = (*Allocator)(nil)
	_ power.FreeWalker = (*Allocator)(nil)
	_ power.Metered    = (*Allocator)(nil)
	_ power.Neighbours = (*Allocator)(nil)
	_ power.Placer     = (*Allocator)(nil)
)

// LargestFree implements [power.Holes]. O(1).
func (a *Allocator) LargestFree() device.Size {
	if a.some == 0 {
		return a.left
	}
	return max(a.left, 1<<(bits.Len64(a.some)-1))
}

func (a *Allocator) freeBytes() device.Size {
	return device.Size(len(a.cuts))*a.cfg.RegionBytes - a.lost - a.front.Stats.Allocated
}

func (a *Allocator) MetadataBytes() device.Size {
	const blockBytes, cutBytes = 40, 16
	return a.regions.Bytes() + a.index.Bytes() + device.Size(cap(a.blocks))*blockBytes + device.Size(cap(a.cuts))*cutBytes
}

// Walk implements [alloc.Inspector]. The class of a block, free or live, is the logarithm of its
// bytes. The uncut rest of the newest region is a free chunk without class; the rest of an older
// region is slack.
func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	if a.front.Closed() {
		a.regions.WalkSlack(yield)
		return
	}
	for i := range a.regions.Len() {
		if !a.walkHeld(a.regions.At(i), yield) {
			return
		}
	}
}

// walkHeld yields the chunks of one region. It reports whether the walk goes on.
func (a *Allocator) walkHeld(h regions.Held, yield func(alloc.Chunk) bool) bool {
	region, end := int(h.Label), h.Addr
	for i := range a.blocksOf(region) {
		c := a.chunkOf(region, &a.blocks[i])
		if end = c.End(); !yield(c) {
			return false
		}
	}
	if rest := a.restOf(region, end); rest.Size > 0 && !yield(rest) {
		return false
	}
	return regions.Excess(h.Region, a.cfg.RegionBytes, yield)
}

func (a *Allocator) blocksOf(region int) func(func(int) bool) {
	end := len(a.blocks)
	if region+1 < len(a.cuts) {
		end = int(a.cuts[region+1].first)
	}
	return func(yield func(int) bool) {
		for i := int(a.cuts[region].first); i < end && yield(i); i++ {
		}
	}
}

func (a *Allocator) chunkOf(region int, b *block) alloc.Chunk {
	c := alloc.Chunk{
		Region: a.cuts[region].base, Addr: b.addr, Size: 1 << b.class, Class: int32(b.class),
		Requested: b.requested, Stream: b.stream, Tag: b.tag,
	}
	if b.live {
		c.State = alloc.Live
	}
	return c
}

// restOf returns the part of a region from at up, which is not cut, as a chunk.
func (a *Allocator) restOf(region int, at device.Addr) alloc.Chunk {
	base := a.cuts[region].base
	c := alloc.Chunk{Region: base, Addr: at, Size: a.cfg.RegionBytes - at.Sub(base), Class: alloc.NoClass}
	if region+1 < len(a.cuts) {
		c.State = alloc.Slack
	}
	return c
}

// WalkFree implements [power.FreeWalker]: the lists from the smallest class up, each from
// the block pushed last, and then what is not yet cut.
func (a *Allocator) WalkFree(yield func(alloc.Chunk) bool) {
	if a.front.Closed() {
		return
	}
	for _, i := range a.lists {
		for ; i != none; i = a.blocks[i].next {
			h, _ := a.regions.Under(a.blocks[i].addr)
			if !yield(a.chunkOf(int(h.Label), &a.blocks[i])) {
				return
			}
		}
	}
	newest := len(a.cuts) - 1
	if rest := a.restOf(newest, a.cuts[newest].base.Add(a.cfg.RegionBytes-a.left)); rest.Size > 0 {
		yield(rest)
	}
}

// Check implements [alloc.Inspector]. It reads every block and every list.
func (a *Allocator) Check() error {
	if !a.front.Closed() {
		if err := a.checkCuts(); err != nil {
			return err
		}
		if err := a.checkLists(); err != nil {
			return err
		}
	}
	if err := front.CompareStats(a.front.Stats, a.Walk); err != nil {
		return fmt.Errorf("slab: invariant Z6 (counters match the walk): %w", err)
	}
	return nil
}

// checkCuts verifies that blocks follow each other from the start of their region, and the index.
func (a *Allocator) checkCuts() error {
	if a.index.Len() != len(a.blocks) {
		return fmt.Errorf("slab: invariant Z4 (the index has every block): %d of %d", a.index.Len(), len(a.blocks))
	}
	var lost device.Size
	for region, c := range a.cuts {
		if h, ok := a.regions.Find(c.base); !ok || int(h.Label) != region || a.regions.Len() != len(a.cuts) {
			return fmt.Errorf("slab: invariant Z5 (regions by age and by address agree): region %d at %v", region, c.base)
		}
		at := c.base
		for i := range a.blocksOf(region) {
			b := &a.blocks[i]
			if b.addr != at {
				return fmt.Errorf("slab: invariant Z1 (a block starts where the one before ends): block %d at %v, not %v", i,
					b.addr, at)
			}
			if n := a.index.Get(at, a.addrOf); int(n) != i+1 {
				return fmt.Errorf("slab: invariant Z4 (the index has every block): block %d at %v", i, at)
			}
			at = at.Add(1 << b.class)
		}
		if rest := a.cfg.RegionBytes - at.Sub(c.base); region+1 < len(a.cuts) {
			lost += rest
		} else if rest != a.left {
			return fmt.Errorf("slab: invariant Z1 (a block starts where the one before ends): %d bytes left, counted %d",
				rest, a.left)
		}
	}
	if lost != a.lost {
		return fmt.Errorf("slab: invariant Z1 (a block starts where the one before ends): %d bytes lost, counted %d",
			lost, a.lost)
	}
	return nil
}

func (a *Allocator) checkLists() error {
	listed := 0
	for k, i := range a.lists {
		if (i != none) != (a.some>>k&1 != 0) {
			return fmt.Errorf("slab: invariant Z3 (lists that are not empty are known): list %d", k)
		}
		for ; i != none; i = a.blocks[i].next {
			if b := &a.blocks[i]; b.live || int(b.class) != k || listed == len(a.blocks) {
				return fmt.Errorf("slab: invariant Z2 (a block is live or listed once): block %d in list %d", i, k)
			}
			listed++
		}
	}
	if listed+a.front.Stats.Live != len(a.blocks) {
		return fmt.Errorf("slab: invariant Z2 (a block is live or listed once): %d blocks, %d live, %d listed",
			len(a.blocks), a.front.Stats.Live, listed)
	}
	return nil
}
