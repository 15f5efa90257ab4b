package props

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

// The predicates of this file look at a walk alone. A walk is what Strategy.Walk yielded,
// in order; the region of a chunk is the run of chunks with its Region.

// eachRegion calls yield with the chunks of every region of the walk.
func eachRegion(walk []alloc.Chunk, yield func([]alloc.Chunk) error) error {
	for start := 0; start < len(walk); {
		end := start + 1
		for end < len(walk) && walk[end].Region == walk[start].Region {
			end++
		}
		if err := yield(walk[start:end]); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// Tiling checks invariant I1: the chunks of a region begin at its start, each starts where
// the one before it ends, and none is empty.
func Tiling(walk []alloc.Chunk) error {
	return eachRegion(walk, func(chunks []alloc.Chunk) error {
		at := chunks[0].Region
		for i, c := range chunks {
			if c.Size == 0 {
				return violated(ITiling, "chunk %v has no bytes", c.Addr)
			}
			if c.Addr != at {
				if i == 0 {
					return violated(ITiling, "region %v begins with a chunk at %v", at, c.Addr)
				}
				return violated(ITiling, "chunk %v ends at %v, the next begins at %v", chunks[i-1].Addr, at, c.Addr)
			}
			at = c.End()
			if at < c.Addr {
				return violated(ITiling, "chunk %v of %v bytes wraps around", c.Addr, uint64(c.Size))
			}
		}
		return nil
	})
}

// Regions checks invariant I2: the regions of a tiled walk are those held from the device,
// which come sorted by address. With joined, regions of either side that touch count as one.
func Regions(walk []alloc.Chunk, held []device.Region, joined bool) error {
	var room [64]device.Region
	shown := room[:0]
	_ = eachRegion(walk, func(chunks []alloc.Chunk) error { // yield returns no error
		last := chunks[len(chunks)-1]
		shown = append(shown, device.Region{Addr: chunks[0].Region, Size: last.End().Sub(chunks[0].Region)})
		return nil
	})
	slices.SortFunc(shown, func(a, b device.Region) int { return cmp.Compare(a.Addr, b.Addr) })
	if joined {
		var spare [64]device.Region
		shown, held = join(shown[:0], shown), join(spare[:0], held)
	}
	for i := range max(len(shown), len(held)) {
		switch {
		case i >= len(held):
			return violated(IRegions, "region %v is shown but not held", blockText(shown[i]))
		case i >= len(shown):
			return violated(IRegions, "region %v is held but not shown", blockText(held[i]))
		case shown[i] != held[i]:
			return violated(IRegions, "region %v is shown where %v is held", blockText(shown[i]), blockText(held[i]))
		}
	}
	return nil
}

func join(dst, regions []device.Region) []device.Region {
	for _, r := range regions {
		if n := len(dst); n > 0 && dst[n-1].End() == r.Addr {
			dst[n-1].Size += r.Size
		} else {
			dst = append(dst, r)
		}
	}
	return dst
}

// Chunks checks invariant I4: every chunk has a known state, only live and pending chunks carry a
// request, only free chunks an earlier one, and no request is larger than its chunk. With a
// quantum, chunks that a block may start in begin at whole multiples of it. With streams, a free
// chunk may carry the stream that can use it without waiting.
func Chunks(walk []alloc.Chunk, quantum device.Size, streams bool) error {
	for _, c := range walk {
		used := c.State == alloc.Live || c.State == alloc.Pending
		streamed := used || streams && c.State == alloc.Free
		switch {
		case c.State > alloc.Aliased:
			return violated(IChunk, "chunk %v has state %d, the last is %d", c.Addr, c.State, alloc.Aliased)
		case c.Requested > c.Size:
			return violated(IChunk, "chunk %v of %d bytes serves a request for %d", c.Addr, uint64(c.Size), uint64(c.Requested))
		case c.State != alloc.Free && c.Was != 0:
			return violated(IChunk, "%v chunk %v remembers an earlier request for %d bytes", c.State, c.Addr, uint64(c.Was))
		case !used && (c.Requested != 0 || c.Tag != 0), !streamed && c.Stream != 0:
			return violated(IChunk, "%v chunk %v carries a request: %d bytes, stream %d, tag %d",
				c.State, c.Addr, uint64(c.Requested), uint64(c.Stream), c.Tag)
		case quantum != 0 && used && c.Addr.Sub(c.Region)%quantum != 0:
			return violated(IChunk, "%v chunk %v is no multiple of %d from the start of its region",
				c.State, c.Addr, uint64(quantum))
		}
	}
	return nil
}

// Coalescing checks invariant I5: no two free chunks that touch inside a region are such
// that mustMerge says they should have been one; nil demands nothing.
func Coalescing(walk []alloc.Chunk, mustMerge func(left, right alloc.Chunk) bool) error {
	for i := 1; i < len(walk) && mustMerge != nil; i++ {
		l, r := walk[i-1], walk[i]
		if l.State == alloc.Free && r.State == alloc.Free && l.Region == r.Region && mustMerge(l, r) {
			return violated(ICoalescing, "free chunks %v of %d bytes and %v of %d bytes are not merged",
				l.Addr, uint64(l.Size), r.Addr, uint64(r.Size))
		}
	}
	return nil
}

// Classes checks invariant I6: every free chunk has the class that classOf returns; nil demands
// nothing.
func Classes(walk []alloc.Chunk, classOf func(alloc.Chunk) int32) error {
	for _, c := range walk {
		if c.State != alloc.Free || classOf == nil {
			continue
		}
		if want := classOf(c); c.Class != want {
			return violated(IClass, "free chunk %v of %d bytes is of class %d, want %d", c.Addr, uint64(c.Size), c.Class, want)
		}
	}
	return nil
}

// FreeList checks invariant I7: the chunks that the search sees are the free chunks of the
// walk, each exactly once. It copies both and costs O(chunks log chunks).
func FreeList(walk, search []alloc.Chunk) error {
	var free []alloc.Chunk
	for _, c := range walk {
		if c.State == alloc.Free {
			free = append(free, c)
		}
	}
	search = slices.Clone(search)
	slices.SortFunc(free, promise.ByAddress)
	slices.SortFunc(search, promise.ByAddress)
	for i := range max(len(free), len(search)) {
		switch {
		case i >= len(search) || i < len(free) && free[i].Addr < search[i].Addr:
			return violated(IFreeList, "free chunk %v of the walk is not in the search", free[i].Addr)
		case i >= len(free) || free[i].Addr > search[i].Addr:
			return violated(IFreeList, "chunk %v of the search is not free in the walk, or twice in the search", search[i].Addr)
		case free[i] != search[i]:
			return violated(IFreeList, "the walk shows %+v, the search %+v", free[i], search[i])
		}
	}
	return nil
}

// SearchOrder checks invariant I8: within a class, the search visits chunks in the promised order.
// A nil order demands nothing.
func SearchOrder(search []alloc.Chunk, order func(a, b alloc.Chunk) int) error {
	for i := 1; i < len(search) && order != nil; i++ {
		a, b := search[i-1], search[i]
		if a.Class == b.Class && order(a, b) >= 0 {
			return violated(ISearchOrder, "chunk %v of %d bytes is tried before %v of %d bytes",
				a.Addr, uint64(a.Size), b.Addr, uint64(b.Size))
		}
	}
	return nil
}

// Hole checks invariant I9: largest is the size of the largest free chunk of the walk.
func Hole(walk []alloc.Chunk, largest device.Size) error {
	var want device.Size
	for _, c := range walk {
		if c.State == alloc.Free {
			want = max(want, c.Size)
		}
	}
	if want != largest {
		return violated(IHole, "the largest free chunk of the walk has %d bytes, the strategy says %d",
			uint64(want), uint64(largest))
	}
	return nil
}
