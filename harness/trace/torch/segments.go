package torch

import (
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// HeldSegment is a segment, or a mapped range of an expandable segment, that the recorded allocator
// held.
type HeldSegment struct {
	Addr, Size  uint64    // first byte, bytes
	Stream      int64     // handle
	Small       bool      // for small blocks
	Expandable  bool      // mapped in an expandable segment
	Pool        [2]uint64 // private pool; both 0 for the default pool or if unknown
	PoolUnknown bool      // the pool is unknown: the segment is not in the file and entries have no pools
}

// smallSegment is the size of a segment for small blocks. Segments for large blocks are larger.
const smallSegment = 2 << 20

// largePage is the mapping granularity of expandable segments for large blocks. For small blocks it
// is smallSegment, mapped one at a time.
const largePage = 20 << 20

// Traffic is an entry about a segment.
type Traffic struct {
	Entry   int         // index of the entry
	Taken   bool        // taken from the device, not returned
	Segment HeldSegment // completed from later entries and the file
	// Returned and first of its kind in a row: the program emptied the cache. Otherwise a request
	// needed the memory.
	Emptied bool
}

// solveOpeningSegments finds the segments that were held when the history began: it reads the
// history backwards from the file's segments.
func (c *Timeline) solveOpeningSegments() {
	var held ranges
	for i := range c.Device.Segments {
		s := &c.Device.Segments[i]
		if !held.put(HeldSegment{s.Addr, s.Total, s.Stream, !s.Large, s.Expandable, s.Pool, false}) {
			c.Report.addFinding(segmentTwice, -1, s.Addr)
		}
		c.Report.End += s.Total
	}
	for k := range slices.Backward(c.Traffic) {
		t := &c.Traffic[k]
		t.decode(&c.Device.History)
		ok := false
		if s := &t.Segment; t.Taken {
			var was HeldSegment
			if was, ok = held.remove(s.Addr, s.Size, s.Expandable); ok {
				s.Pool, s.PoolUnknown, s.Stream = was.Pool, was.PoolUnknown, was.Stream
				if !s.Expandable {
					s.Small = was.Small
				}
			}
		} else {
			held.inheritPool(s)
			ok = held.put(*s)
		}
		if !ok {
			c.Report.addFinding(segmentUnexplained, t.Entry, t.Segment.Addr)
		}
	}
	for e := range held.list.All {
		c.Segments = append(c.Segments, e.Value)
	}
}

// findEmptied finds where the program emptied the cache: memory goes back, and the entry that
// follows is not about a request that needs more. Such a request has the same stack. Without
// stacks, the request cannot have needed the memory if the device once had room for it beside all
// that is reserved, unless a setting has requests return memory earlier.
func (c *Timeline) findEmptied(settings []Setting) {
	early := strings.Contains(strings.Join(c.Device.History.Confs, ",")+","+Conf(settings),
		"garbage_collection_threshold")
	h, reserved := &c.Device.History, c.Report.Opening.Reserved
	room := max(c.Report.Peak, c.Report.Capacity)
	for k := 0; k < len(c.Traffic); {
		first := &c.Traffic[k]
		if first.Taken {
			reserved += first.Segment.Size
			k++
			continue
		}
		next, before := first.Entry, reserved
		for ; k < len(c.Traffic) && c.Traffic[k].Entry == next && !c.Traffic[k].Taken; k++ {
			reserved -= min(c.Traffic[k].Segment.Size, reserved)
			next++
		}
		if first.Emptied = next == h.Len(); first.Emptied {
			continue
		}
		switch e, stack := h.At(next), h.At(first.Entry).Stack; {
		case e.Action != ActionSegmentAlloc && e.Action != ActionSegmentMap && e.Action != ActionOOM:
			first.Emptied = e.Action != ActionAlloc || e.Stack != stack || stack == 0
		case stack == 0 && e.Stack == 0:
			first.Emptied = !early && before <= room && e.Size <= room-before
		default:
			first.Emptied = e.Stack != stack
		}
		c.Report.Tight = c.Report.Tight || !first.Emptied && !early
	}
}

// fallingSegments reports whether most new segments lie below the previous one.
func (c *Timeline) fallingSegments() bool {
	falls, last := 0, uint64(0)
	for _, t := range c.Traffic {
		if !t.Taken || t.Segment.Expandable {
			continue
		}
		switch {
		case last == 0:
		case t.Segment.Addr < last:
			falls++
		default:
			falls--
		}
		last = t.Segment.Addr
	}
	return falls > 0
}

// decode fills in the data of the entry itself.
func (t *Traffic) decode(h *History) {
	e := h.At(t.Entry)
	t.Taken = e.Action == ActionSegmentAlloc || e.Action == ActionSegmentMap
	t.Segment = HeldSegment{
		Addr: e.Addr, Size: e.Size, Stream: h.Streams[e.Stream], Small: e.Size == smallSegment,
		Expandable: e.Action == ActionSegmentMap || e.Action == ActionSegmentUnmap,
	}
	if e.Action == ActionSegmentUnmap {
		t.Segment.Small = e.Size%largePage != 0 // one entry may unmap several pages
	}
	if t.Segment.PoolUnknown = h.Pools == nil; !t.Segment.PoolUnknown {
		t.Segment.Pool = h.Pools[e.Pool]
	}
}

// reservations are the segments that the recorded allocator holds as the history is replayed.
type reservations struct {
	held    ranges
	bytes   uint64
	traffic int // entries replayed so far
	report  *Report
}

// open takes the segments held at the beginning.
func (b *reservations) open(c *Timeline) {
	b.report = c.Report
	for _, s := range c.Segments {
		b.held.put(s) // disjoint, as c.Segments is
		b.bytes += s.Size
	}
	c.Report.Opening.Reserved = b.bytes
	c.Report.Peak = b.bytes
}

// replay applies an entry if it concerns a segment.
func (b *reservations) replay(c *Timeline, entry int) {
	if b.traffic == len(c.Traffic) || c.Traffic[b.traffic].Entry != entry {
		return
	}
	t := &c.Traffic[b.traffic]
	b.traffic++
	if t.Taken {
		b.report.Taken++
		if b.held.put(t.Segment) {
			b.bytes += t.Segment.Size
			b.report.Peak = max(b.report.Peak, b.bytes)
		}
		return
	}
	b.report.GivenBack++
	if _, ok := b.held.remove(t.Segment.Addr, t.Segment.Size, t.Segment.Expandable); ok {
		b.bytes -= t.Segment.Size
	}
}

// refused counts a failed request at a time when the device had free bytes left.
func (b *reservations) refused(free uint64) {
	b.report.Refused++
	if sum := b.bytes + free; sum >= free {
		b.report.Capacity = max(b.report.Capacity, sum)
	}
}

// holds reports whether a range of memory is held.
func (b *reservations) holds(addr, size uint64) bool { return b.held.covers(addr, size) }

// ranges is a set of disjoint segments, by address.
type ranges struct {
	list index.AddrList[HeldSegment]
}

// put adds a segment. It returns false if the segment overlaps another one or is not a range.
func (r *ranges) put(s HeldSegment) bool {
	end := s.Addr + s.Size
	if s.Size == 0 || end < s.Addr {
		return false
	}
	p, found := r.list.Search(device.Addr(s.Addr))
	if below, some := r.list.Below(p); found || some && below.Value.Addr+below.Value.Size > s.Addr {
		return false
	}
	if q := r.list.Above(p); r.list.Holds(q) && r.list.Entry(q).Value.Addr < end {
		return false
	}
	r.list.Insert(p, index.AddrEntry[HeldSegment]{Addr: device.Addr(s.Addr), Value: s})
	return true
}

// inheritPool copies the pool of an adjacent mapped range: both are in one expandable segment.
func (r *ranges) inheritPool(s *HeldSegment) {
	if !s.Expandable {
		return
	}
	p, _ := r.list.Search(device.Addr(s.Addr))
	e, some := r.list.Below(p)
	if !some || e.Value.Addr+e.Value.Size != s.Addr {
		if p = r.list.Above(p); !r.list.Holds(p) {
			return
		}
		if e = r.list.Entry(p); e.Value.Addr != s.Addr+s.Size {
			return
		}
	}
	if e.Value.Expandable && e.Value.Stream == s.Stream {
		s.Small, s.Pool, s.PoolUnknown = e.Value.Small, e.Value.Pool, e.Value.PoolUnknown
	}
}

// covers reports whether a range is completely held.
func (r *ranges) covers(addr, size uint64) bool {
	p, ok := r.list.Floor(device.Addr(addr))
	if !ok || addr+size < addr {
		return false
	}
	at := r.list.Entry(p).Value.Addr
	for ; r.list.Holds(p); p = r.list.Next(p) {
		s := r.list.Entry(p).Value
		if s.Addr != at {
			return false // a gap
		}
		if at = s.Addr + s.Size; at >= addr+size {
			return at > addr
		}
	}
	return false
}

// remove removes a range and returns the entry that held its lowest address. It fails without a
// change unless the range is completely held and, if partial is false, is exactly one entry.
func (r *ranges) remove(addr, size uint64, partial bool) (HeldSegment, bool) {
	p, ok := r.list.Floor(device.Addr(addr))
	if !ok || size == 0 || !r.covers(addr, size) {
		return HeldSegment{}, false
	}
	first := r.list.Entry(p).Value
	if !partial {
		if first.Addr != addr || first.Size != size {
			return HeldSegment{}, false
		}
		r.list.Delete(p)
		return first, true
	}
	end := addr + size
	for {
		p, _ := r.list.Floor(device.Addr(end - 1))
		s := r.list.Entry(p).Value
		r.list.Delete(p)
		if top := s.Addr + s.Size; top > end {
			rest := s
			rest.Addr, rest.Size = end, top-end
			r.put(rest)
		}
		if s.Addr <= addr {
			if s.Size = addr - s.Addr; s.Size > 0 {
				r.put(s)
			}
			return first, true
		}
		end = s.Addr
	}
}
