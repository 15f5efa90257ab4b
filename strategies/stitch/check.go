package stitch

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
)

// invariantNames has short names of the invariants of the package comment, by number.
var invariantNames = [...]string{
	1: "chunks tile their region, links mirror, pages name their pBlock",
	2: "the maps hold the free chunks",
	3: "free neighbours are merged",
	4: "pieces make up their sBlock, lists mirror",
	5: "memory is in use once",
	6: "an idle sBlock is found or waits for a pBlock in use",
	7: "every row is in use or spare",
	8: "the ledger holds the live chunks",
	9: "counters match the walk",
}

func broken(number int, format string, args ...any) error {
	return fmt.Errorf("stitch: invariant G%d (%s): %s", number, invariantNames[number], fmt.Sprintf(format, args...))
}

// sum holds the counts of a check.
type sum struct {
	chunks, regions, pieces int
	live, sBlocks, idle     int
	free                    [2]int
	freed                   [2]device.Size
	held, through           device.Size // pBlocks held; pieces of sBlocks that are live
}

// Check implements [alloc.Inspector]. It recounts everything.
func (a *Allocator) Check() error {
	if !a.front.Closed() {
		if err := a.checkTables(); err != nil {
			return err
		}
	}
	if err := front.CompareStats(a.front.Stats, a.Walk); err != nil {
		return broken(9, "%v", err)
	}
	return nil
}

// checkTables checks everything but the counters. Errors elsewhere would show there too.
func (a *Allocator) checkTables() error {
	var s sum
	for e := range a.order.All {
		s.regions++
		if err := a.checkRegion(e.Value, &s); err != nil {
			return err
		}
	}
	if err := a.checkMaps(&s); err != nil {
		return err
	}
	if err := a.checkIdle(&s); err != nil {
		return err
	}
	switch {
	case s.held != s.through:
		return broken(5, "%d bytes of pBlocks are held, sBlocks in use have %d", uint64(s.held), uint64(s.through))
	case s.live != a.live.Len():
		return broken(8, "%d live chunks, %d entries", s.live, a.live.Len())
	}
	return a.checkRows(&s)
}

func (a *Allocator) checkRegion(i uint32, s *sum) error {
	r := &a.regions[i]
	at, prev := r.addr, none
	for h := r.chunk; h != none; h = a.chunks[h].next {
		c := &a.chunks[h]
		if c.addr != at || c.prev != prev || c.size == 0 || c.region != i {
			return broken(1, "chunk %d at %v of %d bytes behind chunk %d, expected at %v behind chunk %d",
				h, c.addr, uint64(c.size), c.prev, at, prev)
		}
		if err := a.checkChunk(h, s); err != nil {
			return err
		}
		at, prev = c.end(), h
	}
	switch r.kind {
	case pages:
		return a.checkOver(i)
	case stitched:
		return a.checkSBlock(i, s)
	}
	return nil
}

func (a *Allocator) checkChunk(h uint32, s *sum) error {
	s.chunks++
	c := &a.chunks[h]
	r := &a.regions[c.region]
	switch c.state {
	case free:
		s.free[r.kind]++
		s.freed[r.kind] += c.size
		if c.prev != none && a.chunks[c.prev].state == free {
			return broken(3, "%v and %v are neighbours and free", a.chunks[c.prev].addr, c.addr)
		}
	case live:
		s.live++
		if b, ok := a.live.Get(c.addr); !ok || uint32(b.Place) != h {
			return broken(8, "%v is live and not in it", c.addr)
		}
	case held:
		s.held += c.size
	}
	if r.kind == pages {
		first := c.addr.Sub(r.addr) >> a.pageShift
		for page := first; page < first+c.size>>a.pageShift; page++ {
			if r.owner[page] != h {
				return broken(1, "page %d of %v names chunk %d, it is of the one at %v", uint64(page), r.addr,
					r.owner[page], c.addr)
			}
		}
	}
	return nil
}

// checkOver checks the list of pieces over a segment.
func (a *Allocator) checkOver(i uint32) error {
	above := none
	for p := a.regions[i].pieces; p != none; p = a.pieces[p].below {
		if q := &a.pieces[p]; q.home != i || q.above != above {
			return broken(4, "piece %d is in the list of %v and belongs to another", p, a.regions[i].addr)
		}
		above = p
	}
	return nil
}

