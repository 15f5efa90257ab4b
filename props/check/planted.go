package check

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/linear"
	"github.com/vramyard/vramyard/props/planted"
	"github.com/vramyard/vramyard/props/planted/bugs"
	"github.com/vramyard/vramyard/props/recompute"
)

// ErrNotPlantable is the error of [Planted] in a build without bugs.
var ErrNotPlantable = errors.New("check: this build has no planted bugs: build it with the overlay of " +
	"props/planted/bugs/overlay")

// PlantedBugs returns the bugs of the strategies that are named, with or without a preset, and of
// [Remat]; all of them if none is named. A build without the overlay has none.
func PlantedBugs(names ...string) []bugs.Bug {
	if !planted.Enabled {
		return nil
	}
	return bugs.Of(names...)
}

// Verdict is the result of the search for one planted bug.
type Verdict struct {
	Bug       bugs.Bug // the planted bug
	Failure   error    // nil if nothing was found, and for bugs that the heap shows
	Broken    string   // the invariant that was reported; "" for none
	Sequences int      // sequences until then
	Shrunk    int      // operations left of the last one
	Minimal   int      // operations that a person needs

	// Caught reports whether the bug was found: an invariant broke that the same calls keep without
	// the bug. Which one, if several break, depends on the calls; those of Minimal break Breaks.
	Caught bool
}

// Small reports whether the counterexample is at most twice as long as the shortest known one.
func (v Verdict) Small() bool { return v.Shrunk <= 2*max(v.Minimal, 1) }

// judges are the kinds of verification.
var judges = [...]func(props.Subject, props.Options) (props.Result, error){
	bugs.ByCalls: props.Verify, bugs.ByFaults: props.VerifyFaults, bugs.ByRelations: props.Metamorphic,
	bugs.ByMisled: props.Verify, bugs.ByTrained: props.Verify,
}

// plantedSequences is the default number of sequences for a bug. The rarest bugs
// take about a thousand.
const plantedSequences = 20_000

// plantedTries bounds the runs that shrink a failing sequence, unless the options do: it is enough
// for every bug here.
const plantedTries = 2000

// Planted plants a bug, searches for it with its judge, and removes it. A bug that is not
// found is a verdict. An error means that the bug cannot be planted, that its subject cannot be
// built, or that ctx ended.
//
// The bug is planted in the whole program: no other goroutine may use a strategy.
func Planted(ctx context.Context, c setting.Catalogue, b bugs.Bug, o Options) (Verdict, error) {
	v := Verdict{Bug: b}
	if !planted.Enabled {
		return v, ErrNotPlantable
	}
	var look search
	var err error
	if b.Judge == bugs.ByLogs {
		look, err = v.searchLogs(ctx, o)
	} else {
		look, err = v.searchCalls(c, o)
	}
	if err != nil {
		return v, err
	}
	planted.Set(b.ID)
	defer planted.Set(planted.None)
	return v, v.search(ctx, look, o)
}

// search runs a number of sequences, the first with this seed. It returns how many it ran, and the
// counterexample that ended it.
type search func(n int, seed int64) (ran int, found *counterexample, err error)

// counterexample is a shrunk sequence that breaks an invariant.
type counterexample struct {
	failure error
	broken  string       // the invariant
	size    int          // operations
	last    bool         // no further search makes sense
	again   func() error // runs it again; nil if every invariant holds
}

// search searches for the planted bug, and removes it to see whether the counterexample needs it.
func (v *Verdict) search(ctx context.Context, look search, o Options) error {
	if look == nil {
		return nil // the judge has decided
	}
	o.Sequences = cmp.Or(o.Sequences, plantedSequences)
	var best *counterexample
	for starts := 0; v.Sequences < o.Sequences && starts < plantedStarts && (starts == 0 || !v.Small()); {
		if ctx.Err() != nil {
			if best == nil {
				return ctx.Err()
			}
			break
		}
		ran, found, err := look(min(plantedBatch, o.Sequences-v.Sequences), o.Seed+int64(v.Sequences))
		if err != nil {
			return err
		}
		if v.Sequences += ran; found == nil {
			continue
		}
		if starts++; best == nil || found.size < best.size {
			best, v.Failure, v.Broken, v.Shrunk = found, found.failure, found.broken, found.size
		}
		if found.last {
			break
		}
	}
	if best == nil {
		v.Sequences = 0
		return nil
	}
	planted.Set(planted.None)
	v.Caught = best.again() == nil
	return nil
}

