package xdl

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

// LargestFree implements [power.Holes]. It costs O(1), or O(chunks) if a block was granted from the
// longest free run since.
func (a *Allocator) LargestFree() device.Size {
	if len(a.bases)*len(a.lines)*a.chunks > len(a.all) {
		return a.slice // not attached to any segment
	}
	return device.Size(a.hole.find(a.all)) * a.cfg.UnitBytes
}

// FreeBytes returns the bytes in free chunks. O(1).
func (a *Allocator) FreeBytes() device.Size {
	return device.Size(len(a.bases))*a.cfg.RegionBytes - a.front.Stats.Allocated
}

func (a *Allocator) MetadataBytes() device.Size {
	return a.regions.Bytes() + a.live.Bytes() + device.Size(cap(a.bases))*8 + device.Size(cap(a.first)+cap(a.lines))*4 +
		device.Size(cap(a.all))*chunkBytes + device.Size(cap(a.links))*linkBytes
}

// Walk implements [alloc.Inspector]. The class of a live chunk is its number of units; the class of
// a free chunk is the list that its 64 units are in. An unattached slice is one free chunk without
// class. Free runs of adjacent chunks of 64 units are not merged.
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
	for g := range a.lines {
		if !a.walkSlice(int(h.Label), g, yield) {
			return false
		}
	}
	return regions.Excess(h.Region, a.cfg.RegionBytes, yield)
}

// walkSlice yields the chunks of one slice. It reports whether the walk goes on.
func (a *Allocator) walkSlice(region, g int, yield func(alloc.Chunk) bool) bool {
	from := a.first[region*len(a.lines)+g]
	if from == none {
		return yield(a.unattached(region, g))
	}
	for k := range a.chunks {
		if !a.walkChunk(region, from+int32(k), false, yield) {
			return false
		}
	}
	return true
}

// unattached returns a slice that its segment has not attached, as a chunk.
func (a *Allocator) unattached(region, g int) alloc.Chunk {
	base := a.bases[region]
	return alloc.Chunk{Region: base, Addr: base.Add(device.Size(g) * a.slice), Size: a.slice, Class: alloc.NoClass}
}

// walkChunk yields the live blocks and the free runs of chunk i, or only the latter. It
// reports whether the walk goes on.
func (a *Allocator) walkChunk(region int, i int32, freeOnly bool, yield func(alloc.Chunk) bool) bool {
	c := &a.all[i]
	for b, n := 0, 0; b < chunkUnits; b += n {
		free := c.free>>b&1 != 0
		if free {
			n = min(bits.TrailingZeros64(^(c.free >> b)), chunkUnits-b)
		} else {
			n = c.units(b)
		}
		if (free || !freeOnly) && !yield(a.chunkOf(region, c, b, n)) {
			return false
		}
	}
	return true
}

// chunkOf returns n units from unit b of c up as a chunk.
func (a *Allocator) chunkOf(region int, c *chunk, b, n int) alloc.Chunk {
	t := alloc.Chunk{
		Region: a.bases[region], Addr: c.base.Add(device.Size(b) * a.cfg.UnitBytes), Size: device.Size(n) * a.cfg.UnitBytes,
		Class: c.class,
	}
	if c.heads>>b&1 != 0 {
		l, _ := a.live.Get(t.Addr)
		t.State, t.Class, t.Requested, t.Stream, t.Tag = alloc.Live, int32(n), l.Requested, l.Stream, l.Tag
	}
	return t
}

// WalkFree implements [power.FreeWalker] in the order of requests of one unit made now and later:
// the segment whose turn it is, its lists from the smallest class up, a chunk from its lowest unit,
// then the slices not attached, oldest region first; then the next segment.
func (a *Allocator) WalkFree(yield func(alloc.Chunk) bool) {
	if a.front.Closed() {
		return
	}
	turn := uint64(a.counter) % uint64(len(a.lines))
	for k := range a.lines {
		if !a.walkFreeOf((int(turn)+k)%len(a.lines), yield) {
			return
		}
	}
}

// walkFreeOf yields the free chunks of segment g. It reports whether the walk goes on.
func (a *Allocator) walkFreeOf(g int, yield func(alloc.Chunk) bool) bool {
	for k := int32(1); k < classes; k++ {
		for i := range a.listed(anchorOf(int32(g), k)) {
			if !a.walkChunk(a.regionOf(a.all[i].base), i, true, yield) {
				return false
			}
		}
	}
	for region := int(a.lines[g]); region < len(a.bases); region++ {
		if !yield(a.unattached(region, g)) {
			return false
		}
	}
	return true
}

