package replay

import (
	"fmt"

	"github.com/vramyard/vramyard/harness/trace"
)

// FreeAt says when a strategy that does not know streams is told of a free that other streams
// delay. A strategy that knows them is always told at once.
type FreeAt string

// The choices. An event that a trace says nothing of is both at once.
const (
	AtCompleted FreeAt = "completed" // when the memory may be used again; the default
	AtRequested FreeAt = "requested" // when the program frees it, as if it could be used again at once
)

// ParseFreeAt returns the choice with a name; the empty name is the default.
func ParseFreeAt(name string) (FreeAt, error) {
	switch at := FreeAt(name); at {
	case "":
		return AtCompleted, nil
	case AtCompleted, AtRequested:
		return at, nil
	}
	return "", fmt.Errorf("free at %q: want %q or %q", name, AtRequested, AtCompleted)
}

// timing says what becomes of frees that are delayed.
type timing uint8

const (
	atRequest    timing = iota // the strategy is told when they are asked for
	atCompletion               // it is told when they are final
	onStreams                  // it is told when they are asked for, and of a stream that delays them
	numTimings
)

// timing returns the timing for a strategy that knows streams, or does not.
func (at FreeAt) timing(streams bool) timing {
	switch {
	case streams:
		return onStreams
	case at == AtRequested:
		return atRequest
	}
	return atCompletion
}

// delays says of each event whether it belongs to a block whose free becomes final later than at
// the next event: the free, the event at which it does, or a use of the block before. Of what
// delays it, the trace knows the result, so that the uses tell nothing more.
type delays []bool

// has reports whether event i is one of those.
func (d delays) has(i int) bool { return d != nil && d[i] }

// delaysOf returns the delays of a trace, nil if there are none. A free whose id is given again
// first has none: nothing says when it became final.
func delaysOf(t *trace.Trace) (d delays) {
	var final []int                           // by slot: the event at which the next free becomes final, 0 for none
	for i := len(t.Events) - 1; i >= 0; i-- { // backwards, a block's end comes first
		e := &t.Events[i]
		if e.Kind == trace.Completed && final == nil {
			final = make([]int, t.Slots)
		}
		if final == nil || e.Slot == trace.NoSlot {
			continue
		}
		switch f := &final[e.Slot]; e.Kind {
		case trace.Completed:
			*f = i
		case trace.Free:
			if *f <= i+1 {
				*f = 0
				continue
			}
			if d == nil {
				d = make(delays, len(t.Events))
			}
			d[i], d[*f] = true, true
		case trace.Use:
			if *f != 0 {
				d[i] = true
			}
		case trace.Alloc, trace.LiveAtStart:
			*f = 0
		}
	}
	return d
}

// hasUses reports whether a trace says that streams use what others allocated.
func hasUses(t *trace.Trace) bool {
	for i := range t.Events {
		if t.Events[i].Kind == trace.Use {
			return true
		}
	}
	return false
}

// free lays out a free.
func (l *layout) free(o *op, s *seats, slot uint32, when timing, delayed bool) {
	at, ok := s.name(o, slot)
	switch {
	case !ok:
		return
	case delayed:
		o.kind, l.pending = opDelayed, when == onStreams
		return // it keeps its place: the block is there, or a stream is named by it
	case at.used && when == onStreams:
		o.kind, l.pending = opPending, true
	default:
		o.kind = opFree
	}
	s.leave(slot)
}

// complete lays out that a delayed free becomes final.
func (l *layout) complete(o *op, s *seats, slot uint32) {
	if _, ok := s.name(o, slot); ok {
		o.kind = opDelayed
		s.leave(slot)
	}
}
