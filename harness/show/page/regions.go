package page

import (
	"slices"
	"sort"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// span is a range of memory reserved now.
type span struct {
	ReservedRange
	sampled bool // Stream is set from a chunk
}

func (s *span) end() device.Addr { return s.Addr.Add(s.Size) }

// spans is the memory reserved now: disjoint spans, by address.
type spans []span

// at returns the index of the first span that ends above an address.
func (h spans) at(a device.Addr) int {
	return sort.Search(len(h), func(i int) bool { return h[i].end() > a })
}

// add adds a reserved range of a region.
func (h *spans) add(a device.Addr, size device.Size, region device.Addr, now int) {
	s := span{ReservedRange: ReservedRange{
		Addr: a, Size: size, Region: region, Born: uint32(now), Released: Never, Stream: OtherStream,
	}}
	*h = slices.Insert(*h, h.at(a), s)
}

// remove removes a range and yields the parts of spans inside it. Parts outside remain.
func (h *spans) remove(a device.Addr, size device.Size, now int, yield func(ReservedRange)) {
	end := a.Add(size)
	first := h.at(a)
	last := first
	var left []span
	for ; last < len(*h) && (*h)[last].Addr < end; last++ {
		s := (*h)[last]
		from, to := max(s.Addr, a), min(s.end(), end)
		ended := s.ReservedRange
		ended.Addr, ended.Size, ended.Released = from, to.Sub(from), uint32(now)
		yield(ended)
		if s.Addr < from {
			below := s
			below.Size = from.Sub(s.Addr)
			left = append(left, below)
		}
		if to < s.end() {
			above := s
			above.Addr, above.Size = to, s.end().Sub(to)
			left = append(left, above)
		}
	}
	*h = slices.Replace(*h, first, last, left...)
}

// memory tracks the memory reserved from the device.
func (r *collector) memory(event int, a power.Action) {
	switch a.Kind {
	case power.SegmentAlloc, power.SegmentMap:
		r.space.hold(a.Addr, a.Size)
		r.held.add(a.Addr, a.Size, r.tap.Region(a.Addr), event)
	case power.SegmentFree, power.SegmentUnmap:
		r.held.remove(a.Addr, a.Size, event, r.reservedRange)
	}
}

// reservedRange keeps a range that was released.
func (r *collector) reservedRange(s ReservedRange) { r.reserved.add(s, s.weight(r.trace.Grid.Events)) }

// sampleWalk walks the strategy for the classes of blocks and for the pools and streams of regions.
// Each event earns credit for walks, so that the cost of a picture does not grow with the live
// blocks.
func (r *collector) sampleWalk() {
	r.credit += float64(int(1) << r.trace.Grid.Shift)
	cost := float64(2*r.blocks.InUse() + len(r.held))
	if cost > r.credit {
		return
	}
	r.credit -= cost
	clear(r.classes)
	for c := range r.strategy.Walk {
		if c.State == alloc.Live || c.State == alloc.Pending {
			r.classes[c.Addr] = c.Class
		}
		r.updateSpans(c)
	}
	for b := range r.blocks.Blocks {
		if n := &r.notes[b.Note]; !n.classed {
			if class, ok := r.classes[b.Addr]; ok {
				n.class, n.classed = class, true
			}
		}
	}
}

// updateSpans updates the spans that a chunk overlaps.
func (r *collector) updateSpans(c alloc.Chunk) {
	if !c.State.Held() {
		return
	}
	for i := r.held.at(c.Addr); i < len(r.held) && r.held[i].Addr < c.End(); i++ {
		r.updateSpan(&r.held[i], c)
	}
}

// updateSpan updates a span from a chunk. A strategy may join device ranges into larger regions;
// when the region of a span changes, its record ends and a new one begins.
func (r *collector) updateSpan(s *span, c alloc.Chunk) {
	if s.Region != c.Region {
		if now := uint32(r.last); s.Born != now {
			ended := s.ReservedRange
			ended.Released = now
			r.reservedRange(ended)
			s.Born = now
		}
		s.Region = c.Region
	}
	s.Pool = uint16(min(c.Pool, 1<<16-1))
	if c.State != alloc.Live && c.State != alloc.Pending && !r.streams {
		return // a free chunk has no stream
	}
	if of := r.trace.streamOf(c.Stream); !s.sampled {
		s.sampled, s.Stream = true, of
	} else if s.Stream != of {
		s.Stream = OtherStream
	}
}
