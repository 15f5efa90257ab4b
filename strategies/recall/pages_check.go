package recall

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
)

// sum holds the counts of a check.
type sum struct {
	chunks, live, slots int
	free                [2]int
	granted, held       device.Size
}

// Check implements [alloc.Inspector]. It recounts everything.
func (a *pages) Check() error {
	if err := a.recount(); err != nil {
		return err
	}
	if err := front.CompareStats(a.front.Stats, a.Walk); err != nil {
		return broken("T8", "%v", err)
	}
	return nil
}

// recount checks everything except the counters of the account.
func (a *pages) recount() error {
	var s sum
	for _, i := range a.order {
		if err := a.checkWindow(i, &s); err != nil {
			return err
		}
	}
	if err := a.checkMaps(&s); err != nil {
		return err
	}
	if err := a.checkHandles(&s); err != nil {
		return err
	}
	switch {
	case s.live != a.live.Len():
		return broken("T7", "%d live chunks, %d entries", s.live, a.live.Len())
	case s.chunks+a.spareChunks+1 != len(a.chunks):
		return broken("T6", "%d chunks and %d spare rows of %d", s.chunks, a.spareChunks, len(a.chunks))
	}
	if s.granted != a.granted || s.held != a.held {
		return broken("T8", "%d bytes granted, counted as %d, and %d held, counted as %d", uint64(s.granted),
			uint64(a.granted), uint64(s.held), uint64(a.held))
	}
	return a.watch.check()
}

func (a *pages) checkWindow(i int32, s *sum) error {
	w := &a.windows[i]
	at, prev := w.addr, noChunk
	for h := w.head; h != noChunk; h = a.chunks[h].next {
		c := &a.chunks[h]
		s.chunks++
		if c.addr != at || c.prev != prev || c.size == 0 || c.window != i {
			return broken("T1", "chunk %d at %v of %d bytes behind chunk %d, expected at %v behind chunk %d",
				h, c.addr, uint64(c.size), c.prev, at, prev)
		}
		switch c.state {
		case free:
			s.free[w.kind]++
			if prev != noChunk && a.chunks[prev].state == free {
				return broken("T3", "%v and %v are neighbors and free", a.chunks[prev].addr, c.addr)
			}
		case live:
			s.live++
			s.granted += c.size
			if b, ok := a.live.Get(c.addr); !ok || uint32(b.Place) != h {
				return broken("T7", "%v is live and not in it", c.addr)
			}
		}
		at, prev = c.end(), h
	}
	if at != w.addr.Add(w.end) || w.tail != prev {
		return broken("T1", "the chunks of %v end at %v with chunk %d, its slots at %v, the last one is %d", w.addr, at, prev,
			w.addr.Add(w.end), w.tail)
	}
	return a.checkSlots(i, s)
}

// checkSlots checks the slots of a window against its chunks and the handles.
func (a *pages) checkSlots(i int32, s *sum) error {
	w := &a.windows[i]
	at, h, gaps := w.addr, w.head, device.Size(0)
	for k := range w.slots {
		o := &w.slots[k]
		for h != noChunk && a.chunks[h].end() <= o.addr {
			h = a.chunks[h].next
		}
		if o.addr != at || o.chunk != h || w.slotOf[at.Sub(w.addr)>>a.shift] != int32(k) {
			return broken("T1", "slot %d at %v names chunk %d, it is in chunk %d", k, o.addr, o.chunk, h)
		}
		at = at.Add(o.size)
		if o.handle == gap {
			if c := &a.chunks[h]; c.state != gone || c.end() < at {
				return broken("T4", "slot %d of %v has no memory, chunk %d has", k, w.addr, h)
			}
			gaps += o.size
			continue
		}
		s.slots++
		if err := a.checkUse(place{i, int32(k)}, h); err != nil {
			return err
		}
	}
	if gaps != w.gone {
		return broken("T4", "%v has gaps of %d bytes, counted as %d", w.addr, uint64(gaps), uint64(w.gone))
	}
	return nil
}

