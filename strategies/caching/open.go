package caching

import (
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// Open returns an allocator that continues from an opening state: chunks as in Walk, by address,
// that tile their segments. src already holds the segments, and for growing segments the ranges and
// the pages, whose handles are their addresses. Pending chunks count as live: the recording frees
// them when the free completes. A private pool gets one user.
//
// It fails like [New], and with an error that names the chunk if the state is impossible.
func Open(src device.Source, c Config, opening []alloc.Chunk) (*Allocator, error) {
	a, err := New(src, c)
	if err != nil {
		return nil, err
	}
	for len(opening) > 0 {
		n := slices.IndexFunc(opening, func(c alloc.Chunk) bool { return c.Region != opening[0].Region })
		if n < 0 {
			n = len(opening)
		}
		if err := a.adopt(opening[:n]); err != nil {
			return nil, fmt.Errorf("caching: opening state: %w", err)
		}
		opening = opening[n:]
	}
	a.count.clear()
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("caching: opening state: %w", err)
	}
	return a, nil
}

// adopt adds a segment of the opening state.
func (a *Allocator) adopt(chunks []alloc.Chunk) error {
	head := chunks[0]
	if i := slices.IndexFunc(chunks, func(c alloc.Chunk) bool { return c.State != alloc.Unmapped }); i > 0 {
		head.Stream = chunks[i].Stream // an unmapped chunk has no stream
	}
	region := device.Region{Addr: head.Region, Size: chunks[len(chunks)-1].End().Sub(head.Region)}
	switch held, found := a.segments.Under(head.Region); {
	case found:
		return fmt.Errorf("the segment at %v begins inside the segment at %v", head.Region, held.Addr)
	case !a.set.expandable && head.Owner == power.OwnerExpandable:
		return fmt.Errorf("the segment at %v is expandable, but expandable_segments is off", head.Region)
	case a.set.expandable && head.Owner != power.OwnerExpandable:
		return fmt.Errorf("the segment at %v does not grow as expandable segments do", head.Region)
	case head.Class != power.ClassSmall && head.Class != power.ClassLarge:
		return fmt.Errorf("the segment at %v is of class %d: want %d or %d", head.Region, head.Class, power.ClassSmall,
			power.ClassLarge)
	}
	sh := a.shelfIn(a.openPool(head.Pool), uint32(head.Class), head.Stream)
	first, prev := none, none
	for _, c := range chunks {
		if err := a.judgeOpening(c, head); err != nil {
			return err
		}
		h := a.take()
		a.rows[h] = block{addr: c.Addr, size: c.Size, asked: c.Was, prev: prev, home: sh.id << shelfBit}
		if a.set.expandable {
			a.rows[h].home |= growsBit
		}
		if prev == none {
			first = h
			a.ranked(h)
		} else {
			a.divided(prev, h, prev)
			a.rows[prev].next = h
		}
		prev = h
	}
	sh.segments++
	sh.pool.segments++
	// Growing segments are counted by the page, as in PyTorch, and not as segments.
	if a.set.expandable {
		if err := a.adoptSpan(region, first, sh, chunks); err != nil {
			return err
		}
	} else {
		a.segments.Adopt(region, int32(first))
		a.count.segment.add(sh.kind, 1)
		a.count.reservedBytes.add(sh.kind, int64(region.Size))
		if region.Size >= a.set.maxSplit {
			a.count.oversizeSegments.add(large, 1)
		}
	}
	for i, h := 0, first; h != none; i, h = i+1, a.rows[h].next {
		a.adoptBlock(h, sh, chunks[i])
	}
	return nil
}

// adoptSpan adds a growing segment of the opening state. Its memory must be whole pages.
func (a *Allocator) adoptSpan(r device.Region, first handle, sh *shelf, chunks []alloc.Chunk) error {
	// Segments that do not grow are found in their set; growing ones are few.
	for i := range a.mem.Len() {
		if s := a.mem.At(i); s.Addr < r.End() && r.Addr < s.End() {
			return fmt.Errorf("the segment at %v begins or ends inside the segment at %v", r.Addr, s.Addr)
		}
	}
	page := a.pageOf(sh.kind)
	// Blocks need not end at pages, so adjacent blocks with memory are joined first.
	var parts []device.Region
	for _, c := range chunks {
		if c.State == alloc.Unmapped {
			continue
		}
		if n := len(parts); n > 0 && parts[n-1].End() == c.Addr {
			parts[n-1].Size += c.Size
		} else {
			parts = append(parts, device.Region{Addr: c.Addr, Size: c.Size})
		}
	}
	// A page with memory in part could be neither unmapped nor granted.
	for _, p := range parts {
		if p.Addr.Sub(r.Addr)%page != 0 || p.Size%page != 0 {
			return fmt.Errorf("%v of memory at %v in the segment at %v: want whole pages of %v", p.Size, p.Addr, r.Addr, page)
		}
		a.count.reservedBytes.add(sh.kind, int64(p.Size))
	}
	a.mem.Adopt(r, page, first, parts)
	return nil
}

