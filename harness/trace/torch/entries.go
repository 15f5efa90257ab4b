package torch

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Entry is one event of a history.
type Entry struct {
	Addr, Size uint64 // first byte, bytes; for ActionOOM: bytes free on the device, rounded request
	Time       int64  // microseconds, or NoTime
	Stack      uint32 // index of a stack
	Category   uint32 // index of a string set by a profiler, 0 without one; for ActionConf: into History.Confs
	Stream     uint16 // index into History.Streams
	Pool       uint16 // index into History.Pools, if the file has pools
	Action     Action // what happened
}

// NoTime is the time of an entry without one.
const NoTime int64 = -1

// pageBytes is the size of a page without the bytes of its columns.
const pageBytes = 352

// pageRows is the number of entries packed together, usually close enough for 32-bit offsets of
// addresses and times. 1024 unpacked entries take 40 KiB; the fixed part of a page is 2 % of it.
const pageRows = 1024

// History is the entries of a device, oldest first. Packed, an entry takes about 12 bytes, or 14
// with a stack, instead of 40. The zero value is empty.
type History struct {
	Streams []int64     // handles of streams as in the file, by first appearance; 0 is the default stream
	Pools   [][2]uint64 // private pools by first appearance; {0, 0} is the default pool; nil if the file has none
	Confs   []string    // settings of the entries [ActionConf], in order

	pages  []*page
	tail   []Entry // the entries after the last page
	packed int     // bytes of the pages
}

// page holds pageRows entries in columns.
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
	p, i := h.pages[k], i%pageRows
	return Entry{
		Addr: p.addr.at(i), Size: p.size.at(i), Time: int64(p.time.at(i)), Stack: uint32(p.stack.at(i)),
		Category: uint32(p.category.at(i)), Stream: uint16(p.stream.at(i)), Pool: uint16(p.pool.at(i)),
		Action: Action(p.action.at(i)),
	}
}

// Append adds an entry at the end. The caller fills Streams, Pools and Confs.
func (h *History) Append(e Entry) {
	if len(h.tail) == cap(h.tail) { // small histories stay small; growing by halves would leave more garbage
		h.tail = append(make([]Entry, 0, min(16+len(h.tail)*pageRows, pageRows)), h.tail...)
	}
	h.tail = append(h.tail, e)
	if len(h.tail) == pageRows {
		p := packPage(h.tail)
		h.pages, h.packed = append(h.pages, p), h.packed+p.bytes()
		h.tail = h.tail[:0]
	}
}

// unpackedBytes returns the memory of everything except packed entries.
func (h *History) unpackedBytes() int {
	const entry, itself = 40, 160 // including the rounding of the heap
	return itself + cap(h.tail)*entry + cap(h.pages)*8 + cap(h.Streams)*8 + (cap(h.Pools)+cap(h.Confs))*16
}

// AppendConf adds an entry [ActionConf].
func (h *History) AppendConf(settings string, stream uint16, time int64) {
	e := Entry{Action: ActionConf, Stream: stream, Time: time}
	h.addConf(&e, settings)
	h.Append(e)
}

// addConf adds the settings of an entry that is about to be appended.
func (h *History) addConf(e *Entry, settings string) {
	e.Category, h.Confs = uint32(len(h.Confs)), append(h.Confs, settings)
}

func (p *page) bytes() int {
	n := pageBytes
	for _, c := range []*column{&p.action, &p.stream, &p.pool, &p.addr, &p.size, &p.time, &p.stack, &p.category} {
		n += len(c.bytes)
	}
	return n
}

func packPage(rows []Entry) *page {
	var scratch [pageRows]uint64 // on the stack, so that packing produces no garbage
	pack := func(of func(e *Entry) uint64) column {
		for i := range rows {
			scratch[i] = of(&rows[i])
		}
		return packColumn(scratch[:len(rows)])
	}
	return &page{
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

// column is a packed list of numbers: base plus a multiple of 1<<shift. The multiples take width
// bytes each, the fewest that the largest one fits. If all numbers are equal, only base is stored.
type column struct {
	base         uint64
	bytes        []byte
	shift, width uint8
}

func (c *column) at(i int) uint64 {
	switch c.width {
	case 1:
		return c.base + uint64(c.bytes[i])<<c.shift
	case 2:
		return c.base + uint64(binary.LittleEndian.Uint16(c.bytes[2*i:]))<<c.shift
	case 4:
		return c.base + uint64(binary.LittleEndian.Uint32(c.bytes[4*i:]))<<c.shift
	case 8:
		return c.base + binary.LittleEndian.Uint64(c.bytes[8*i:])<<c.shift
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
		c.width = 1
	case span <= math.MaxUint16:
		c.width = 2
	case span <= math.MaxUint32:
		c.width = 4
	default:
		c.width = 8
	}
	c.bytes = make([]byte, len(all)*int(c.width)) // a size class of the heap, without waste
	for i, x := range all {
		c.set(i, (x-c.base)>>c.shift)
	}
	return c
}

// set stores a multiple.
func (c *column) set(i int, x uint64) {
	switch c.width {
	case 1:
		c.bytes[i] = uint8(x)
	case 2:
		binary.LittleEndian.PutUint16(c.bytes[2*i:], uint16(x))
	case 4:
		binary.LittleEndian.PutUint32(c.bytes[4*i:], uint32(x))
	case 8:
		binary.LittleEndian.PutUint64(c.bytes[8*i:], x)
	}
}
