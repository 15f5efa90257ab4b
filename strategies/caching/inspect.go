package caching

import (
	"cmp"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

var (
	_ power.Holes      = (*Allocator)(nil)
	_ power.FreeWalker = (*Allocator)(nil)
	_ power.Trimmer    = (*Allocator)(nil)
	_ power.Metered    = (*Allocator)(nil)
	_ power.Locator    = (*Allocator)(nil)
)

// Stats implements [alloc.Inspector]. O(1). Forgotten counts unmapped pages that the device refused
// to release.
func (a *Allocator) Stats() alloc.Stats {
	s, c := a.front.Stats, &a.count
	s.Allocs, s.Frees = uint64(c.blocks.added()), uint64(c.blocks.taken())
	s.Live = int(c.blocks.all())
	s.Requested, s.PeakRequested = device.Size(c.asked.all()), device.Size(c.asked.peakAll)
	s.Allocated, s.PeakAllocated = device.Size(c.bytes.all()), device.Size(c.bytes.peakAll)
	active := c.bytes.untilCompleted()
	s.Active, s.PeakActive = device.Size(active.all()), device.Size(active.peakAll)
	return s
}

// ClearStats implements [power.Clearer]. It does to the counters what reset_peak_memory_stats and
// reset_accumulated_memory_stats together do in PyTorch.
func (a *Allocator) ClearStats() {
	a.count.clear()
	a.front.Stats.OOMs, a.front.Stats.LargestAlloc = 0, 0
}

// LargestFree implements [power.Holes] over all pools and streams. O(log (pools * streams)),
// amortized.
func (a *Allocator) LargestFree() device.Size {
	return a.largest.Max(func(id uint32) device.Size {
		if sh := a.shelves[id]; sh != nil {
			sh.most = sh.free.Largest()
			return sh.most
		}
		return 0
	})
}

// shelfBytes bounds the host memory of a shelf.
const shelfBytes = 256

// MetadataBytes implements [power.Metered]. O(pools * streams + segments / 32).
func (a *Allocator) MetadataBytes() device.Size {
	n := a.largest.Bytes() + a.live.Bytes() + a.tags.Bytes() + a.usesOf.Bytes() + a.segments.Bytes() + a.mem.Bytes() +
		index.BytesOf(a.rows) + index.BytesOf(a.born) + index.BytesOf(a.spareEvents) + index.BytesOf(a.shelves) +
		index.BytesOf(a.pools) + index.BytesOf(a.deferred) + index.BytesOf(a.redo) + index.BytesOf(a.used)
	for _, sh := range a.shelves {
		if sh != nil {
			n += shelfBytes + sh.free.Bytes() + index.BytesOf(sh.gaps)
		}
	}
	for i := range a.queues {
		n += index.BytesOf(a.queues[i].marks)
	}
	return n
}

// Trim implements [power.Trimmer]. It is PyTorch's empty_cache: it waits for all pending blocks,
// then releases the segments, and the pages of expandable segments, without a live block. Private
// pools keep their memory until they are released. It returns the bytes released.
func (a *Allocator) Trim() (device.Size, error) {
	if a.front.Closed() {
		return 0, alloc.ErrClosed
	}
	before := a.front.Stats.Reserved
	err := a.releaseCached(power.AllStreams)
	a.forgetIdle()
	return before - a.front.Stats.Reserved, err
}

// Close implements [alloc.Strategy]. Walk shows memory that the device refuses to take back as
// slack; the next Close tries again.
func (a *Allocator) Close() error {
	if !a.front.Closed() {
		a.front.Close()
		a.count.emptied()
		a.waiting = 0
		a.condemn()
	}
	first := a.segments.ReleaseAll()
	if a.set.grew {
		first = cmp.Or(first, a.unstick())
		first = cmp.Or(first, a.mem.DropIdle())
		first = cmp.Or(first, a.discardEmpty())
	}
	if a.streams != nil {
		first = cmp.Or(first, a.destroyEvents())
	}
	return first
}

// Walk implements [alloc.Inspector]. A chunk shows the stream and pool of its segment, and whether
// the segment is for small or large blocks and expandable. A free chunk also shows the size of its
// last request.
func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	grown := 0 // expandable segments that were yielded
	for i := range a.segments.Len() {
		s := a.segments.At(i)
		if !a.walkGrown(&grown, s.Addr, yield) {
			return
		}
		if a.front.Closed() {
			if !regions.Excess(s.Region, 0, yield) { // refused by the device
				return
			}
			continue
		}
		if !a.walkSegment(s.Addr, handle(s.Label), yield) {
			return
		}
		if used := a.sizeFrom(handle(s.Label)); !regions.Excess(s.Region, used, yield) {
			return
		}
	}
	a.walkGrown(&grown, ^device.Addr(0), yield)
}

