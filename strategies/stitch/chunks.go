package stitch

import "github.com/vramyard/vramyard/device"

// state is the state of a chunk.
type state uint8

const (
	free state = iota // in the map of its kind
	live              // granted
	held              // a pBlock whose memory is in use through a live sBlock
	idle              // address range of an unused sBlock
	gone              // pages of a segment whose memory was released
)

// none is the zero handle of chunks, regions and pieces. Chunk 0 exists and is live, so it is a
// sentinel that never merges with a neighbor.
const none uint32 = 0

// chunk is a tile of a region: a part of the small pool, a pBlock, or the one tile of an sBlock.
type chunk struct {
	addr   device.Addr
	size   device.Size
	prev   uint32 // chunk before it in its region
	next   uint32 // chunk after it; of an unused row, the next unused row
	region uint32
	// note identifies a free chunk in the map of its kind and an idle sBlock in the map of idle
	// ones. For a used pBlock it is the first sBlock that waits for it.
	note  uint32
	state state
}

func (c *chunk) end() device.Addr { return c.addr.Add(c.size) }

// addChunk returns a new chunk without neighbours, in no map.
func (a *Allocator) addChunk(at device.Addr, size device.Size, region uint32) uint32 {
	h := a.spareChunk
	if h == none {
		h = uint32(len(a.chunks))
		a.chunks = append(a.chunks, chunk{})
	} else {
		a.spareChunk = a.chunks[h].next
		a.spareChunks--
	}
	a.chunks[h] = chunk{addr: at, size: size, region: region}
	return h
}

// dropChunk removes a chunk that is in no map from the table.
func (a *Allocator) dropChunk(h uint32) {
	a.chunks[h] = chunk{next: a.spareChunk}
	a.spareChunk = h
	a.spareChunks++
}

// paint records h as the owner of the pages in n bytes from at. A no-op outside of segments.
func (a *Allocator) paint(h uint32, at device.Addr, n device.Size) {
	r := &a.regions[a.chunks[h].region]
	if r.kind != pages {
		return
	}
	first := at.Sub(r.addr) >> a.pageShift
	owners := r.owner[first : first+n>>a.pageShift]
	for i := range owners {
		owners[i] = h
	}
}

// split cuts a chunk that is in no map after its first n bytes and returns both parts, which are in
// no map either. The larger part keeps the handle, so a split writes four bytes for each page of
// the smaller part only.
//
// Precondition: 0 < n < size.
func (a *Allocator) split(h uint32, n device.Size) (front, tail uint32) {
	c := a.chunks[h]
	part := a.addChunk(c.addr, n, c.region)
	front, tail = part, h
	if n > c.size/2 {
		front, tail = h, part
	}
	f, t := &a.chunks[front], &a.chunks[tail]
	f.addr, f.size = c.addr, n
	t.addr, t.size = c.addr.Add(n), c.size-n
	a.link(c.region, c.prev, front)
	a.link(c.region, front, tail)
	a.link(c.region, tail, c.next)
	a.paint(part, a.chunks[part].addr, a.chunks[part].size)
	return front, tail
}

// join merges two adjacent chunks, neither of which is in a map, and returns the result. It writes
// four bytes for each page of the smaller one, whose row becomes unused.
func (a *Allocator) join(left, right uint32) uint32 {
	l, r := a.chunks[left], a.chunks[right]
	keep, gone := left, right
	if r.size > l.size {
		keep, gone = right, left
	}
	k := &a.chunks[keep]
	k.addr, k.size = l.addr, l.size+r.size
	a.link(k.region, l.prev, keep)
	a.link(k.region, keep, r.next)
	a.paint(keep, a.chunks[gone].addr, a.chunks[gone].size)
	a.dropChunk(gone)
	return keep
}

// link makes two chunks of a region adjacent. Either may be none.
func (a *Allocator) link(region, left, right uint32) {
	if left == none {
		a.regions[region].chunk = right
	} else {
		a.chunks[left].next = right
	}
	if right != none {
		a.chunks[right].prev = left
	}
}

func (a *Allocator) insert(h uint32) {
	c := &a.chunks[h]
	k := a.regions[c.region].kind
	c.state = free
	c.note = a.free[k].Insert(c.size, c.addr, h)
	a.freed[k] += c.size
}

func (a *Allocator) remove(h uint32) {
	c := &a.chunks[h]
	k := a.regions[c.region].kind
	if !a.free[k].Remove(c.note, h) {
		panic("stitch: invariant G2 (the maps hold the free chunks): that at " + c.addr.String() + " is in none")
	}
	a.freed[k] -= c.size
	c.note = none
}

// cut splits the n bytes from an address off a free chunk and returns them as a chunk in no map.
// The parts before and after them stay free.
func (a *Allocator) cut(h uint32, at device.Addr, n device.Size) uint32 {
	a.remove(h)
	if pad := at.Sub(a.chunks[h].addr); pad != 0 {
		var low uint32
		low, h = a.split(h, pad)
		a.insert(low)
	}
	if a.chunks[h].size > n {
		var rest uint32
		h, rest = a.split(h, n)
		a.insert(rest)
	}
	return h
}

// settle makes a chunk in use free and coalesces it. The sBlocks that waited for it return to the
// map.
func (a *Allocator) settle(h uint32) {
	// The note becomes the position in the map below, so the waiting sBlocks come first.
	if a.regions[a.chunks[h].region].kind == pages {
		a.wake(h)
	}
	if next := a.chunks[h].next; next != none && a.chunks[next].state == free {
		a.remove(next)
		h = a.join(h, next)
	}
	if prev := a.chunks[h].prev; prev != none && a.chunks[prev].state == free {
		a.remove(prev)
		h = a.join(prev, h)
	}
	a.insert(h)
}
