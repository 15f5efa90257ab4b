package bfc

import "github.com/vramyard/vramyard/device"

// sweep makes the queued chunks that were freed below the frontier safe and merges them; the others
// stay queued. With need above zero it is forced: it merges chunks regardless of their count, in
// queue order, until one has need bytes, and reports whether one has.
//
// It costs O(merged chunks + queued chunks granted since the last sweep). After a forced sweep, and
// if a chunk was queued again before the frontier had passed its first entry, it visits the entries
// in between as well.
func (a *Allocator) sweep(need device.Size) bool {
	q := &a.queue
	a.dropSuspects()
	if need == 0 && !q.full && a.frontier <= q.oldest {
		return true
	}
	q.merging = a.selectMergeable(q.merging[:0], need > 0)
	if need > 0 {
		return a.mergeForced(q.merging, need)
	}
	for _, h := range q.merging {
		// A handle merged into its predecessor on the way is retired.
		if a.isFree(h) {
			m := a.remerge(h, false)
			a.shelve(m)
			if a.cfg.Mended && a.chunks.freedAt[m] > 0 {
				a.enqueue(m) // fell back to an unsafe gap
			}
		}
	}
	return true
}

// selectMergeable removes the entries to merge, which it appends to list, and void entries from the
// queue.
func (a *Allocator) selectMergeable(list []handle, force bool) []handle {
	q := &a.queue
	all := force || q.full || q.shuffled
	kept, oldest, i := q.kept[:0], ^uint64(0), q.head
	for ; i < len(q.entries); i++ {
		e := q.entries[i]
		if !all && e.stamp >= a.frontier {
			oldest = min(oldest, e.stamp)
			break
		}
		if a.void(e) {
			continue
		}
		if a.isWaiting(e.h, force) {
			oldest = min(oldest, a.chunks.freedAt[e.h])
			kept = append(kept, e)
			continue
		}
		a.leave(e)
		if a.isQueueable(e.h) {
			list = append(list, e.h)
		}
	}
	if all {
		q.full, q.shuffled = force, !ascending(kept)
	}
	q.head = i - len(kept)
	copy(q.entries[q.head:i], kept)
	q.kept, q.oldest = kept[:0], oldest
	return list
}

func ascending(entries []entry) bool {
	for i := 1; i < len(entries); i++ {
		if entries[i].stamp < entries[i-1].stamp {
			return false
		}
	}
	return true
}

// isQueueable reports whether a handle from the queue names a free chunk in a bin. In the
// original the gap of a two-ended arena is in none; in mended mode that makes no difference.
func (a *Allocator) isQueueable(h handle) bool {
	t := a.chunks.rows[h].tag
	return t.state() == free && (t.owner() != OwnerGap || a.cfg.Mended)
}

// isWaiting reports whether a queued chunk stays queued. One that the frontier has passed
// becomes safe here.
func (a *Allocator) isWaiting(h handle, force bool) bool {
	if !a.isQueueable(h) {
		return false
	}
	count := &a.chunks.freedAt[h]
	if *count < a.frontier {
		*count = 0
	}
	return *count > 0 && !force
}

// mergeForced merges chunks by force until one has need bytes, queues the others again and
// reports whether one has.
//
// A result that was absorbed into its predecessor is queued again while it is unsafe. A result that
// stayed in place is not, so no sweep visits it again; in mended mode it is queued too.
func (a *Allocator) mergeForced(list []handle, need device.Size) (satisfied bool) {
	for _, h := range list {
		switch {
		case !a.isFree(h):
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
