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

// Intervals in a long run with streams, in calls. Each stream is drained once in 64 calls, so that
// pending blocks are a small part of those in use.
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

// streams makes the calls before turn i that are neither requests nor frees.
func (r *longRun) streams(i int) error {
	if r.Pattern != Streams && r.Pattern != Captures {
		return nil
	}
	var calls []Op
	if i%drainEvery == 0 {
		calls = append(calls, Op{Kind: OpDrain, Stream: r.stream()})
	}
	if i%pollEvery == 0 && alloc.Has(r.Strategy, alloc.PowerPoller) {
		calls = append(calls, Op{Kind: OpPoll})
	}
	switch {
	case r.Pattern != Captures:
	case i%captureEvery == 0:
		calls = append(calls, r.capture()...)
	case r.capturing && i%captureEvery == captureCalls:
		r.capturing = false
		calls = append(calls, Op{Kind: OpPoolEnd, Pool: r.made})
	}
	for _, o := range calls {
		if err := r.perform(&Call{Op: o}); err != nil {
			return err
		}
	}
	return nil
}

// capture returns the calls that redirect requests into a new pool. The oldest pool goes for it.
func (r *longRun) capture() (calls []Op) {
	if len(r.pools) == capturesKept {
		calls = append(calls, Op{Kind: OpPoolRelease, Pool: r.pools[0]})
		r.pools = slices.Delete(r.pools, 0, 1)
		if alloc.Has(r.Strategy, alloc.PowerTrimmer) {
			calls = append(calls, Op{Kind: OpTrim})
		}
	}
	r.made++
	r.capturing = true
	r.pools = append(r.pools, r.made)
	o := Op{Kind: OpPoolBegin, Pool: r.made, Stream: alloc.AllStreams}
	if r.rng.IntN(2) == 0 {
		o.Stream = r.stream()
	}
	return append(calls, o)
}

// use records a second stream for the block that was granted last, one time in four.
func (r *longRun) use() error {
	if r.Pattern != Streams && r.Pattern != Captures || r.rng.IntN(4) != 0 {
		return nil
	}
	b := r.held[len(r.held)-1]
	return r.perform(&Call{Op: Op{Kind: OpUse, Stream: r.stream()}, ID: b.id, Addr: b.addr})
}

// Unbounded is a long run in which memory grew or ran out, with everything needed to see it again.
type Unbounded struct {
	Subject   string        // name of the subject
	Churn     Churn         // the run
	Growth    Growth        // its memory
	Call      int           // the last one, from 1
	Held      []device.Size // bytes: most that was held until the end of each tenth of the run
	Violation *Violation    // what went wrong
	Holdings  string        // chunks at the end, one line for each pool, stream, class and state
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
		Subject: s.Name, Churn: r.Churn, Growth: r.growth, Call: r.step, Held: r.tenths, Violation: v,
		Holdings: holdingsText(again.Strategy), Trace: again.trace(IBounded.String()),
	}
	describe(u.Trace, "invariant", v.Number.String(), "detail", v.Detail)
	s.describe(u.Trace)
	_ = again.Close() // the device is thrown away with it
	if err == nil || again.step != r.step {
		return fmt.Errorf("%w\nbut not when run again: the strategy depends on more than its calls", u)
	}
	return u
}

// holdingsText sums up the chunks of a walk by pool, stream, class and state. Classes are ignored
// unless the strategy is [alloc.Counted]: others have many.
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
