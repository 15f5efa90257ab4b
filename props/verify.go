package props

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/prop"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/mirror"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// Options configure a verification. Zero fields mean their defaults.
type Options struct {
	Sequences  int   // sequences of operations; default 2000
	Operations int   // operations in a sequence; default 100
	Seed       int64 // of the first sequence; each next one has the next seed
	Tries      int   // how often a failing sequence is run to make it smaller; default 4000
	Faults     int   // most device calls of a sequence that are refused in turn, spread over all; default every one

	// OneBug means that the subject has one known bug: a smaller sequence may break another
	// invariant. Without it, that could be another bug.
	OneBug bool

	// Patience is how long one call may take, with the checks after it, before it is taken to hang;
	// default 10 seconds. At most 3 smaller sequences of a failure may hang; they are left out.
	Patience time.Duration
}

func (o Options) withDefaults() Options {
	o.Sequences, o.Operations, o.Tries = cmp.Or(o.Sequences, 2000), cmp.Or(o.Operations, 100), cmp.Or(o.Tries, 4000)
	return o
}

// Result counts what a verification did, so that a reader can see it was not vacuous.
type Result struct {
	Sequences   int           // sequences run
	Calls       int           // calls judged
	Grants      int           // requests granted
	Frees       int           // live blocks freed
	OutOfMemory int           // requests that ran out of memory
	Mistakes    int           // requests refused as mistakes
	BadFrees    int           // frees refused as mistakes
	Faults      uint64        // device calls refused on a plan
	Elapsed     time.Duration // time taken

	Excepted map[Number]int // how often each of the subject's exceptions was needed
	Card     CardTally      // work of the subject's card, if it has one
}

// Add adds the counts of another verification. Times are not added, so that sums are the same
// every time.
func (r *Result) Add(o Result) {
	r.Sequences += o.Sequences
	r.Calls += o.Calls
	r.Grants += o.Grants
	r.Frees += o.Frees
	r.OutOfMemory += o.OutOfMemory
	r.Mistakes += o.Mistakes
	r.BadFrees += o.BadFrees
	r.Faults += o.Faults
	r.Card.Add(o.Card)
	for n, count := range o.Excepted {
		r.except(n, count)
	}
}

func (r *Result) except(n Number, count int) {
	if r.Excepted == nil {
		r.Excepted = map[Number]int{}
	}
	r.Excepted[n] += count
}

// CardTally counts what was done on a card.
type CardTally struct {
	Calls   device.Calls   // of the card
	Traffic mirror.Traffic // bytes written there and read back
}

// Add adds another tally.
func (t *CardTally) Add(o CardTally) {
	for c, n := range o.Calls {
		t.Calls[c].Done += n.Done
		t.Calls[c].Failed += n.Failed
	}
	t.Traffic.Written += o.Traffic.Written
	t.Traffic.Read += o.Traffic.Read
}

// String returns the counts in one line.
func (r Result) String() string {
	return fmt.Sprintf("%d sequences, %d calls: %d grants, %d frees, %d out of memory, %d bad requests, %d bad frees, "+
		"%d planned faults, %v", r.Sequences, r.Calls, r.Grants, r.Frees, r.OutOfMemory, r.Mistakes, r.BadFrees, r.Faults,
		r.Elapsed.Round(time.Millisecond))
}

// Failure is a broken invariant with everything needed to see it again.
type Failure struct {
	Subject    string           // name of the subject
	Seed       int64            // a run of one sequence with this seed repeats the failure
	Operations int              // operations of the sequence as generated
	Step       int              // call of the shrunken sequence at which the invariant broke
	Violation  *Violation       // which invariant, and what disagrees
	Sequence   Sequence         // the shrunken sequence
	Plan       device.FaultPlan // device calls that were refused
	Trace      *trace.Trace     // the shrunken sequence as a trace
	Hung       bool             // the last call of the sequence did not return; see [Options.Patience]
	Hanging    []Sequence       // smaller sequences that do not return, and were left out
	Closing    []string         // calls after the sequence, which free and close everything, up to the broken invariant
}

// Error implements error. It is long: everything but the stack of a panic.
func (f *Failure) Error() string {
	s := fmt.Sprintf("%s: seed %d, step %d: %v\n", f.Subject, f.Seed, f.Step, f.Violation)
	if f.Hung {
		s += fmt.Sprintf("the first %d operations, not shrunk", len(f.Sequence))
	} else {
		s += fmt.Sprintf("shrunk from %d operations to %d", f.Operations, len(f.Sequence))
	}
	if f.Plan.Nth != 0 {
		s += fmt.Sprintf("; device call %d is refused", f.Plan.Nth)
	}
	s += "\n" + f.Sequence.Lines()
	if len(f.Closing) > 0 {
		s += "then everything is freed and closed\n" + strings.Join(f.Closing, "\n") + "\n"
	}
	if len(f.Hanging) > 0 {
		shortest := slices.MinFunc(f.Hanging, func(a, b Sequence) int { return cmp.Compare(len(a), len(b)) })
		s += fmt.Sprintf("left out, because they hang: %d smaller sequences, of which the shortest is\n%s", len(f.Hanging),
			shortest.Lines())
	}
	return s
}

