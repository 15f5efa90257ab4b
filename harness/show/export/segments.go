package export

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay/follow"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/kit/index"
)

// reserved is the reserved memory according to the history.
type reserved struct {
	segments index.AddrList[device.Size]  // unmapped segments, by address
	edges    map[device.Addr]int          // mapped memory: by address, the change of the number of covering ranges
	whole    bool                         // there were segments
	maps     bool                         // there was mapped memory
	joined   bool                         // a block spanned two segments
	pools    index.AddrList[alloc.PoolID] // private pool from an address up to the next one
}

// poolAt returns the last known private pool of the memory at an address.
func (h *reserved) poolAt(a device.Addr) alloc.PoolID {
	p, ok := h.pools.Floor(a)
	if !ok {
		return 0
	}
	return h.pools.Entry(p).Value
}

// setPool records the pool of a range.
func (h *reserved) setPool(r device.Region, pool alloc.PoolID) {
	if pool == 0 && h.pools.Len() == 0 {
		return // most replays have no private pool
	}
	above := h.poolAt(r.End())
	for {
		p, ok := h.pools.Floor(r.End())
		if !ok || h.pools.Entry(p).Addr < r.Addr {
			break
		}
		h.pools.Delete(p)
	}
	for _, e := range []index.AddrEntry[alloc.PoolID]{{Addr: r.Addr, Value: pool}, {Addr: r.End(), Value: above}} {
		p, _ := h.pools.Search(e.Addr)
		h.pools.Insert(p, e)
	}
}

// asMapped reports whether segments must be shown as mapped memory: if blocks span segments, or if
// there is mapped memory too, because the viewer joins that with any adjacent segment.
func (h *reserved) asMapped() bool { return h.joined || h.whole && h.maps }

// hold records that memory was reserved or released.
func (h *reserved) hold(a power.Action) {
	switch a.Kind {
	case power.SegmentAlloc:
		h.whole = true
		h.setPool(device.Region{Addr: a.Addr, Size: a.Size}, a.Pool)
		p, _ := h.segments.Search(a.Addr)
		h.segments.Insert(p, index.AddrEntry[device.Size]{Addr: a.Addr, Value: a.Size})
	case power.SegmentFree:
		if p, ok := h.segments.Search(a.Addr); ok {
			h.segments.Delete(p)
		}
	case power.SegmentMap:
		h.maps = true
		h.setPool(device.Region{Addr: a.Addr, Size: a.Size}, a.Pool)
		h.edge(a.Addr, 1)
		h.edge(a.Addr.Add(a.Size), -1)
	case power.SegmentUnmap:
		h.edge(a.Addr, -1)
		h.edge(a.Addr.Add(a.Size), 1)
	}
}

// edge records the start or end of mapped memory.
func (h *reserved) edge(a device.Addr, n int) {
	if h.edges == nil {
		h.edges = map[device.Addr]int{}
	}
	if h.edges[a] += n; h.edges[a] == 0 {
		delete(h.edges, a)
	}
}

// spansSegments reports whether a range starts in one segment and ends in another.
func (h *reserved) spansSegments(a device.Addr, size device.Size) bool {
	p, ok := h.segments.Floor(a)
	if !ok {
		return false
	}
	e := h.segments.Entry(p)
	return a < e.Addr.Add(e.Value) && a.Add(size) > e.Addr.Add(e.Value)
}

// span is a contiguous range of reserved memory.
type span struct {
	device.Region
	mapped bool
}

// spans returns all reserved memory, by address.
func (h *reserved) spans() (list []span) {
	if h.asMapped() {
		for e := range h.segments.All {
			h.edge(e.Addr, 1)
			h.edge(e.Addr.Add(e.Value), -1)
		}
		h.segments.Clear()
	}
	for e := range h.segments.All {
		list = append(list, span{device.Region{Addr: e.Addr, Size: e.Value}, false})
	}
	edges := slices.Sorted(maps.Keys(h.edges))
	covered := 0
	for i, a := range edges {
		if covered += h.edges[a]; covered > 0 {
			list = append(list, span{device.Region{Addr: a, Size: edges[i+1].Sub(a)}, true})
		}
	}
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.Addr, b.Addr) })
	return list
}

