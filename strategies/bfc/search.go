package bfc

import (
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// shelve puts a free chunk into the bin of its size.
//
// Precondition: it is in none.
func (a *Allocator) shelve(h handle) {
	c := &a.chunks.rows[h]
	c.slack = a.bins[c.tag.owner()].Insert(c.size, c.addr, h)
}

// unshelve takes a free chunk out of its bin. Its owner must not have changed since it was put
// there; its size may have.
func (a *Allocator) unshelve(h handle) {
	c := &a.chunks.rows[h]
	if !a.bins[c.tag.owner()].Remove(c.slack, h) {
		panic("bfc: invariant B3 (each free chunk in exactly one bin): the chunk at " + c.addr.String() + " is in none")
	}
}

// find takes the best chunk for a request out of its bin, splits it to size and returns it, or
// none: the smallest that is large enough, the lowest of equals, over all regions.
func (a *Allocator) find(w demand) handle {
	if !w.plain {
		return a.findFitting(w)
	}
	at := a.bins[OwnerNone].Ceil(w.size)
	if at == index.NoEntry {
		return none
	}
	h := a.bins[OwnerNone].Take(at)
	a.trim(h, w.size)
	return h
}

// findFitting is find for requests that pass over some chunks that are large enough. In a two-ended
// arena it tries the holes of the requested end, then the gap.
func (a *Allocator) findFitting(w demand) handle {
	if h := a.firstFitting(w, w.owner); h != none || w.owner == OwnerNone {
		return h
	}
	return a.firstFitting(w, OwnerGap)
}

// firstFitting is findFitting among the chunks of one owner. With an alignment and no bound on the
// count, the walk ends at the latest at a chunk larger than the request by the alignment.
func (a *Allocator) firstFitting(w demand, owner uint8) handle {
	t := &a.bins[owner]
	at := t.First(w.size, func(h handle) bool {
		c := &a.chunks.rows[h]
		return (w.before == 0 || a.chunks.freed(h) <= w.before) && w.fits(c.addr, c.size)
	})
	if at == index.NoEntry {
		return none
	}
	h := t.Take(at)
	if w.owner == OwnerUpper {
		return a.carveUpper(h, w)
	}
	return a.carveLower(h, w)
}

// fits reports whether an aligned place of the demanded size lies inside a chunk that is
// large enough without alignment. It computes differences only, so no alignment overflows a sum.
//
// Precondition: size >= w.size.
func (w *demand) fits(at device.Addr, size device.Size) bool {
	room := size - w.size
	if w.owner == OwnerUpper {
		return device.AlignDown(at.Add(room), w.align) >= at
	}
	return device.Size(-at)&(w.align-1) <= room
}

// carveLower cuts the lowest aligned place out of a chunk. The part before it becomes a hole, of
// the lower end if the arena has two; the part after it follows the rule for splits. This holds in
// the gap too, so the lower end may absorb the gap.
func (a *Allocator) carveLower(h handle, w demand) handle {
	if pad := device.Size(-a.chunks.rows[h].addr) & (w.align - 1); pad > 0 {
		rest := a.split(h, pad)
		a.own(h, w.owner)
		a.shelveRemainder(h, a.chunks.rows[h].prev)
		h = rest
	}
	a.trim(h, w.size)
	a.own(h, w.owner)
	return h
}

// trim splits off the remainder of a chunk beyond n bytes if it is at least n, or at least the
// waste limit. The remainder goes to its bin. It is not merged with the next chunk, which is never
// free without timing.
func (a *Allocator) trim(h handle, n device.Size) {
	if a.splits(a.chunks.rows[h].size-n, n) {
		rest := a.split(h, n)
		a.shelveRemainder(rest, a.chunks.rows[rest].next)
	}
}

// splits reports whether a block of n bytes gives up a remainder of rest bytes. A fraction
// of the limit below one byte makes the waste limit zero, and the original then splits
// off remainders of no bytes.
func (a *Allocator) splits(rest, n device.Size) bool {
	return rest >= n || rest >= a.waste && rest > 0
}

// shelveRemainder puts the remainder of a split into its bin, given its neighbour on the far side.
// In mended mode it is also queued if a sweep must visit it again, because it is unsafe or could
// merge with that neighbour.
func (a *Allocator) shelveRemainder(h, neighbour handle) {
	a.shelve(h)
	if a.cfg.Mended && a.cfg.Timing && (a.chunks.freedAt[h] != 0 || a.isFree(neighbour)) {
		a.enqueue(h)
	}
}

// findMore gets memory for a request that no chunk serves: a new region, then a forced merge
// of unsafe chunks, then a new region after the release of regions without live blocks. If all of
// them fail, it returns none and the reason.
//
// A new region does not always serve: the variant of 2016 may record less than it requested, and a
// device may align to less than requested. The region is kept.
func (a *Allocator) findMore(w demand) (handle, power.Refusal) {
	why := a.grow(w)
	if why.Reason == power.ReasonNone {
		if h := a.find(w); h != none {
			return h, why
		}
		why.Reason = power.ReasonUnusable
	}
	if w.before == 0 && a.queue.n > 0 && a.sweep(w.size) {
		if h := a.find(w); h != none {
			return h, why
		}
	}
	if a.cfg.GarbageCollection && a.collect(w.size) {
		why = a.grow(w)
		if why.Reason == power.ReasonNone {
			if h := a.find(w); h != none {
				return h, why
			}
			why.Reason = power.ReasonUnusable
		}
	}
	return none, why
}