// Unwrap returns the violation.
func (f *Failure) Unwrap() error { return f.Violation }

// WriteTrace writes the shrunken sequence as a text trace that a replay of the same
// configuration on the same device repeats call by call.
func (f *Failure) WriteTrace(w io.Writer) error { return trace.Write(w, f.Trace) }

// Verify runs generated sequences over the subject and judges every call. The error is a
// [*Failure] if an invariant was broken, anything else if the subject cannot be built.
func Verify(s Subject, o Options) (Result, error) {
	return verify(s, o.withDefaults(), func(r *runner, seq Sequence) (device.FaultPlan, error) {
		return device.FaultPlan{}, r.run(seq, device.FaultPlan{})
	})
}

// VerifyFaults runs every generated sequence once for each of its device calls, and the
// device refuses that call; Options.Faults makes it fewer. The rest is as for [Verify].
func VerifyFaults(s Subject, o Options) (Result, error) {
	return verify(s, o.withDefaults(), func(r *runner, seq Sequence) (device.FaultPlan, error) {
		stride, first, err := r.stride(seq, o.Faults)
		if err != nil {
			return device.FaultPlan{}, err
		}
		for plan := (device.FaultPlan{Nth: first}); ; plan.Nth += stride {
			err := r.run(seq, plan)
			if r.main.limiter.total < plan.Nth {
				return device.FaultPlan{}, err
			}
			if err != nil {
				return plan, err
			}
			r.tally.Faults++
		}
	})
}

// stride returns which device calls of a sequence to refuse: the first, and the distance to the
// next. The parameter most bounds their number, 0 for all. Sequences of different lengths begin at
// different calls.
func (r *runner) stride(seq Sequence, most int) (stride, first uint64, err error) {
	if most == 0 {
		return 1, 1, nil
	}
	if err := r.run(seq, device.FaultPlan{}); err != nil {
		return 0, 0, err
	}
	total := r.main.limiter.total
	stride = total/uint64(most) + 1
	return stride, 1 + total%stride, nil
}

// attempt runs a sequence in the way that is being verified, and returns the plan of the run that
// failed.
type attempt func(*runner, Sequence) (device.FaultPlan, error)

func verify(s Subject, o Options, once attempt) (Result, error) {
	return watched(s.Name, o, func() (search, error) {
		r := newRunner(&s)
		return search{&r.interpreter, func() (Result, error) {
			profile, err := s.Profile(o.Operations)
			if err != nil {
				return Result{}, err
			}
			defer func() { _ = r.leaveCard() }() // of a sequence that failed, which is reported
			sequences := Sequences(profile)
			return r.eachSeed(o, func(seed int64) error { return oneSeed(r, sequences, seed, o, once) })
		}, func(f *Failure) *trace.Trace {
			_ = r.run(f.Sequence, f.Plan) // the violation of f
			t := r.trace(f.Violation.Number.String())
			r.describe(f, t)
			return t
		}}, nil
	})
}

// eachSeed calls one with every seed until the first error, and returns the counts of all.
func (in *interpreter) eachSeed(o Options, one func(seed int64) error) (_ Result, err error) {
	start := time.Now()
	for i := 0; i < o.Sequences && err == nil; i++ {
		in.seed = o.Seed + int64(i)
		err = one(in.seed)
		in.tally.Sequences++
	}
	in.tally.Elapsed = time.Since(start)
	return in.tally, err
}

// oneSeed checks the property that the one sequence of a seed breaks no invariant. If it
// does, the error is a Failure with a smaller sequence.
func oneSeed(r *runner, sequences gopter.Gen, seed int64, o Options, once attempt) error {
	run := func(seq Sequence) error {
		_, err := once(r, seq)
		return err
	}
	// Checking everything after every step often finds another invariant, broken sooner. If
	// nothing breaks then, the first finding stands.
	closer := func(seq Sequence, found *Violation) *Violation {
		r.thorough = true
		v, ok := errors.AsType[*Violation](run(seq))
		if !ok {
			r.thorough = false
			return found
		}
		return v
	}
	small, generated, first, err := r.hunt(sequences, seed, o, run, closer)
	if err != nil || first == nil {
		return err
	}
	plan, err := once(r, small)
	if v, ok := errors.AsType[*Violation](err); ok && plan.Nth != 0 {
		if spelt, ok := r.spellOut(small, v.Number); ok {
			small, plan = spelt, device.FaultPlan{}
		}
	}
	r.record = true
	err = r.run(small, plan)
	r.record, r.thorough = false, false
	v, ok := errors.AsType[*Violation](err)
	if !ok {
		reason := "the strategy depends on more than its calls"
		if first.Number == ICard {
			reason = "the card does not do the same every time"
		}
		return fmt.Errorf("%s: seed %d: %w, but not when run again: %s", r.subject.Name, seed, first, reason)
	}
	f := r.failure(r.subject.Name, seed, generated, small, v)
	f.Plan = plan
	r.describe(f, f.Trace)
	return f
}