// finish builds the segments and blocks by walking the strategy.
func (r *collector) finish() error {
	r.blocks.Memory()
	for b := range r.blocks.Blocks {
		r.at[b.Addr] = b
	}
	var chunks []alloc.Chunk
	inUse := 0
	for c := range r.s.Walk {
		if c.State.Held() {
			chunks = append(chunks, c)
			r.joined = r.joined || r.spansSegments(c.Addr, c.Size)
		}
		if c.State == alloc.Live || c.State == alloc.Pending {
			inUse++
		}
	}
	if inUse != len(r.at) {
		return fmt.Errorf("the strategy reports %d blocks in use at the end, the replay has %d", inUse, len(r.at))
	}
	slices.SortFunc(chunks, func(a, b alloc.Chunk) int { return cmp.Compare(a.Addr, b.Addr) })
	spans := r.spans()
	for _, c := range chunks {
		for len(spans) > 0 && spans[0].End() <= c.Addr {
			r.endSpan(spans[0])
			spans = spans[1:]
		}
		if len(spans) == 0 || !spans[0].Contains(c.Addr) || c.End() > spans[0].End() {
			return fmt.Errorf("the strategy reports a chunk of %d bytes at %v outside of its reserved memory",
				uint64(c.Size), c.Addr)
		}
		if err := r.chunk(spans[0], c); err != nil {
			return err
		}
	}
	for _, s := range spans {
		r.endSpan(s)
	}
	return nil
}

// builder builds segments from chunks in address order.
type builder struct {
	segment torch.Segment
	region  device.Addr // current region
	open    bool
	known   bool // stream and pool of the segment are known
}

func (b *builder) begin(a device.Addr, mapped bool) {
	b.segment = torch.Segment{Addr: uint64(a), Large: true, Expandable: mapped}
	b.open, b.known, b.region = true, false, 0
}

// top returns the end of the segment so far.
func (b *builder) top() device.Addr { return device.Addr(b.segment.Addr + b.segment.Total) }

// fill adds unused memory up to an address.
func (b *builder) fill(to device.Addr) {
	if to > b.top() {
		b.add(torch.Block{Addr: uint64(b.top()), Size: uint64(to.Sub(b.top()))})
	}
}

func (b *builder) add(x torch.Block) {
	s := &b.segment
	s.Blocks = append(s.Blocks, x)
	s.Total += x.Size
	if x.State == torch.Inactive {
		return
	}
	s.Active += x.Size
	s.Requested += x.Requested
	if x.State == torch.ActiveAllocated {
		s.Allocated += x.Size
	}
}

func (r *collector) endSegment() {
	d := &r.torch.Devices[0]
	d.Segments = append(d.Segments, r.segment)
	r.open = false
}

// endSpan ends the last segment of a span, which is also its first if the span has no chunks.
func (r *collector) endSpan(s span) {
	if !r.open {
		r.begin(s.Addr, s.mapped)
	}
	r.fill(s.End())
	r.endSegment()
}

// chunk adds a chunk to the segments of a span. Adjacent mapped regions become two segments if the
// strategy reports mappings. Otherwise one call may have mapped pages of both, and the viewer
// requires a mapping to lie in one segment.
func (r *collector) chunk(s span, c alloc.Chunk) error {
	if r.open && s.mapped && r.blocks.HasHistory() && !r.joined && c.Region != r.region {
		r.fill(c.Addr)
		r.endSegment()
		r.begin(c.Addr, true)
	}
	if !r.open {
		r.begin(s.Addr, s.mapped)
	}
	r.region = c.Region
	r.fill(c.Addr)
	x := torch.Block{Addr: uint64(c.Addr), Size: uint64(c.Size), Requested: uint64(c.Was)}
	if c.State == alloc.Live || c.State == alloc.Pending {
		b, ok := r.at[c.Addr]
		if !ok {
			return fmt.Errorf("the strategy reports a block in use at %v that was never granted", c.Addr)
		}
		x.Requested, x.Stack, x.State = uint64(b.Requested), r.lives[b.Note].stack, torch.ActiveAllocated
		if b.Phase != follow.Live {
			x.State = torch.ActivePendingFree
		}
	}
	r.add(x)
	if r.blocks.HasHistory() && !r.known && c.State != alloc.Slack {
		r.known = true
		r.segment.Stream, r.segment.Pool = int64(c.Stream), poolPair(c.Pool)
		r.segment.Large = c.Class != power.ClassSmall
	}
	return nil
}