// walkGrown yields the blocks of the next expandable segments below an address, and reports whether
// the walk continues.
func (a *Allocator) walkGrown(next *int, below device.Addr, yield func(alloc.Chunk) bool) bool {
	for ; *next < a.mem.Len() && a.mem.At(*next).Addr < below; *next++ {
		if s := a.mem.At(*next); !a.walkSegment(s.Addr, s.First, yield) {
			return false
		}
	}
	return true
}

// walkSegment yields the blocks of a segment and reports whether the walk continues.
func (a *Allocator) walkSegment(region device.Addr, first handle, yield func(alloc.Chunk) bool) bool {
	for h := first; h != none; h = a.rows[h].next {
		if !yield(a.show(region, h)) {
			return false
		}
	}
	return true
}

// BlockAt implements [power.Locator]. O(log segments).
func (a *Allocator) BlockAt(at device.Addr) (alloc.Chunk, error) {
	link, err := a.find(at)
	if err != nil {
		return alloc.Chunk{}, err
	}
	return a.show(a.regionOf(at), *link), nil
}

// sizeFrom returns the bytes of a block and all that follow it.
func (a *Allocator) sizeFrom(h handle) (n device.Size) {
	for ; h != none; h = a.rows[h].next {
		n += a.rows[h].size
	}
	return n
}

// shown maps states of blocks to states of chunks.
var shown = [...]alloc.State{
	free: alloc.Free, live: alloc.Live, pending: alloc.Pending, unmapped: alloc.Unmapped, stuck: alloc.Slack,
}

// show returns a block as Walk shows it.
func (a *Allocator) show(region device.Addr, h handle) alloc.Chunk {
	b := &a.rows[h]
	sh := a.shelfOf(h)
	c := alloc.Chunk{
		Region: region, Addr: b.addr, Size: b.size, State: shown[b.state()], Class: int32(sh.kind),
		Pool: sh.pool.id,
	}
	if b.grows() {
		c.Owner = power.OwnerExpandable
	}
	switch b.state() {
	case unmapped, stuck:
		return c // without a stream
	case live, pending:
		c.Requested, c.Tag = b.asked, a.tags.Get(h)
	case free:
		c.Was = b.asked
	}
	c.Stream = sh.stream
	return c
}

// WalkFree implements [power.FreeWalker]: by pool, kind, stream, size and address.
func (a *Allocator) WalkFree(yield func(alloc.Chunk) bool) {
	for _, p := range a.pools {
		for k := range p.sides {
			for _, sh := range p.sides[k].shelves {
				for e := range sh.free.All {
					if !yield(a.show(a.regionOf(a.rows[e.Handle].addr), e.Handle)) {
						return
					}
				}
			}
		}
	}
}

// regionOf returns the start of the segment that an address lies in.
func (a *Allocator) regionOf(at device.Addr) device.Addr {
	if a.mem.Len() > 0 {
		if s := a.mem.Under(at); s.Contains(at) {
			return s.Addr
		}
	}
	s, _ := a.segments.Under(at)
	return s.Addr
}
