package bfc

import "slices"

// entry is one place in the timestamp queue.
type entry struct {
	seq   uint64 // number of the entry, ascending
	stamp uint64 // count of the chunk when it was queued
	h     handle
}

// mark is the queue state of a chunk: a column beside the chunk table.
type mark struct {
	since   uint64 // entries with lower numbers are void
	entries uint32 // number of entries that are not void
}

// queue lists freed chunks that wait for the safe frontier, in the order of their frees.
//
// An entry is a handle and may be out of date: its chunk was granted again, merged away,
// or both and freed again. The original checks every entry before every request against the chunk
// that the handle names at that time, and drops entries that are out of date. This queue does the
// same to the same entries and checks few of them:
//
//   - granting a queued chunk adds it to the suspects; the next sweep voids the entries of the
//     suspects that are still live by raising since in their mark, in O(1) each;
//   - stamps ascend along the queue and a chunk's count is never below the stamps of its entries,
//     so a sweep for the frontier stops at the first stamp above it.
//
// A forced merge breaks both rules. It sets full, and the next sweep visits every entry.
type queue struct {
	entries  []entry
	head     int      // first entry; the ones before it were removed
	n        int      // entries from head on that are not void
	next     uint64   // number of the next entry
	oldest   uint64   // no queued chunk was freed below this count, unless full
	full     bool     // any entry may be out of date
	shuffled bool     // stamps do not ascend
	suspects []handle // queued chunks granted since the last sweep
	merging  []handle // scratch of sweep
	kept     []entry  // scratch of sweep
}

// enqueue appends a chunk to the queue. O(1) amortized.
func (a *Allocator) enqueue(h handle) {
	q, stamp := &a.queue, a.chunks.freedAt[h]
	switch last := len(q.entries) - 1; {
	case q.n == 0:
		q.entries, q.head, q.oldest, q.shuffled = q.entries[:0], 0, stamp, false
	case stamp < q.entries[last].stamp:
		q.shuffled = true
	}
	if len(q.entries) == cap(q.entries) && q.n <= len(q.entries)/2 {
		a.compactQueue() // instead of growing
	}
	q.oldest = min(q.oldest, stamp)
	q.full = q.full || stamp == 0
	q.entries = append(q.entries, entry{q.next, stamp, h})
	q.next++
	q.n++
	a.chunks.marks[h].entries++
}

func (a *Allocator) void(e entry) bool { return e.seq < a.chunks.marks[e.h].since }

// leave removes an entry that is not void from the counters.
func (a *Allocator) leave(e entry) {
	a.queue.n--
	a.chunks.marks[e.h].entries--
}

// suspect records that a chunk is granted that the queue may hold.
func (a *Allocator) suspect(h handle) {
	if a.chunks.marks[h].entries > 0 {
		a.queue.suspects = append(a.queue.suspects, h)
	}
}

// dropSuspects voids the entries of the chunks granted since the last sweep, except chunks that are
// free again.
func (a *Allocator) dropSuspects() {
	q := &a.queue
	for _, h := range q.suspects {
		if a.chunks.rows[h].tag.state() != free {
			m := &a.chunks.marks[h]
			q.n -= int(m.entries)
			*m = mark{since: q.next}
		}
	}
	q.suspects = q.suspects[:0]
}

func (a *Allocator) compactQueue() {
	q := &a.queue
	q.entries = append(q.entries[:0], slices.DeleteFunc(q.entries[q.head:], a.void)...)
	q.head = 0
}

// purgeQueue drops the entries of retired handles. The original leaves them when it gives
// a region back, and then reads the tables of the wrong region.
func (a *Allocator) purgeQueue() {
	a.compactQueue()
	a.queue.entries = slices.DeleteFunc(a.queue.entries, func(e entry) bool {
		gone := a.chunks.rows[e.h].tag.state() == retired
		if gone {
			a.leave(e)
		}
		return gone
	})
}
