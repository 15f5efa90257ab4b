package caching

import (
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
)

// invariantNames has short names of the invariants of the package comment, by number.
var invariantNames = [...]string{
	1:  "blocks tile their segment, links mirror",
	2:  "free neighbours are merged, and unmapped ones",
	3:  "blocks are in the shelf of their segment",
	4:  "the table of addresses holds the live blocks",
	5:  "indexes hold the free blocks, lists the unmapped ones",
	6:  "every row is a block or spare",
	7:  "counters match the walk",
	8:  "a pending block waits for a stream or a mark",
	9:  "blocks are large enough and of their kind",
	10: "pages have memory exactly where blocks do",
	11: "private pools have users, redirections or segments",
	12: "an unsplittable block is a whole segment",
	13: "a lookup serves one block at most",
}

func broken(n int, format string, args ...any) error {
	return fmt.Errorf("caching: invariant P%d (%s): %s", n, invariantNames[n], fmt.Sprintf(format, args...))
}

// sum holds the sums over all blocks.
type sum struct {
	blocks   int
	live     int
	pending  int
	free     []int // by shelf
	unmapped []int
	held     []int // segments, by shelf
	segments map[*pool]int
	parked   device.Size
	stuck    device.Size
	grown    device.Size  // bytes with memory in expandable segments
	memory   [kinds]int64 // bytes with memory
	bytes    [kinds]int64 // active
	asked    [kinds]int64 // active
	split    [kinds]int64
	splits   [kinds]int64
	lookups  map[lookup]handle // of live blocks
}

// lookup identifies a lookup of a side, by which ages are counted.
type lookup struct {
	side *side
	n    uint64
}

// Check implements [alloc.Inspector]. It recounts everything.
func (a *Allocator) Check() error {
	if err := front.CompareStats(a.Stats(), a.Walk); err != nil {
		return broken(7, "%v", err)
	}
	if a.front.Closed() {
		return nil
	}
	s := sum{free: make([]int, len(a.shelves)), unmapped: make([]int, len(a.shelves)), held: make([]int, len(a.shelves)),
		segments: map[*pool]int{}, lookups: map[lookup]handle{}}
	for i := range a.mem.Len() {
		span := a.mem.At(i)
		if err := a.checkSegment(span.Region, span.First, &s); err != nil {
			return err
		}
	}
	for i := range a.segments.Len() {
		held := a.segments.At(i)
		held.Size = min(held.Size, a.sizeFrom(handle(held.Label)))
		if err := a.checkSegment(held.Region, handle(held.Label), &s); err != nil {
			return err
		}
	}
	for _, check := range []func(*sum) error{a.checkShelves, a.checkRows, a.checkCounters, a.checkPages, a.checkPools} {
		if err := check(&s); err != nil {
			return err
		}
	}
	return nil
}

func (a *Allocator) checkSegment(r device.Region, first handle, s *sum) error {
	at, prev := r.Addr, none
	home := a.rows[first].home >> shelfBit
	s.segments[a.shelves[home].pool]++
	s.held[home]++
	for h := first; h != none; h = a.rows[h].next {
		b := &a.rows[h]
		if b.addr != at || b.prev != prev || b.size == 0 || b.state() == spare {
			return broken(1, "block %d at %v of %d bytes behind block %d, expected at %v behind block %d",
				h, b.addr, uint64(b.size), b.prev, at, prev)
		}
		if st := b.state(); prev != none && a.is(prev, st) && (st == free || st == unmapped) {
			return broken(2, "%v and %v", a.rows[prev].addr, b.addr)
		}
		if b.home>>shelfBit != home {
			return broken(3, "%v is in shelf %d, its segment in %d", b.addr, b.home>>shelfBit, home)
		}
		if err := a.checkBlock(h, s); err != nil {
			return err
		}
		at, prev = b.end(), h
	}
	if at != r.End() {
		return broken(1, "the blocks of the segment at %v end at %v, the segment at %v", r.Addr, at, r.End())
	}
	return nil
}

// checkBlock checks one block and adds it to the sums.
func (a *Allocator) checkBlock(h handle, s *sum) error {
	b := &a.rows[h]
	id, sh := b.home>>shelfBit, a.shelfOf(h)
	s.blocks++
	switch b.state() {
	case free:
		s.free[id]++
		if b.isSplit() && !b.grows() {
			s.splits[sh.kind]++
			s.split[sh.kind] += int64(b.size)
		}
		if e := sh.free.Entry(b.link); e.Handle != h || e.Addr != a.key(h) || e.Size != b.size {
			return broken(5, "entry %v, block %d of %d bytes at %v", e, h, uint64(b.size), b.addr)
		}
	case unmapped:
		s.unmapped[id]++
		if i := a.gapAt(sh, b.addr); i == len(sh.gaps) || sh.gaps[i] != h {
			return broken(5, "the unmapped block at %v is not listed", b.addr)
		}
		return nil
	case stuck:
		s.stuck += b.size
		return nil
	case live:
		s.live++
		if !a.live.Dropped() {
			if link, err := a.find(b.addr); err != nil || *link != h {
				return broken(4, "%v is live and not in it", b.addr)
			}
		}
		if err := a.checkLookup(h, sh, s); err != nil {
			return err
		}
	case pending:
		s.pending++
		s.parked += b.asked
		if u := a.usesOf.Get(h); u == 0 || len(a.used[u].streams)+a.used[u].marks == 0 {
			return broken(8, "%v waits for nothing", b.addr)
		}
	}
	s.memory[sh.kind] += int64(b.size)
	if b.grows() {
		s.grown += b.size
	}
	if st := b.state(); st == live || st == pending {
		s.bytes[sh.kind] += int64(b.size)
		s.asked[sh.kind] += int64(b.asked)
		n := a.set.round(b.asked)
		switch {
		case b.asked == 0 || b.asked > b.size,
			!a.changed && (n > b.size || isSmall(n) != (sh.kind == small)):
			return broken(9, "%v: %d bytes of %d", b.addr, uint64(b.asked), uint64(b.size))
		case !a.changed && b.size >= a.set.maxSplit && b.isSplit() && !b.grows():
			return broken(12, "%v of %d bytes does not", b.addr, uint64(b.size))
		}
	}
	return nil
}

