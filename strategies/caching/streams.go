package caching

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/tiles"
)

// uses records the other streams of a block.
type uses struct {
	streams []device.Stream // recorded, and not marked yet
	during  []device.Stream // the streams recorded during a capture
	marks   int             // events that are not known to be done
}

// mark is an event after the work that uses a block.
type mark struct {
	event device.Event
	block handle
}

// queue holds the marks of one stream, oldest first.
type queue struct {
	stream device.Stream
	marks  []mark
	first  int // index of the first mark that is not removed
}

// waits holds the records of blocks with other streams.
type waits struct {
	usesOf      tiles.Column[uint32] // by block: its uses; 0 for none
	used        []uses               // used[0] is unused
	spareUses   []uint32
	queues      []queue  // by stream
	deferred    []handle // pending blocks whose streams are still to be marked
	redo        []handle // scratch of deferred
	spareEvents []device.Event
	waiting     int // pending blocks
}

// RecordStream implements [power.StreamRecorder]. It costs O(streams recorded for the block).
func (a *Allocator) RecordStream(at device.Addr, s device.Stream) error {
	link, err := a.find(at)
	if err != nil {
		return err
	}
	h := *link
	if s == a.shelfOf(h).stream {
		return nil
	}
	if a.rows[h].home&usedBit == 0 {
		a.rows[h].home |= usedBit
		a.usesOf.Set(h, a.takeUses(), len(a.rows))
	}
	u := a.usesBy(h)
	u.streams = include(u.streams, s)
	if a.capturing(power.AllStreams) {
		u.during = include(u.during, s)
	}
	return nil
}

func include(set []device.Stream, s device.Stream) []device.Stream {
	i, found := slices.BinarySearch(set, s)
	if found {
		return set
	}
	return slices.Insert(set, i, s)
}

// usesBy returns the uses of a block that other streams use.
func (a *Allocator) usesBy(h handle) *uses { return &a.used[a.usesOf.Get(h)] }

// takeUses returns the index of an unused record of uses.
func (w *waits) takeUses() uint32 {
	if n := len(w.spareUses); n > 0 {
		i := w.spareUses[n-1]
		w.spareUses = w.spareUses[:n-1]
		return i
	}
	if len(w.used) == 0 {
		w.used = append(w.used, uses{})
	}
	w.used = append(w.used, uses{})
	return uint32(len(w.used) - 1)
}

// postpone makes a freed block that other streams use pending. The streams cannot be marked during
// a capture.
func (a *Allocator) postpone(h handle, kind uint32) {
	b, u, c := &a.rows[h], a.usesBy(h), &a.count
	b.become(pending)
	a.waiting++
	c.blocks.postpone(kind, 1)
	c.bytes.postpone(kind, int64(b.size))
	c.asked.postpone(kind, int64(b.asked))
	if a.capturing(power.AllStreams) {
		a.deferred = append(a.deferred, h)
		return
	}
	// Uses recorded during a capture count, unless the block is also freed during it.
	u.during = u.during[:0]
	_ = a.markUses(h) // errors are retried at the next poll
}

// markUses records an event on each stream of a pending block, and finishes the block if there are
// no events to wait for. Errors of the device are retried at the next call.
func (a *Allocator) markUses(h handle) error {
	u := a.usesBy(h)
	if a.streams == nil {
		u.streams = u.streams[:0] // all work is done at once
	}
	for len(u.streams) > 0 {
		s := u.streams[len(u.streams)-1]
		e, err := a.record(s)
		if err != nil {
			a.deferred = append(a.deferred, h)
			return err
		}
		u.streams = u.streams[:len(u.streams)-1]
		u.marks++
		q := a.queueOf(s)
		q.marks = append(q.marks, mark{e, h})
	}
	if u.marks == 0 {
		a.complete(h)
	}
	return nil
}

// record returns an event after the work queued on a stream.
func (a *Allocator) record(s device.Stream) (device.Event, error) {
	if len(a.spareEvents) == 0 {
		e, err := a.streams.NewEvent()
		if err != nil {
			return 0, err
		}
		a.spareEvents = append(a.spareEvents, e)
	}
	last := len(a.spareEvents) - 1
	e := a.spareEvents[last]
	if err := a.streams.Record(e, s); err != nil {
		return 0, err
	}
	a.spareEvents = a.spareEvents[:last]
	return e, nil
}

// queueOf returns the queue of a stream. It makes the queue on first use.
func (w *waits) queueOf(s device.Stream) *queue {
	i, found := slices.BinarySearchFunc(w.queues, s, func(q queue, s device.Stream) int {
		return cmp.Compare(q.stream, s)
	})
	if !found {
		w.queues = slices.Insert(w.queues, i, queue{stream: s})
	}
	return &w.queues[i]
}