// checkUse checks the uses of a slot whose first chunk is h.
func (a *pages) checkUse(p place, h uint32) error {
	o := &a.windows[p.window].slots[p.slot]
	m := &a.handles[o.handle]
	users := int32(0)
	first := &a.chunks[h]
	for ; h != noChunk && a.chunks[h].addr < o.addr.Add(o.size); h = a.chunks[h].next {
		if a.chunks[h].state == live {
			users++
		}
	}
	elsewhere := m.owner != nowhere && m.owner != p
	switch {
	case m.size != o.size || m.id == 0:
		return broken("T4", "slot %v of %d bytes maps handle %d of %d", p, uint64(o.size), o.handle, uint64(m.size))
	case users != o.users || (users > 0) != (m.owner == p):
		return broken("T5", "slot %v has %d live chunks, %d are counted, its memory is in use through %v", p, users, o.users,
			m.owner)
	case elsewhere != (first.state == blocked) || elsewhere && (first.addr != o.addr || first.size != o.size):
		return broken("T5", "slot %v begins with a chunk in state %d, its memory is in use through %v", p, first.state,
			m.owner)
	}
	return nil
}

// checkMaps compares the maps of free chunks with those chunks.
func (a *pages) checkMaps(s *sum) error {
	for k := range a.free {
		m := &a.free[k]
		if err := m.Check(); err != nil {
			return broken("T2", "%v", err)
		}
		if m.Len() != s.free[k] {
			return broken("T2", "%d entries for %d chunks", m.Len(), s.free[k])
		}
		for e := range m.All {
			c := &a.chunks[e.Handle]
			if c.state != free || c.addr != e.Addr || c.size != e.Size || a.windows[c.window].kind != kind(k) {
				return broken("T2", "entry %v, chunk of %d bytes at %v", e, uint64(c.size), c.addr)
			}
		}
	}
	return nil
}

// checkHandles checks that the slots of handles name them, and that each handle with slots has
// exactly one in a home window.
func (a *pages) checkHandles(s *sum) error {
	places, unused, aliased := 0, 0, device.Size(0)
	for j := range a.handles {
		m := &a.handles[j]
		if m.id == 0 {
			unused++
		}
		s.held += m.size
		for k, p := range m.in {
			places++
			if k > 0 {
				aliased += m.size
			}
			w := &a.windows[p.window]
			if (w.kind == home) != (k == 0) || w.slots[p.slot].handle != int32(j) {
				return broken("T4", "handle %d: mapping %d is slot %v of kind %d", j, k, p, w.kind)
			}
			for _, q := range m.in[:k] {
				if q.window == p.window {
					return broken("T4", "handle %d is twice in the window at %v", j, w.addr)
				}
			}
		}
	}
	switch {
	case aliased != a.aliased:
		return broken("T4", "aliases have %d bytes, counted as %d", uint64(aliased), uint64(a.aliased))
	case places != s.slots:
		return broken("T4", "handles are in %d slots, %d slots have handles", places, s.slots)
	case unused != len(a.spare):
		return broken("T6", "%d unused rows of handles, %d are spare", unused, len(a.spare))
	}
	return nil
}

// check checks that the tables and the counterpart are positions of the log.
func (w *pageWatch) check() error {
	for _, table := range [...][]int32{w.byContext, w.byLevel} {
		for _, x := range table {
			if int(x) > len(w.log) {
				return broken("T9", "a table names allocation %d of %d", x-1, len(w.log))
			}
		}
	}
	var e extreme
	for i := range w.log {
		live := w.log[i].live
		if i%block == 0 {
			e = extreme{live, live}
		}
		e.low, e.high = min(e.low, live), max(e.high, live)
		if last := i == len(w.log)-1; (last || i%block == block-1) && w.extremes[i/block] != e {
			return broken("T9", "allocations up to %d have extremes %v, noted as %v", i, e, w.extremes[i/block])
		}
	}
	if w.counterpart >= len(w.log) || len(w.log) > w.memory {
		return broken("T9", "counterpart %d of %d allocations", w.counterpart, len(w.log))
	}
	return nil
}
