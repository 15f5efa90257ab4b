package bfc

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/inspect"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Stats implements [alloc.Inspector]. O(1).
func (a *Allocator) Stats() alloc.Stats {
	s := a.front.Stats
	s.NextRegion = a.cur
	return s
}

// Config returns the configuration with every default filled in.
func (a *Allocator) Config() Config { return a.cfg }

// Walk implements [alloc.Inspector]. Class is the bin of a free chunk; live chunks and the
// gap of a two-ended arena are in none. Owner is one of the Owner constants.
func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	a.walk(func(h handle) bool { return yield(a.view(h)) })
}

// walk yields the handle of every chunk in address order: region by region, along next.
func (a *Allocator) walk(yield func(handle) bool) {
	for _, number := range a.regions.order {
		for h := a.regions.rows[number].first; h != none; h = a.chunks.rows[h].next {
			if !yield(h) {
				return
			}
		}
	}
}

// view returns a chunk as Walk shows it. The original's tables keep the requested size of a
// chunk after it is freed and its count after it is granted; neither is shown.
func (a *Allocator) view(h handle) alloc.Chunk {
	c := &a.chunks.rows[h]
	v := alloc.Chunk{
		Region: a.regionOf(h).addr,
		Addr:   c.addr,
		Size:   c.size,
		Class:  alloc.NoClass,
		Owner:  c.tag.owner(),
	}
	if c.tag.state() == live {
		l := a.chunks.label(h)
		v.State, v.Requested, v.Tag, v.Stream = alloc.Live, a.chunks.requested(h), l.tag, l.stream
		v.ID = a.chunks.id(h)
		return v
	}
	v.State, v.FreedAt = alloc.Free, a.chunks.freed(h)
	if v.Owner != OwnerGap {
		v.Class = binOf(c.size)
	}
	return v
}

// BlockAt implements [power.Locator]. O(1).
func (a *Allocator) BlockAt(at device.Addr) (alloc.Chunk, error) {
	a.reindex()
	name := a.live.Get(at, a.chunks.addrOf)
	if name == index.NoHandle {
		return alloc.Chunk{}, a.front.NoBlock()
	}
	return a.view(name - 1), nil
}

// LargestFree implements [power.Holes]. O(1).
func (a *Allocator) LargestFree() (largest device.Size) {
	if !a.cfg.Spatial {
		return a.bins[OwnerNone].Largest()
	}
	for owner := range a.bins {
		largest = max(largest, a.bins[owner].Largest())
	}
	return largest
}

// searchOrder is the order in which owners are searched for a request without a hint.
var searchOrder = [numOwners]uint8{OwnerNone, OwnerLower, OwnerGap, OwnerUpper}

// WalkFree implements [power.FreeWalker]: smallest first, among equals the lowest address.
// In a two-ended arena the holes of the lower end come first, then the gap, then the holes
// of the upper end.
func (a *Allocator) WalkFree(yield func(alloc.Chunk) bool) {
	for _, owner := range searchOrder {
		for e := range a.bins[owner].All {
			if !yield(a.view(e.Handle)) {
				return
			}
		}
	}
}

// SetFrontier implements [power.Frontier]. Merging waits for the next Alloc.
func (a *Allocator) SetFrontier(count uint64) {
	a.frontier = max(a.frontier, count)
}

// QueuedFrees implements [power.Frontier]. It counts entries that the next sweep will find
// out of date, as the original does.
func (a *Allocator) QueuedFrees() int { return a.queue.n }

// MetadataBytes implements [power.Metered]. O(regions).
func (a *Allocator) MetadataBytes() device.Size {
	n := a.chunks.bytes() + a.regions.bytes() + a.live.Bytes()
	for owner := range a.bins {
		n += a.bins[owner].Bytes()
	}
	q := &a.queue
	return n + index.BytesOf(q.entries) + index.BytesOf(q.kept) + index.BytesOf(q.suspects) + index.BytesOf(q.merging)
}

// Has reports that the variant of 2016 cannot reset its statistics, and which configurations cannot
// move blocks.
func (a *Allocator) Has(p power.Power) bool {
	return power.Implements(a, p) && (p != power.PowerClearer || a.cfg.Variant != V2016) &&
		(p != power.PowerMover || a.cfg.moves())
}

// Fragmentation returns the share of the free memory that lies outside the largest free
// chunk. The original divides zero by zero when nothing is free; this is 0 then.
func (a *Allocator) Fragmentation() float64 {
	unused := a.front.Stats.Reserved - a.front.Stats.Active
	if unused == 0 {
		return 0
	}
	return float64(unused-a.LargestFree()) / float64(unused)
}

// Rendering returns a line of 100 characters that shows where live blocks lie, see
// [inspect.Rendering].
func (a *Allocator) Rendering() string { return inspect.Rendering(a) }

// CapacitySpan implements [power.Spanned].
func (a *Allocator) CapacitySpan() device.Span { return a.span }
