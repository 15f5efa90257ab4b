package caching

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// obtain returns a block in no index that serves a rounded size when the shelf has none. It tries
// the steps of the package comment in order, as PyTorch does. The block may lie in a private pool.
// On failure the segments released so far stay released; the error is the device's, or
// [regions.ErrLimit].
func (a *Allocator) obtain(sh *shelf, n device.Size) (handle, error) {
	if a.bar != noLimit {
		a.collect()
	}
	h, err := a.extend(sh, n)
	if h != none {
		return h, nil
	}
	if a.set.borrowsFirst {
		if h = a.borrow(sh, n); h != none {
			return h, nil
		}
	}
	if h, err = a.extendAgain(sh, n, err); h != none {
		return h, nil
	}
	if !a.set.borrowsFirst {
		if h = a.borrow(sh, n); h != none {
			return h, nil
		}
	}
	return none, err
}

// extendAgain extends a shelf after it released unsplittable segments of the shelf, and then all
// unused segments. The error is the last one, which was err before.
func (a *Allocator) extendAgain(sh *shelf, n device.Size, err error) (handle, error) {
	if a.releaseAvailable(sh, n) {
		var h handle
		if h, err = a.extend(sh, n); h != none {
			return h, nil
		}
	}
	if a.capturing(sh.stream) {
		return none, err
	}
	_ = a.releaseCached(sh.stream) // a refusal may still leave enough room
	if a.cfg.Mended {
		// The original asks the device only, and may fail although a block that it waited for would
		// serve.
		if h := a.lookup(sh, n); h != none {
			return h, nil
		}
	}
	a.count.retries++
	return a.extend(sh, n)
}

// extend reserves a segment for a rounded size, or maps pages in an expandable segment, and returns
// the block, which is in no index.
func (a *Allocator) extend(sh *shelf, n device.Size) (handle, error) {
	size := a.set.segmentSize(n)
	if a.limit != noLimit && !a.limits.Fits(a.held()+size, a.limit) {
		return none, regions.ErrLimit
	}
	if a.set.expandable {
		return a.grow(sh, n)
	}
	// The row comes first, because the region is entered under it.
	h := a.take()
	r, err := a.segments.Reserve(size, quantum, int32(h))
	if err != nil {
		a.drop(h)
		return none, err
	}
	a.rows[h] = block{addr: r.Addr, size: size, home: sh.id << shelfBit}
	a.ranked(h)
	sh.segments++
	sh.pool.segments++
	c := &a.count
	c.segment.add(sh.kind, 1)
	c.reservedBytes.add(sh.kind, int64(size))
	if size >= a.set.maxSplit {
		c.oversizeSegments.add(large, 1)
	}
	c.deviceAllocs++
	a.report(power.Action{Kind: power.SegmentAlloc, Addr: r.Addr, Size: size, Stream: sh.stream, Pool: sh.pool.id})
	return h, nil
}

// held returns the bytes held, as PyTorch counts them.
func (a *Allocator) held() device.Size { return device.Size(a.count.reservedBytes.all()) }

// drain releases the segment of a free block that fills it. On an error of the device nothing
// changes.
func (a *Allocator) drain(h handle) error {
	b := a.rows[h]
	sh := a.shelfOf(h)
	if err := a.segments.Release(b.addr); err != nil {
		return err
	}
	sh.free.Take(b.link)
	a.drop(h)
	sh.segments--
	sh.pool.segments--
	c := &a.count
	c.deviceFrees++
	c.segment.sub(sh.kind, 1)
	c.reservedBytes.sub(sh.kind, int64(b.size))
	if b.size >= a.set.maxSplit {
		c.oversizeSegments.sub(large, 1)
	}
	a.report(power.Action{Kind: power.SegmentFree, Addr: b.addr, Size: b.size, Stream: sh.stream, Pool: sh.pool.id})
	return nil
}

// releaseAvailable releases unsplittable segments of the shelf, and reports whether their bytes
// suffice for a rounded size: the smallest segment that suffices alone, otherwise the largest ones
// in turn. They stay released if they do not suffice.
func (a *Allocator) releaseAvailable(sh *shelf, n device.Size) bool {
	if a.set.maxSplit == noLimit || a.segments.Len() == 0 {
		return false
	}
	need := max(n, a.set.maxSplit)
	if at := sh.free.Ceil(need); at != index.NoEntry {
		if h := sh.free.Entry(at).Handle; !a.rows[h].grows() {
			return !a.rows[h].isSplit() && a.drain(h) == nil
		}
	}
	// Blocks of that size are whole segments, because they are never split, unless the size was
	// changed. The original would then return memory of live blocks to the device.
	var oversize []handle
	for e := range sh.free.From(a.set.maxSplit) {
		if e.Size >= need {
			break
		}
		if b := &a.rows[e.Handle]; !b.grows() && !b.isSplit() {
			oversize = append(oversize, e.Handle)
		}
	}
	var released device.Size
	for _, h := range slices.Backward(oversize) {
		if released >= need {
			break
		}
		size := a.rows[h].size
		if a.drain(h) == nil {
			released += size
		}
	}
	return released >= need
}

