package caching

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// unknownTotal replaces an unknown capacity.
const unknownTotal = device.TiB

// rangeAt returns the size of a segment on a device of n bytes, before it is rounded up to pages.
func rangeAt(n device.Size) device.Size { return n + n/8 }

// pageOf returns the bytes of the pages in expandable segments of a kind.
func (a *Allocator) pageOf(kind uint32) device.Size {
	if kind == small {
		return smallSegment
	}
	return a.set.largeSegment
}

// reach returns the size of a free block together with the unmapped block after it.
func (a *Allocator) reach(h handle) device.Size {
	b := &a.rows[h]
	if !a.is(b.next, unmapped) {
		return b.size
	}
	return b.size + a.rows[b.next].size
}

// ends is endsAt for a block and the unmapped block after it, if the segment ends behind them.
func (a *Allocator) ends(h handle, n device.Size, yes bool) {
	if b := &a.rows[h]; a.is(b.next, unmapped) && a.rows[b.next].next == none {
		a.endsAt(b.addr, n, yes)
	}
}

// endsAt records how a decision depended on the end of a segment, which follows from the bytes of
// the device: whether n bytes from an address on are in the segment, with a page after them.
func (a *Allocator) endsAt(at device.Addr, n device.Size, yes bool) {
	s := a.mem.Under(at)
	if !yes || !a.ranges.Fits(at.Sub(s.Addr)+n+s.Page, rangeAt(a.total)) {
		a.ranges.Pin(rangeAt(a.total))
	}
}

// candidate returns the free block that a lookup considers, from e on in the order of the shelf.
// Without expandable_segments, which were turned off, it skips blocks of expandable segments.
func (a *Allocator) candidate(sh *shelf, e index.SizeEntry) (index.SizeEntry, bool) {
	if a.set.expandable {
		return a.leastReach(sh, e), true
	}
	for e := range sh.free.From(e.Size) {
		if !a.rows[e.Handle].grows() {
			return e, true
		}
	}
	return e, false
}

// leastReach returns the first free block, from e on in the order of the shelf, whose successor in
// that order has at least the same reach. So the block at the end of a segment, which can still
// grow, is taken last.
func (a *Allocator) leastReach(sh *shelf, e index.SizeEntry) index.SizeEntry {
	for {
		reach := a.reach(e.Handle)
		if reach == e.Size {
			return e // all blocks after it are at least as large
		}
		at := sh.free.First(e.Size, func(h uint32) bool {
			b := &a.rows[h]
			return b.size > e.Size || a.key(h) > e.Addr
		})
		if at == index.NoEntry {
			return e
		}
		next := sh.free.Entry(at)
		further := a.reach(next.Handle)
		a.ends(e.Handle, further+1, further < reach)
		a.ends(next.Handle, reach, further >= reach)
		if further >= reach {
			return e
		}
		e = next
	}
}

// grow maps memory for a rounded size and returns the block, which is in no index. On an error of
// the device the pages mapped so far stay free.
func (a *Allocator) grow(sh *shelf, n device.Size) (handle, error) {
	h, err := a.place(sh, n)
	if err != nil {
		return none, err
	}
	if a.is(h, unmapped) {
		if h, err = a.fill(h, min(n, a.rows[h].size)); err != nil {
			return none, err
		}
	}
	for a.rows[h].size < n {
		next := a.rows[h].next
		if !a.is(next, unmapped) {
			return none, device.ErrOutOfMemory // the request is larger than a segment
		}
		if h, err = a.fill(next, min(n-a.rows[h].size, a.rows[next].size)); err != nil {
			return none, err
		}
	}
	sh.free.Take(a.rows[h].link)
	return h, nil
}