// searchCalls returns the search by calls of a strategy. For judges without sequences it decides at
// once and returns nil.
func (v *Verdict) searchCalls(c setting.Catalogue, o Options) (search, error) {
	b := v.Bug
	subject, err := Plantable(c, b)
	if err != nil {
		return nil, err
	}
	minimal, err := props.ParseSequence(b.Minimal)
	if err != nil {
		return nil, fmt.Errorf("check: %s: %w", b.ID, err)
	}
	v.Minimal = len(minimal)
	planted.Set(b.ID)
	defer planted.Set(planted.None)
	switch b.Judge {
	case bugs.ByHeap:
		return nil, v.weigh(subject)
	case bugs.ByCallers:
		return nil, v.call(subject, o.Seed)
	}
	o = o.withDefaults()
	return func(n int, seed int64) (int, *counterexample, error) {
		r, err := judges[b.Judge](subject, props.Options{
			Sequences: n, Operations: o.Operations, Seed: seed, Tries: cmp.Or(o.Tries, plantedTries), OneBug: true,
		})
		f, failed := errors.AsType[*props.Failure](err)
		if !failed {
			return r.Sequences, nil, err
		}
		same := &props.Failure{Sequence: f.Sequence, Plan: f.Plan}
		return r.Sequences, &counterexample{f, NumberOf(f.Violation), len(f.Sequence), f.Hung,
			func() error { return repeat(subject, b, same) }}, nil
	}, nil
}

// searchLogs returns the search by op logs.
func (v *Verdict) searchLogs(ctx context.Context, o Options) (search, error) {
	s, minimal, err := plantableLog(v.Bug)
	if err != nil {
		return nil, err
	}
	v.Minimal = len(minimal.Ops)
	return func(n int, seed int64) (int, *counterexample, error) {
		ran, err := recompute.Verify(ctx, s, recompute.Options{
			Logs: n, Operators: o.Operations, Seed: seed, Tries: cmp.Or(o.Tries, plantedTries)})
		f, failed := errors.AsType[*recompute.Failure](err)
		if !failed {
			return ran, nil, err
		}
		return ran, &counterexample{f, f.Violation.Number, len(f.Log.Ops), false, func() error {
			broken, err := brokenBy(s, f.Log)
			if len(broken) > 0 {
				return f
			}
			return err
		}}, nil
	}, nil
}

// plantableLog returns the subject and the least log of a bug of remat.
func plantableLog(b bugs.Bug) (s recompute.Subject, l recompute.Log, err error) {
	s.Name = b.Setting.Strategy
	if err = json.Unmarshal([]byte(b.Setting.Config), &s.Config); err == nil {
		l, err = recompute.Parse(b.Minimal)
	}
	if err == nil && s.Name != Remat {
		err = fmt.Errorf("strategy %q: want %s", s.Name, Remat)
	}
	if err != nil {
		err = fmt.Errorf("check: %s: %w", b.ID, err)
	}
	return s, l, err
}

// Remat is the name of harness/remat among the strategies of bugs.
const Remat = "remat"

func brokenBy(s recompute.Subject, l recompute.Log) ([]string, error) {
	v, err := s.Check(l)
	if v != nil {
		return []string{v.Number}, err
	}
	return nil, err
}

// plantedStarts is the maximum number of failing sequences to shrink until one shrinks
// to little more than the least calls. A shrinker takes operations away and makes numbers smaller;
// from some sequences no such step leads to the least calls.
const plantedStarts = 8

// callRounds is the number of concurrent histories that search for a bug.
const callRounds = 100

