package xdl

import (
	"fmt"

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

// LargestFree implements [power.Holes]. It reads one byte per region.
func (a *Allocator) LargestFree() device.Size {
	var longest byte
	for _, r := range a.roots {
		longest = max(longest, r)
	}
	if longest == 0 {
		return 0
	}
	return a.bytesOf(int(longest) - 1)
}

// FreeBytes returns the bytes in free chunks. O(1).
func (a *Allocator) FreeBytes() device.Size {
	return device.Size(len(a.roots))*a.cfg.RegionBytes - a.front.Stats.Allocated
}

// Host memory of a tree and a word, in bytes.
const (
	treeBytes = 64
	wordBytes = 16
)

func (a *Allocator) MetadataBytes() device.Size {
	n := a.regions.Bytes() + a.live.Bytes() + a.where.Bytes()
	n += device.Size(cap(a.bases))*8 + device.Size(cap(a.trees))*treeBytes + device.Size(cap(a.roots))
	for i := range a.trees {
		n += device.Size(cap(a.trees[i].longest)) + device.Size(cap(a.trees[i].words))*wordBytes
	}
	return n
}

// Walk implements [alloc.Inspector]. Free chunks are the maximal free runs that buddies
// merge into, so two of them may touch. The class of a chunk, free or live, is its order.
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

// WalkRegion is Walk for the region that starts at base only, for a strategy composed of
// this one. It reports whether the walk goes on; of an unknown region it yields nothing.
func (a *Allocator) WalkRegion(base device.Addr, yield func(alloc.Chunk) bool) bool {
	h, ok := a.regions.Find(base)
	return !ok || a.walkHeld(h, yield)
}

// walkHeld yields the chunks of one region. It reports whether the walk goes on.
func (a *Allocator) walkHeld(h regions.Held, yield func(alloc.Chunk) bool) bool {
	for s := range a.trees[h.Label].spans {
		if !yield(a.chunkOf(int(h.Label), s)) {
			return false
		}
	}
	return regions.Excess(h.Region, a.cfg.RegionBytes, yield)
}

func (a *Allocator) chunkOf(region int, s span) alloc.Chunk {
	c := alloc.Chunk{
		Region: a.bases[region], Addr: a.addrOf(region, s.at), Size: a.bytesOf(s.order), Class: int32(s.order),
	}
	if !s.free {
		b, _ := a.live.Get(c.Addr)
		c.State, c.Requested, c.Stream, c.Tag = alloc.Live, b.Requested, b.Stream, b.Tag
	}
	return c
}

// WalkFree implements [power.FreeWalker]: oldest region first, in it by address.
func (a *Allocator) WalkFree(yield func(alloc.Chunk) bool) {
	for region := range a.trees {
		for s := range a.trees[region].spans {
			if s.free && !yield(a.chunkOf(region, s)) {
				return
			}
		}
	}
}

// Check implements [alloc.Inspector]. It reads every node of every tree.
func (a *Allocator) Check() error {
	if !a.front.Closed() {
		if err := a.checkRegions(); err != nil {
			return err
		}
		if err := a.checkBlocks(); err != nil {
			return err
		}
	}
	if err := front.CompareStats(a.front.Stats, a.Walk); err != nil {
		return fmt.Errorf("buddy: invariant U8 (counters match the walk): %w", err)
	}
	return nil
}

func (a *Allocator) checkRegions() error {
	if n := a.regions.Len(); n != len(a.bases) || n != len(a.trees) || n != len(a.roots) {
		return fmt.Errorf("buddy: invariant U7 (regions by age and by address agree): %d by address, %d by age", n,
			len(a.bases))
	}
	for region := range a.trees {
		t := &a.trees[region]
		if h, ok := a.regions.Find(a.bases[region]); !ok || int(h.Label) != region {
			return fmt.Errorf("buddy: invariant U7 (regions by age and by address agree): region %d at %v", region,
				a.bases[region])
		}
		for _, at := range []device.Addr{a.bases[region], a.addrOf(region, 1<<a.top-1)} {
			if found := a.regionAt(at); found != region {
				return fmt.Errorf("buddy: invariant U7 (regions by age and by address agree): %v is in region %d, the atlas has %d",
					at, region, found)
			}
		}
		if a.roots[region] != t.longest[1] {
			return fmt.Errorf("buddy: invariant U6 (roots are copies): region %d: %d, the tree has %d",
				region, a.roots[region], t.longest[1])
		}
		if err := t.check(1, t.top); err != nil {
			return fmt.Errorf("buddy: %w in region %d", err, region)
		}
	}
	return nil
}

// check verifies the summaries of node i, of the given order, and of all below it.
func (t *tree) check(i uint32, order int) error {
	v := t.longest[i]
	switch {
	case t.isFree(i, order) || t.isGranted(i, order):
		if !t.allFree(i, order) {
			return fmt.Errorf("invariant U3 (below a granted or free node all is free): node %d of order %d", i, order)
		}
		return nil
	case order == t.leaf:
		return t.checkWord(i)
	case t.isFree(2*i, order-1) && t.isFree(2*i+1, order-1):
		return fmt.Errorf("invariant U4 (two free buddies are merged): node %d of order %d reads %d", i, order, v)
	case v != max(t.longest[2*i], t.longest[2*i+1]):
		return fmt.Errorf("invariant U5 (summary is the longest free run): node %d of order %d reads %d, its children "+
			"%d and %d",
			i, order, v, t.longest[2*i], t.longest[2*i+1])
	}
	if err := t.check(2*i, order-1); err != nil {
		return err
	}
	return t.check(2*i+1, order-1)
}

func (t *tree) checkWord(i uint32) error {
	w, longest := t.wordsOf(i, t.leaf)[0], 0
	if w.free&w.heads != 0 || w.free&^run(t.leaf) != 0 {
		return fmt.Errorf("invariant U9 (granted blocks are not free): word of node %d: free %#x, granted from %#x", i,
			w.free, w.heads)
	}
	for s := range func(yield func(span) bool) { t.spansIn(i<<t.leaf-1<<t.top, yield) } {
		if s.free {
			longest = max(longest, s.order+1)
		}
	}
	if int(t.longest[i]) != longest {
		return fmt.Errorf("invariant U5 (summary is the longest free run): word of node %d reads %d, has %d", i,
			t.longest[i], longest)
	}
	return nil
}

func (a *Allocator) checkBlocks() error {
	granted := 0
	for region := range a.trees {
		for s := range a.trees[region].spans {
			if s.free {
				continue
			}
			granted++
			at := a.addrOf(region, s.at)
			if b, ok := a.live.Get(at); !ok || a.orderFor(b.Requested) != s.order {
				return fmt.Errorf("buddy: invariant U1 (live blocks are granted runs): run of order %d at %v, block of %d "+
					"bytes (%t)",
					s.order, at, b.Requested, ok)
			}
			if s.at%(1<<s.order) != 0 {
				return fmt.Errorf("buddy: invariant U2 (blocks are naturally aligned): block %v of order %d", at, s.order)
			}
		}
	}
	if granted != a.live.Len() {
		return fmt.Errorf("buddy: invariant U1 (live blocks are granted runs): %d blocks, %d runs", a.live.Len(), granted)
	}
	return nil
}