func (a *Allocator) openPool(id alloc.PoolID) *pool {
	i, found := a.findPool(id)
	if !found {
		a.pools = slices.Insert(a.pools, i, &pool{id: id, users: 1})
	}
	return a.pools[i]
}

// judgeOpening returns an error if a chunk cannot lie in the segment of head.
func (a *Allocator) judgeOpening(c, head alloc.Chunk) error {
	switch {
	case c.Size == 0 || c.Size%quantum != 0:
		return fmt.Errorf("the block at %v has %d bytes: want a multiple of %d", c.Addr, uint64(c.Size), uint64(quantum))
	case c.State == alloc.Unmapped && a.set.expandable:
		// An unmapped chunk has no request and no stream. The walk checks its place.
	case c.State != alloc.Free && c.State != alloc.Live && c.State != alloc.Pending:
		return fmt.Errorf("the block at %v is %v", c.Addr, c.State)
	case c.Class != head.Class || c.Pool != head.Pool || c.Stream != head.Stream:
		return fmt.Errorf("the block at %v is of another class, pool or stream than its segment", c.Addr)
	case c.State != alloc.Free && (c.Requested == 0 || c.Requested > c.Size):
		return fmt.Errorf("the block at %v has %d bytes for a request of %d", c.Addr, uint64(c.Size), uint64(c.Requested))
	}
	return nil
}

// adoptBlock gives a block of an adopted segment the state of its chunk.
func (a *Allocator) adoptBlock(h handle, sh *shelf, c alloc.Chunk) {
	b, n := &a.rows[h], &a.count
	switch c.State {
	case alloc.Unmapped:
		// It holds no memory, so it is not counted.
		b.become(unmapped)
		a.addGap(sh, h)
		return
	case alloc.Free:
		if b.isSplit() && !a.set.expandable {
			n.inactiveSplit.add(sh.kind, 1)
			n.inactiveSplitSize.add(sh.kind, int64(c.Size))
		}
		a.shelve(h, sh)
		return
	}
	b.become(live)
	b.asked = c.Requested
	a.enter(h)
	a.tags.Set(h, c.Tag, len(a.rows))
	a.countGrant(sh.kind, c.Requested, c.Size)
}

// ReleaseSegment releases the segment that starts at an address, to follow a recording in which
// PyTorch released it. Of a growing segment it releases the whole pages of the free block that
// contains the address, which costs a step for each block below. It fails with [device.ErrInvalid]
// if no segment starts there or a block of it is not free, and with the device's error. On failure
// nothing changes.
func (a *Allocator) ReleaseSegment(at device.Addr) error {
	if a.front.Closed() {
		return alloc.ErrClosed
	}
	if a.mem.Len() > 0 && a.mem.Under(at).Contains(at) {
		return a.shrinkAt(at)
	}
	s, found := a.segments.Find(at)
	if !found {
		return device.ErrInvalid
	}
	h := handle(s.Label)
	if b := &a.rows[h]; b.isSplit() || b.state() != free {
		return device.ErrInvalid
	}
	p := a.shelfOf(h).pool
	if err := a.drain(h); err != nil {
		return err
	}
	a.forget(p)
	return nil
}

// shrinkAt releases the whole pages of the free block that contains an address. It fails like
// [Allocator.ReleaseSegment].
//
// Precondition: an expandable segment contains the address.
func (a *Allocator) shrinkAt(at device.Addr) error {
	// A linear search, because recordings rarely release memory.
	h := a.mem.Under(at).First
	for ; h != none && a.rows[h].end() <= at; h = a.rows[h].next {
	}
	if !a.is(h, free) {
		return device.ErrInvalid
	}
	p := a.shelfOf(h).pool
	if err := a.shrink(h); err != nil {
		return err
	}
	a.forget(p)
	return nil
}
