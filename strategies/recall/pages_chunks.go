package recall

import "github.com/vramyard/vramyard/device"

// state is the state of a chunk.
type state uint8

const (
	free    state = iota // in the map of its kind
	live                 // granted
	blocked              // one slot, whose memory is in use through another window
	gone                 // addresses whose memory was released
)

// noChunk is the zero handle of chunks. Chunk 0 exists and is live, so it is a sentinel that never
// merges with a neighbor.
const noChunk uint32 = 0

// chunk is a tile of the mapped part of a window.
type chunk struct {
	addr   device.Addr
	size   device.Size
	prev   uint32 // chunk before it in its window
	next   uint32 // chunk after it; of an unused row, the next unused row
	note   uint32 // of a free chunk, its entry in the map
	born   uint32 // of a live chunk, the number of allocations before it
	window int32
	state  state
}

func (c *chunk) end() device.Addr { return c.addr.Add(c.size) }

// addChunk returns a new chunk without neighbors, in no map.
func (a *pages) addChunk(c chunk) uint32 {
	h := a.spareChunk
	if h == noChunk {
		h = uint32(len(a.chunks))
		a.chunks = append(a.chunks, chunk{})
	} else {
		a.spareChunk = a.chunks[h].next
		a.spareChunks--
	}
	a.chunks[h] = c
	return h
}

// dropChunk removes a chunk that is in no map from the table.
func (a *pages) dropChunk(h uint32) {
	a.chunks[h] = chunk{next: a.spareChunk}
	a.spareChunk = h
	a.spareChunks++
}

// link makes two chunks of a window adjacent. Either may be none.
func (a *pages) link(window int32, left, right uint32) {
	if left == noChunk {
		a.windows[window].head = right
	} else {
		a.chunks[left].next = right
	}
	if right == noChunk {
		a.windows[window].tail = left
	} else {
		a.chunks[right].prev = left
	}
}

// paint records h as the chunk of the slots that begin in n bytes from at.
func (a *pages) paint(h uint32, at device.Addr, n device.Size) {
	w := &a.windows[a.chunks[h].window]
	first := (at.Sub(w.addr) + a.cfg.PageBytes - 1) >> a.shift
	if first >= device.Size(len(w.slotOf)) {
		return
	}
	for i := int(w.slotOf[first]); i < len(w.slots) && w.slots[i].addr < at.Add(n); i++ {
		if w.slots[i].addr >= at {
			w.slots[i].chunk = h
		}
	}
}

// split cuts a chunk that is in no map after its first n bytes and returns both parts, which are in
// no map either. The larger part keeps the handle, so only slots in the smaller one are painted.
//
// Precondition: 0 < n < size.
func (a *pages) split(h uint32, n device.Size) (front, back uint32) {
	c := a.chunks[h]
	part := a.addChunk(c)
	front, back = part, h
	if n > c.size/2 {
		front, back = h, part
	}
	f, b := &a.chunks[front], &a.chunks[back]
	f.addr, f.size = c.addr, n
	b.addr, b.size = c.addr.Add(n), c.size-n
	a.link(c.window, c.prev, front)
	a.link(c.window, front, back)
	a.link(c.window, back, c.next)
	a.paint(part, a.chunks[part].addr, a.chunks[part].size)
	return front, back
}

// join merges two adjacent chunks, neither of which is in a map, and returns the result.
func (a *pages) join(left, right uint32) uint32 {
	l, r := a.chunks[left], a.chunks[right]
	keep, gone := left, right
	if r.size > l.size {
		keep, gone = right, left
	}
	k := &a.chunks[keep]
	k.addr, k.size = l.addr, l.size+r.size
	a.link(k.window, l.prev, keep)
	a.link(k.window, keep, r.next)
	a.paint(keep, a.chunks[gone].addr, a.chunks[gone].size)
	a.dropChunk(gone)
	return keep
}

func (a *pages) insert(h uint32) {
	c := &a.chunks[h]
	c.state = free
	c.note = a.free[a.windows[c.window].kind].Insert(c.size, c.addr, h)
}

func (a *pages) remove(h uint32) {
	c := &a.chunks[h]
	if !a.free[a.windows[c.window].kind].Remove(c.note, h) {
		panic("recall: invariant T2 (the maps hold the free chunks): that at " + c.addr.String() + " is in none")
	}
}

// cut splits the n bytes from an address off a free chunk and returns them as a chunk in no map.
// The parts before and after them stay free.
func (a *pages) cut(h uint32, at device.Addr, n device.Size) uint32 {
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

// settle makes a chunk that is in no map free and merges it with its free neighbors.
func (a *pages) settle(h uint32) {
	if next := a.chunks[h].next; next != noChunk && a.chunks[next].state == free {
		a.remove(next)
		h = a.join(h, next)
	}
	if prev := a.chunks[h].prev; prev != noChunk && a.chunks[prev].state == free {
		a.remove(prev)
		h = a.join(prev, h)
	}
	a.insert(h)
}

// slotsOf returns the first and the last slot of a window that a chunk overlaps.
func (a *pages) slotsOf(c *chunk) (first, last int32) {
	w := &a.windows[c.window]
	from := c.addr.Sub(w.addr)
	return w.slotOf[from>>a.shift], w.slotOf[(from+c.size-1)>>a.shift]
}

// occupy makes a chunk that is in no map live. Memory that was idle until now becomes blocked in
// the other windows.
func (a *pages) occupy(h uint32) {
	c := &a.chunks[h]
	c.state = live
	at := c.window
	first, last := a.slotsOf(c)
	for i := first; i <= last; i++ {
		s := &a.windows[at].slots[i]
		if s.users++; s.users > 1 {
			continue
		}
		m := &a.handles[s.handle]
		m.owner = place{at, i}
		for _, p := range m.in {
			if p != m.owner {
				o := &a.windows[p.window].slots[p.slot]
				a.chunks[a.cut(o.chunk, o.addr, o.size)].state = blocked
			}
		}
	}
}

// vacate frees a live chunk. Memory that is idle from now on becomes free in the other windows.
func (a *pages) vacate(h uint32) {
	at := a.chunks[h].window
	first, last := a.slotsOf(&a.chunks[h])
	for i := first; i <= last; i++ {
		s := &a.windows[at].slots[i]
		if s.users--; s.users > 0 {
			continue
		}
		m := &a.handles[s.handle]
		for _, p := range m.in {
			if p != m.owner {
				a.settle(a.windows[p.window].slots[p.slot].chunk)
			}
		}
		m.owner = nowhere
	}
	a.settle(h)
}
