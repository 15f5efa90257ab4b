package replay

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/harness/trace"
)

// pool replays an event of a private pool. An error of a strategy with pools is an error of the
// trace, unless there is an observer: the trace of a counterexample may contain such mistakes, and
// the observer judges the answer.
func (r *runner) pool(e *trace.Event) (err error) {
	id := alloc.PoolID(e.Arg)
	switch e.Kind {
	case trace.PoolBegin:
		err = r.beginPool(id, e)
	case trace.PoolEnd:
		err = power.EndPool(r.s, id)
	default:
		err = power.ReleasePool(r.s, id)
	}
	r.observe(Observation{Pool: id, Stream: e.Stream, Err: err})
	if r.o.Observe != nil && errors.Is(err, alloc.ErrInvalidPool) {
		return nil
	}
	if err != nil && !errors.Is(err, alloc.ErrUnsupported) {
		return fmt.Errorf("%s of pool %d: %w", poolVerbs[e.Kind-trace.PoolBegin], e.Arg, err)
	}
	return err
}

// beginPool begins a pool with its options. A strategy that has private pools without options
// ignores them.
func (r *runner) beginPool(id alloc.PoolID, e *trace.Event) error {
	if e.Tag == 0 || !power.Has(r.s, power.PowerMemPools) {
		return power.BeginPool(r.s, id, e.Stream)
	}
	o, err := trace.PoolOptions(r.p.src.TagOf(e))
	if err != nil {
		return err
	}
	return power.BeginMemPool(r.s, id, e.Stream, o)
}

// poolVerbs are the verbs of pool events, by kind.
var poolVerbs = [...]string{"begin", "end", "release"}

// RejectedError is a change of the settings that the strategy rejects. It wraps
// [alloc.ErrInvalidSettings].
type RejectedError struct {
	Event    int    // its index in the trace
	Settings string // its text
	Err      error  // of the strategy
}

// Error names the settings and the reason.
func (e *RejectedError) Error() string { return fmt.Sprintf("conf %q: %v", e.Settings, e.Err) }

// Unwrap returns the error of the strategy.
func (e *RejectedError) Unwrap() error { return e.Err }

// configure replays event i, a change of the settings. Settings that the strategy rejects are an
// error of the trace, with the same exception as for [runner.pool].
func (r *runner) configure(i int, e *trace.Event) error {
	settings := r.p.src.TagOf(e)
	err := power.Configure(r.s, settings)
	r.observe(Observation{Err: err})
	switch {
	case r.o.Observe != nil && errors.Is(err, alloc.ErrInvalidSettings):
		return nil
	case errors.Is(err, alloc.ErrInvalidSettings):
		return &RejectedError{Event: i, Settings: settings, Err: err}
	case err != nil && !errors.Is(err, alloc.ErrUnsupported):
		return fmt.Errorf("conf %s: %w", strconv.Quote(settings), err)
	}
	return err
}
