package blocks

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

// Promises returns the promises of a buddy with configuration c, whose defaults are filled in.
func (c Config) Promises() promise.Set {
	b := Engine{
		classes: classesOf(c.Family), shift: uint8(log2(c.BlockBytes)), binary: c.Family == Binary,
		most: c.mostUnits(), trims: c.Trim == TrimOn, grain: c.TrimBytes,
	}
	block := func(class int32) device.Size { return device.Size(b.classes.size[class]) << b.shift }
	p := promise.Set{
		Quantum:  c.BlockBytes,
		Honours:  func(r alloc.Request) bool { return r.Align <= MostAlign },
		MaxGrant: func(r alloc.Request) device.Size { return c.mostGranted(&b, r) },
		ClassOf: func(free alloc.Chunk) int32 {
			if free.Class == alloc.NoClass {
				return alloc.NoClass // a direct region that is kept
			}
			return int32(b.classes.within(uint32(free.Size >> b.shift)))
		},
		SearchOrder: c.searchOrder(),
		Serves: func(free alloc.Chunk, r alloc.Request) bool {
			if free.Class == alloc.NoClass {
				size := device.AlignUp(r.Size, c.BlockBytes)
				return r.Size > c.DirectBytes && free.Size >= size && free.Size <= mostKept(size)
			}
			w := b.needOf(r.Size, r.Align)
			return w.class >= 0 && free.Size >= block(int32(w.class))
		},
		FreeReleases: c.Release || c.DirectCacheBytes != 0,
		Boundaries:   c.boundaries(&b),
	}
	if c.Coalescing == Eager && c.Family == Binary {
		p.MustMerge = promise.MergeBuddies
	}
	p.ExactPlacer = c.Family == Binary
	if c.Coalescing == Eager {
		p.ExactNeighbours = true
	}
	return p
}

// mostGranted returns the largest block that a request may be given.
func (c Config) mostGranted(b *Engine, r alloc.Request) device.Size {
	size := device.AlignUp(r.Size, c.BlockBytes)
	if r.Size > c.DirectBytes {
		size = mostKept(size)
	}
	if w := b.needOf(r.Size, r.Align); w.class >= 0 {
		size = max(size, device.Size(w.units)<<b.shift)
	}
	return size
}

// searchOrder compares free blocks of one class as far as a walk shows their order: not the age of
// regions, how full they are, or when a block was freed.
func (c Config) searchOrder() func(a, b alloc.Chunk) int {
	if c.Placement == SmallestNewest {
		return nil
	}
	return func(a, b alloc.Chunk) int {
		switch {
		case a.Class == alloc.NoClass || a.Region != b.Region && c.RegionChoice != Lowest:
			return -1
		case a.Region == b.Region && c.Placement == TopDown:
			return promise.ByAddress(b, a)
		}
		return promise.ByAddress(a, b)
	}
}

// boundaries returns sizes of classes, as far as tests go, and the bounds between the ways in which
// requests are served.
func (c Config) boundaries(b *Engine) (all []device.Size) {
	for _, units := range b.classes.size {
		if n := device.Size(units) << b.shift; n <= max(4*c.RegionBytes, 2*c.DirectBytes) && n <= device.GiB &&
			len(all) < 64 {
			all = append(all, n)
		}
	}
	return append(all, c.DirectBytes, c.RegionBytes, c.TrimBytes)
}
