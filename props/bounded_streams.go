package props

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// How often things happen in a long run with streams, in calls. Each stream is drained once in 64
// calls, so that what is pending is a small part of what is in use.
const (
	drainEvery   = 16
	pollEvery    = 64
	captureEvery = 1000
	captureCalls = 100 // of a capture
	capturesKept = 3   // pools that are not released
	tenths       = 10
)

// stream returns the stream of the next request.
func (r *longRun) stream() device.Stream {
	if r.Pattern != Streams && r.Pattern != Captures {
		return 0
	}
	return device.Stream(r.rng.IntN(streams))
}

// streams does before call i what is no request and no free.
func (r *longRun) streams(i int) error {
	if r.Pattern != Streams && r.Pattern != Captures {
		return nil
	}
	if i%drainEvery == 0 {
		s := r.stream()
		r.note(trace.Event{Kind: trace.Drain, Stream: s})
		if err := r.leash.Drain(s); err != nil {
			return err
		}
	}
	if i%pollEvery == 0 && alloc.Has(r.Strategy, alloc.PowerPoller) {
		r.note(trace.Event{Kind: trace.Poll})
		if _, err := alloc.Poll(r.Strategy); err != nil {
			return violated(IFault, "Poll failed with %q though the device refused nothing", err)
		}
	}
	switch {
	case r.Pattern != Captures:
		return nil
	case i%captureEvery == 0:
		return r.capture()
	case r.capturing && i%captureEvery == captureCalls:
		r.capturing = false
		return r.pool(Op{Kind: OpPoolEnd, Pool: r.made})
	}
	return nil
}

// capture redirects requests into a new pool. The oldest pool goes for it.
func (r *longRun) capture() error {
	if len(r.pools) == capturesKept {
		if err := r.pool(Op{Kind: OpPoolRelease, Pool: r.pools[0]}); err != nil {
			return err
		}
		r.pools = slices.Delete(r.pools, 0, 1)
		if alloc.Has(r.Strategy, alloc.PowerTrimmer) {
			r.note(trace.Event{Kind: trace.Trim})
			if _, err := alloc.Trim(r.Strategy); err != nil {
				return violated(IFault, "Trim failed with %q though the device refused nothing", err)
			}
		}
	}
	r.made++
	r.capturing = true
	r.pools = append(r.pools, r.made)
	o := Op{Kind: OpPoolBegin, Pool: r.made, Stream: alloc.AllStreams}
	if r.rng.IntN(2) == 0 {
		o.Stream = r.stream()
	}
	return r.pool(o)
}

// pool makes the call of an operation of private pools.
func (r *longRun) pool(o Op) error {
	r.note(poolEvent(o))
	if err := callPool(r.Strategy, o); err != nil {
		return violated(IPoolAnswer, "%v was answered by %q", o, err)
	}
	return nil
}

// use has one block in four, the last one that was granted, be used by another stream too.
func (r *longRun) use() error {
	if r.Pattern != Streams && r.Pattern != Captures || r.rng.IntN(4) != 0 {
		return nil
	}
	b, s := r.live[len(r.live)-1], r.stream()
	r.note(trace.Event{Kind: trace.Use, ID: b.id, Stream: s})
	if err := alloc.RecordStream(r.Strategy, b.addr, s); err != nil {
		return violated(IFreeAnswer, "a stream recorded for %v was answered by %v", b.addr, answer(err))
	}
	return nil
}

// note keeps an event for the trace.
func (r *longRun) note(e trace.Event) {
	if !r.record {
		return
	}
	e.Time, e.Slot = trace.NoTime, trace.NoSlot
	if e.ID != 0 {
		e.Slot = uint32(e.ID - 1)
	}
	r.events = append(r.events, e)
}

// Unbounded is a long run in which memory grew or ran out, with everything needed to see it again.
type Unbounded struct {
	Subject   string        // name of the subject
	Churn     Churn         // the run
	Growth    Growth        // what it needed
	Call      int           // the last one, from 1
	Held      []device.Size // bytes: most that was held until the end of each tenth of the run
	Violation *Violation    // what went wrong
	Holdings  string        // what was held at the end, one line for each pool, stream, class and state
	Trace     *trace.Trace  // the calls
}

// Error implements error. It is long: everything but the trace.
func (u *Unbounded) Error() string {
	return fmt.Sprintf("%s: %s: call %d: %v\nseed %d, %v\nheld by tenths of the run: %v\n%s",
		u.Subject, u.Churn.Pattern, u.Call, u.Violation, u.Churn.Seed, u.Growth, u.Held, u.Holdings)
}

// Unwrap returns the violation.
func (u *Unbounded) Unwrap() error { return u.Violation }

// WriteTrace writes the calls as a text trace.
func (u *Unbounded) WriteTrace(w io.Writer) error { return trace.Write(w, u.Trace) }

// unbounded makes the calls once more, and gathers what is known of the run.
func (r *longRun) unbounded(s *Subject, v *Violation) error {
	again, err := newLongRun(s, r.Churn)
	if err != nil {
		return err
	}
	again.record = true
	err = again.run()
	u := &Unbounded{
		Subject: s.Name, Churn: r.Churn, Growth: r.growth, Call: r.calls, Held: r.held, Violation: v,
		Holdings: holdingsText(again.Strategy),
		Trace: &trace.Trace{
			Header: trace.Header{Name: IBounded.String(), Format: "text", Meta: []trace.Pair{
				{Key: "invariant", Value: v.Number.String()},
				{Key: "detail", Value: v.Detail},
				{Key: "subject", Value: s.Name},
				{Key: "config", Value: asJSON(s.Config)},
				{Key: "device", Value: asJSON(s.Device)},
			}},
			Events: again.events, Tags: []string{""}, Slots: int(again.ids),
		},
	}
	_ = again.Close() // the device is thrown away with it
	if err == nil || again.calls != r.calls {
		return fmt.Errorf("%w\nbut not when run again: the strategy depends on something besides its calls", u)
	}
	return u
}

// holdingsText sums up the chunks of a walk, those that are alike in all but place and size together.
// Only a strategy that is [alloc.Counted] has classes that are few.
func holdingsText(s alloc.Inspector) string {
	counted := alloc.Has(s, alloc.PowerCounted)
	type sum struct {
		kind   alloc.Chunk
		chunks int
		bytes  device.Size
	}
	var all []sum
	for c := range s.Walk {
		kind := alloc.Chunk{State: c.State, Pool: c.Pool, Stream: c.Stream, Class: c.Class}
		if !counted {
			kind.Class = alloc.NoClass
		}
		i := slices.IndexFunc(all, func(s sum) bool { return s.kind == kind })
		if i < 0 {
			i = len(all)
			all = append(all, sum{kind: kind})
		}
		all[i].chunks++
		all[i].bytes += c.Size
	}
	slices.SortFunc(all, func(a, b sum) int {
		k, l := a.kind, b.kind
		return cmp.Or(cmp.Compare(k.Pool, l.Pool), cmp.Compare(k.Stream, l.Stream), cmp.Compare(k.Class, l.Class), cmp.Compare(k.State, l.State))
	})
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "pool %d, stream %d, class %d: %v in %d %v chunks\n", uint64(s.kind.Pool), uint64(s.kind.Stream), s.kind.Class,
			s.bytes, s.chunks, s.kind.State)
	}
	return b.String()
}
