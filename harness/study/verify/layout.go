package verify

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Constants of the allocator that no setting changes: the minimum block size, the size of segments
// for small blocks, and the largest remainder that a block of a large segment keeps.
const (
	minBlock     = 512
	smallSegment = 2 * device.MiB
	mostRest     = device.MiB
)

// segment is a segment of a layout; of an expandable one, a contiguous mapped range.
type segment struct {
	size        device.Size
	stream      device.Stream
	pool        alloc.PoolID
	small       bool // for small blocks
	grows       bool
	known       bool // the stream is known from an allocation
	poolUnknown bool // the pool is unknown
}

// block is a live block of a layout.
type block struct {
	id        uint64
	requested device.Size
	size      device.Size // granted bytes; 0: unknown
}

// impossible is the error of an impossible step, formatted on demand: a recording of another heap
// has one per step, of which only the first is shown.
type impossible func() string

// Error implements error.
func (e impossible) Error() string { return e() }

// layout is the recorded heap at one moment. It rejects impossible steps.
type layout struct {
	segments index.AddrList[segment]
	blocks   index.AddrList[block]
	held     device.Size // total size of the segments
	spans    spans       // ranges of expandable segments
}

func (l *layout) addSegment(s Segment) error {
	r := s.Region
	if r.Size == 0 || r.Addr == 0 || r.Addr+device.Addr(r.Size) < r.Addr {
		return fmt.Errorf("segment of %d bytes at %v: not a range of addresses", uint64(r.Size), r.Addr)
	}
	p, found := l.segments.Search(r.Addr)
	below, some := l.segments.Below(p)
	if found || some && below.Addr.Add(below.Value.size) > r.Addr ||
		l.segments.Holds(l.segments.Above(p)) && l.segments.Entry(l.segments.Above(p)).Addr < r.End() {
		return fmt.Errorf("segment of %v at %v overlaps another one", r.Size, r.Addr)
	}
	e := index.AddrEntry[segment]{Addr: r.Addr, Value: segment{
		size: r.Size, stream: s.Stream, pool: s.Pool, small: s.Small || !s.Grows && r.Size == smallSegment, grows: s.Grows,
		poolUnknown: s.PoolUnknown,
	}}
	l.held += r.Size
	if s.Grows {
		l.spans.mapped(spanOf(e.Value), r)
		l.join(e)
		return nil
	}
	l.segments.Insert(p, e)
	return nil
}

// dropSegment removes a segment, or part of an expandable one, without live blocks.
func (l *layout) dropSegment(r device.Region) error {
	p, found := l.segments.Floor(r.Addr)
	var e index.AddrEntry[segment]
	if found {
		e = l.segments.Entry(p)
		found = e.Addr == r.Addr && e.Value.size == r.Size ||
			e.Value.grows && r.Size > 0 && r.Addr.Sub(e.Addr) <= e.Value.size && r.Size <= e.Value.size-r.Addr.Sub(e.Addr)
	}
	if !found {
		return fmt.Errorf("no segment of %v at %v is held", r.Size, r.Addr)
	}
	if q, _ := l.blocks.Search(r.Addr); l.blocks.Holds(l.blocks.Above(q)) {
		if b := l.blocks.Entry(l.blocks.Above(q)); r.Contains(b.Addr) {
			return fmt.Errorf("segment at %v goes back with allocation %d live in it", r.Addr, b.Value.id)
		}
	}
	l.segments.Delete(p)
	l.held -= r.Size
	if e.Value.grows {
		l.cut(e, r)
	}
	return nil
}

// addOpening adds a block that was live at the start. It has the stream of its segment.
func (l *layout) addOpening(b Block) error {
	_, err := l.place(b.Addr, block{id: b.ID, requested: b.Requested, size: b.Size})
	return err
}

func (l *layout) add(s Step, size device.Size) error {
	p, err := l.place(s.Addr, block{id: s.ID, requested: s.Size, size: size})
	if err != nil {
		return err
	}
	e := l.segments.Entry(p)
	if e.Value.known && e.Value.stream != s.Stream {
		at, _ := l.blocks.Search(s.Addr)
		l.blocks.Delete(at)
		return fmt.Errorf("allocation %d of stream %d at %v: the segment there is of stream %d",
			s.ID, s.Stream, s.Addr, e.Value.stream)
	}
	e.Value.stream, e.Value.known = s.Stream, true
	l.segments.Set(p, e)
	return nil
}

// place adds a block. Its requested range must lie in a segment and not overlap other blocks. It
// returns the segment's position.
func (l *layout) place(a device.Addr, b block) (index.AddrPos, error) {
	where, ok := l.segments.Floor(a)
	if ok {
		s := l.segments.Entry(where)
		ok = a.Sub(s.Addr) < s.Value.size && b.requested <= s.Value.size-a.Sub(s.Addr)
	}
	if !ok {
		return where, impossible(func() string {
			return fmt.Sprintf("allocation %d of %v at %v lies in no segment", b.id, b.requested, a)
		})
	}
	p, found := l.blocks.Search(a)
	other, some := l.blocks.Below(p)
	overlaps := found || some && other.Addr.Add(other.Value.requested) > a
	if found {
		other = l.blocks.Entry(p)
	} else if q := l.blocks.Above(p); !overlaps && l.blocks.Holds(q) {
		other = l.blocks.Entry(q)
		overlaps = other.Addr < a.Add(b.requested)
	}
	if overlaps {
		return where, impossible(func() string {
			return fmt.Sprintf("allocation %d of %v at %v overlaps allocation %d at %v", b.id, b.requested, a, other.Value.id,
				other.Addr)
		})
	}
	l.blocks.Insert(p, index.AddrEntry[block]{Addr: a, Value: b})
	return where, nil
}

