package props

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// closelyJudged is how many events a trace may have for everything to be looked at after
// every event. Counterexamples have far fewer; of longer traces, what costs a copy of the
// walk is looked at after every eighth event.
const closelyJudged = 2000

// Judge looks over the shoulder of a replay. It judges every answer and the state after
// every event as [Verify] does, against a model and a second instance that is given the same
// calls, so that the trace of a [Failure] breaks the same invariant again.
//
// The replay must run on [Judge.Device], with [Judge.Contents], and have [Judge.Observe] as its observer. Each
// event costs O(live blocks).
type Judge struct {
	r        *runner
	events   []trace.Event
	dev      *sim.Device
	leash    *leash
	plan     device.FaultPlan
	injected uint64 // faults before the present call

	undrained int                  // events after which an instance is closed with its blocks live
	calls     []replay.Observation // the calls among them
}

// NewJudge returns the judge of one replay of t through the strategy of s. It fails if the
// device of s has a field out of range or the header of t has no proper fault plan.
func NewJudge(s Subject, t *trace.Trace) (*Judge, error) {
	plan, err := replay.FaultPlan(t.Header)
	if err != nil {
		return nil, err
	}
	dev, err := sim.New(s.Device)
	if err != nil {
		return nil, err
	}
	j := &Judge{r: newRunner(&s), events: t.Events, dev: dev, leash: newLeash(dev), plan: plan}
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
func (j *Judge) Device() device.Device { return j.leash }

// Contents returns what the replay is to fill blocks in, nil unless the subject is one of
// [Subject.Filled].
func (j *Judge) Contents() device.Contents {
	if j.r.subject.Device.Memory == sim.Filled {
		return j.dev
	}
	return nil
}

// Observe judges one event. The error is a [*Violation], or tells that no second instance
// could be made.
func (j *Judge) Observe(o replay.Observation) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = j.r.panicked(p) // while it was looked at
		}
	}()
	switch {
	case o.Panic != nil:
		err = j.r.panicked(o.Panic)
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
	case j.events[o.Event].Kind == trace.Refused && o.Of.Kind == trace.Alloc && o.Err == nil:
		j.r.foresee(nil) // a free may follow within the event
	default:
		j.foresee(o.Event + 1)
	}
	return err
}

// foresee asks what will come of the event that is next.
func (j *Judge) foresee(next int) { j.r.foresee(j.r.comingIn(j.events[next:])) }

// begin notes what the next event is compared with.
func (j *Judge) begin() {
	j.leash.begin()
	if j.r.main == nil {
		return
	}
	j.r.begin()
	j.injected = j.r.main.faults.Injected()
}

// built judges the strategy before the first event, or that it could not be built, which
// the replay reports unless something is left behind.
func (j *Judge) built(o replay.Observation) (err error) {
	r := j.r
	if o.Err != nil {
		return r.judge(unbuilt(j.dev.Usage()))
	}
	r.main = &machine{dev: j.dev, faults: o.Faults, leash: j.leash, Strategy: o.Strategy}
	if r.twin, err = newMachine(r.subject, j.plan); err != nil {
		return r.judge(violated(IDeterminism, "the second instance could not be built: %v", err))
	}
	r.study()
	err = r.observe()
	j.begin()
	if err == nil {
		j.foresee(0)
	}
	return err
}

// event judges one event of the trace.
func (j *Judge) event(o replay.Observation, e *trace.Event) error {
	if o.Event < j.undrained && (o.Called || o.Drained || e.Kind == trace.Fault) {
		of := *e // which the replay may use again
		o.Of = &of
		j.calls = append(j.calls, o)
	}
	if e.Kind == trace.Fault {
		j.r.twin.faults.FailNext(e.Arg)
	}
	if o.Drained {
		_ = j.r.twin.leash.Drain(o.Stream) // the replay has the error of the other
	}
	if !o.Called {
		return nil
	}
	if err := j.answer(o, e); err != nil {
		return err
	}
	if err := j.r.observe(); err != nil {
		return err
	}
	if j.r.powers.recorder || j.r.outcome == freed {
		return j.r.empty()
	}
	return nil
}

// answer judges and books what the strategy answered.
func (j *Judge) answer(o replay.Observation, e *trace.Event) error {
	r := j.r
	switch e.Kind {
	case trace.Alloc, trace.LiveAtStart:
		return r.answered(e.ID, o.Request, o.Block, o.Err)
	case trace.Free, trace.Completed:
		if o.Delayed {
			if err := r.used(o.Addr, o.Stream, nil); err != nil {
				return err
			}
		}
		return r.released(o.Addr, o.Err)
	case trace.BadFree:
		return r.misused(o.Addr, o.Err)
	case trace.Trim:
		return r.trimmed(o.Returned, o.Err, j.injected)
	case trace.Frontier:
		return r.raised(e.Arg, o.Err)
	case trace.ClearStats:
		return r.cleared(o.Err)
	case trace.Use:
		return r.used(o.Addr, o.Stream, o.Err)
	case trace.Poll:
		return r.lookedAt(o.Returned, o.Err, j.injected)
	case trace.PoolBegin, trace.PoolEnd, trace.PoolRelease:
		return r.pooled(poolOp(e), o.Err)
	}
	return nil
}

// closed judges what is left after closing. The second instance is closed in its turn.
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
		if err := r.judge(r.main.checkClosed(device.Addr(1 << 20))); err != nil {
			return err
		}
	}
	if err := j.closeMachine(r.twin); err != nil || j.undrained == 0 {
		return err
	}
	return j.closeUndrained()
}

// closeMachine closes an instance and judges what is left of it.
func (j *Judge) closeMachine(m *machine) error {
	m.leash.begin()
	if err := j.r.move(m); err != nil {
		return err
	}
	if err := j.r.judge(m.closeAll()); err != nil || !m.dev.Usage().Empty() {
		return err
	}
	return j.r.judge(m.checkClosed(device.Addr(1 << 20)))
}

// closeUndrained makes the calls of the replay once more on a third instance, all but those
// that freed everything in the end, and closes it with its blocks live. The answers were
// judged before.
func (j *Judge) closeUndrained() error {
	m, err := newMachine(j.r.subject, j.plan)
	if err != nil {
		return j.r.judge(violated(IDeterminism, "the third instance could not be built: %v", err))
	}
	listen(m)
	for _, o := range j.calls {
		m.leash.begin()
		if o.Drained {
			_ = m.leash.Drain(o.Stream)
			continue
		}
		switch e := o.Of; e.Kind {
		case trace.Alloc, trace.LiveAtStart:
			_, _ = m.Alloc(o.Request)
		case trace.Free, trace.Completed, trace.BadFree:
			if o.Delayed {
				_ = alloc.RecordStream(m.Strategy, o.Addr, o.Stream)
			}
			_ = m.Free(o.Addr)
		case trace.Trim:
			_, _ = alloc.Trim(m.Strategy)
		case trace.Frontier:
			_ = alloc.SetFrontier(m.Strategy, e.Arg)
		case trace.ClearStats:
			_ = alloc.ClearStats(m.Strategy)
		case trace.Use:
			_ = alloc.RecordStream(m.Strategy, o.Addr, o.Stream)
		case trace.Poll:
			_, _ = alloc.Poll(m.Strategy)
		case trace.PoolBegin, trace.PoolEnd, trace.PoolRelease:
			_ = callPool(m.Strategy, poolOp(e))
		case trace.Fault:
			m.faults.FailNext(e.Arg)
		}
	}
	m.faults.FailNext(0) // as before everything was freed
	return j.closeMachine(m)
}