// place returns the first block of the lowest run of adjacent free and unmapped blocks of at least
// n bytes of which at least one is unmapped. Otherwise it reserves a new segment. The original
// reserves a segment even for a size that no segment can hold.
func (a *Allocator) place(sh *shelf, n device.Size) (handle, error) {
	// A free block before a gap needs no mapping, so the run begins there.
	for _, h := range sh.gaps {
		if p := a.rows[h].prev; a.is(p, free) {
			h = p
		}
		sum, last := device.Size(0), h
		for next := h; sum < n && (a.is(next, free) || a.is(next, unmapped)); next = a.rows[next].next {
			sum += a.rows[next].size
			last = next
		}
		if a.is(last, unmapped) && a.rows[last].next == none {
			a.endsAt(a.rows[h].addr, n, sum >= n)
		}
		if sum >= n {
			return h, nil
		}
	}
	page := a.pageOf(sh.kind)
	total := a.total
	if total == 0 {
		total = unknownTotal
	}
	size := (rangeAt(total) + page - 1) / page * page
	if a.cfg.Mended && size < n {
		a.ranges.Pin(rangeAt(a.total))
		return none, regions.ErrLimit
	}
	h := a.take()
	r, err := a.mem.Open(size, page, h)
	if err != nil {
		a.ranges.Pin(rangeAt(a.total))
		a.drop(h)
		return none, err
	}
	a.rows[h] = block{addr: r.Addr, size: r.Size, home: sh.id<<shelfBit | growsBit | unmapped}
	a.ranked(h)
	a.endsAt(r.Addr, n, sh.segments == 0) // addresses of further segments follow from the size of this one
	sh.segments++
	sh.pool.segments++
	a.addGap(sh, h)
	return h, nil
}

// gapAt returns the place in the list of the unmapped block at an address, or the place to insert
// it.
func (a *Allocator) gapAt(sh *shelf, at device.Addr) int {
	i, _ := slices.BinarySearchFunc(sh.gaps, at, func(h handle, at device.Addr) int {
		return cmp.Compare(a.rows[h].addr, at)
	})
	return i
}

// addGap lists an unmapped block.
func (a *Allocator) addGap(sh *shelf, h handle) {
	sh.gaps = slices.Insert(sh.gaps, a.gapAt(sh, a.rows[h].addr), h)
}

// dropGap removes an unmapped block from the list.
func (a *Allocator) dropGap(sh *shelf, h handle) {
	i := a.gapAt(sh, a.rows[h].addr)
	sh.gaps = slices.Delete(sh.gaps, i, i+1)
}

// fill maps memory for the first n bytes of an unmapped block, in whole pages, and returns the free
// block that contains them. On an error of the device, memory that it does not unmap becomes stuck.
func (a *Allocator) fill(h handle, n device.Size) (handle, error) {
	sh := a.shelfOf(h)
	low := a.rows[h].addr
	high := a.mem.Under(low).Above(low.Add(n))
	mapped, err := a.mem.Fill(low, high)
	if err != nil {
		_ = a.mem.DropIdle() // refused pages are retried later
		if mapped > low {
			a.cutGap(sh, h, mapped)
			a.rows[h].become(stuck)
			a.stuck += mapped.Sub(low)
		}
		return none, err
	}
	bytes := high.Sub(low)
	a.cutGap(sh, h, high)
	asked := a.rows[h].asked
	a.rows[h].become(free)
	if next := a.rows[h].next; a.is(next, free) {
		sh.free.Take(a.rows[next].link)
		a.absorb(h)
	}
	if p := a.rows[h].prev; a.is(p, free) {
		sh.free.Take(a.rows[p].link)
		a.merged(p, h)
		a.absorb(p)
		h = p
		a.rows[h].asked = asked // PyTorch keeps the record of the mapped block
	}
	a.shelve(h, sh)
	a.count.reservedBytes.add(sh.kind, int64(bytes))
	a.count.deviceAllocs++
	a.report(power.Action{Kind: power.SegmentMap, Addr: low, Size: bytes, Stream: sh.stream, Pool: sh.pool.id})
	return h, nil
}

// cutGap removes the part of an unmapped block below an address from the list.
func (a *Allocator) cutGap(sh *shelf, h handle, end device.Addr) {
	i := a.gapAt(sh, a.rows[h].addr)
	if n := end.Sub(a.rows[h].addr); n < a.rows[h].size {
		sh.gaps[i] = a.split(h, n)
		a.divided(h, sh.gaps[i], h)
		a.rows[sh.gaps[i]].asked = 0
		return
	}
	sh.gaps = slices.Delete(sh.gaps, i, i+1)
}

