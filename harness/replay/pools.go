package replay

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/harness/trace"
)

// pool replays that requests go into a private pool, or do so no more, or that the pool is
// released. What a strategy with pools refuses is an error of the trace, unless somebody watches:
// the trace of a counterexample may have such mistakes, and the observer judges the answer.
func (r *runner) pool(e *trace.Event) (err error) {
	id := alloc.PoolID(e.Arg)
	switch e.Kind {
	case trace.PoolBegin:
		err = power.BeginPool(r.s, id, e.Stream)
	case trace.PoolEnd:
		err = power.EndPool(r.s, id)
	default:
		err = power.ReleasePool(r.s, id)
	}
	r.saw(Observation{Pool: id, Stream: e.Stream, Err: err})
	if r.o.Observe != nil && errors.Is(err, alloc.ErrInvalidPool) {
		return nil
	}
	if err != nil && !errors.Is(err, alloc.ErrUnsupported) {
		return fmt.Errorf("%s of pool %d: %w", poolVerbs[e.Kind-trace.PoolBegin], e.Arg, err)
	}
	return err
}

// poolVerbs are what events of pools do, by kind.
var poolVerbs = [...]string{"begin", "end", "release"}
