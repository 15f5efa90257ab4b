package trace

import (
	"errors"
	"math"
	"slices"
)

// Refusals are the requests that the recorded program was refused. The zero value has seen no
// event.
//
// A refused request is part of the trace: an allocator has to serve it to carry the run. If the
// program survived the refusal, the request is an allocation that is freed at once. The last
// refused request, with no allocation behind it, lives to the end. The event keeps its number
// either way.
type Refusals struct {
	Count  int   // refused requests
	Last   Event // the last of them
	LastAt int   // its number; meaningless if Count is 0
	Died   bool  // the last refusal ended the program: no allocation follows

	at    int    // events seen
	id    uint64 // largest ID
	slots uint32 // largest slot and one more
}

// Step books the next event of the trace.
func (r *Refusals) Step(e *Event) {
	r.id = max(r.id, e.ID)
	if e.Slot != NoSlot {
		r.slots = max(r.slots, e.Slot+1)
	}
	switch e.Kind {
	case Alloc, LiveAtStart:
		r.Died = false
	case Refused:
		r.Count++
		r.Last, r.LastAt, r.Died = *e, r.at, true
	}
	r.at++
}

var errIDs = errors.New("no ids are left for the refused requests")

// Request returns src, all events of which were booked, with the refused requests as requests to
// replay: each has an ID and a slot of its own. The last one is an Alloc if it ended the program.
// The others stay Refused events. Numbers of events do not change. A Trace stays one: its events
// are copied.
func (r *Refusals) Request(src Source) (Source, error) {
	if r.Count == 0 {
		return src, nil
	}
	if uint64(r.Count) > math.MaxUint64-r.id || uint64(r.Count)+uint64(r.slots) >= math.MaxUint32 {
		return nil, errIDs
	}
	t, ok := src.(*Trace)
	if !ok {
		return &requested{Source: src, refusals: *r}, nil
	}
	c := *t
	c.Events, c.Slots = slices.Clone(t.Events), t.Slots+r.Count
	r.request(c.Events, 0)
	return &c, nil
}

// request makes requests of the refused ones among events, before which there were n, and returns
// how many there are now.
func (r *Refusals) request(events []Event, n int) int {
	for i := range events {
		e := &events[i]
		if e.Kind != Refused {
			continue
		}
		e.ID, e.Slot = r.id+uint64(n)+1, r.slots+uint32(n)
		if n++; n == r.Count && r.Died {
			e.Kind = Alloc
		}
	}
	return n
}

// Requested walks src and returns it with its refused requests as [Refusals.Request] has them.
func Requested(src Source) (Source, error) {
	var r Refusals
	err := walk(src, func(_ int, e *Event) error {
		r.Step(e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r.Request(src)
}

// requested is a source whose refused requests can be replayed.
type requested struct {
	Source
	refusals Refusals
}

// Pieces implements [Source].
func (q *requested) Pieces(yield func([]Event) error) error {
	var out []Event
	n := 0
	return q.Source.Pieces(func(events []Event) error {
		if !slices.ContainsFunc(events, func(e Event) bool { return e.Kind == Refused }) {
			return yield(events)
		}
		out = append(out[:0], events...)
		n = q.refusals.request(out, n)
		return yield(out)
	})
}
