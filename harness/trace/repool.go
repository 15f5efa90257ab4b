package trace

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/internal/nearest"
)

// Ways to change the private pools of a trace; see [Repool].
const (
	PoolsShared = "share" // all pools are one
	PoolsMerged = "merge" // requests go to the default pool
)

// PoolWays returns the ways to change private pools, options among them.
func PoolWays() []string { return []string{PoolsShared, PoolsMerged, PoolUseOnOOM, PoolNoSplit} }

// repooledKey is the key of the header for the way in which pools were changed.
const repooledKey = "repooled"

var errNoPools = errors.New("the trace has no private pools")

// Repool returns a trace with the same requests in other private pools. With [PoolsShared] every
// redirection goes to the pool that is begun first, which gets the users of all pools. With
// [PoolsMerged] there are no redirections. With an option, such as [PoolNoSplit], every pool gets
// it beside its own ones. Other events stay.
//
// It fails for an unknown way, a trace without private pools, pools that are to be shared and are
// open at once, because the end of one would end the other, and more than [DefaultMaxEvents]
// events. O(events).
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
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Name, err)
	}
	return r.b.Trace(), nil
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