// checkLookup checks that no two blocks were granted by one lookup, because each lookup ages all
// free blocks. A block of an opening state had no lookup. Lookups may not have been counted under
// earlier settings.
func (a *Allocator) checkLookup(h handle, sh *shelf, s *sum) error {
	if int(h) >= len(a.born) || a.born[h] == 0 || a.changed {
		return nil
	}
	l := lookup{&sh.pool.sides[sh.kind], a.born[h]}
	if other, twice := s.lookups[l]; twice {
		return broken(13, "%v and %v had lookup %d", a.rows[other].addr, a.rows[h].addr, l.n)
	}
	s.lookups[l] = h
	return nil
}

func (a *Allocator) checkShelves(s *sum) error {
	for id, sh := range a.shelves {
		if sh == nil {
			continue
		}
		if sh.id != uint32(id) || !slices.Contains(sh.pool.sides[sh.kind].shelves, sh) {
			return broken(3, "shelf %d is not where it should be", id)
		}
		if err := sh.free.Check(); err != nil {
			return broken(5, "%v", err)
		}
		if sh.segments != s.held[id] {
			return broken(3, "shelf %d has %d segments, counted %d", id, s.held[id], sh.segments)
		}
		if sh.free.Len() != s.free[id] || len(sh.gaps) != s.unmapped[id] {
			return broken(5, "shelf %d has %d of %d free blocks and %d of %d unmapped ones",
				id, sh.free.Len(), s.free[id], len(sh.gaps), s.unmapped[id])
		}
	}
	return nil
}

// checkRows checks that every row is a block or unused, and that the table of addresses has no
// other entries.
func (a *Allocator) checkRows(s *sum) error {
	if a.table.len() != s.blocks {
		return broken(6, "%d rows are in use, and there are %d blocks", a.table.len(), s.blocks)
	}
	if a.live.Len() != s.live && !a.live.Dropped() {
		return broken(4, "it has %d of %d", a.live.Len(), s.live)
	}
	if a.waiting != s.pending || a.count.asked.parked() != int64(s.parked) || a.stuck != s.stuck {
		return broken(8, "%d blocks are pending, %d counted; %d bytes, %d counted; %d stuck, %d counted",
			s.pending, a.waiting,
			uint64(s.parked), a.count.asked.parked(), uint64(s.stuck), uint64(a.stuck))
	}
	return nil
}

// checkCounters compares PyTorch's statistics with the blocks.
func (a *Allocator) checkCounters(s *sum) error {
	n := &a.count
	for k := range kinds {
		for _, c := range []struct {
			name      string
			got, want int64
		}{
			{"active_bytes", n.bytes.current[k] + n.bytes.pending[k], s.bytes[k]},
			{"requested_bytes", n.asked.current[k] + n.asked.pending[k], s.asked[k]},
			{"reserved_bytes", n.reservedBytes.current[k], s.memory[k]},
			{"inactive_split", n.inactiveSplit.current[k], s.splits[k]},
			{"inactive_split_bytes", n.inactiveSplitSize.current[k], s.split[k]},
		} {
			if c.got != c.want {
				return broken(7, "%s of kind %d is %d, counted %d", c.name, k, c.got, c.want)
			}
		}
	}
	if got := n.blocks.held(); got != int64(s.live+s.pending) {
		return broken(7, "active is %d, counted %d", got, s.live+s.pending)
	}
	return nil
}

// checkPages checks that every page lies under blocks with memory. As the bytes of those blocks are
// counted, the pages are then all their pages.
func (a *Allocator) checkPages(s *sum) error {
	var mapped device.Size
	for at, size := range a.mem.Pages {
		mapped += size
		span := a.mem.Under(at)
		if !span.Contains(at) || at.Sub(span.Addr)%span.Page != 0 || size != span.Page {
			return broken(10, "%v is no page of the segment at %v", at, span.Addr)
		}
	}
	if held := s.grown + s.stuck; mapped != held {
		return broken(10, "%d bytes are mapped, and blocks have %d", uint64(mapped), uint64(held))
	}
	return nil
}

func (a *Allocator) checkPools(s *sum) error {
	redirected := map[*pool]int{}
	for _, r := range a.redirections {
		redirected[r.pool]++
	}
	for i, p := range a.pools {
		if i > 0 && p.id <= a.pools[i-1].id || (i == 0) != (p.id == alloc.PoolID(0)) {
			return broken(11, "pool %d is not in order", p.id)
		}
		if p.segments != s.segments[p] || p.redirect != redirected[p] {
			return broken(11, "pool %d counts %d of %d segments and %d of %d redirections",
				p.id, p.segments, s.segments[p], p.redirect, redirected[p])
		}
		if i > 0 && p.users == 0 && p.redirect == 0 && p.segments == 0 {
			return broken(11, "pool %d has no user, redirection or segment", p.id)
		}
	}
	return nil
}
