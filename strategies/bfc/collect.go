package bfc

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// collect releases every region without a live block if that makes room for need bytes, and
// reports whether it released any. It releases all of them, even if one would suffice, and none if
// all of them would not.
func (a *Allocator) collect(need device.Size) bool {
	if a.regions.empty == 0 || !a.fitsAfterCollection(need) {
		return false
	}
	given, _ := a.releaseEmpty() // a region that the device does not take back stays
	return given > 0
}

// fitsAfterCollection reports whether need is at most limit - pool + empty, in the original's
// arithmetic that wraps when the pool stays above the limit; mended mode stops at zero.
func (a *Allocator) fitsAfterCollection(need device.Size) bool {
	pool, limit := a.front.Stats.Reserved-a.regions.empty, a.cfg.Limit
	if pool > limit {
		a.span.Pin(limit)
		return !a.cfg.Mended && need <= limit-pool
	}
	return a.span.Fits(pool+need, limit)
}

// Trim implements [power.Trimmer]. It releases every region without a live block, regardless of
// GarbageCollection. If no region is left, growth starts over: the next region would otherwise be
// as large as if all regions were still held. It costs O(regions + chunks released).
func (a *Allocator) Trim() (device.Size, error) {
	if a.front.Closed() {
		return 0, alloc.ErrClosed
	}
	given, err := a.releaseEmpty()
	if len(a.regions.order) == 0 {
		a.cur, a.backpedaled = firstRegion(a.cfg), false
	}
	return given, err
}

// releaseEmpty releases the regions without a live block in address order. It returns their bytes
// and the first error of the device.
func (a *Allocator) releaseEmpty() (given device.Size, first error) {
	if a.regions.empty == 0 {
		return 0, nil
	}
	return a.releaseRegions(func(r *region) bool { return r.live == 0 })
}

// Close implements [alloc.Strategy]. A region that the device does not take back stays as
// it is, live blocks too, and the error is the device's; calling Close again tries it once more.
func (a *Allocator) Close() error {
	a.front.Stop()
	_, err := a.releaseRegions(func(*region) bool { return true })
	return err
}

// releaseRegions releases the matching regions in address order. It returns their bytes and the
// first error of the device. After a refusal it continues with the other regions, because the
// caller is short of memory.
func (a *Allocator) releaseRegions(match func(*region) bool) (given device.Size, first error) {
	for place := 0; place < len(a.regions.order); {
		number := a.regions.order[place]
		if !match(&a.regions.rows[number]) {
			place++
			continue
		}
		n, err := a.releaseRegion(number)
		given += n
		if err == nil {
			a.regions.remove(place)
			continue
		}
		first = cmp.Or(first, err)
		place++
	}
	if given > 0 {
		a.purgeQueue()
	}
	return given, first
}

// releaseRegion releases the reservations of a region in address order and returns their bytes.
// After an error the region keeps the reservations that are left: unchanged if these are all, else
// as one free chunk. Without an error the caller removes the row.
func (a *Allocator) releaseRegion(number uint32) (device.Size, error) {
	r := &a.regions.rows[number]
	rest, err := a.releaseReservations(r)
	given := rest.Sub(r.addr)
	if given == 0 {
		return 0, err
	}
	if r.live == 0 {
		a.regions.empty -= r.size
	}
	newest := a.retireChunks(r)
	a.front.Stats.Reserved -= given
	if err != nil {
		a.restart(number, rest, newest)
		return given, err
	}
	a.front.Stats.Regions--
	a.front.Stats.Releases++
	a.front.Stats.Forgotten -= r.tail
	return given, nil
}

// releaseReservations releases the reservations of a region in address order, until the device
// refuses one. It returns the start of the first that is left, or the end of the region.
func (a *Allocator) releaseReservations(r *region) (rest device.Addr, err error) {
	rest = r.addr
	for _, next := range r.more {
		if err := a.src.Release(rest); err != nil {
			return rest, err
		}
		rest = next
	}
	if err := a.src.Release(rest); err != nil {
		return rest, err
	}
	return r.end(), nil
}

// retireChunks retires the chunks of a region in address order, and returns the newest
// count among the free ones. The order decides in which order handles are used again.
func (a *Allocator) retireChunks(r *region) (newest uint64) {
	for h := r.first; h != none; {
		c := &a.chunks.rows[h]
		next := c.next
		if c.tag.state() == live {
			a.forget(h)
		} else {
			newest = max(newest, a.chunks.freed(h))
			a.unshelve(h)
		}
		a.chunks.retire(h)
		h = next
	}
	return newest
}

// forget removes a live chunk whose memory was released. It does not count as a free.
func (a *Allocator) forget(h handle) {
	c := &a.chunks.rows[h]
	a.live.Unlink(c.addr, h+1)
	frees := a.front.Stats.Frees
	a.front.Stats.Freed(a.chunks.requested(h), c.size)
	a.front.Stats.Frees = frees
}

// restart makes the rest of a region, whose chunks are retired, one free chunk. The chunk has the
// newest count of the chunks that it replaces.
func (a *Allocator) restart(number uint32, rest device.Addr, newest uint64) {
	a.purgeQueue() // before a handle is used again
	r := &a.regions.rows[number]
	i, _ := slices.BinarySearch(r.more, rest)
	size := r.end().Sub(rest)
	h := a.chunks.add()
	*r = region{addr: rest, size: size, tail: r.tail, first: h, last: h, more: r.more[i+1:]}
	owner := OwnerNone
	if a.cfg.Spatial {
		owner = OwnerGap
	}
	a.chunks.rows[h] = chunk{addr: rest, size: size, prev: none, next: none, tag: makeTag(free, owner, number)}
	a.chunks.setFreed(h, newest)
	a.regions.empty += size
	a.shelve(h)
	if newest > 0 {
		a.enqueue(h)
	}
}
