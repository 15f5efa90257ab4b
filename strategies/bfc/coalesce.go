package bfc

// coalesce merges a free chunk that is in no bin with its free neighbours, first the next,
// then the previous, and returns the resulting chunk, which is in no bin. Unsafe chunks and unsafe
// neighbours merge only with force, except that two parts of the gap of a two-ended arena do.
//
// One neighbour on each side is enough by invariant B4. If timing breaks B4, the original does not
// merge the second one; mended mode continues.
func (a *Allocator) coalesce(h handle, force bool) handle {
	if !force && a.chunks.freed(h) > 0 {
		return h
	}
	for next := a.chunks.rows[h].next; a.isFree(next) && a.merges(h, next, force); next = a.chunks.rows[h].next {
		a.unshelve(next)
		a.merge(h, next)
		if !a.cfg.Mended {
			break
		}
	}
	for prev := a.chunks.rows[h].prev; a.isFree(prev) && a.merges(h, prev, force); prev = a.chunks.rows[h].prev {
		a.unshelve(prev)
		a.merge(prev, h)
		h = prev
		if !a.cfg.Mended {
			break
		}
	}
	return h
}

// merges reports whether a free chunk may be merged with a free neighbour.
//
// A forced merge can leave the gap unsafe. If what falls back to it did not merge with it
// all the same, there would be a second gap, at which the original aborts, and an upper
// block cut from the first would lie below the second.
func (a *Allocator) merges(h, neighbour handle, force bool) bool {
	if force || a.chunks.freed(neighbour) == 0 {
		return true
	}
	rows := a.chunks.rows
	return rows[h].tag.owner() == OwnerGap && rows[neighbour].tag.owner() == OwnerGap
}

// isFree reports whether there is a free chunk of that handle.
func (a *Allocator) isFree(h handle) bool {
	return h != none && a.chunks.rows[h].tag.state() == free
}