// hunt runs the one sequence of a seed. If it breaks an invariant, the generator's shrinker and
// then ours make it smaller. Only sequences that break the same invariant count, unless
// [Options.OneBug]. The function closer, if not nil, has another look at the first violation.
func (in *interpreter) hunt(sequences gopter.Gen, seed int64, o Options, attempt func(Sequence) error,
	closer func(Sequence, *Violation) *Violation,
) (small Sequence, generated int, first *Violation, err error) {
	var other error
	in.found = false
	fails := func(seq Sequence) bool {
		if in.found && in.skips(seq) {
			return false
		}
		err := attempt(seq)
		v, ok := errors.AsType[*Violation](err)
		switch {
		case err == nil:
			return false
		case !ok:
			other = err
			return true
		case first != nil:
			return o.OneBug || v.Number == first.Number
		}
		first, generated, in.found = v, len(seq), true
		if closer != nil && !in.skips(seq) {
			first = closer(seq, v)
		}
		return true
	}
	params := gopter.DefaultTestParametersWithSeed(seed)
	params.MinSuccessfulTests = 1
	result := prop.ForAll(func(seq Sequence) bool { return !fails(seq) }, sequences).Check(params)
	switch {
	case result.Passed():
		return nil, 0, nil, nil
	case other != nil:
		return nil, 0, nil, other
	case first == nil:
		return nil, 0, nil, fmt.Errorf("generator failed: %w", result.Error)
	}
	return Shrink(result.Args[0].Arg.(Sequence), o.Tries, fails), generated, first, nil
}

// spellOut looks for a way to fail without a plan, with a fault in the sequence instead: a
// trace can record that the next device call is refused, but not that the second one in the
// middle of a call is, nor one while the strategy is closed.
func (r *runner) spellOut(seq Sequence, n Number) (Sequence, bool) {
	for i := range seq {
		spelt := slices.Insert(slices.Clone(seq), i, Op{Kind: OpFault, Pick: 1})
		var v *Violation
		if !r.skips(spelt) && errors.As(r.run(spelt, device.FaultPlan{}), &v) && v.Number == n {
			return spelt, true
		}
	}
	return seq, false
}

// undrainedKey is the key of a trace's header for the number of events before everything was
// freed; a second instance was closed after them, with its blocks live.
const undrainedKey = "undrained"

// failure returns what is known of a failing sequence that was just run and recorded.
func (in *interpreter) failure(name string, seed int64, generated int, seq Sequence, v *Violation) *Failure {
	f := &Failure{
		Subject: name, Seed: seed, Operations: generated, Step: in.step, Violation: v, Sequence: seq,
		Trace: in.trace(v.Number.String()), Closing: slices.Clone(in.closing), Hanging: in.hanging,
	}
	describe(f.Trace, "invariant", v.Number.String(), "detail", v.Detail, replay.TagsKey, "ids")
	return f
}

func describe(t *trace.Trace, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		t.Header.Meta = append(t.Header.Meta, trace.Pair{Key: pairs[i], Value: pairs[i+1]})
	}
}

func (r *runner) describe(f *Failure, t *trace.Trace) {
	describe(t, "seed", strconv.FormatInt(f.Seed, 10), "step", strconv.Itoa(f.Step))
	if f.Plan.Nth != 0 {
		describe(t, "fault-nth", strconv.FormatUint(f.Plan.Nth, 10))
	}
	if r.subject.Card != nil {
		describe(t, "card", r.subject.Card.Name)
	}
	if r.undrained != 0 {
		describe(t, undrainedKey, strconv.Itoa(r.undrained))
	}
	r.subject.describe(t)
}

func (s *Subject) describe(t *trace.Trace) {
	describe(t, "subject", s.Name, "config", asJSON(s.Config), "device", asJSON(s.Device))
}

// TraceOf runs a sequence over the subject, frees the remaining blocks, and returns the calls as a
// trace. Operations without anything to act on are left out, and blocks are named by their
// numbers. The error is a [*Violation] if the sequence breaks an invariant; the trace then ends
// with that call.
func TraceOf(s Subject, seq Sequence) (*trace.Trace, error) {
	r := newRunner(&s)
	r.record = true
	err := r.run(seq, device.FaultPlan{})
	_ = r.leaveCard() // as in verify
	t := r.trace(s.Name)
	s.describe(t)
	return t, err
}

// Watcher is called for every call of an instance. It makes the call by calling next, which may
// panic, and returns the answer.
type Watcher func(c Call, next func() Answer) Answer

// Repeat runs the sequence of a failure again, as thoroughly as when it was made smaller. The error
// is the [*Violation], if there still is one; a call that hung is not made. The first watcher sees
// the calls of the first instance, the second the calls of the twin, which is closed with its
// blocks live.
func Repeat(s Subject, f *Failure, watchers ...Watcher) error {
	r := newRunner(&s)
	r.thorough, r.watchers, r.seed = true, watchers, f.Seed
	if f.Hung {
		if r.last = f; f.Step == 0 {
			return f.Violation
		}
	}
	err := r.run(f.Sequence, f.Plan)
	_ = r.leaveCard() // as in verify
	return err
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return string(b)
}