func (a *Allocator) listed(anchor int32) func(func(int32) bool) {
	return func(yield func(int32) bool) {
		for l := a.links[anchor].next; l != anchor && yield(l-classes*int32(len(a.lines))); l = a.links[l].next {
		}
	}
}

// regionOf returns the number of the region that p lies in. O(log regions).
func (a *Allocator) regionOf(p device.Addr) int {
	h, _ := a.regions.Under(p)
	return int(h.Label)
}

// Check implements [alloc.Inspector]. It reads every chunk and every list.
func (a *Allocator) Check() error {
	if !a.front.Closed() {
		for _, check := range [...]func() error{a.checkSlices, a.checkChunks, a.checkLists, a.checkHole} {
			if err := check(); err != nil {
				return err
			}
		}
	}
	if err := front.CompareStats(a.front.Stats, a.Walk); err != nil {
		return fmt.Errorf("slab: invariant S8 (counters match the walk): %w", err)
	}
	return nil
}

func (a *Allocator) checkSlices() error {
	most := 0
	for region, base := range a.bases {
		h, ok := a.regions.Find(base)
		if !ok || int(h.Label) != region || a.regions.Len() != len(a.bases) {
			return fmt.Errorf("slab: invariant S7 (regions by age and by address agree): region %d at %v", region, base)
		}
		for g := range a.lines {
			lines := int(a.lines[g])
			most = max(most, lines)
			from := a.first[region*len(a.lines)+g]
			if (from != none) != (region < lines) {
				return fmt.Errorf("slab: invariant S5 (slices are attached in order): region %d, segment %d of %d lines",
					region, g, lines)
			}
			if from != none && a.all[from].base != base.Add(device.Size(g)*a.slice) {
				return fmt.Errorf("slab: invariant S5 (slices are attached in order): slice %d of region %d begins at %v",
					g, region, a.all[from].base)
			}
		}
	}
	if most != len(a.bases) {
		return fmt.Errorf("slab: invariant S6 (a region is taken for a segment that needs it): %d regions, at most "+
			"%d attached",
			len(a.bases), most)
	}
	return nil
}

func (a *Allocator) checkChunks() error {
	heads := 0
	for i := range a.all {
		c := &a.all[i]
		if c.heads&c.free != 0 {
			return fmt.Errorf("slab: invariant S2 (blocks start at used units): chunk %d: free %#x, heads %#x",
				i, c.free, c.heads)
		}
		heads += bits.OnesCount64(c.heads)
		for b, n := 0, 0; b < chunkUnits; b += n {
			if n = 1; c.free>>b&1 != 0 {
				continue
			}
			n = c.units(b)
			if l, ok := a.live.Get(c.base.Add(device.Size(b) * a.cfg.UnitBytes)); c.heads>>b&1 == 0 || !ok ||
				l.Place != uint64(i)*chunkUnits+uint64(b) || a.unitsFor(l.Requested) != n {
				return fmt.Errorf("slab: invariant S4 (a used run is a live block): chunk %d, unit %d, %d units", i, b, n)
			}
		}
	}
	if heads != a.live.Len() {
		return fmt.Errorf("slab: invariant S3 (heads are live blocks): %d heads, %d blocks", heads, a.live.Len())
	}
	return nil
}

func (a *Allocator) checkLists() error {
	count := 0
	for g := range int32(len(a.lines)) {
		for k := range int32(classes) {
			prev := anchorOf(g, k)
			for i := range a.listed(prev) {
				c, l := &a.all[i], a.linkOf(i)
				if int(c.class) != min(maxUnits, longest(c.free)) || c.class != k || c.segment != g ||
					a.links[l].prev != prev || count == len(a.all) {
					return fmt.Errorf("slab: invariant S1 (a chunk is in the list of its class): chunk %d in list %d of "+
						"segment %d", i, k, g)
				}
				prev = l
				count++
			}
			if last := a.links[anchorOf(g, k)].prev; last != prev {
				return fmt.Errorf("slab: invariant S1 (a chunk is in the list of its class): list %d of segment %d ends at "+
					"%d, not %d",
					k, g, prev, last)
			}
		}
	}
	if count != len(a.all) {
		return fmt.Errorf("slab: invariant S1 (a chunk is in the list of its class): %d chunks, %d listed", len(a.all), count)
	}
	return nil
}

func (a *Allocator) checkHole() error {
	for i := range a.all {
		if n := longest(a.all[i].free); n > a.hole.units {
			return fmt.Errorf("slab: invariant S9 (no free run is longer than the one remembered): chunk %d: %d units, "+
				"remembered %d",
				i, n, a.hole.units)
		}
	}
	return nil
}
