package bfc

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// handle names a chunk: its index in the chunk table.
type handle = uint32

// none is the handle of no chunk.
const none = ^handle(0)

// state is the state of a record of the chunk table.
type state uint32

const (
	retired state = iota // nothing: the record waits to be used again
	free                 // a chunk in a bin, or the gap
	live                 // a chunk that is granted
)

// The owners of chunks in a two-ended arena, as they appear in alloc.Chunk.Owner.
const (
	OwnerNone  uint8 = iota // the arena has no ends
	OwnerLower              // the lower end, which grows upwards
	OwnerUpper              // the upper end, which grows downwards
	OwnerGap                // neither: free memory between the two
	numOwners
)

// tag packs the small fields of a chunk into one word: state in bits 0 and 1, owner in
// bits 2 and 3, number of the region above.
type tag uint32

const (
	stateBits  = 0x3
	ownerShift = 2
	ownerBits  = 0x3 << ownerShift
	tailShift  = 4
)

func makeTag(s state, owner uint8, region uint32) tag {
	return tag(s) | tag(owner)<<ownerShift | tag(region)<<tailShift
}

func (t tag) state() state   { return state(t & stateBits) }
func (t tag) owner() uint8   { return uint8(t & ownerBits >> ownerShift) }
func (t tag) region() uint32 { return uint32(t >> tailShift) }

func (t tag) withState(s state) tag { return t&^stateBits | tag(s) }
func (t tag) withOwner(o uint8) tag { return t&^ownerBits | tag(o)<<ownerShift }

// chunk is one record of the chunk table. It takes 32 bytes, so that none straddles two
// cache lines. Fields that most chunks lack lie in columns beside the table.
type chunk struct {
	addr device.Addr
	size device.Size
	prev handle // physical neighbours inside the region
	next handle // likewise; of a retired record, the record retired before it
	// slack of a live chunk is its size minus the requested size, or wideSlack; of a free chunk, its
	// entry in the index of free chunks.
	slack uint32
	tag   tag
}

func (c *chunk) end() device.Addr { return c.addr.Add(c.size) }

// wideSlack marks a slack that does not fit. The column wide has the requested size.
const wideSlack = ^uint32(0)

// label is the caller's label of a block.
type label struct {
	tag    uint64
	stream device.Stream
}

// chunkTable holds every chunk. Retired handles are reused, newest first, as in the original:
// handles appear in its report, and the timestamp queue holds handles that may have been reused.
type chunkTable struct {
	rows    []chunk
	spare   handle        // newest retired record
	spares  int           // retired records
	freedAt []uint64      // column: count of the free, 0 if safe; nil without timing
	marks   []mark        // column: entries in the timestamp queue; nil without timing
	labels  []label       // column: labels of live chunks; nil until one is not zero
	wide    []device.Size // column: requested sizes that slack cannot express; nil until there is one
	ids     []uint64      // column: allocation IDs of live chunks; nil without them
}

// add returns the handle of an unused record. It allocates only if every record is in use.
func (t *chunkTable) add() handle {
	if t.spare != none {
		h := t.spare
		t.spare = t.rows[h].next
		t.spares--
		return h
	}
	t.extend()
	if t.freedAt != nil {
		t.freedAt = append(t.freedAt, 0)
		t.marks = append(t.marks, mark{})
	}
	if t.labels != nil {
		t.labels = append(t.labels, label{})
	}
	if t.ids != nil {
		t.ids = append(t.ids, 0)
	}
	if t.wide != nil {
		t.wide = append(t.wide, 0)
	}
	return handle(len(t.rows) - 1)
}

// extend adds a record. The table grows by a sixteenth, because it is most of the host memory of a
// block.
func (t *chunkTable) extend() {
	n := len(t.rows)
	if n == cap(t.rows) {
		rows := make([]chunk, n, n+max(n/16, 64))
		copy(rows, t.rows)
		t.rows = rows
	}
	t.rows = t.rows[:n+1]
	t.rows[n] = chunk{}
}

// addrOf returns the start of a chunk, given its handle in the map of live chunks, which is one
// higher because 0 means none there.
func (t *chunkTable) addrOf(name uint32) device.Addr { return t.rows[name-1].addr }

func (t *chunkTable) retire(h handle) {
	t.rows[h] = chunk{prev: none, next: t.spare, tag: makeTag(retired, 0, 0)}
	t.spare = h
	t.spares++
}

