package vmm

import (
	"cmp"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/regions"
)

// place is where memory may be mapped for a request.
type place struct {
	start device.Addr // start of the block
	first handle      // chunk in which the block starts
	pages device.Size // number of pages to map
	tail  bool        // some of these pages are at the end of the range
}

// better reports whether p needs fewer pages than q, or as many at a lower address. A place at the
// end of a range must need less than half the pages: it mostly begins with a free part of a page,
// and always preferring it would leave many holes below. If memory is tight only the pages count.
func (p place) better(q place, tight bool) bool {
	switch {
	case q.first == none:
		return true
	case tight:
	case p.tail && !q.tail:
		return 2*p.pages < q.pages
	case q.tail && !p.tail:
		return p.pages <= 2*q.pages
	}
	return p.pages < q.pages || p.pages == q.pages && p.start < q.start
}

// grow maps memory for n bytes and returns a free chunk that serves the request, removed from the
// index. If mapping fails it releases free pages and tries once more, where the fewest pages are
// needed. On failure it records the reason and returns [alloc.ErrOutOfMemory].
func (a *Allocator) grow(r *alloc.Request, n device.Size) (handle, error) {
	err := a.extend(n, r.Align, false)
	if err != nil && a.span.Fits(a.front.Stats.Active+n, a.cfg.Limit) {
		_, _ = a.shrink() // a refusal may still leave enough room
		err = a.extend(n, r.Align, true)
	}
	// Even a partial mapping may serve together with adjacent free chunks.
	if h := a.free.take(n, r.Align); h != none {
		return h, nil
	}
	_ = a.mem.DropIdle() // pages that the device refuses are retried later
	return none, a.front.OutOfMemory(r, n, n, err)
}

// extend maps memory at the best place for a request for n bytes. On error the pages mapped so far
// stay free.
func (a *Allocator) extend(n, align device.Size, tight bool) error {
	p := a.choose(n, align, tight)
	if p.first == none {
		// The limit is checked before a range is reserved: a range for a request that can never be
		// served would stay until the next trim.
		if !a.span.Fits(n, a.cfg.Limit) || !a.within((n+a.cfg.PageBytes-1)/a.cfg.PageBytes) {
			return regions.ErrLimit
		}
		if err := a.reserve(n, align); err != nil {
			return err
		}
		p = a.choose(n, align, tight)
	}
	if !a.within(p.pages) {
		return regions.ErrLimit
	}
	// The place may span several holes with free chunks between. Filling one merges it with both
	// neighbours, so the walk continues after the merged chunk.
	end := p.start.Add(n)
	for h := p.first; h != none && a.rows[h].addr < end; h = a.rows[h].next {
		if a.rows[h].state != unmapped {
			continue
		}
		var err error
		if h, err = a.fill(h, p.start, end); err != nil {
			return err
		}
	}
	return nil
}

// fill maps memory at the pages of an unmapped chunk between two addresses, and returns the free
// chunk that contains them.
func (a *Allocator) fill(h handle, start, end device.Addr) (handle, error) {
	m, c := &a.mem, &a.rows[h]
	s := m.Under(c.addr)
	low, high := s.Below(max(c.addr, start)), s.Above(min(c.end(), end))
	mapped, err := m.Fill(low, high)
	if err == nil {
		return a.settle(a.convert(h, low, high, free)), nil
	}
	if mapped > low {
		a.stuck += mapped.Sub(low)
		a.convert(h, low, mapped, stuck)
	}
	return none, err
}

// within reports whether the limit lets more pages be mapped.
func (a *Allocator) within(pages device.Size) bool {
	m := &a.mem
	// Idle pages are held already, so mapping them does not count against the limit.
	idle := device.Size(m.Idle(a.cfg.PageBytes))
	return pages == 0 || a.span.Fits(m.Held()+(pages-min(pages, idle))*a.cfg.PageBytes, a.cfg.Limit)
}

// rangeFor returns the default size of a range under a limit.
func rangeFor(limit device.Size) device.Size { return limit + limit/8 }

