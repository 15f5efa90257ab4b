package verify

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// span identifies the address range of the expandable segments of one pool, stream and size class.
// PyTorch creates a second one only if the first, which is larger than the device, is full.
type span struct {
	pool   alloc.PoolID
	stream device.Stream
	small  bool
}

func spanOf(s segment) span { return span{s.pool, s.stream, s.small} }

// room is a partly mapped address range.
type room struct {
	span
	base  device.Addr // lowest address ever mapped
	bytes device.Size // mapped now
	made  int         // index in tops
}

// spans is the ranges with mapped memory, by base. Their bounds are not recorded: a range is taken
// to start at its lowest mapped address while it has memory, since nothing is placed below, and to
// extend far above the highest.
type spans struct {
	list []room
	lows map[span]device.Addr // bases of the opening ranges, as revealed by later steps
	ever []device.Addr        // sorted bases of all ranges and segments in the recording; nil until known
	tops []device.Addr        // by range, in order of creation: end of its highest memory, ever mapped
	made int                  // ranges created so far
}

// beyondMapped is the assumed extent of a range above its mapped memory, unless another one starts
// there: more than any device has.
const beyondMapped = device.TiB

func (x *spans) mapped(of span, r device.Region) {
	i := slices.IndexFunc(x.list, func(g room) bool { return g.span == of })
	if i < 0 {
		base := r.Addr
		if low, ok := x.lows[of]; ok {
			base = min(base, low)
		}
		i = len(x.list)
		x.list = append(x.list, room{span: of, base: base, made: x.made})
		if x.made++; x.made > len(x.tops) {
			x.tops = append(x.tops, 0)
		}
	}
	g := &x.list[i]
	g.base = min(g.base, r.Addr)
	g.bytes += r.Size
	x.tops[g.made] = max(x.tops[g.made], r.End())
	x.sort()
}

// unmapped subtracts unmapped memory from a range, and removes an empty range.
func (x *spans) unmapped(of span, n device.Size) {
	i := slices.IndexFunc(x.list, func(g room) bool { return g.span == of })
	if x.list[i].bytes -= n; x.list[i].bytes == 0 {
		x.list = slices.Delete(x.list, i, i+1)
		delete(x.lows, of) // the next one is a new range
	}
}

// bases returns the bases of the current ranges, updated by lower.
func (x *spans) bases() map[span]device.Addr {
	x.lows = map[span]device.Addr{}
	bases := map[span]device.Addr{}
	for _, g := range x.list {
		x.lows[g.span], bases[g.span] = g.base, g.base
	}
	x.lower(bases)
	return bases
}

// lower records the bases of ranges, and updates those returned by bases if they turn out lower.
func (x *spans) lower(bases map[span]device.Addr) {
	for _, g := range x.list {
		if _, same := x.lows[g.span]; same {
			bases[g.span] = min(bases[g.span], g.base)
		}
		if i, found := slices.BinarySearch(x.ever, g.base); !found {
			x.ever = slices.Insert(x.ever, i, g.base)
		}
	}
}

// withSegments adds the addresses of all segments that are in no range to the bases of ranges: a
// range ends below those above its memory.
func withSegments(bases []device.Addr, h *History) []device.Addr {
	if len(bases) == 0 {
		return nil
	}
	for _, s := range h.Segments {
		if !s.Grows {
			bases = append(bases, s.Addr)
		}
	}
	for _, s := range h.Steps {
		if s.Kind == SegmentAlloc {
			bases = append(bases, s.Addr)
		}
	}
	slices.Sort(bases)
	return slices.Compact(bases)
}

func (x *spans) sort() {
	slices.SortFunc(x.list, func(a, b room) int { return cmp.Compare(a.base, b.base) })
}

// end returns the end of a range: above all memory ever mapped in it, and not in another range.
// Another one may later have addresses of a range that is gone.
func (x *spans) end(g room) device.Addr {
	top := x.tops[g.made]
	i, _ := slices.BinarySearch(x.ever, top)
	if i < len(x.ever) {
		return min(top.Add(beyondMapped), x.ever[i])
	}
	return top.Add(beyondMapped)
}

// at returns the range that contains an address.
func (x *spans) at(a device.Addr) room {
	i, found := slices.BinarySearchFunc(x.list, a, func(g room, a device.Addr) int { return cmp.Compare(g.base, a) })
	if !found {
		i--
	}
	return x.list[i]
}

// join adds memory of an expandable segment, merged with adjacent memory of the same one.
func (l *layout) join(e index.AddrEntry[segment]) {
	of := spanOf(e.Value)
	p, _ := l.segments.Search(e.Addr)
	if q := l.segments.Above(p); l.segments.Holds(q) {
		if up := l.segments.Entry(q); up.Value.grows && up.Addr == e.Addr.Add(e.Value.size) && spanOf(up.Value) == of {
			e.Value.size += up.Value.size
			l.segments.Delete(q)
		}
	}
	p, _ = l.segments.Search(e.Addr)
	if low, some := l.segments.Below(p); some && low.Value.grows && low.Addr.Add(low.Value.size) == e.Addr &&
		spanOf(low.Value) == of {
		p, _ = l.segments.Search(low.Addr)
		low.Value.size += e.Value.size
		l.segments.Set(p, low)
		return
	}
	l.segments.Insert(p, e)
}

// cut adds the parts of an expandable segment that remain beside r.
func (l *layout) cut(e index.AddrEntry[segment], r device.Region) {
	l.spans.unmapped(spanOf(e.Value), r.Size)
	end := e.Addr.Add(e.Value.size)
	for _, rest := range [...]device.Region{
		{Addr: e.Addr, Size: r.Addr.Sub(e.Addr)}, {Addr: r.End(), Size: end.Sub(r.End())},
	} {
		if rest.Size > 0 {
			part := e
			part.Addr, part.Value.size = rest.Addr, rest.Size
			p, _ := l.segments.Search(part.Addr)
			l.segments.Insert(p, part)
		}
	}
}

// appendGap appends the unmapped chunk between two addresses of a range, if any.
func appendGap(list []alloc.Chunk, g room, from, to device.Addr) []alloc.Chunk {
	if from >= to {
		return list
	}
	c := alloc.Chunk{
		Region: g.base, Addr: from, Size: to.Sub(from), State: alloc.Unmapped, Class: power.ClassLarge,
		Owner: power.OwnerExpandable,
		Pool:  g.pool, Stream: g.stream,
	}
	if g.small {
		c.Class = power.ClassSmall
	}
	return append(list, c)
}
