package props

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// defaultPatience is how long one call may take, with the checks after it. Calls take microseconds.
const defaultPatience = 10 * time.Second

// pulse is the state of an interpreter that a watchdog in another goroutine may read.
type pulse struct {
	beats   atomic.Int64          // steps begun since the interpreter was made
	looking atomic.Bool           // the call of the step has returned, and its effect is judged
	running atomic.Pointer[trial] // nil before the first
}

// trial is one run of a sequence.
type trial struct {
	seed    int64
	seq     Sequence
	plan    device.FaultPlan
	begun   int64 // beats before its first step
	smaller bool  // the sequence of the seed broke an invariant, and is being shrunk
}

// starts publishes the run of a sequence to the watchdog.
func (in *interpreter) starts(seq Sequence, plan device.FaultPlan) {
	in.pulse.looking.Store(false)
	in.pulse.running.Store(&trial{in.seed, seq, plan, in.pulse.beats.Load(), in.found})
}

// mostHangs is how many candidates of the shrinker may hang. Each costs the patience of the
// watchdog, and its goroutine keeps a core busy.
const mostHangs = 3

// skips reports whether the shrinker is to leave a candidate out: because it hangs, or because the
// last candidate that may hang came before it.
func (in *interpreter) skips(seq Sequence) bool {
	i := slices.IndexFunc(in.hanging, func(s Sequence) bool { return slices.Equal(s, seq) })
	in.exhausted = in.exhausted || i == mostHangs-1
	return in.exhausted || i >= 0
}

// Guarded calls f in a separate goroutine and returns its error. A panic of f is a violation of
// invariant I35. If f does not call beat for as long as patience, 0 for 10 seconds, it counts as
// hanging, a violation of invariant I36. Go cannot end a goroutine: it is left behind then, and the
// objects that f uses must not be used again.
func Guarded(patience time.Duration, f func(beat func()) error) error {
	var in interpreter
	var err error
	if !returns(patience, &in.pulse.beats, func() {
		err = in.guard(func() error { return f(func() { in.pulse.beats.Add(1) }) }, nil)
	}) {
		return hangs(patience, "the call")
	}
	return err
}

// hangs returns the violation of something that does not return.
func hangs(patience time.Duration, what string) *Violation {
	return &Violation{Number: ITerminates, Detail: fmt.Sprintf("%s did not return within %v; Go cannot end a goroutine, "+
		"so the check ends here",
		what, cmp.Or(patience, defaultPatience))}
}

// returns calls f in a goroutine of its own. It returns false, and leaves the goroutine behind, if
// the number of beats stays the same for as long as patience.
func returns(patience time.Duration, beats *atomic.Int64, f func()) bool {
	const looks = 4
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	tick := time.NewTicker(cmp.Or(patience, defaultPatience) / looks)
	defer tick.Stop()
	last, same := beats.Load(), 0
	for same < looks {
		select {
		case <-done:
			return true
		case <-tick.C:
		}
		if now := beats.Load(); now != last {
			last, same = now, 0
		} else {
			same++
		}
	}
	return false
}

// search is an interpreter that looks for a failure.
type search struct {
	*interpreter
	run    func() (Result, error)
	record func(*Failure) *trace.Trace // runs the sequence of a call that hangs, up to that call
}

// watched runs a search in a goroutine of its own. A panic outside of a sequence, such as one of a
// constructor, becomes a [*Failure]. So does a call that does not return: its sequence ends with
// that call, and another search records its trace. If the sequence was a candidate of the shrinker,
// the failure that is being shrunk stays the result: another search finds it again and skips the
// candidate. The error of begin is one of a search that records.
func watched(name string, o Options, begin func() (search, error)) (Result, error) {
	var hanging []Sequence
	for {
		s, err := begin()
		if err != nil {
			return Result{}, err
		}
		var r Result
		s.seed, s.hanging = o.Seed, hanging
		if returns(o.Patience, &s.pulse.beats, func() { r, err = s.run() }) {
			var f *Failure
			var v *Violation
			if !errors.As(err, &f) && errors.As(err, &v) {
				err = s.failure(name, s.seed, o.Operations, nil, v)
			}
			return r, err
		}
		if t := s.pulse.running.Load(); t != nil && t.smaller && len(hanging) < mostHangs {
			hanging = append(slices.Clone(hanging), t.seq) // the search that hangs reads the old ones
			continue
		}
		f := s.stuck(name, o)
		f.Trace = &trace.Trace{Header: trace.Header{Name: f.Violation.Number.String(), Format: "text"}}
		if again, err := begin(); f.Step > 0 && err == nil {
			var t *trace.Trace
			again.interpreter.record, again.last, again.seed = true, f, f.Seed
			if returns(o.Patience, &again.pulse.beats, func() { t = again.record(f) }) {
				f.Trace = t
			}
		}
		describe(f.Trace, "invariant", f.Violation.Number.String(), "detail", f.Violation.Detail)
		return Result{Sequences: int(f.Seed-o.Seed) + 1}, f
	}
}

// stuck returns the failure of an interpreter that hangs in another goroutine.
func (in *interpreter) stuck(name string, o Options) *Failure {
	t := in.pulse.running.Load()
	if t == nil {
		t = &trial{seed: o.Seed}
	}
	f := &Failure{Subject: name, Seed: t.seed, Operations: o.Operations, Step: int(in.pulse.beats.Load() - t.begun),
		Plan: t.plan, Hung: true}
	f.Sequence = t.seq[:min(f.Step, len(t.seq))]
	what := "a closing step"
	switch {
	case f.Step == 0:
		what = "building and closing an instance"
	case f.Step <= len(t.seq):
		what = f.Sequence[f.Step-1].String()
	}
	if in.pulse.looking.Load() {
		what = "looking at the strategy after " + what
	}
	f.Violation = hangs(o.Patience, what)
	return f
}
