package rmm

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// global is the number of the global arena. Those of streams have higher numbers.
const global uint32 = 0

// superblock is a contiguous part of the memory that belongs to one arena.
type superblock struct {
	first      handle
	size       device.Size
	owner      uint32 // number of its arena
	prev, next uint32 // neighbors; 0 for none. Unused: next is the one unused before
}

// streamArena is the global arena or the one of a stream.
type streamArena struct {
	stream device.Stream
	chunks index.AddrList[handle] // free chunks of its superblocks; the bound of a leaf is on sizes
}

// arena is arena_memory_resource. The first free chunk in the order of addresses that is large
// enough also is the first one in the first superblock that has one, so one list suffices for all
// superblocks of an arena.
type arena struct {
	*heap
	cfg    Config
	supers []superblock // 0 is a sentinel, 1 the lowest
	unused uint32
	of     []streamArena
	index  index.AddrMap // from a stream to its arena
}

func newArena(t *heap, c Config) *arena {
	return &arena{heap: t, cfg: c, of: make([]streamArena, 1), index: index.NewAddrMap()}
}

// take implements resource: it tries the arenas as they are, and again after all superblocks went
// back to the global one.
func (a *arena) take(size device.Size, s device.Stream) (handle, error) {
	if err := a.start(); err != nil {
		return none, err
	}
	n, own := a.cfg.blockFor(size), a.on(s)
	if h := a.place(n, own); h != none {
		return h, nil
	}
	if err := a.clean(); err != nil {
		return none, err
	}
	if h := a.place(n, own); h != none {
		return h, nil
	}
	return none, regions.ErrLimit
}

// start reserves the memory of the arena, by default half of the free memory.
func (a *arena) start() error {
	if len(a.supers) > 0 {
		return nil
	}
	n := a.cfg.InitialBytes
	if n == 0 {
		half, err := a.freeMemory()
		if err != nil {
			return err
		}
		if n = device.AlignDown(half/2, quantum); n < leastSuperblock {
			return regions.ErrLimit
		}
	}
	h, err := a.reserve(n)
	if err != nil {
		return err
	}
	a.supers = append(a.supers, superblock{}, superblock{first: h, size: n})
	a.rows[h].part = 1
	a.enter(h)
	return nil
}

// on returns the number of the arena of a stream.
func (a *arena) on(s device.Stream) uint32 {
	streamOf := func(k uint32) device.Addr { return device.Addr(a.of[k].stream) }
	k := a.index.Get(device.Addr(s), streamOf)
	if k == index.NoHandle {
		k = uint32(len(a.of))
		a.of = append(a.of, streamArena{stream: s})
		a.index.Put(device.Addr(s), k, streamOf)
	}
	return k
}

// place returns a chunk of n bytes for the arena of a stream, or none. Above leastSuperblock it
// comes from the global arena. Otherwise, if the stream's arena has none, the stream's arena gets
// the superblock of the global one's.
func (a *arena) place(n device.Size, own uint32) handle {
	if n <= leastSuperblock {
		if h := a.fit(own, n); h != none {
			return a.cut(h, n)
		}
	}
	h := a.fit(global, n)
	if h == none {
		return none
	}
	b, least := a.rows[h].part, max(leastSuperblock, n)
	if a.vacant(b) && a.supers[b].size >= least+leastSuperblock {
		a.divide(b, least)
	}
	if n <= leastSuperblock {
		a.move(b, own)
	}
	return a.cut(h, n)
}

// fit returns the lowest free chunk of an arena with at least n bytes, or none. It lowers the
// bounds of the leaves without one.
func (a *arena) fit(k uint32, n device.Size) handle {
	l := &a.of[k].chunks
	for j := l.NextLeaf(0, n); j < l.Leaves(); j = l.NextLeaf(j+1, n) {
		most := device.Size(0)
		for _, e := range l.Leaf(j) {
			size := a.rows[e.Value].size
			if size >= n {
				return e.Value
			}
			most = max(most, size)
		}
		l.Lower(j, most)
	}
	return none
}

// enter adds a chunk to the list of its arena.
func (a *arena) enter(h handle) {
	r := &a.rows[h]
	r.state = free
	l := &a.of[a.supers[r.part].owner].chunks
	p, _ := l.Search(r.addr)
	p = l.Insert(p, index.AddrEntry[handle]{Addr: r.addr, Value: h})
	l.Raise(p.Leaf, r.size)
}

// leave removes a free chunk from the list of its arena.
func (a *arena) leave(h handle) {
	r := &a.rows[h]
	l := &a.of[a.supers[r.part].owner].chunks
	p, ok := l.Search(r.addr)
	if !ok {
		panic("rmm: " + brokenArena + ": the chunk at " + r.addr.String())
	}
	l.Delete(p)
	r.state = live
}