// poolAt returns the private pool of the segment at an address, or 0.
func (l *layout) poolAt(a device.Addr) alloc.PoolID {
	p, ok := l.segments.Floor(a)
	if !ok {
		return 0
	}
	return l.segments.Entry(p).Value.pool
}

// poolUnknownAt reports whether the pool of the segment at an address is unknown.
func (l *layout) poolUnknownAt(a device.Addr) bool {
	p, ok := l.segments.Floor(a)
	return ok && l.segments.Entry(p).Value.poolUnknown
}

func (l *layout) drop(a device.Addr) error {
	p, found := l.blocks.Search(a)
	if !found {
		return impossible(func() string { return fmt.Sprintf("no block is live at %v", a) })
	}
	l.blocks.Delete(p)
	return nil
}

// apply applies a step. size is the granted size of an allocation, 0 if unknown.
func (l *layout) apply(s Step, size device.Size) error {
	switch s.Kind {
	case Alloc:
		return l.add(s, size)
	case Free:
		return l.drop(s.Addr)
	case SegmentAlloc, SegmentMap:
		return l.addSegment(Segment{
			Region: device.Region{Addr: s.Addr, Size: s.Size}, Stream: s.Stream, Pool: s.Pool, PoolUnknown: s.PoolUnknown,
			Grows: s.Kind == SegmentMap, Small: s.Small,
		})
	case SegmentFree, SegmentUnmap:
		return l.dropSegment(device.Region{Addr: s.Addr, Size: s.Size})
	case Configure:
		return nil
	}
	return fmt.Errorf("unknown kind of step %d", s.Kind)
}

// settle infers the end of the block below a new allocation at a: a remainder of up to 1 MiB
// between them is too short for another block of a large segment. It returns the block and its
// size.
func (l *layout) settle(a device.Addr, t *Target) (below device.Addr, size device.Size, ok bool) {
	where, inside := l.segments.Floor(a)
	p, some := l.blocks.Floor(a)
	if !inside || !some {
		return 0, 0, false
	}
	s, b := l.segments.Entry(where), l.blocks.Entry(p)
	if b.Addr < s.Addr || b.Value.size != 0 {
		return 0, 0, false
	}
	size = a.Sub(b.Addr)
	n := t.round(b.Value.requested)
	return b.Addr, size, size >= n && t.keeps(s.Value, n, size-n)
}

func (l *layout) fix(a device.Addr, size device.Size) {
	p, _ := l.blocks.Search(a)
	b := l.blocks.Entry(p)
	b.Value.size = size
	l.blocks.Set(p, b)
}

// chunks returns the layout as Walk would, expandable segments last.
func (l *layout) chunks(t *Target) []alloc.Chunk {
	var list []alloc.Chunk
	for s := range l.segments.All {
		if !s.Value.grows {
			list = l.appendSegment(list, s.Addr, s, t)
		}
	}
	for _, g := range l.spans.list {
		at := g.base
		for s := range l.segments.All {
			if s.Value.grows && spanOf(s.Value) == g.span {
				list = appendGap(list, g, at, s.Addr)
				list = l.appendSegment(list, g.base, s, t)
				at = s.Addr.Add(s.Value.size)
			}
		}
		list = appendGap(list, g, at, l.spans.end(g))
	}
	return list
}

// appendSegment appends the chunks of a segment, or of a mapped part of the expandable one at base.
func (l *layout) appendSegment(list []alloc.Chunk, base device.Addr, s index.AddrEntry[segment],
	t *Target) []alloc.Chunk {
	c := alloc.Chunk{Region: base, Class: power.ClassLarge, Stream: s.Value.stream, Pool: s.Value.pool}
	if s.Value.small {
		c.Class = power.ClassSmall
	}
	if s.Value.grows {
		c.Owner = power.OwnerExpandable
	}
	end := s.Addr.Add(s.Value.size)
	at := s.Addr
	p, _ := l.blocks.Search(s.Addr)
	for p = l.blocks.Above(p); l.blocks.Holds(p); p = l.blocks.Above(p) {
		b := l.blocks.Entry(p)
		if b.Addr >= end {
			break
		}
		list = appendFree(list, c, at, b.Addr)
		p = l.blocks.Next(p)
		next := end
		if q := l.blocks.Above(p); l.blocks.Holds(q) {
			next = min(end, l.blocks.Entry(q).Addr)
		}
		c := c
		c.Addr, c.State, c.Requested = b.Addr, alloc.Live, b.Value.requested
		c.Size = t.extent(s.Value, b.Value, next.Sub(b.Addr))
		list = append(list, c)
		at = c.End()
	}
	return appendFree(list, c, at, end)
}

func appendFree(list []alloc.Chunk, c alloc.Chunk, from, to device.Addr) []alloc.Chunk {
	if from == to {
		return list
	}
	c.Addr, c.Size, c.State = from, to.Sub(from), alloc.Free
	return append(list, c)
}
