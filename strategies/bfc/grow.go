package bfc

import (
	"errors"

	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// errMalformed is the error of a device that broke its contract. The region was released.
var errMalformed = errors.New("bfc: the device returned a region that is too small or not aligned to 256 bytes")

// grow takes a region that serves a request from the device and puts it into its bin. It
// returns a refusal with ReasonNone on success.
//
// cur, the size intended for the next region, doubles until the request fits. If it already did,
// cur doubles after the region is granted, regardless of the limit. A refusal does not undo the
// first doubling.
func (a *Allocator) grow(w demand) power.Refusal {
	room, ok := a.roomFor(w.size)
	if !ok {
		return power.Refusal{Reason: power.ReasonLimit}
	}
	doubledToFit := w.size > a.cur
	for w.size > a.cur {
		a.cur = doubled(a.cur)
	}
	if a.cur > room || !a.span.Fits(a.front.Stats.Reserved+a.cur, a.cfg.Limit) {
		a.span.Pin(a.cfg.Limit) // the size of the region follows from the limit
	}
	ask := a.reserveAtMost
	if a.cfg.Variant == V2016 {
		ask = a.reserve2016
	}
	r, why := ask(min(a.cur, room), w)
	if why.Reason != power.ReasonNone {
		return why
	}
	if !doubledToFit {
		a.cur = doubled(a.cur)
	}
	a.shelve(a.coalesce(a.addRegion(r), false))
	return why
}

// roomFor returns the bytes that the limit still permits to reserve, and whether n fit.
//
// The subtraction wraps if the device granted more than requested and the pool is above the limit.
// The limit then has no effect; mended mode stops at zero. The variant of 2016 compares without
// wrapping, but then requests more than the limit permits.
func (a *Allocator) roomFor(n device.Size) (room device.Size, ok bool) {
	pool, limit := a.front.Stats.Reserved, a.cfg.Limit
	if a.cfg.Variant == V2016 {
		return maxRequest, a.span.Fits(pool+n, limit)
	}
	if pool > limit {
		a.span.Pin(limit)
		if a.cfg.Mended {
			return 0, false
		}
	}
	room = device.AlignDown(limit-pool, unit)
	a.span.Fits(pool+n, limit)
	return room, n <= room
}

// reservation is a region that the device granted.
type reservation struct {
	device.Region             // the part of it that is used
	tail          device.Size // bytes after that part, held but unused
}

// shorten moves the bytes of a reservation beyond n to its tail, which is never used.
func (r *reservation) shorten(n device.Size) {
	r.tail += r.Size - n
	r.Size = n
}

// reserve asks the device once. A region that is too small or not aligned to a unit goes
// back at once: no chunk could be cut from it.
func (a *Allocator) reserve(n, align device.Size) (reservation, error) {
	r, err := a.src.Reserve(n, align)
	if err == nil && (!r.Addr.IsAligned(unit) || r.Size < n) {
		err = errMalformed
		if refused := a.src.Release(r.Addr); refused != nil {
			err = refused
		}
	}
	if err != nil {
		a.front.Stats.ReserveFailures++
		return reservation{}, err
	}
	got := reservation{Region: r}
	got.shorten(device.AlignDown(r.Size, unit))
	return got, nil
}

// reserveAtMost requests n bytes, and then less, until the device grants or the request would not
// fit. The region may be larger than requested.
func (a *Allocator) reserveAtMost(n device.Size, w demand) (reservation, power.Refusal) {
	for {
		r, err := a.reserve(n, w.align)
		if err == nil {
			return r, power.Refusal{Asked: n}
		}
		next := backpedal(n)
		if next < w.size {
			return r, power.Refusal{Reason: power.ReasonDevice, Asked: n, Device: err}
		}
		n = next
	}
}

// reserve2016 asks the device for n bytes and, once in the life of the allocator, for less. In
// that episode each try is followed by a step, even after success: the recorded region is one step
// smaller than the grant, and the tail is never used. The step after a success is the original's,
// which changes nothing at 2304 bytes and below.
func (a *Allocator) reserve2016(n device.Size, w demand) (reservation, power.Refusal) {
	asked := n
	r, err := a.reserve(n, w.align)
	if err != nil && !a.backpedaled {
		a.backpedaled = true
		for n = backpedal(n); err != nil && n > w.size; {
			asked = n
			if r, err = a.reserve(n, w.align); err == nil {
				n = tenthLess(n)
			} else {
				n = backpedal(n)
			}
		}
	}
	if err != nil {
		return r, power.Refusal{Reason: power.ReasonDevice, Asked: asked, Device: err}
	}
	r.shorten(n)
	return r, power.Refusal{Asked: asked}
}

// addRegion registers a reservation and returns the free chunk that covers it, which is in no bin.
// The reservation becomes a region of its own. With CoalesceRegions it is appended to the region
// that ends at its start, if there is one; a region that starts at its end is never joined. Regions
// of two-ended arenas are not joined, because each has its own ends.
func (a *Allocator) addRegion(r reservation) handle {
	h := a.chunks.add()
	c := chunk{addr: r.Addr, size: r.Size, prev: none, next: none}
	owner := OwnerNone
	if a.cfg.Spatial {
		owner = OwnerGap
	}
	number, joined := a.regions.endingAt(r.Addr)
	if joined = joined && a.cfg.CoalesceRegions && !a.cfg.Spatial; joined {
		c.prev = a.extend(number, r, h)
	} else {
		number = a.regions.insert(region{addr: r.Addr, size: r.Size, tail: r.tail, first: h, last: h})
		a.regions.empty += r.Size
		a.front.Stats.Regions++
	}
	c.tag = makeTag(free, owner, number)
	a.chunks.rows[h] = c
	a.chunks.setFreed(h, 0)
	a.front.Stats.Reserves++
	a.front.Stats.Reserved += r.Size
	a.front.Stats.Forgotten += r.tail
	a.front.Stats.PeakReserved = max(a.front.Stats.PeakReserved, a.front.Stats.Reserved)
	return h
}

// extend adds a reservation to the end of a region, with the chunk that covers it, and
// returns the chunk before that.
//
// The region has no tail: if it had one, the reservation would start inside it.
func (a *Allocator) extend(number uint32, r reservation, h handle) handle {
	rg := &a.regions.rows[number]
	prev := rg.last
	a.chunks.rows[prev].next = h
	rg.last = h
	rg.more = append(rg.more, r.Addr)
	rg.size += r.Size
	rg.tail += r.tail
	if rg.live == 0 {
		a.regions.empty += r.Size
	}
	return prev
}
