package replay

import (
	"errors"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// Observation is the argument of an observer after each event.
type Observation struct {
	// Event is the index of the event; -1 when the strategy was just built, and the number
	// of events when it was closed. A refused request that the recorded program survived is
	// observed as an Alloc, and as a Free of the same index if it is granted.
	Event int
	// Of is the event, valid until the observer returns; nil without an event.
	Of *trace.Event
	// Strategy may be inspected but not called. It is nil if it could not be built.
	Strategy alloc.Strategy
	// Faults is the device of the strategy, for its account.
	Faults *device.Faults
	// Called reports that the event became a call of the strategy.
	Called bool

	Request  alloc.Request // Alloc: the request
	Block    alloc.Block   // Alloc: the granted block
	Addr     device.Addr   // Free, BadFree, Use: the argument
	Returned device.Size   // Trim: bytes given back; Poll: bytes made free
	Stream   device.Stream // Use: recorded stream; PoolBegin: redirected stream; Delayed, Drained: the cause
	Pool     alloc.PoolID  // PoolBegin, PoolEnd, PoolRelease: the argument
	Delayed  bool          // before the free, Stream was recorded for the block
	Drained  bool          // the work on Stream has finished, and the strategy was not called
	Err      error         // the returned error, also of building and closing
	Panic    any           // the value of a panic of the strategy
}

// Continues reports whether the event, one of events, is observed once more: a refused request that
// was granted is freed at once.
func (o Observation) Continues(events []trace.Event) bool {
	return o.Of != nil && o.Of.Kind == trace.Alloc && o.Err == nil && events[o.Event].Kind == trace.Refused
}

// observeBuilt passes the result of the construction to the observer: the strategy or err.
func (o Options) observeBuilt(s alloc.Strategy, faults *device.Faults, err error) error {
	if o.Observe == nil {
		return err
	}
	if e := o.Observe(Observation{Event: -1, Strategy: s, Faults: faults, Err: err}); e != nil {
		return e
	}
	return err
}

// observe records a call and its answer for the observer.
func (r *runner) observe(o Observation) {
	o.Called = true
	r.observation = o
}

// observed replays event i, given as e, and calls the observer, whose error takes precedence over
// the replay's own: it is the more precise one.
func (r *runner) observed(i int, o *op, e *trace.Event) (oom bool, err error) {
	r.observation = Observation{}
	oom, err = r.guarded(i, o, e)
	r.observation.Event, r.observation.Of, r.observation.Strategy, r.observation.Faults = i, e, r.s, r.faults
	if observerErr := r.o.Observe(r.observation); observerErr != nil {
		return oom, observerErr
	}
	return oom, err
}

// errPanic is the error of a replay whose observer accepts a panic.
var errPanic = errors.New("the strategy panicked")

// guarded replays one event and survives a panic of the strategy.
func (r *runner) guarded(i int, o *op, e *trace.Event) (oom bool, err error) {
	defer r.recoverPanic(&err)
	return r.step(i, o, e)
}

// recoverPanic records a panic for the observer. It must be deferred.
func (r *runner) recoverPanic(err *error) {
	if p := recover(); p != nil {
		r.observation, *err = Observation{Called: true, Panic: p}, errPanic
	}
}

// observeClosed passes the result of Close to the observer.
func (r *runner) observeClosed(err error) error {
	o := r.observation
	o.Event, o.Strategy, o.Faults, o.Called, o.Err = r.p.head.Events, r.s, r.faults, true, err
	return r.o.Observe(o)
}
