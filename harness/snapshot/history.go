package snapshot

import (
	"math"
	"math/bits"
)

// Entry is one event of a history.
type Entry struct {
	Addr, Size uint64 // first byte, bytes; of ActionOOM what the device had free, and rounded bytes
	Time       int64  // microseconds, or NoTime
	Stack      uint32 // index of a stack
	Category   uint32 // index of a string, which a profiler set; 0 if none did
	Stream     uint16 // index into History.Streams
	Pool       uint16 // index into History.Pools, if the file has pools
	Action     Action // what happened
}

// NoTime is the time of an entry that has none.
const NoTime int64 = -1

// pageRows is the number of entries that are packed together. Their addresses and times lie close
// enough for 32 bits each, and 4096 unpacked ones are 160 KiB.
const pageRows = 4096

// History is the entries of a device, oldest first. They are packed: an entry takes about 12
// bytes, and 2 more if it has a stack, where a plain row would take 40. The zero value is empty.
type History struct {
	Streams []int64     // handles of streams as the file has them, by first appearance; 0 is the default stream
	Pools   [][2]uint64 // private pools by first appearance, {0, 0} is the default one; nil if the file has none

	pages []page
	tail  []Entry // the entries behind the last page
}

// page is pageRows entries, a column for each property.
type page struct {
	action, stream, pool, addr, size, time, stack, category column
}

// Len returns the number of entries.
func (h *History) Len() int { return len(h.pages)*pageRows + len(h.tail) }

// At returns an entry. It takes about 20 ns.
//
// Precondition: 0 <= i < Len.
func (h *History) At(i int) Entry {
	k := i / pageRows
	if k == len(h.pages) {
		return h.tail[i%pageRows]
	}
	p, i := &h.pages[k], i%pageRows
	return Entry{
		Addr: p.addr.at(i), Size: p.size.at(i), Time: int64(p.time.at(i)), Stack: uint32(p.stack.at(i)),
		Category: uint32(p.category.at(i)), Stream: uint16(p.stream.at(i)), Pool: uint16(p.pool.at(i)),
		Action: Action(p.action.at(i)),
	}
}

// Append adds an entry at the end. Streams and Pools are the caller's to fill.
func (h *History) Append(e Entry) {
	h.tail = append(h.tail, e)
	if len(h.tail) == pageRows {
		h.pages = append(h.pages, packPage(h.tail))
		h.tail = h.tail[:0]
	}
}

// packPage returns a page of entries in columns.
func packPage(rows []Entry) page {
	var scratch [pageRows]uint64 // on the stack: packing leaves no garbage behind
	pack := func(of func(e *Entry) uint64) column {
		for i := range rows {
			scratch[i] = of(&rows[i])
		}
		return packColumn(scratch[:len(rows)])
	}
	return page{
		action:   pack(func(e *Entry) uint64 { return uint64(e.Action) }),
		stream:   pack(func(e *Entry) uint64 { return uint64(e.Stream) }),
		pool:     pack(func(e *Entry) uint64 { return uint64(e.Pool) }),
		addr:     pack(func(e *Entry) uint64 { return e.Addr }),
		size:     pack(func(e *Entry) uint64 { return e.Size }),
		time:     pack(func(e *Entry) uint64 { return uint64(e.Time) }),
		stack:    pack(func(e *Entry) uint64 { return uint64(e.Stack) }),
		category: pack(func(e *Entry) uint64 { return uint64(e.Category) }),
	}
}

// column is packed numbers: each is base plus a multiple of 1<<shift, which is kept in as few
// bytes as the largest needs. If all are equal, nothing but base is kept.
type column struct {
	base  uint64
	shift uint8
	by8   []uint8
	by16  []uint16
	by32  []uint32
	by64  []uint64
}

// at returns a number.
func (c *column) at(i int) uint64 {
	switch {
	case c.by16 != nil:
		return c.base + uint64(c.by16[i])<<c.shift
	case c.by32 != nil:
		return c.base + uint64(c.by32[i])<<c.shift
	case c.by8 != nil:
		return c.base + uint64(c.by8[i])<<c.shift
	case c.by64 != nil:
		return c.base + c.by64[i]<<c.shift
	}
	return c.base
}

// packColumn packs numbers, at least one.
func packColumn(all []uint64) column {
	low, high := all[0], all[0]
	for _, x := range all {
		low, high = min(low, x), max(high, x)
	}
	var ones uint64
	for _, x := range all {
		ones |= x - low
	}
	if ones == 0 {
		return column{base: low}
	}
	c := column{base: low, shift: uint8(bits.TrailingZeros64(ones))}
	switch span := (high - low) >> c.shift; {
	case span <= math.MaxUint8:
		c.by8 = narrow[uint8](all, c)
	case span <= math.MaxUint16:
		c.by16 = narrow[uint16](all, c)
	case span <= math.MaxUint32:
		c.by32 = narrow[uint32](all, c)
	default:
		c.by64 = narrow[uint64](all, c)
	}
	return c
}

// narrow returns numbers as multiples above the base of c.
func narrow[T uint8 | uint16 | uint32 | uint64](all []uint64, c column) []T {
	to := make([]T, len(all))
	for i, x := range all {
		to[i] = T((x - c.base) >> c.shift)
	}
	return to
}
