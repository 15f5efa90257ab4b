package props

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// closelyJudged is the maximum length of a trace for which everything is checked after
// every event. Counterexamples are far shorter; in longer traces, checks that need a copy of the
// walk run after every eighth event.
const closelyJudged = 2000

// Judge is an observer of a replay. It checks every answer and the state after
// every event as [Verify] does, against a model and a second instance that is given the same
// calls, so that the trace of a [Failure] breaks the same invariant again.
//
// The replay must run on [Judge.Device], with [Judge.Contents], and have [Judge.Observe] as its
// observer. Each event costs O(live blocks).
type Judge struct {
	r        *runner
	events   []trace.Event
	tags     []string // of the trace
	dev      *sim.Device
	limiter  *callLimiter
	plan     device.FaultPlan
	requests replay.Requests

	undrained int    // events after which an instance is closed with its blocks live
	calls     []Call // the calls among them
}

// NewJudge returns the judge of one replay of t through the strategy of s. It fails if the
// device of s has a field out of range or the header of t has no proper fault plan.
func NewJudge(s Subject, t *trace.Trace) (*Judge, error) {
	plan, err := replay.FaultPlan(t.Header)
	if err != nil {
		return nil, err
	}
	requests, err := replay.RequestsOf(t.Header)
	if err != nil {
		return nil, err
	}
	dev, err := sim.New(s.Device)
	if err != nil {
		return nil, err
	}
	j := &Judge{r: newRunner(&s), events: t.Events, tags: t.Tags, dev: dev, limiter: newCallLimiter(dev), plan: plan,
		requests: requests}
	if n, ok := t.Header.Get(undrainedKey); ok {
		if j.undrained, err = strconv.Atoi(n); err != nil {
			return nil, fmt.Errorf("%s: header %s=%s: want a number of events", t.Header.Name, undrainedKey, n)
		}
	}
	j.r.reset()
	j.r.thorough = len(t.Events) <= closelyJudged
	return j, nil
}

// Device returns the device for the replay.
func (j *Judge) Device() device.Device { return j.limiter }

// Contents returns the contents in which the replay fills blocks, nil unless the subject is
// [Subject.Filled].
func (j *Judge) Contents() device.Contents {
	if j.r.subject.Device.Memory == sim.Filled {
		return j.dev
	}
	return nil
}

// Observe judges one event. The error is a [*Violation], or reports that no second instance
// could be made.
func (j *Judge) Observe(o replay.Observation) error {
	return j.r.guard(func() error { return j.observe(o) }, j.r.judge)
}

// observe is Observe without regard to panics of the checks.
func (j *Judge) observe(o replay.Observation) (err error) {
	switch {
	case o.Panic != nil:
		err = j.r.judge(j.r.panicked(o.Panic))
	case o.Event < 0:
		return j.built(o)
	case o.Event >= len(j.events):
		return j.closed(o)
	default:
		err = j.event(o, o.Of)
	}
	j.begin()
	switch {
	case err != nil:
	case o.Continues(j.events):
		j.r.foresee(nil) // a free may follow within the event
	default:
		j.foresee(o.Event + 1)
	}
	return err
}

func (j *Judge) foresee(next int) { j.r.foresee(j.r.comingIn(j.events[next:], j.requests)) }

// begin stores the state before the next event.
func (j *Judge) begin() {
	j.limiter.begin()
	if j.r.main != nil {
		j.r.begin()
	}
}

// built judges the strategy before the first event. If it could not be built, which the replay
// reports, nothing may be left behind.
func (j *Judge) built(o replay.Observation) error {
	r := j.r
	if o.Err != nil {
		return r.judge(unbuilt(j.dev.Usage()))
	}
	r.main = &machine{dev: j.dev, faults: o.Faults, limiter: j.limiter, Strategy: o.Strategy}
	if err := r.study(newMachine(r.subject, j.plan)); err != nil {
		return err
	}
	err := r.look()
	j.begin()
	if err == nil {
		j.foresee(0)
	}
	return err
}

func (j *Judge) callsOf(o replay.Observation, e *trace.Event) (calls []Call) {
	if e.Kind == trace.Fault {
		calls = append(calls, Call{Op: Op{Kind: OpFault}, Count: e.Arg})
	}
	if o.Drained {
		calls = append(calls, Call{Op: Op{Kind: OpDrain, Stream: o.Stream}})
	}
	if !o.Called {
		return calls
	}
	c := Call{Op: Op{Kind: kindOf(e.Kind), Stream: o.Stream, Pool: o.Pool}, ID: e.ID, Request: o.Request, Addr: o.Addr,
		Count: e.Arg}
	if c.Kind == OpConf && e.Tag != 0 {
		c.Conf = j.tags[e.Tag]
	}
	c.nth = slices.IndexFunc(j.r.main.blocks, func(b alloc.Block) bool { return b.Addr == o.Addr })
	if c.Kind == OpFree && o.Delayed {
		use := c
		use.Kind = OpUse
		calls = append(calls, use)
	}
	return append(calls, c)
}

// event judges one event of the trace. The first instance was called by the replay.
func (j *Judge) event(o replay.Observation, e *trace.Event) error {
	r := j.r
	for _, c := range j.callsOf(o, e) {
		if o.Event < j.undrained {
			j.calls = append(j.calls, c)
		}
		switch {
		case !c.Kind.calls():
			_ = r.twin.do(&c) // the replay has the error of the other
			continue
		case c.Kind == kindOf(e.Kind):
			r.main.answer = Answer{o.Block, o.Returned, o.Err}
		default:
			r.main.answer = Answer{} // of a stream that delays the free
		}
		if err := r.exchange(&c, &r.main.answer); err != nil {
			return err
		}
	}
	if !o.Called {
		return nil
	}
	if err := r.look(); err != nil {
		return err
	}
	if r.powers.has(power.PowerStreamRecorder) || r.outcome == freed {
		return r.empty()
	}
	return nil
}

// closed checks the device after closing. The second instance is closed as well.
func (j *Judge) closed(o replay.Observation) error {
	r := j.r
	u := j.dev.Usage()
	if err := r.judge(corrupted(o.Err)); err != nil {
		return err
	}
	switch {
	case o.Err != nil && !errors.Is(o.Err, device.ErrInjected):
		return r.judge(violated(IClose, "Close failed with %q though the device refused nothing", o.Err))
	case o.Err == nil && !u.Empty():
		return r.judge(violated(IClose, "the strategy is closed and the device still holds %s", inventory(u)))
	case u.Empty():
		if err := r.judge(r.main.checkClosed()); err != nil {
			return err
		}
	}
	if err := j.closeMoved(r.twin); err != nil || j.undrained == 0 {
		return err
	}
	return j.closeUndrained()
}

// closeMoved closes an instance with its blocks live, after they were moved.
func (j *Judge) closeMoved(m *machine) error {
	if err := j.r.move(m); err != nil {
		return err
	}
	return j.r.closeInstance(m)
}

// closeUndrained repeats the calls of the replay on a third instance, without the final frees, and
// closes it with live blocks. The answers were checked before.
func (j *Judge) closeUndrained() error {
	m, err := newMachine(j.r.subject, j.plan)
	if err != nil {
		return j.r.judge(violated(IDeterminism, "the third instance could not be built: %v", err))
	}
	listen(m)
	for _, c := range j.calls {
		m.limiter.begin()
		m.do(&c)
	}
	m.faults.FailNext(0) // as before everything was freed
	return j.closeMoved(m)
}
