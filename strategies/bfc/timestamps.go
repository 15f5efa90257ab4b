package bfc

import "github.com/vramyard/vramyard/device"

// queue lists freed chunks that wait for the safe frontier, in the order of their frees.
//
// An entry is a handle and may be out of date: its chunk was granted again, merged away,
// or both and freed again. A sweep judges an entry by what its handle names then.
type queue struct {
	entries []handle
	merging []handle // scratch of sweep, kept for its room
	// A sweep without force has nothing to do while no entry is out of date and every
	// chunk in the queue was freed at or above the frontier. These two say so without
	// looking at the entries.
	stale  bool   // an entry may be out of date, or its chunk safe
	oldest uint64 // no chunk in the queue was freed below this count
}

// enqueue appends a chunk to the queue.
func (a *Allocator) enqueue(h handle) {
	q := &a.queue
	count := a.chunks.freedAt[h]
	if len(q.entries) == 0 || count < q.oldest {
		q.oldest = count
	}
	q.stale = q.stale || count == 0
	q.entries = append(q.entries, h)
}

// sweep makes the chunks in the queue that were freed below the frontier safe and merges
// them; the others stay queued. With need above zero it is forced: it merges chunks
// whatever their count, in the order of the queue, until one has need bytes, and reports
// whether one has.
//
// It costs O(queue), or O(1) if neither the frontier passed a chunk nor an unsafe chunk
// was granted since the last one.
func (a *Allocator) sweep(need device.Size) bool {
	q := &a.queue
	if need == 0 && !q.stale && a.frontier <= q.oldest {
		return true
	}
	q.merging = a.selectMergeable(q.merging[:0], need > 0)
	if need > 0 {
		return a.mergeForced(q.merging, need)
	}
	for _, h := range q.merging {
		// A handle merged into its predecessor on the way is retired.
		if a.chunks.rows[h].tag.state() == free {
			m := a.remerge(h, false)
			a.shelve(m)
			if a.cfg.Mended && a.chunks.freedAt[m] > 0 {
				a.enqueue(m) // fell back to an unsafe gap
			}
		}
	}
	return true
}

// selectMergeable empties the queue of what is to be merged, which it appends to list, and
// of what is out of date. A chunk of the gap counts as that: in the original it is in no bin.
func (a *Allocator) selectMergeable(list []handle, force bool) []handle {
	q := &a.queue
	kept := q.entries[:0]
	q.stale, q.oldest = force, ^uint64(0)
	for _, h := range q.entries {
		if t := a.chunks.rows[h].tag; t.state() != free || t.owner() == OwnerGap && !a.cfg.Mended {
			continue
		}
		switch count := a.chunks.freedAt[h]; {
		case count < a.frontier:
			a.chunks.freedAt[h] = 0
			list = append(list, h)
		case count == 0, force:
			list = append(list, h)
		default:
			q.oldest = min(q.oldest, count)
			kept = append(kept, h)
		}
	}
	q.entries = kept
	return list
}

// mergeForced merges chunks by force until one has need bytes, queues the others again and
// reports whether one has.
//
// A result that absorbed into its predecessor is queued again while it is unsafe; one that
// stayed in place is not, and no sweep looks at it again. In mended mode it is queued too.
func (a *Allocator) mergeForced(list []handle, need device.Size) (satisfied bool) {
	for _, h := range list {
		switch {
		case a.chunks.rows[h].tag.state() != free:
		case satisfied:
			a.enqueue(h)
		default:
			m := a.remerge(h, true)
			a.shelve(m)
			if a.chunks.freedAt[m] > 0 && (m != h || a.cfg.Mended) {
				a.enqueue(m)
			}
			satisfied = a.chunks.rows[m].size >= need
		}
	}
	return satisfied
}

// remerge takes a chunk out of its bin and merges it with its neighbours. The conversion
// to gap that a free makes without timing happens here.
func (a *Allocator) remerge(h handle, force bool) handle {
	a.unshelve(h)
	if a.cfg.Spatial {
		a.returnToGap(h)
	}
	return a.coalesce(h, force)
}

// purgeQueue drops the entries of retired handles. The original leaves them when it gives
// a region back, and then reads the tables of the wrong region.
func (a *Allocator) purgeQueue() {
	kept := a.queue.entries[:0]
	for _, h := range a.queue.entries {
		if a.chunks.rows[h].tag.state() != retired {
			kept = append(kept, h)
		}
	}
	a.queue.entries = kept
}
