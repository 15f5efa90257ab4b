package trace

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/internal/nearest"
)

// Ways to change the private pools of a trace; see [Repool].
const (
	PoolsShared       = "share"         // all pools are one
	PoolsMerged       = "merge"         // requests go to the default pool
	PoolsLargestFirst = "largest-first" // all pools are one, and the largest capture is the first
	PoolsPrimed       = "prime"         // all pools are one, which begins with a free block for the largest capture
)

// PoolWays returns the ways to change private pools, options among them.
func PoolWays() []string {
	return []string{PoolsShared, PoolsMerged, PoolsLargestFirst, PoolsPrimed, PoolUseOnOOM, PoolNoSplit}
}

// repooledKey is the key of the header for the way in which pools were changed.
const repooledKey = "repooled"

var errNoPools = errors.New("the trace has no private pools")

// Repool returns a trace with the same requests in other private pools. With [PoolsMerged] there
// are no redirections. With an option, such as [PoolNoSplit], every pool gets it beside its own
// ones. Otherwise every redirection goes to the pool that is begun first, which gets the users of
// all pools. Other events stay.
//
// With [PoolsLargestFirst] the captures, which are redirections of one stream, are also put in
// descending order of their needs, equal ones in their order. The need of a redirection is the most
// bytes of its own requests of one stream that are live at once. With a capture move the events
// from its begin to its end, and events of its blocks until the next capture begins. A last capture
// that the trace leaves open ends behind its last request and the events of its blocks that follow.
// Events of captures have no times.
//
// With [PoolsPrimed] the largest need of a redirection is also requested in the pool, and freed at
// once, before the first redirection, on the stream of that need. With both ways, blocks get other
// names.
//
// It fails for an unknown way, a trace without private pools, pools that are to be shared and are
// open at once, because the end of one would end the other, and more than [DefaultMaxEvents]
// events. It fails for captures that are fewer than two or in this order already. It fails with
// [ErrFixedCaptures] if captures are open at once or contain events that are not requests, marks or
// events of blocks, if settings change or blocks sleep between them, or if events of a block would
// change their order. O(events).
func Repool(s Source, way string) (*Trace, error) {
	if !slices.Contains(PoolWays(), way) {
		return nil, fmt.Errorf("unknown way %q to change pools: %s", way, nearest.Want(way, PoolWays()))
	}
	h := s.Head().Header
	h.Hash = ""
	h.Meta = append(slices.Clip(h.Meta), Pair{repooledKey, way})
	r := repooler{way: way, b: NewBuilder(h)}
	err := walk(s, func(i int, e *Event) error {
		if i >= DefaultMaxEvents {
			return fmt.Errorf("the trace has more than %d events", DefaultMaxEvents)
		}
		own := *e
		kept, err := r.pool(&own)
		if err != nil || !kept {
			return err
		}
		text := s.TagOf(e)
		if own.Kind == PoolBegin {
			if text, err = withOption(text, way); err != nil {
				return fmt.Errorf("event %d: %w", i, err)
			}
		}
		own.Tag = r.b.Tag(text)
		return r.b.Add(own)
	})
	if err == nil && !r.found {
		err = errNoPools
	}
	var t *Trace
	if err == nil {
		t = r.b.Trace()
		switch way {
		case PoolsLargestFirst:
			t, err = largestFirst(t)
		case PoolsPrimed:
			t, err = primed(t)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Name, err)
	}
	return t, nil
}

// repooler changes the private pools of a trace.
type repooler struct {
	way   string
	b     *Builder
	found bool     // an event is about a pool
	first uint64   // the pool that is shared
	open  []uint64 // pools with redirections, by their names in the source
}

// pool changes an event and reports whether it stays.
func (r *repooler) pool(e *Event) (kept bool, err error) {
	switch e.Kind {
	case PoolBegin, PoolEnd, PoolRelease:
	default:
		return true, nil
	}
	if !r.found {
		r.found, r.first = true, e.Arg
	}
	switch r.way {
	case PoolsMerged:
		return false, nil
	case PoolUseOnOOM, PoolNoSplit:
		return true, nil
	}
	switch e.Kind {
	case PoolBegin:
		if i := slices.IndexFunc(r.open, func(p uint64) bool { return p != e.Arg }); i >= 0 {
			return false, fmt.Errorf("pools %d and %d are open at once and cannot be shared", r.open[i], e.Arg)
		}
		r.open = append(r.open, e.Arg)
	case PoolEnd:
		if len(r.open) > 0 {
			r.open = r.open[1:]
		}
	}
	e.Arg = r.first
	return true, nil
}