// ends records how a search depended on the end of a range, which follows from the limit: a place
// that uses the last chunk ends at an address, a page or more below the end, or the chunk was too
// small for it (0).
func (a *Allocator) ends(s *regions.Span, at device.Addr) {
	if at == 0 || !a.ranges.Fits(at.Sub(s.Addr)+s.Page, rangeFor(a.cfg.Limit)) {
		a.span.Pin(a.cfg.Limit)
	}
}

// reserve reserves another range, in which n bytes fit. If the device refuses the configured size,
// it tries half of it, a quarter and so on.
func (a *Allocator) reserve(n, align device.Size) error {
	m := &a.mem
	if align > a.vmAlign {
		n += align
	}
	// The size of a page need not be a power of two, hence the divisions.
	least := (n + a.cfg.PageBytes - 1) / a.cfg.PageBytes * a.cfg.PageBytes
	if m.Len() > 0 || least > a.cfg.RangeBytes {
		a.span.Pin(a.cfg.Limit) // addresses follow from the size of the first range, or this range does not
	}
	h := a.add(chunk{state: unmapped})
	for size := max(a.cfg.RangeBytes, least); ; size = max(size/2/a.cfg.PageBytes*a.cfg.PageBytes, least) {
		r, err := m.Open(size, a.cfg.PageBytes, h)
		if err == nil {
			a.rows[h].addr, a.rows[h].size = r.Addr, r.Size
			a.gaps.add(r.Addr, h)
			return nil
		}
		a.span.Pin(a.cfg.Limit)
		if size == least {
			a.drop(h)
			return err
		}
	}
}

// choose returns the best place for n bytes. Without a place the first chunk of the result is none.
// For each unmapped chunk it measures the places that begin with the preceding free chunk or with
// the unmapped chunk, and the places that end with the following free chunk: the best place of a
// run is one of these. It costs a step for each such chunk and for the chunks after it up to n
// bytes.
func (a *Allocator) choose(n, align device.Size, tight bool) (best place) {
	for e := range a.gaps.All {
		u := e.Value
		if p, ok := a.upwards(u, n, align); ok && p.better(best, tight) {
			best = p
		}
		if p := a.rows[u].prev; a.is(p, free) {
			if p, ok := a.upwards(p, n, align); ok && p.better(best, tight) {
				best = p
			}
		}
		if f := a.rows[u].next; a.is(f, free) {
			if p, ok := a.downwards(f, n, align); ok && p.better(best, tight) {
				best = p
			}
		}
	}
	return best
}

// upwards returns the place of n bytes that starts with a chunk, and whether there is one.
func (a *Allocator) upwards(h handle, n, align device.Size) (place, bool) {
	at := a.rows[h].addr
	return a.measure(h, at.Add(pad(at, align)), n)
}

// downwards returns the place of n bytes that ends with a chunk, and whether there is one.
func (a *Allocator) downwards(h handle, n, align device.Size) (place, bool) {
	end := a.rows[h].end()
	if device.Size(end) < n {
		return place{}, false
	}
	start := device.AlignDown(end-device.Addr(n), max(align, a.cfg.Quantum))
	for a.rows[h].addr > start {
		if h = a.rows[h].prev; !a.is(h, free) && !a.is(h, unmapped) {
			return place{}, false
		}
	}
	return a.measure(h, start, n)
}

// measure returns the place of n bytes at start, and whether all its chunks, from h on, are free or
// unmapped.
func (a *Allocator) measure(h handle, start device.Addr, n device.Size) (p place, ok bool) {
	m, end := &a.mem, start.Add(n)
	s := m.Under(a.rows[h].addr)
	for a.rows[h].end() <= start { // the alignment skipped the first chunk
		if h = a.rows[h].next; !a.is(h, free) && !a.is(h, unmapped) {
			if h == none {
				a.ends(s, 0)
			}
			return p, false
		}
	}
	p = place{start: start, first: h}
	// Unmapped chunks are whole pages, so no page is counted twice or shared with a live block.
	for {
		c := &a.rows[h]
		if c.state == unmapped {
			p.tail = c.next == none
			p.pages += s.Above(min(c.end(), end)).Sub(s.Below(max(c.addr, start))) / a.cfg.PageBytes
		}
		if c.end() >= end {
			if p.tail {
				a.ends(s, end)
			}
			return p, true
		}
		if h = c.next; !a.is(h, free) && !a.is(h, unmapped) {
			if h == none {
				a.ends(s, 0)
			}
			return p, false
		}
	}
}

