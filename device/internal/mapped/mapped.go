package mapped

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Mapping is memory mapped at an address of a range.
type Mapping struct {
	Size   device.Size   // bytes, whole pages
	Slot   int32         // slot of the memory in a table of the device
	Access device.Access // permitted access
	Offset device.Size   // bytes: offset in the memory
}

// List holds mappings by address. The zero List is empty. It allocates only to grow beyond its
// maximum size so far.
type List struct {
	index.AddrList[Mapping]
}

// Whole reports whether n is a multiple of the granularity g, a power of two. Several sizes may be
// joined with "or" in n.
func Whole(n, g device.Size) bool { return n&(g-1) == 0 }

// Within reports whether size bytes at a lie in a range that starts at or below a.
func Within(r device.Region, a device.Addr, size device.Size) bool {
	at := a.Sub(r.Addr)
	return size <= r.Size && at <= r.Size-size
}

// Below reports whether the first mapping from position p on starts below end.
func (l *List) Below(p index.AddrPos, end device.Addr) bool {
	p = l.Above(p)
	return l.Holds(p) && l.Entry(p).Addr < end
}

// Room returns the position for a mapping of size bytes at a, or [device.ErrMapped] if any of the
// bytes is mapped. O(log mappings).
func (l *List) Room(a device.Addr, size device.Size) (index.AddrPos, error) {
	p, ok := l.Floor(a)
	if ok {
		if e := l.Entry(p); a.Sub(e.Addr) < e.Value.Size {
			return p, device.ErrMapped
		}
		p.At++ // after it, in its leaf, where a search would end
	}
	if l.Below(p, a.Add(size)) {
		return p, device.ErrMapped
	}
	return p, nil
}

// Fill returns the position of the first of the mappings that exactly fill size bytes at a, on a
// device of granularity g. Errors: [device.ErrInvalid] for no bytes or a partial mapping,
// [device.ErrGranularity], [device.ErrUnmapped]. O(log mappings + mappings filled).
func (l *List) Fill(a device.Addr, size, g device.Size) (index.AddrPos, error) {
	if size == 0 {
		return index.AddrPos{}, device.ErrInvalid
	}
	if !Whole(device.Size(a)|size, g) {
		return index.AddrPos{}, device.ErrGranularity
	}
	first, ok := l.Floor(a)
	if !ok {
		return first, device.ErrUnmapped
	}
	if e := l.Entry(first); e.Addr != a {
		if a.Sub(e.Addr) < e.Value.Size {
			return first, device.ErrInvalid
		}
		return first, device.ErrUnmapped
	}
	for p := first; size > 0; p = l.Next(p) {
		if !l.Holds(p) || l.Entry(p).Addr != a {
			return first, device.ErrUnmapped
		}
		n := l.Entry(p).Value.Size
		if n > size {
			return first, device.ErrInvalid
		}
		a, size = a.Add(n), size-n
	}
	return first, nil
}

// Allow sets the access of the mappings from position p on that start below end, and returns the
// position after them.
func (l *List) Allow(p index.AddrPos, end device.Addr, access device.Access) index.AddrPos {
	for ; l.Below(p, end); p = l.Next(p) {
		e := l.Entry(p)
		e.Value.Access = access
		l.Set(p, e)
	}
	return p
}