// freed returns the count at which a free chunk was freed, 0 if it is safe.
func (t *chunkTable) freed(h handle) uint64 {
	if t.freedAt == nil {
		return 0
	}
	return t.freedAt[h]
}

// setFreed stores the count at which a chunk was freed.
func (t *chunkTable) setFreed(h handle, count uint64) {
	if t.freedAt != nil {
		t.freedAt[h] = count
	}
}

func (t *chunkTable) requested(h handle) device.Size {
	c := &t.rows[h]
	if c.slack == wideSlack {
		return t.wide[h]
	}
	return c.size - device.Size(c.slack)
}

func (t *chunkTable) setRequested(h handle, n device.Size) {
	c := &t.rows[h]
	if slack := c.size - n; slack < device.Size(wideSlack) {
		c.slack = uint32(slack)
		return
	}
	if t.wide == nil {
		t.wide = make([]device.Size, len(t.rows), cap(t.rows))
	}
	c.slack, t.wide[h] = wideSlack, n
}

func (t *chunkTable) label(h handle) label {
	if t.labels == nil {
		return label{}
	}
	return t.labels[h]
}

func (t *chunkTable) setLabel(h handle, l label) {
	if t.labels == nil {
		if l == (label{}) {
			return
		}
		t.labels = make([]label, len(t.rows), cap(t.rows))
	}
	t.labels[h] = l
}

// annotated reports whether every granted chunk has an entry in a column.
func (t *chunkTable) annotated() bool { return t.labels != nil || t.ids != nil || t.freedAt != nil }

// id returns the allocation ID of a live chunk, 0 if there are none.
func (t *chunkTable) id(h handle) uint64 {
	if t.ids == nil {
		return 0
	}
	return t.ids[h]
}

// setID notes the allocation ID of a live chunk, if there are IDs.
func (t *chunkTable) setID(h handle, id uint64) {
	if t.ids != nil {
		t.ids[h] = id
	}
}

func (t *chunkTable) bytes() device.Size {
	return index.BytesOf(t.rows) + index.BytesOf(t.labels) + index.BytesOf(t.freedAt) + index.BytesOf(t.wide) +
		index.BytesOf(t.marks) + index.BytesOf(t.ids)
}

// reindex enters the live chunks into the map of live chunks again, if it was dropped.
func (a *Allocator) reindex() {
	if a.live.Dropped() {
		a.live.Restore(a.front.Stats.Live, func(yield func(uint32) bool) {
			for h := range a.chunks.rows {
				if a.chunks.rows[h].tag.state() == live && !yield(uint32(h)+1) {
					return
				}
			}
		}, a.chunks.addrOf)
	}
}

// regionOf returns the number of the region a chunk lies in.
func (a *Allocator) regionOf(h handle) *region { return &a.regions.rows[a.chunks.rows[h].tag.region()] }

// split cuts a free chunk that is in no bin after n bytes. It returns the new chunk behind the cut,
// which is in no bin either and inherits owner and count.
//
// Precondition: 0 < n < size.
func (a *Allocator) split(h handle, n device.Size) handle {
	tail := a.chunks.add()
	c := &a.chunks.rows[h]
	a.chunks.rows[tail] = chunk{addr: c.addr.Add(n), size: c.size - n, prev: h, next: c.next, tag: c.tag}
	a.chunks.setFreed(tail, a.chunks.freed(h))
	if c.next == none {
		a.regionOf(h).last = tail
	} else {
		a.chunks.rows[c.next].prev = tail
	}
	c.size, c.next = n, tail
	return tail
}

// merge adds a free chunk to the chunk before it and retires its handle. Both are in no
// bin. The result keeps the newer count; chunks of different owners become part of the gap.
func (a *Allocator) merge(h, right handle) {
	c, r := &a.chunks.rows[h], &a.chunks.rows[right]
	c.size += r.size
	c.next = r.next
	if r.next == none {
		a.regionOf(h).last = h
	} else {
		a.chunks.rows[r.next].prev = h
	}
	if c.tag.owner() != r.tag.owner() {
		c.tag = c.tag.withOwner(OwnerGap)
	}
	if a.chunks.freedAt != nil {
		a.chunks.freedAt[h] = max(a.chunks.freedAt[h], a.chunks.freedAt[right])
	}
	a.chunks.retire(right)
}
