package rmm

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// handle is the number of a chunk: its row in the table.
type handle = uint32

// none is no chunk. Row 0 is a sentinel that is never free.
const none handle = 0

// The states of a row.
const (
	retired uint8 = iota // unused
	free                 // a chunk in a list
	live                 // a block, or a chunk in no list
)

// row is a chunk of a region.
type row struct {
	addr       device.Addr
	size       device.Size   // may exceed a multiple of the quantum at the end of a region
	requested  device.Size   // live: requested bytes
	tag        uint64        // live: label of the request
	stream     device.Stream // live: stream of the request
	prev, next handle        // neighbors in the region; retired: next is the row retired before
	// part is the bin of a block, counted from 1, or the superblock of a chunk of an arena. It is 0
	// for chunks of a pool.
	part uint32
	list uint32 // free, in a pool or a bin: number of its list
	link uint32 // free: its entry in the map of a pool, or the block behind it in the queue of a bin
	// state is retired, free or live.
	state uint8
}

// heap is the table of chunks with the device, the regions and the live blocks.
type heap struct {
	front   front.Front
	src     device.Source
	streams device.Streams // nil on a device without streams
	held    regions.Set    // the label of a region is its first chunk
	live    index.AddrMap
	rows    []row
	spare   handle      // row retired last
	spares  int         // retired rows
	slack   device.Size // bytes of the regions that no chunk shows
	asked   device.Size // size of the last reservation
}

func (t *heap) init(src device.Source) {
	t.src = src
	t.streams, _ = device.StreamsOf(src)
	t.held = regions.NewSet(src, &t.front.Stats)
	t.empty()
}

// empty forgets all chunks.
func (t *heap) empty() {
	t.rows, t.spare, t.spares, t.slack, t.live = make([]row, 1), none, 0, 0, index.NewAddrMap()
}

// reserve takes a region of n bytes from the device and returns the chunk that fills it, which is
// in no list. Bytes that the device grants beyond n are never used, as in the original.
func (t *heap) reserve(n device.Size) (handle, error) {
	h := t.take()
	t.asked = n
	r, err := t.held.Reserve(n, quantum, int32(h))
	if err != nil {
		t.retire(h)
		return none, err
	}
	t.rows[h] = row{addr: r.Addr, size: n, state: live}
	t.slack += r.Size - device.AlignDown(n, quantum)
	return h, nil
}

// take returns a row for a new chunk.
func (t *heap) take() handle {
	if h := t.spare; h != none {
		t.spare = t.rows[h].next
		t.spares--
		return h
	}
	t.rows = append(t.rows, row{})
	return handle(len(t.rows) - 1)
}

// retire removes a chunk from the table.
func (t *heap) retire(h handle) {
	t.rows[h] = row{next: t.spare}
	t.spare = h
	t.spares++
}

// split cuts a chunk after n bytes and returns the part behind the cut. Both are in no list.
func (t *heap) split(h handle, n device.Size) handle {
	rest := t.take()
	r := &t.rows[h]
	t.rows[rest] = row{
		addr: r.addr.Add(n), size: r.size - n, prev: h, next: r.next, part: r.part, state: live,
	}
	if r.next != none {
		t.rows[r.next].prev = rest
	}
	r.size, r.next = n, rest
	return rest
}

// join adds the chunk behind h to it. Neither is in a list. The left chunk survives, so the first
// chunk of a region keeps its number.
func (t *heap) join(h handle) {
	gone := t.rows[h].next
	g := t.rows[gone]
	t.rows[h].size += g.size
	t.rows[h].next = g.next
	if g.next != none {
		t.rows[g.next].prev = h
	}
	t.retire(gone)
}

// first returns the first chunk of the region that lies i-th by address.
func (t *heap) first(i int) handle { return handle(t.held.At(i).Label) }

func (t *heap) addrOf(h handle) device.Addr { return t.rows[h].addr }

// find returns the live block that starts at an address, or none.
func (t *heap) find(at device.Addr) handle {
	if t.front.Closed() {
		return none
	}
	return t.live.Get(at, t.addrOf)
}

// grant makes a chunk, which is in no list, the block of a request.
func (t *heap) grant(h handle, r *alloc.Request) alloc.Block {
	w := &t.rows[h]
	w.requested, w.tag, w.stream = r.Size, r.Tag, r.Stream
	t.live.Put(w.addr, h, t.addrOf)
	t.front.Stats.Granted(r.Size, w.size)
	return alloc.Block{Addr: w.addr, Size: w.size}
}

// release makes a live block a chunk in no list and returns the stream of its request.
func (t *heap) release(h handle) device.Stream {
	w := &t.rows[h]
	t.live.Unlink(w.addr, h)
	t.front.Stats.Freed(w.requested, w.size)
	s := w.stream
	w.requested, w.tag, w.stream = 0, 0, 0
	return s
}

// freeMemory returns the free memory of the device.
func (t *heap) freeMemory() (device.Size, error) {
	info, ok := device.MemoryInfoOf(t.src)
	if !ok {
		return unlimited, nil
	}
	bytes, total, err := info.MemoryInfo()
	if total == 0 {
		bytes = unlimited
	}
	return bytes, err
}