// shrink unmaps and releases the whole pages of a free block, and then the range of the segment if
// no memory is left in it. On an error of the device nothing changes, or only the empty range
// stays.
func (a *Allocator) shrink(h handle) error {
	sh := a.shelfOf(h)
	b := a.rows[h]
	s := a.mem.Under(b.addr)
	low, high := s.Above(b.addr), s.Below(b.end())
	if low >= high {
		return nil
	}
	// Unmapped memory must not be in use, but a block freed on its own stream may still be.
	if a.streams != nil {
		if err := a.streams.SyncStream(sh.stream); err != nil {
			return err
		}
	}
	if err := a.mem.Clear(low, high); err != nil {
		return err
	}
	// From here on nothing can fail: pages that the device does not take back now are idle until it
	// does.
	err := a.mem.DropIdle()
	sh.free.Take(b.link)
	middle := h
	if n := low.Sub(b.addr); n > 0 {
		middle = a.split(h, n)
		a.divided(h, middle, middle)
		a.rows[h].asked = 0
		a.shelve(h, sh)
	}
	if n := high.Sub(low); n < a.rows[middle].size {
		rest := a.split(middle, n)
		a.divided(middle, rest, middle)
		a.rows[rest].asked = 0
		a.shelve(rest, sh)
	}
	bytes := high.Sub(low)
	a.count.reservedBytes.sub(sh.kind, int64(bytes))
	a.count.deviceFrees++
	a.report(power.Action{Kind: power.SegmentUnmap, Addr: low, Size: bytes, Stream: sh.stream, Pool: sh.pool.id})
	middle = a.vacate(sh, middle)
	if !a.rows[middle].isSplit() {
		err = cmp.Or(err, a.discard(middle))
	}
	return err
}

// vacate makes a block whose memory was unmapped an unmapped block, merges it with adjacent
// unmapped blocks, and returns the result.
func (a *Allocator) vacate(sh *shelf, h handle) handle {
	a.rows[h].become(unmapped)
	if next := a.rows[h].next; a.is(next, unmapped) {
		a.dropGap(sh, next)
		a.absorb(h)
	}
	if p := a.rows[h].prev; a.is(p, unmapped) {
		asked := a.rows[h].asked
		a.merged(p, h)
		a.absorb(p)
		a.rows[p].asked = asked
		return p // listed under its address already
	}
	a.addGap(sh, h)
	return h
}

// discard releases the range of a segment that is one unmapped block. On an error of the device it
// stays.
func (a *Allocator) discard(h handle) error {
	sh := a.shelfOf(h)
	if err := a.mem.Close(a.rows[h].addr); err != nil {
		return err
	}
	a.dropGap(sh, h)
	a.drop(h)
	sh.segments--
	sh.pool.segments--
	return nil
}

// unstick unmaps stuck blocks. Blocks that the device refuses stay stuck; the error is the first
// refusal.
func (a *Allocator) unstick() (first error) {
	for i := 0; i < a.mem.Len() && a.stuck > 0; i++ {
		for h := a.mem.At(i).First; h != none; h = a.rows[h].next {
			b := &a.rows[h]
			if b.state() != stuck {
				continue
			}
			if err := a.mem.Clear(b.addr, b.end()); err != nil {
				first = cmp.Or(first, err)
				continue
			}
			a.stuck -= b.size
			h = a.vacate(a.shelfOf(h), h)
		}
	}
	return first
}

// condemn makes all blocks with memory in expandable segments stuck when the strategy is closed, so
// that unstick releases them.
func (a *Allocator) condemn() {
	// Blocks need not end at pages, so adjacent ones are merged into runs that one call can unmap.
	for i := range a.mem.Len() {
		for h := a.mem.At(i).First; h != none; h = a.rows[h].next {
			b := &a.rows[h]
			if b.state() == unmapped {
				continue
			}
			if b.state() == free {
				a.shelfOf(h).free.Take(b.link)
			}
			if b.state() != stuck {
				a.stuck += b.size
			}
			b.home = b.home&^(stateMask|usedBit) | stuck
			if a.is(b.prev, stuck) {
				h = b.prev
				a.absorb(h)
			}
		}
	}
}

// discardEmpty releases the ranges of segments without memory. It returns the first error of the
// device.
func (a *Allocator) discardEmpty() (first error) {
	for i := a.mem.Len() - 1; i >= 0; i-- {
		h := a.mem.At(i).First
		if !a.is(h, unmapped) || a.rows[h].isSplit() {
			continue
		}
		first = cmp.Or(first, a.discard(h))
	}
	return first
}