// checkSBlock checks the pieces of an sBlock: of one in use, each is a pBlock that is held.
func (a *Allocator) checkSBlock(i uint32, s *sum) error {
	r := &a.regions[i]
	size := device.Size(0)
	inUse := r.chunk != none && a.chunks[r.chunk].state == live
	for p := r.pieces; p != none; p = a.pieces[p].next {
		s.pieces++
		q := &a.pieces[p]
		home := &a.regions[q.home]
		n := device.Size(q.count) << a.pageShift
		if q.block != i || home.kind != pages || int(q.first+q.count) > len(home.owner) || q.count == 0 {
			return broken(4, "piece %d of the sBlock at %v is unused", p, r.addr)
		}
		c := &a.chunks[home.owner[q.first]]
		for page := q.first; page < q.first+q.count; page++ {
			if home.handles[page] == 0 {
				return broken(4, "the sBlock at %v has page %d of %v, which is gone", r.addr, page, home.addr)
			}
		}
		if inUse {
			s.through += n
			if c.state != held || c.addr != home.addr.Add(device.Size(q.first)<<a.pageShift) || c.size != n {
				return broken(5, "a piece of the sBlock in use at %v is not held: pBlock at %v", r.addr, c.addr)
			}
		}
		size += n
	}
	if r.chunk == none {
		return nil
	}
	s.sBlocks++
	if c := &a.chunks[r.chunk]; size != c.size || size != r.mapped {
		return broken(4, "the sBlock at %v has %d bytes, its pieces %d, %d are mapped",
			r.addr, uint64(c.size), uint64(size), uint64(r.mapped))
	}
	return nil
}

// checkMaps compares the maps of free chunks with those chunks.
func (a *Allocator) checkMaps(s *sum) error {
	for k := range a.free {
		m := &a.free[k]
		if err := m.Check(); err != nil {
			return broken(2, "%v", err)
		}
		if m.Len() != s.free[k] || a.freed[k] != s.freed[k] {
			return broken(2, "%d entries and %d bytes for %d chunks of %d", m.Len(), uint64(a.freed[k]), s.free[k],
				uint64(s.freed[k]))
		}
		for e := range m.All {
			c := &a.chunks[e.Handle]
			if c.state != free || c.addr != e.Addr || c.size != e.Size || a.regions[c.region].kind != kind(k) {
				return broken(2, "entry %v, chunk of %d bytes at %v", e, uint64(c.size), c.addr)
			}
		}
	}
	return nil
}

// checkIdle checks that every idle sBlock is in the list by age, and either in the map or in the
// list of a pBlock in use that has memory of it.
func (a *Allocator) checkIdle(s *sum) error {
	if err := a.idle.Check(); err != nil {
		return broken(6, "%v", err)
	}
	older, waiting := none, 0
	for i := a.oldest; i != none; i = a.regions[i].newer {
		s.idle++
		r := &a.regions[i]
		c := &a.chunks[r.chunk]
		switch {
		case r.kind != stitched || c.state != idle || r.older != older:
			return broken(6, "the region at %v is in the list of idle ones", r.addr)
		case r.waitsFor == none:
			if e := a.idle.Entry(c.note); c.note == index.NoEntry || e.Handle != i || e.Size != c.size {
				return broken(6, "the sBlock at %v is neither found nor waits", r.addr)
			}
		default:
			waiting++
			if err := a.checkWaiting(i); err != nil {
				return err
			}
		}
		older = i
	}
	switch {
	case older != a.newest:
		return broken(6, "the list of idle ones does not end with the newest")
	case a.idle.Len() != s.idle-waiting:
		return broken(6, "%d entries, %d idle sBlocks of which %d wait", a.idle.Len(), s.idle, waiting)
	case s.sBlocks != a.sBlocks || s.sBlocks > a.cfg.MostSBlocks:
		return broken(6, "%d sBlocks, counted as %d, at most %d", s.sBlocks, a.sBlocks, a.cfg.MostSBlocks)
	}
	return nil
}

// checkWaiting checks that the pBlock which an sBlock waits for is in use, knows it and has memory
// of it.
func (a *Allocator) checkWaiting(i uint32) error {
	t := a.regions[i].waitsFor
	c := &a.chunks[t]
	if c.state != live && c.state != held {
		return broken(6, "the sBlock at %v waits for the pBlock at %v, which is not in use", a.regions[i].addr, c.addr)
	}
	known, overlaps := false, false
	for j := c.note; j != none && !known; j = a.regions[j].waiting {
		known = j == i
	}
	for p := a.regions[i].pieces; p != none; p = a.pieces[p].next {
		q := &a.pieces[p]
		at := a.regions[q.home].addr.Add(device.Size(q.first) << a.pageShift)
		overlaps = overlaps || at < c.end() && c.addr < at.Add(device.Size(q.count)<<a.pageShift)
	}
	if !known || !overlaps {
		return broken(6, "the sBlock at %v waits for the pBlock at %v, which has nothing to do with it",
			a.regions[i].addr, c.addr)
	}
	return nil
}

func (a *Allocator) checkRows(s *sum) error {
	spare := 0
	for i := a.spareRegion; i != none && spare <= len(a.regions); i = a.regions[i].newer {
		spare++
	}
	switch {
	case s.chunks+a.spareChunks+1 != len(a.chunks):
		return broken(7, "%d chunks and %d spare rows of %d", s.chunks, a.spareChunks, len(a.chunks))
	case s.pieces+a.sparePieces+1 != len(a.pieces):
		return broken(7, "%d pieces and %d spare rows of %d", s.pieces, a.sparePieces, len(a.pieces))
	case s.regions+spare+1 != len(a.regions):
		return broken(7, "%d regions and %d spare rows of %d", s.regions, spare, len(a.regions))
	}
	return nil
}
