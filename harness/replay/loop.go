package replay

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/harness/trace"
)

// errStopped ends a walk of the trace early.
var errStopped = errors.New("the replay has stopped")

// timedLoop replays every event and returns the time in nanoseconds, by [ThreadTime]. Reading
// the trace, laying it out and walking the strategy for figures do not count.
func (r *runner) timedLoop() (elapsed int64, err error) {
	runtime.LockOSThread() // the clock is this thread's
	defer runtime.UnlockOSThread()
	r.done = r.p.head.Events
	interrupt := func() error { return nil }
	if r.o.Watch != nil {
		interrupt = func() error { return r.o.Watch(r.first + len(r.events)) }
	}
	err = r.p.each(r.when, interrupt, func(p batch) error {
		if n := p.places - len(r.blocks); n > 0 {
			r.blocks = append(r.blocks, make([]block, n)...)
		}
		return r.inSteps(p, func() error {
			r.clock.start()
			defer r.clock.stop()
			return r.loop()
		})
	})
	if errors.Is(err, errStopped) {
		err = nil
	}
	if r.selfTimed {
		return r.now(), err
	}
	return r.clock.total(), err
}

// now returns the time of the clock for single calls: the strategy's, which advances only while
// it works, or the wall clock.
func (r *runner) now() int64 {
	if !r.selfTimed {
		return WallTime()
	}
	ns, _ := power.WorkTime(r.s) // it has the power
	return ns
}

// progressStep is the number of events between two calls of [Options].Watch: some milliseconds, so
// its cost is negligible.
const progressStep = 1 << 16

// inSteps replays a batch, split at every call of Watch.
func (r *runner) inSteps(p batch, replay func() error) error {
	if r.o.Watch == nil {
		r.batch = p
		return replay()
	}
	for from := 0; from < len(p.events); from += progressStep {
		to := min(from+progressStep, len(p.events))
		r.batch = batch{p.first + from, p.events[from:to], p.ops[from:to], p.places}
		if err := replay(); err != nil {
			return err
		}
		if err := r.o.Watch(p.first + to); err != nil {
			return err
		}
	}
	return nil
}

// event returns event i, which is in the current batch.
func (r *runner) event(i int) *trace.Event { return &r.events[i-r.first] }

// loop replays every event of the batch. Unobserved requests and frees, which are nearly all, are
// inlined: a call for each would cost as much as their bookkeeping.
func (r *runner) loop() error {
	observed := r.o.Observe != nil || r.o.Placements != nil || r.o.Latency || r.sleep != nil
	for k := range r.ops {
		o := &r.ops[k]
		i := r.first + k
		var oom bool
		var err error
		switch kind := o.kind; {
		case observed || kind < opAlloc:
			oom, err = r.replay(i, o)
		case kind == opAlloc:
			var b alloc.Block
			if b, err = r.s.Alloc(r.request(o)); err == nil {
				r.granted(o, b)
			} else {
				oom, err = r.notGranted(i, o, err)
			}
		default:
			if b := &r.blocks[o.place]; b.live {
				if r.byRef == nil {
					err = r.s.Free(b.addr)
				} else {
					err = r.byRef.FreeRef(alloc.Block{Addr: b.addr, Size: b.size, Ref: b.ref})
				}
				if err == nil {
					r.freed(o, b)
				} else {
					err = r.notFreed(i, err)
				}
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.p.head.Place(i), err)
		}
		if r.series != nil {
			r.sample(i)
		}
		if oom && r.o.StopAtOOM {
			r.res.Stopped, r.done = true, i+1
			return errStopped
		}
	}
	return nil
}

// request returns the request of an op of kind opAlloc, equal to [Requests.Of] of its event.
func (r *runner) request(o *op) alloc.Request {
	return alloc.Request{Size: o.size, Stream: r.streams[o.stream], Tag: uint64(o.tag), ID: o.id, Origin: o.origin}
}

// replay replays one event and calls the observer, if any.
func (r *runner) replay(i int, o *op) (oom bool, err error) {
	e := r.event(i)
	if r.o.Observe == nil || e.Kind == trace.Refused { // which is observed as two events
		oom, err = r.step(i, o, e)
	} else {
		oom, err = r.observed(i, o, e)
	}
	if r.sleep != nil {
		r.slept(e, o)
	}
	return oom, err
}

// notFreed returns the error for a free that the strategy refused, which the contract forbids.
func (r *runner) notFreed(i int, cause error) error {
	return fmt.Errorf("free of live allocation %d: %w", r.event(i).ID, cause)
}

// decided records that n events determine whether the trace completes, and at which capacities
// the strategy would have decided the same.
func (r *runner) decided(n int) {
	r.res.Decided = n
	if span, ok := power.CapacitySpan(r.s); ok {
		r.res.Span = &span
	}
}
