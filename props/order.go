package props

import (
	"maps"

	"github.com/vramyard/vramyard/device"
)

// place is a position in a stream: after the work queued at a moment, and before all work that
// was queued later.
type place struct {
	stream device.Stream
	ticket uint64 // of the work queued next
	epoch  uint64 // how often everything had finished
}

// tickets are places in streams, by stream.
type tickets map[device.Stream]uint64

// raise takes the later place of each stream.
func (t tickets) raise(others tickets) {
	for s, n := range others {
		t[s] = max(t[s], n)
	}
}

// recorded is the place at which an event was last recorded.
type recorded struct {
	place
	after tickets // places of other streams that it comes after
}

// order is the reference model of streams: the work that was queued on each, how much of it has
// finished, and the order between streams. It is updated by each device call of a strategy and by
// each stream that is drained. The zero value has no streams.
//
// It holds for a device on which no work finishes by itself.
type order struct {
	queued, done tickets
	after        map[device.Stream]tickets // tickets that precede new work of a stream
	events       map[device.Event]recorded
	epoch        uint64
}

// moment is a snapshot of the queued and finished work.
type moment struct {
	queued tickets
	epoch  uint64
}

func (o *order) now() moment { return moment{maps.Clone(o.queued), o.epoch} }

// place returns the place after all work queued on a stream at the moment.
func (m moment) place(s device.Stream) place { return place{s, m.queued[s] + 1, m.epoch} }

func (o *order) enqueue(s device.Stream) uint64 {
	if o.queued == nil {
		o.queued, o.done = tickets{}, tickets{}
		o.after, o.events = map[device.Stream]tickets{}, map[device.Event]recorded{}
	}
	o.queued[s]++
	return o.queued[s]
}

// record places an event after the queued work of a stream.
func (o *order) record(e device.Event, s device.Stream) {
	ticket := o.enqueue(s)
	o.events[e] = recorded{place{s, ticket, o.epoch}, maps.Clone(o.after[s])}
}

// wait orders later work of a stream after an event.
func (o *order) wait(s device.Stream, e device.Event) {
	o.enqueue(s)
	r, ok := o.events[e]
	if !ok {
		return
	}
	if o.after[s] == nil {
		o.after[s] = tickets{}
	}
	o.after[s].raise(r.after)
	o.after[s].raise(tickets{r.stream: r.ticket})
}

// finish marks the work up to a place, and all work before it, as finished.
func (o *order) finish(s device.Stream, ticket uint64, after tickets) {
	o.done[s] = max(o.done[s], ticket)
	o.done.raise(after)
}

// finishEvent marks the work before an event as finished.
func (o *order) finishEvent(e device.Event) {
	if r, ok := o.events[e]; ok {
		o.finish(r.stream, r.ticket, r.after)
	}
}

func (o *order) finishStream(s device.Stream) {
	ticket := o.enqueue(s) // so that places that were taken here are passed
	o.finish(s, ticket, o.after[s])
}

func (o *order) finishAll() { o.epoch++ }

// unfinished reports whether an event has a mark that was not passed.
func (o *order) unfinished() bool {
	for _, r := range o.events {
		if !o.finished(r.place) {
			return true
		}
	}
	return false
}

func (o *order) finished(p place) bool { return p.epoch < o.epoch || o.done[p.stream] >= p.ticket }

// ordered reports whether later work of a stream runs after a place.
func (o *order) ordered(p place, s device.Stream) bool {
	return p.stream == s || o.finished(p) || o.after[s][p.stream] >= p.ticket
}
