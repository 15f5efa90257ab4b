package rmm

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// list holds the free memory that one stream freed last.
type list struct {
	stream device.Stream
	event  device.Event // 0: not created yet
	// used is false until the stream frees or requests memory, and again after its memory went to
	// another stream.
	used  bool
	stale bool // the event was not recorded at the last free, because the device refused

	chunks     index.SizeMap // of a pool: by size and address
	head, tail handle        // of a bin: the queue of its blocks, oldest first
	blocks     int           // in the queue
}

// lists are the free lists of a stream-ordered resource, a pool or a bin, in the order in which it
// first saw the streams. The chunks of a pool are cut and coalesced, the blocks of a bin have one
// size.
type lists struct {
	*heap
	part  uint32      // the part of its chunks
	block device.Size // size of the blocks of a bin; 0 for a pool
	of    []list
	index index.AddrMap // from a stream to its list, counted from 1
	// grow returns a chunk of at least n bytes for a list from new memory, and may add others to
	// it.
	grow func(n device.Size, own uint32) (handle, error)
}

// on returns the number of the list of a stream. The first time it creates the event of the stream.
func (l *lists) on(s device.Stream) uint32 {
	streamOf := func(h uint32) device.Addr { return device.Addr(l.of[h-1].stream) }
	if at := l.index.Get(device.Addr(s), streamOf); at != index.NoHandle {
		return at - 1
	}
	l.of = append(l.of, list{stream: s, chunks: index.NewSizeMap(quantum)})
	at := uint32(len(l.of))
	l.index.Put(device.Addr(s), at, streamOf)
	if l.streams != nil {
		l.of[at-1].event, _ = l.streams.NewEvent() // mark tries again
	}
	return at - 1
}

// take returns a chunk of n bytes for a stream: from its own list, from the first other list that
// has one, from its own after the lists of others were merged into it one by one, or from new
// memory. The remainder goes to the list that the chunk came from.
func (l *lists) take(n device.Size, s device.Stream) (handle, error) {
	own := l.on(s)
	if h := l.pop(own, n); h != none {
		return l.cut(h, n, own), nil
	}
	l.of[own].used = true
	for i := range l.others(own) {
		if l.has(i, n) && l.wait(s, i) {
			return l.cut(l.pop(i, n), n, i), nil
		}
	}
	for i := range l.others(own) {
		if !l.wait(s, i) {
			continue
		}
		l.merge(i, own)
		if h := l.pop(own, n); h != none {
			return l.cut(h, n, own), nil
		}
	}
	h, err := l.grow(n, own)
	if err != nil {
		return none, err
	}
	return l.cut(h, n, own), nil
}

// others yields the numbers of the other used lists.
func (l *lists) others(own uint32) func(yield func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for i := range l.of {
			if uint32(i) != own && l.of[i].used && !yield(uint32(i)) {
				return
			}
		}
	}
}

// has reports whether a list has a chunk of at least n bytes.
func (l *lists) has(i uint32, n device.Size) bool {
	if l.block != 0 {
		return l.of[i].head != none
	}
	return l.of[i].chunks.Ceil(n) != index.NoEntry
}

// pop removes and returns the chunk of a list for n bytes, or none: of a pool the smallest that is
// large enough, the lowest of these; of a bin the block freed first.
func (l *lists) pop(i uint32, n device.Size) handle {
	f := &l.of[i]
	if l.block == 0 {
		at := f.chunks.Ceil(n)
		if at == index.NoEntry {
			return none
		}
		h := f.chunks.Take(at)
		l.rows[h].state = live
		return h
	}
	h := f.head
	if h != none {
		l.rows[h].state = live
		f.head = l.rows[h].link
		f.blocks--
		if f.head == none {
			f.tail = none
		}
	}
	return h
}

// cut splits a chunk to n bytes. The remainder goes to a list. The blocks of a bin are not cut.
func (l *lists) cut(h handle, n device.Size, i uint32) handle {
	if l.block == 0 && l.rows[h].size > n {
		l.push(i, l.split(h, n))
	}
	return h
}

// push adds a chunk to a list. In a pool it coalesces with its neighbors in the same list.
func (l *lists) push(i uint32, h handle) {
	f := &l.of[i]
	l.rows[h].state, l.rows[h].list = free, i
	if l.block != 0 {
		l.rows[h].link = none
		if f.tail == none {
			f.head = h
		} else {
			l.rows[f.tail].link = h
		}
		f.tail = h
		f.blocks++
		return
	}
	if next := l.rows[h].next; l.joins(i, next) {
		f.chunks.Remove(l.rows[next].link, next)
		l.join(h)
	}
	if prev := l.rows[h].prev; l.joins(i, prev) {
		f.chunks.Remove(l.rows[prev].link, prev)
		l.join(prev)
		h = prev
	}
	r := &l.rows[h]
	r.link = f.chunks.Insert(r.size, r.addr, h)
}

// joins reports whether a neighbor is a free chunk of the pool in a list.
func (l *lists) joins(i uint32, h handle) bool {
	r := &l.rows[h]
	return r.state == free && r.part == l.part && r.list == i
}

// merge moves the chunks of a list to another one. In a bin all lists are empty then.
func (l *lists) merge(from, to uint32) {
	f := &l.of[from]
	f.used = false
	for l.block == 0 && f.chunks.Len() > 0 {
		l.push(to, f.chunks.Take(f.chunks.Ceil(1)))
	}
}

// give adds a chunk that was freed on a stream to its list, and records the event of the stream.
func (l *lists) give(h handle, s device.Stream) {
	i := l.on(s)
	l.of[i].used = true
	l.of[i].stale = l.mark(i) != nil
	l.push(i, h)
}

// mark records the event of a list behind the work that is queued on its stream now.
func (l *lists) mark(i uint32) (err error) {
	f := &l.of[i]
	if l.streams == nil {
		return nil
	}
	if f.event == 0 {
		if f.event, err = l.streams.NewEvent(); err != nil {
			return err
		}
	}
	return l.streams.Record(f.event, f.stream)
}

// wait makes a stream wait for the last free into a list. It reports false if the device refuses;
// then the memory of the list is not touched.
func (l *lists) wait(s device.Stream, i uint32) bool {
	f := &l.of[i]
	if l.streams == nil {
		return true
	}
	if f.stale || f.event == 0 {
		if l.mark(i) != nil {
			return false
		}
		f.stale = false
	}
	return l.streams.Wait(s, f.event) == nil
}

// largest returns the size of the largest free chunk. O(streams).
func (l *lists) largest() (n device.Size) {
	for i := range l.of {
		if l.block != 0 && l.of[i].blocks > 0 {
			return l.block
		}
		n = max(n, device.AlignDown(l.of[i].chunks.Largest(), quantum))
	}
	return n
}

func (l *lists) bytes() device.Size {
	n := index.BytesOf(l.of) + l.index.Bytes()
	for i := range l.of {
		n += l.of[i].chunks.Bytes()
	}
	return n
}

// close destroys the events and forgets the lists. It returns the device's first error and keeps
// the events that the device did not destroy, for another call.
func (l *lists) close() (first error) {
	kept := l.of[:0]
	for _, f := range l.of {
		if f.event != 0 {
			if err := l.streams.DestroyEvent(f.event); err != nil {
				kept = append(kept, list{stream: f.stream, event: f.event})
				if first == nil {
					first = err
				}
			}
		}
	}
	l.of = kept
	return first
}