// complete frees a pending block.
func (a *Allocator) complete(h handle) {
	b, c := &a.rows[h], &a.count
	a.waiting--
	a.forgetUses(h)
	sh := a.shelfOf(h)
	a.report(power.Action{Kind: power.FreeCompleted, Addr: b.addr, Size: b.asked, Stream: sh.stream, Pool: sh.pool.id})
	c.blocks.complete(sh.kind, 1)
	c.bytes.complete(sh.kind, int64(b.size))
	c.asked.complete(sh.kind, int64(b.asked))
	a.finish(h, sh)
}

func (a *Allocator) forgetUses(h handle) {
	i := a.usesOf.Get(h)
	u := &a.used[i]
	*u = uses{streams: u.streams[:0], during: u.during[:0]}
	a.spareUses = append(a.spareUses, i)
	a.usesOf.Set(h, 0, len(a.rows))
	a.rows[h].home &^= usedBit
}

// Poll implements [power.Poller]. It is a no-op during a capture. It makes one query for each
// completed free and one for each stream.
func (a *Allocator) Poll() (device.Size, error) {
	if a.front.Closed() {
		return 0, alloc.ErrClosed
	}
	if a.capturing(power.AllStreams) {
		return 0, nil
	}
	return a.process()
}

// process frees the pending blocks whose work has finished, and returns their bytes and the first
// error of the device.
func (a *Allocator) process() (device.Size, error) {
	before := a.count.bytes.parked()
	first := a.markDeferred()
	for i := range a.queues {
		// Work on one stream finishes in order, so the marks after an unfinished one are unfinished too.
		q := &a.queues[i]
		for q.first < len(q.marks) {
			done, err := a.streams.Done(q.marks[q.first].event)
			first = cmp.Or(first, err)
			if err != nil || !done {
				break
			}
			a.passed(q)
		}
		q.tidy()
	}
	return device.Size(before - a.count.bytes.parked()), first
}

// passed removes the first mark of a queue, whose event has completed.
func (a *Allocator) passed(q *queue) {
	m := q.marks[q.first]
	q.first++
	a.spareEvents = append(a.spareEvents, m.event)
	u := a.usesBy(m.block)
	u.marks--
	if u.marks == 0 && len(u.streams) == 0 {
		a.complete(m.block)
	}
}

// tidy drops the removed marks once they outnumber the others.
func (q *queue) tidy() {
	if 2*q.first >= len(q.marks) {
		q.marks = q.marks[:copy(q.marks, q.marks[q.first:])]
		q.first = 0
	}
}

// markDeferred marks the streams that could not be marked when their blocks were freed. A use that
// was recorded during a capture in which the block was also freed is dropped, because captured
// work does not run. The error is the first one of the device.
func (a *Allocator) markDeferred() (first error) {
	if len(a.deferred) == 0 {
		return nil
	}
	a.deferred, a.redo = a.redo[:0], a.deferred
	for _, h := range a.redo {
		u := a.usesBy(h)
		if !a.cfg.Mended {
			u.streams = slices.DeleteFunc(u.streams, func(s device.Stream) bool {
				_, dropped := slices.BinarySearch(u.during, s)
				return dropped
			})
		}
		u.during = u.during[:0]
		first = cmp.Or(first, a.markUses(h))
	}
	return first
}

// synchronize waits for the events of all pending blocks and frees the blocks. Blocks whose events
// the device refused stay pending; the error is the first refusal.
func (a *Allocator) synchronize() (first error) {
	a.count.syncs++
	first = a.markDeferred()
	for i := range a.queues {
		q := &a.queues[i]
		for q.first < len(q.marks) {
			if err := a.streams.SyncEvent(q.marks[q.first].event); err != nil {
				first = cmp.Or(first, err)
				break
			}
			a.passed(q)
		}
		q.tidy()
	}
	return first
}

// destroyEvents destroys every event. Refused events stay; the error is the first refusal.
func (a *Allocator) destroyEvents() (first error) {
	for i := range a.queues {
		q := &a.queues[i]
		for _, m := range q.marks[q.first:] {
			a.spareEvents = append(a.spareEvents, m.event)
		}
		q.marks, q.first = nil, 0
	}
	kept := a.spareEvents[:0]
	for _, e := range a.spareEvents {
		if err := a.streams.DestroyEvent(e); err != nil {
			kept = append(kept, e)
			first = cmp.Or(first, err)
		}
	}
	a.spareEvents = kept
	return first
}
