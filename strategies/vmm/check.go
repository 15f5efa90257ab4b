package vmm

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
)

// invariantNames has short names of the invariants of the package comment, by number.
var invariantNames = [...]string{
	1: "chunks tile their range, links mirror",
	2: "neighbours of a kind are merged",
	3: "pages have memory exactly where chunks do",
	4: "the address index holds the live chunks",
	5: "the index holds the free chunks",
	6: "the unmapped chunks are listed",
	7: "every row is a chunk or spare",
	8: "counters match the walk, and the pages held",
	9: "requested at least one byte and at most all",
}

func broken(number int, format string, args ...any) error {
	return fmt.Errorf("vmm: invariant V%d (%s): %s", number, invariantNames[number], fmt.Sprintf(format, args...))
}

// sum holds the counts of a check.
type sum struct{ chunks, live, free, unmapped int }

// Check implements [alloc.Inspector]. It recounts everything.
func (a *Allocator) Check() error {
	var n sum
	for i := range a.mem.Len() {
		if err := a.checkSpan(a.mem.At(i), &n); err != nil {
			return err
		}
	}
	switch {
	case n.live != a.live.Len() && !a.live.Dropped():
		return broken(4, "%d live chunks, %d entries", n.live, a.live.Len())
	case n.free != a.free.len():
		return broken(5, "%d free chunks, %d entries", n.free, a.free.len())
	case n.unmapped != a.gaps.Len():
		return broken(6, "%d unmapped chunks, %d entries", n.unmapped, a.gaps.Len())
	case n.chunks != a.len():
		return broken(7, "%d chunks, %d rows in use", n.chunks, a.len())
	}
	if err := a.checkIndex(); err != nil {
		return err
	}
	if err := a.checkPages(); err != nil {
		return err
	}
	return a.checkCounters()
}

func (a *Allocator) checkSpan(s *regions.Span, n *sum) error {
	at, prev := s.Addr, none
	for h := s.First; h != none; h = a.rows[h].next {
		c := &a.rows[h]
		if c.addr != at || c.prev != prev || c.size == 0 || c.state == spare {
			return broken(1, "chunk %d at %v of %d bytes behind chunk %d, expected at %v behind chunk %d",
				h, c.addr, uint64(c.size), c.prev, at, prev)
		}
		if c.state != live && a.is(prev, c.state) {
			return broken(2, "%v and %v", a.rows[prev].addr, c.addr)
		}
		if err := a.checkChunk(h, n); err != nil {
			return err
		}
		at, prev = c.end(), h
	}
	if at != s.End() {
		return broken(1, "chunks of the range at %v end at %v, the range at %v", s.Addr, at, s.End())
	}
	return nil
}

func (a *Allocator) checkChunk(h handle, n *sum) error {
	n.chunks++
	switch c := &a.rows[h]; c.state {
	case free:
		n.free++
	case live:
		n.live++
		if c.requested == 0 || c.requested > c.size {
			return broken(9, "%v: %d bytes requested of %d", c.addr, uint64(c.requested), uint64(c.size))
		}
		if !a.live.Dropped() && a.live.Get(c.addr, a.at) != h {
			return broken(4, "%v is live and not in it", c.addr)
		}
	case unmapped:
		n.unmapped++
		if p, ok := a.gaps.Search(c.addr); !ok || a.gaps.Entry(p).Value != h {
			return broken(6, "the chunk at %v is not", c.addr)
		}
	}
	return nil
}

// checkPages checks that every recorded page lies under a chunk with memory. As checkCounters
// compares the bytes of those chunks, the recorded pages are then all their pages.
func (a *Allocator) checkPages() error {
	h, end := none, device.Addr(0) // a chunk at or below the page, and the end of its range
	for at, size := range a.mem.Pages {
		if a.mem.Len() == 0 {
			return broken(3, "the page at %v is noted, and there is no range", at)
		}
		s := a.mem.Under(at)
		if h == none || at >= end {
			h, end = s.First, s.End()
		}
		if n := at.Sub(s.Addr); !s.Contains(at) || n%s.Page != 0 || size != s.Page || at.Add(size) > end {
			return broken(3, "%v is no page of the range at %v", at, s.Addr)
		}
		for a.rows[h].end() <= at {
			h = a.rows[h].next
		}
		for c := h; c != none && a.rows[c].addr < at.Add(size); c = a.rows[c].next {
			if a.rows[c].state == unmapped {
				return broken(3, "the page at %v is noted, and the chunk at %v is unmapped", at, a.rows[c].addr)
			}
		}
	}
	return nil
}

// checkIndex checks that each entry of the index is a free chunk. As their numbers are equal, the
// index then holds all free chunks.
func (a *Allocator) checkIndex() error {
	if err := a.free.bySize.Check(); err != nil {
		return broken(5, "%v", err)
	}
	for e := range a.free.bySize.All {
		if c := &a.rows[e.Handle]; c.state != free || c.addr != e.Addr || c.size != e.Size {
			return broken(5, "entry %v, chunk of %d bytes at %v", e, uint64(c.size), c.addr)
		}
	}
	l := &a.free.byAddr
	for j := range l.Leaves() {
		for _, e := range l.Leaf(j) {
			if c := &a.rows[e.Value]; c.state != free || c.addr != e.Addr || l.NextLeaf(j, c.size) != j {
				return broken(5, "entry %v, chunk of %d bytes at %v", e, uint64(c.size), c.addr)
			}
		}
	}
	return nil
}

func (a *Allocator) checkCounters() error {
	if err := front.CompareStats(a.front.Stats, a.Walk); err != nil {
		return broken(8, "%v", err)
	}
	m := &a.mem
	idle := device.Size(m.Idle(a.cfg.PageBytes)) * a.cfg.PageBytes
	if a.front.Stats.Forgotten != idle || m.Held() != a.front.Stats.Reserved+idle ||
		a.front.Stats.Reserved != device.Size(m.Mapped())*a.cfg.PageBytes {
		return broken(8, "%d bytes held, %d reserved, %d forgotten; %d pages mapped, %d idle",
			uint64(m.Held()), uint64(a.front.Stats.Reserved), uint64(a.front.Stats.Forgotten), m.Mapped(),
			m.Idle(a.cfg.PageBytes))
	}
	return nil
}