// call is the judge of concurrent histories. There is nothing to shrink, so it counts as
// one sequence. A panic counts as an answer that no order of the calls explains.
func (v *Verdict) call(s props.Subject, seed int64) error {
	err := props.Guarded(0, func(beat func()) error {
		_, err := linear.Verify(s, callRounds, uint64(seed), beat)
		return err
	})
	if _, ok := errors.AsType[*props.Violation](err); !ok {
		return err
	}
	v.Broken, v.Sequences, v.Caught = props.ILinear.String(), 1, true
	return nil
}

// plantedBatch is the number of sequences between two checks of the context.
const plantedBatch = 50

// Plantable returns the subject of a bug. It has the bug only while the bug is planted, unless a
// wrapper makes it.
func Plantable(c setting.Catalogue, b bugs.Bug) (props.Subject, error) {
	c = append(slices.Clip(c), setting.Sharded(c))
	setup, err := c.Lookup(b.Setting.Strategy, []byte(b.Setting.Config))
	if err != nil {
		return props.Subject{}, fmt.Errorf("check: %s: %w", b.ID, err)
	}
	on, err := sim.ParseConfig([]byte(b.Setting.Device))
	if err != nil {
		return props.Subject{}, fmt.Errorf("check: %s: %w", b.ID, err)
	}
	s := props.SubjectOfSetup(setup, on)
	if b.Judge == bugs.ByMisled {
		s = s.Misled()
	}
	if b.Judge == bugs.ByTrained {
		s = s.Trained()
	}
	if spoil, ok := plantedWrappers()[b.ID]; ok {
		inner := s.New
		s.New = func(src device.Source) (alloc.Strategy, error) {
			a, err := inner(src)
			if err != nil || !planted.Is(b.ID) {
				return a, err
			}
			return spoil(wrap.Forward(a, nil)), nil
		}
		s.Setup = setting.Setup{} // which has no bug
	}
	return s, nil
}

// own matches the numbers of a strategy's own invariants in the errors of Check.
var own = regexp.MustCompile(`invariant ([A-Z]\d+) `)

// NumbersOf returns the numbers of the invariants in a violation: the suite's, or the strategy's
// own if its Check failed.
func NumbersOf(v *props.Violation) (all []string) {
	if v.Number == props.ICheck {
		for _, m := range own.FindAllStringSubmatch(v.Detail, -1) {
			all = append(all, m[1])
		}
	}
	if all == nil {
		all = []string{v.Number.String()}
	}
	return all
}

// NumberOf returns the first of [NumbersOf].
func NumberOf(v *props.Violation) string { return NumbersOf(v)[0] }

// repeat runs the calls of a failure again, before the judge of a bug.
func repeat(s props.Subject, b bugs.Bug, f *props.Failure) error {
	if b.Judge == bugs.ByRelations {
		return props.Relate(s, f.Sequence)
	}
	return props.Repeat(s, f)
}

// Broken returns every invariant that the minimal calls of a bug break, of a log the first, while
// a bug is planted: the same, or none. Each search excuses the invariants found by the searches
// before it. The promises are made without a bug.
func Broken(c setting.Catalogue, b bugs.Bug, plant planted.ID) (all []string, err error) {
	defer planted.Set(planted.None)
	if b.Judge == bugs.ByLogs {
		s, l, err := plantableLog(b)
		if err != nil {
			return nil, err
		}
		planted.Set(plant)
		return brokenBy(s, l)
	}
	s, err := Plantable(c, b)
	if err != nil {
		return nil, err
	}
	planted.Set(plant)
	seq, err := props.ParseSequence(b.Minimal)
	if err != nil {
		return nil, fmt.Errorf("check: %s: %w", b.ID, err)
	}
	least := props.Failure{Sequence: seq, Plan: device.FaultPlan{Nth: b.Nth}}
	s.Promises.Except = slices.Clone(s.Promises.Except)
	for {
		err := repeat(s, b, &least)
		var v *props.Violation
		if !errors.As(err, &v) {
			return all, err
		}
		number := v.Number.String()
		if slices.ContainsFunc(s.Promises.Except, func(e promise.Exception) bool { return e.Invariant == number }) {
			return all, nil // there is no exception to this one
		}
		all = append(all, NumbersOf(v)...)
		s.Promises.Except = append(s.Promises.Except, promise.Exception{Invariant: number, Reason: "found already"})
	}
}
