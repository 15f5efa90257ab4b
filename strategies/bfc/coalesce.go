package bfc

// coalesce merges a free chunk that is in no bin with its free neighbours, first the next,
// then the previous, and returns the chunk that results, which is in no bin. An unsafe
// chunk merges only by force, and force merges unsafe neighbours too. One neighbour on
// each side is enough by invariant B4.
func (a *Allocator) coalesce(h handle, force bool) handle {
	if !force && a.chunks.freed(h) > 0 {
		return h
	}
	if next := a.chunks.rows[h].next; a.mergeable(next, force) {
		a.unshelve(next)
		a.merge(h, next)
	}
	if prev := a.chunks.rows[h].prev; a.mergeable(prev, force) {
		a.unshelve(prev)
		a.merge(prev, h)
		return prev
	}
	return h
}

// mergeable reports whether a neighbour may be merged.
func (a *Allocator) mergeable(h handle, force bool) bool {
	if h == none || a.chunks.rows[h].tag.state() != free {
		return false
	}
	return force || a.chunks.freed(h) == 0
}
