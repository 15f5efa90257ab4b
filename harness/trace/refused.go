package trace

import (
	"errors"
	"math"
	"slices"
)

// RoundedTag is the tag of a Refused event whose size is the rounded size: the file does not
// contain the requested one.
const RoundedTag = "rounded"

// Refusals tracks the requests that failed in the recorded program. The zero value is ready for
// use.
//
// A refused request is part of the trace: an allocator must serve it to complete the run. If the
// program survived the refusal, the request becomes an allocation that is freed at once. A last
// refused request without a later allocation lives to the end. Event numbers do not change.
type Refusals struct {
	Count  int   // refused requests
	Last   Event // the last one
	LastAt int   // its event number; invalid if Count is 0
	Died   bool  // the last refusal ended the program: no allocation follows

	at    int    // number of events processed
	id    uint64 // largest ID
	slots uint32 // largest slot plus 1
}

// Step processes the next event of the trace.
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

// Request returns src with its refused requests as requests to replay, each with its own ID and
// slot. All events of src must have been processed by Step. The last one becomes an Alloc if it
// ended the program; the others stay Refused events. Event numbers do not change. A Trace stays a
// Trace: its events are copied.
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
	r.assign(c.Events, 0)
	return &c, nil
}

// assign assigns ids and slots to the refused requests among events. n is the number of refused
// requests before them; it returns the new number.
func (r *Refusals) assign(events []Event, n int) int {
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

// Requested walks src and returns it with its refused requests as requests to replay; see
// [Refusals.Request].
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

// requested is a source with its refused requests ready for replay.
type requested struct {
	Source
	refusals Refusals
}

func (q *requested) Batches(yield func([]Event) error) error {
	var out []Event
	n := 0
	return q.Source.Batches(func(events []Event) error {
		if !slices.ContainsFunc(events, func(e Event) bool { return e.Kind == Refused }) {
			return yield(events)
		}
		out = append(out[:0], events...)
		n = q.refusals.assign(out, n)
		return yield(out)
	})
}