// releaseCached waits for pending blocks and releases every segment without a live block, of the
// default pool and of private pools without users. During a capture on the stream only the latter
// are released, because waiting for events is not allowed then: later versions do the same, 2.6
// aborts. Refused segments stay; the error is the first refusal. This is PyTorch's empty_cache.
func (a *Allocator) releaseCached(s device.Stream) (first error) {
	// The order determines the device's free addresses afterwards, and so the addresses of later
	// segments.
	if def := a.pools[0]; !a.capturing(s) {
		first = cmp.Or(first, a.synchronize())
		first = cmp.Or(first, a.releaseSide(&def.sides[large]))
		first = cmp.Or(first, a.releaseSide(&def.sides[small]))
	}
	for _, p := range slices.Clone(a.pools[1:]) {
		if p.users == 0 {
			first = cmp.Or(first, a.releaseSide(&p.sides[small]))
			first = cmp.Or(first, a.releaseSide(&p.sides[large]))
			a.forget(p)
		}
	}
	if a.set.grew {
		first = cmp.Or(first, a.unstick())
		first = cmp.Or(first, a.mem.DropIdle())
	}
	return first
}

// releaseSide releases the segments and then the pages of the free blocks of a side, stream by
// stream, smallest block first.
func (a *Allocator) releaseSide(s *side) (first error) {
	var growing []handle
	for _, sh := range s.shelves {
		var whole []handle
		for e := range sh.free.All {
			switch b := &a.rows[e.Handle]; {
			case b.grows():
				growing = append(growing, e.Handle)
			case !b.isSplit():
				whole = append(whole, e.Handle)
			}
		}
		for _, h := range whole {
			first = cmp.Or(first, a.drain(h))
		}
	}
	for _, h := range growing {
		first = cmp.Or(first, a.shrink(h))
	}
	return first
}

// stamp records the number of lookups at which a block became free or was granted.
func (a *Allocator) stamp(h handle, sh *shelf) {
	if int(h) >= len(a.born) {
		a.born = append(a.born, make([]uint64, len(a.rows)-len(a.born))...)
	}
	a.born[h] = sh.pool.sides[sh.kind].calls
}

// collect releases whole segments of large blocks that have been free for longer than the average,
// while more than the share of the limit is held. It leaves small blocks and private pools alone,
// as the original does. It costs O(free large blocks) before each reservation above the share.
func (a *Allocator) collect() {
	held := a.held()
	if a.segments.Len() == 0 || a.bars.Fits(held, a.bar) {
		return
	}
	// As in the original, only large blocks of the default pool count that fill their segment, because
	// no other segment can be released.
	s := &a.pools[0].sides[large]
	var candidates []handle
	var ages uint64
	for _, sh := range s.shelves {
		for e := range sh.free.All {
			if b := &a.rows[e.Handle]; !b.isSplit() && !b.grows() {
				candidates = append(candidates, e.Handle)
				ages += s.calls - a.born[e.Handle]
			}
		}
	}
	for released := device.Size(0); len(candidates) > 0 && !a.bars.Fits(held-min(released, held), a.bar); {
		// The average is constant during a round, and a round does not stop at the target.
		bar := float64(ages) / float64(len(candidates))
		left := candidates[:0]
		for _, h := range candidates {
			age, size := s.calls-a.born[h], a.rows[h].size
			if float64(age) < bar || a.drain(h) != nil {
				left = append(left, h)
				continue
			}
			released += size
			ages -= age
		}
		if len(left) == len(candidates) {
			return
		}
		candidates = left
	}
}

// report passes an action to the history, if there is a listener.
func (a *Allocator) report(x power.Action) {
	if a.history != nil {
		a.history(x)
	}
}

// reportOOM reports an out-of-memory action to the history.
func (a *Allocator) reportOOM(n device.Size, s device.Stream) {
	if a.history == nil {
		return
	}
	var left device.Size
	if a.info != nil {
		left, _, _ = a.info.MemoryInfo() // 0 if unknown
	}
	a.history(power.Action{Kind: power.OutOfMemory, Size: n, Stream: s, DeviceFree: left})
}

func (a *Allocator) SetHistory(report func(power.Action)) { a.history = report }