// convert gives the pages from low to high of an unmapped chunk another state, as a chunk of their
// own, and returns it. A stuck chunk merges with adjacent stuck ones; a free one is not merged yet.
func (a *Allocator) convert(h handle, low, high device.Addr, to state) handle {
	// The rest on either side becomes an unmapped chunk, listed under its own address.
	a.gaps.remove(a.rows[h].addr)
	h = a.carve(h, low, high)
	if p := a.rows[h].prev; a.is(p, unmapped) {
		a.gaps.add(a.rows[p].addr, p)
	}
	if n := a.rows[h].next; a.is(n, unmapped) {
		a.gaps.add(a.rows[n].addr, n)
	}
	a.rows[h].state = to
	if to == stuck {
		h = a.unite(h)
	}
	return h
}

// vacate makes a chunk whose memory was unmapped an unmapped chunk, and merges it with adjacent
// unmapped chunks.
func (a *Allocator) vacate(h handle) handle {
	if p := a.rows[h].prev; a.is(p, unmapped) {
		a.gaps.remove(a.rows[p].addr)
	}
	if n := a.rows[h].next; a.is(n, unmapped) {
		a.gaps.remove(a.rows[n].addr)
	}
	a.rows[h].state = unmapped
	h = a.unite(h)
	a.gaps.add(a.rows[h].addr, h)
	return h
}

// empty unmaps and releases the whole pages of a free chunk. It returns their bytes and the
// chunk after which a walk continues. On an error of the device nothing changes.
func (a *Allocator) empty(h handle) (bytes device.Size, last handle, err error) {
	m := &a.mem
	c := &a.rows[h]
	s := m.Under(c.addr)
	low, high := s.Above(c.addr), s.Below(c.end())
	if low >= high {
		return 0, h, nil
	}
	if err := m.Clear(low, high); err != nil {
		return 0, h, err
	}
	// The device is called first, so a refusal changes nothing. The parts before the first and after
	// the last whole page stay free.
	a.free.remove(h)
	whole := a.carve(h, low, high)
	if whole != h {
		a.free.insert(h)
	}
	if n := a.rows[whole].next; a.is(n, free) {
		a.free.insert(n)
	}
	return high.Sub(low), a.vacate(whole), nil
}

// shrink unmaps and releases every whole page without a live block, and the leftovers of earlier
// failures. It returns the mapped bytes released. Pages that the device refuses stay; the error is
// the first refusal.
func (a *Allocator) shrink() (bytes device.Size, first error) {
	m := &a.mem
	for i := range m.Len() {
		for h := m.At(i).First; h != none; h = a.rows[h].next {
			var n device.Size
			var err error
			switch c := &a.rows[h]; c.state {
			case free:
				n, h, err = a.empty(h)
			case stuck: // one call unmaps all of it or none
				if err = m.Clear(c.addr, c.end()); err == nil {
					n = c.size
					a.stuck -= n
					h = a.vacate(h)
				}
			}
			bytes += n
			first = cmp.Or(first, err)
		}
	}
	first = cmp.Or(first, m.DropIdle())
	return bytes, first
}

// discard releases the ranges without memory.
func (a *Allocator) discard() (first error) {
	for i := a.mem.Len() - 1; i >= 0; i-- {
		h := a.mem.At(i).First
		if c := a.rows[h]; c.state != unmapped || c.next != none {
			continue
		}
		at := a.rows[h].addr
		if err := a.mem.Close(at); err != nil {
			first = cmp.Or(first, err)
			continue
		}
		a.gaps.remove(at)
		a.drop(h)
	}
	return first
}