// cut takes a free chunk out of its list and returns its first n bytes.
func (a *arena) cut(h handle, n device.Size) handle {
	a.leave(h)
	if a.rows[h].size > n {
		a.enter(a.split(h, n))
	}
	return h
}

// vacant reports whether a superblock is one free chunk.
func (a *arena) vacant(b uint32) bool {
	s := &a.supers[b]
	r := &a.rows[s.first]
	return r.state == free && r.size == s.size
}

// divide cuts a vacant superblock after n bytes.
func (a *arena) divide(b uint32, n device.Size) {
	s := a.supers[b]
	rest := a.split(s.first, n)
	at := a.unused
	if at == 0 {
		at = uint32(len(a.supers))
		a.supers = append(a.supers, superblock{})
	} else {
		a.unused = a.supers[at].next
	}
	a.supers[at] = superblock{first: rest, size: s.size - n, owner: s.owner, prev: b, next: s.next}
	a.supers[s.next].prev = at
	a.supers[b].size, a.supers[b].next = n, at
	a.rows[rest].part = at
	a.enter(rest)
}

// move gives a superblock to another arena.
func (a *arena) move(b, to uint32) {
	s := &a.supers[b]
	from := s.owner
	for h := s.first; h != none && a.rows[h].part == b; h = a.rows[h].next {
		if a.rows[h].state == free {
			s.owner = from
			a.leave(h)
			s.owner = to
			a.enter(h)
		}
	}
	s.owner = to
}

// clean waits for the device and gives all superblocks to the global arena.
func (a *arena) clean() error {
	if a.streams != nil {
		if err := a.streams.SyncDevice(); err != nil {
			return err
		}
	}
	for b := uint32(1); b != 0; b = a.supers[b].next {
		if a.supers[b].owner != global {
			a.move(b, global)
			b = a.coalesce(b)
		}
	}
	return nil
}

// coalesce merges a superblock of the global arena with its neighbors if they are vacant and
// global too, and returns the result.
func (a *arena) coalesce(b uint32) uint32 {
	if !a.vacant(b) {
		return b
	}
	if n := a.supers[b].next; a.mergeable(n) {
		a.merge(b, n)
	}
	if p := a.supers[b].prev; a.mergeable(p) {
		a.merge(p, b)
		b = p
	}
	return b
}

func (a *arena) mergeable(b uint32) bool { return b != 0 && a.supers[b].owner == global && a.vacant(b) }

// merge merges a vacant superblock with the vacant one behind it.
func (a *arena) merge(b, gone uint32) {
	s, g := &a.supers[b], a.supers[gone]
	a.leave(s.first)
	a.leave(g.first)
	a.join(s.first)
	s.size += g.size
	s.next = g.next
	a.supers[g.next].prev = b
	a.supers[gone] = superblock{next: a.unused}
	a.unused = gone
	a.enter(s.first)
}

// give implements resource. A block goes back to its superblock. Unless that belongs to the arena
// of the stream, the stream is synchronized first; and always for a large block.
func (a *arena) give(h handle) {
	n, b := a.rows[h].size, a.rows[h].part
	s := a.release(h)
	own, owner, large := a.on(s), a.supers[b].owner, n > leastSuperblock
	if large {
		a.sync(s)
	}
	if owner != own && !(large && owner == global) {
		a.sync(s)
	}
	if next := a.rows[h].next; a.joins(b, next) {
		a.leave(next)
		a.join(h)
	}
	if prev := a.rows[h].prev; a.joins(b, prev) {
		a.leave(prev)
		a.join(prev)
		h = prev
	}
	a.enter(h)
	if owner == global {
		a.coalesce(b)
	}
}

// joins reports whether a chunk is a free one of a superblock.
func (a *arena) joins(b uint32, h handle) bool {
	return a.rows[h].state == free && a.rows[h].part == b
}

// sync waits for a stream. The original ignores an error of the device, and so does this.
func (a *arena) sync(s device.Stream) {
	if a.streams != nil {
		_ = a.streams.SyncStream(s)
	}
}

// largest implements resource. O(free chunks).
func (a *arena) largest() (n device.Size) {
	for k := range a.of {
		for e := range a.of[k].chunks.All {
			n = max(n, a.rows[e.Value].size)
		}
	}
	return n
}

func (a *arena) bytes() device.Size {
	n := index.BytesOf(a.supers) + index.BytesOf(a.of) + a.index.Bytes()
	for k := range a.of {
		n += a.of[k].chunks.Bytes(4)
	}
	return n
}

// show implements resource. Chunks of the global arena have no class.
func (a *arena) show(h handle) (class int32, owner uint8) {
	if k := a.supers[a.rows[h].part].owner; k != global {
		return classOf(a.of[k].stream), 0
	}
	return alloc.NoClass, 0
}

func (a *arena) close() error { return nil }
