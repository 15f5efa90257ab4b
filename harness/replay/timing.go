package replay

import "fmt"

// FreeAt determines when a free that other streams delay is passed to a strategy without streams. A
// strategy with streams always gets it at once.
type FreeAt string

// The choices. A free that is not delayed is requested and completed at once.
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

// timing is the treatment of delayed frees.
type timing uint8

const (
	atRequest    timing = iota // frees are passed when they are requested
	atCompletion               // frees are passed when they complete
	onStreams                  // frees are passed when they are requested, after a use by a stream that delays them
	numTimings
)

// timing returns the timing for a strategy with or without streams.
func (at FreeAt) timing(streams bool) timing {
	switch {
	case streams:
		return onStreams
	case at == AtRequested:
		return atRequest
	}
	return atCompletion
}

// delays is a set of events: the births of blocks whose free completes later than at the next
// event, those frees, and their completions. The trace has the completion itself, so the uses of
// such a block are not needed.
type delays []uint64

func (d *delays) add(events ...uint32) {
	for _, i := range events {
		if n := int(i/64) + 1 - len(*d); n > 0 {
			*d = append(*d, make(delays, n)...)
		}
		(*d)[i/64] |= 1 << (i % 64)
	}
}

func (d delays) has(i int) bool { return i/64 < len(d) && d[i/64]>>(i%64)&1 != 0 }

// free lays out a free. The place is released unless the free is delayed.
func (l *layout) free(o *op, slot uint32, delayed bool) {
	at, ok := l.setPlace(o, slot)
	switch {
	case !ok:
		return
	case delayed:
		o.kind = opDelayed
		return // the block keeps its place until the free completes
	case at.used && l.when == onStreams:
		o.kind = opPending
	default:
		o.kind = opFree
	}
	l.releasePlace(slot)
}

// complete lays out the completion of a delayed free.
func (l *layout) complete(o *op, slot uint32) {
	if _, ok := l.setPlace(o, slot); ok {
		o.kind = opDelayed
		l.releasePlace(slot)
	}
}
