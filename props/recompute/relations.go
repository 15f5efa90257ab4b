package recompute

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// relate compares the run of a log with other runs.
func (s Subject) relate(a *audit, l Log) (*Violation, error) {
	relations := []func(a *audit, l Log) error{s.repeated, s.unneeded, s.agreed, s.doubled, s.rooted, s.optimal, s.weighed,
		s.scaled}
	for _, relation := range relations {
		if err := relation(a, l); err != nil || a.found != nil {
			return a.found, err
		}
	}
	return nil, nil
}

// again runs the log within another budget of counted bytes.
func (s Subject) again(a *audit, budget device.Size) (remat.Result, error) {
	c := s.Config
	c.Budget = budget
	b, err := run(a.s, &remat.Counter{Budget: budget}, c)
	if err != nil {
		return remat.Result{}, err
	}
	return b.result, nil
}

// repeated compares with a second run.
func (s Subject) repeated(a *audit, l Log) error {
	b, err := s.run(a.s, l.Budget)
	if err == nil && b.result != a.result {
		a.breaks(MDeterminism, "two runs return %+v and %+v", a.result, b.result)
	}
	return err
}

// unneeded runs the log within the memory that it takes without a budget.
func (s Subject) unneeded(a *audit, _ Log) error {
	if k := s.Config.Trigger.Kind; k != "" && k != "room" && k != "on-failure" {
		return nil // it evicts earlier
	}
	ample, err := s.again(a, remat.Unlimited)
	if err != nil {
		return err
	}
	within, err := s.again(a, ample.Peak)
	if !s.planned() && within.Evictions != ample.Evictions || within.Remats != ample.Remats || within.Verdict != remat.OK {
		a.breaks(MNeedless, "within %d bytes: %+v, without a budget: %+v", ample.Peak, within, ample)
	}
	return err
}

// agreed compares detach with banish without a budget and without drops.
func (s Subject) agreed(a *audit, _ Log) error {
	drops := func(s remat.Step) bool { return s.Kind == remat.Drop }
	if s.Config.Liveness != "detach" || slices.ContainsFunc(a.s.Steps, drops) {
		return nil
	}
	var events [2][]event
	for i, liveness := range []string{"detach", "banish"} {
		c := s.Config
		c.Liveness, c.Trigger = liveness, remat.Trigger{}
		b, err := run(a.s, &remat.Counter{Budget: remat.Unlimited}, c)
		if err != nil {
			return err
		}
		events[i] = b.events
	}
	if !slices.Equal(events[0], events[1]) {
		a.breaks(MAgreement, "without a budget detach does %v, banish does %v", events[0], events[1])
	}
	return nil
}

// doubled judges how often sublinear runs an operator.
func (s Subject) doubled(a *audit, _ Log) error {
	if s.Config.Heuristic != "sublinear" {
		return nil
	}
	for op, n := range a.runs {
		if n > 2 {
			a.breaks(MTwice, "operator %d runs %d times", op, n)
		}
	}
	return nil
}

// rooted runs a chain of equal results, as many as the log has operators, within two roots of their
// number.
func (s Subject) rooted(a *audit, l Log) error {
	n := 0
	for _, o := range l.Ops {
		if o.Kind == Call {
			n++
		}
	}
	if s.Config.Heuristic != "sublinear" || s.Config.MinEvictee.Cut || n < 2 {
		return nil // with Cut small results stay
	}
	budget := device.Size(2*math.Sqrt(float64(n))) + 4
	b, err := s.run(DrawChain(workload.NewRand(0), n, false).Schedule(), budget)
	if err == nil && b.result.Verdict != remat.OK {
		a.breaks(MRoots, "a chain of %d equal results does not complete within %d", n, budget)
	}
	return err
}

// optimal compares chain-optimal with sublinear.
func (s Subject) optimal(a *audit, l Log) error {
	if s.Config.Heuristic != "chain-optimal" || s.Config.MinEvictee.Cut {
		return nil // with Cut small results stay
	}
	t := s
	t.Config.Heuristic = "sublinear"
	b, err := t.run(a.s, l.Budget)
	if err == nil && b.result.Verdict == remat.OK && (a.result.Verdict != remat.OK || b.result.Clock < a.result.Clock) {
		a.breaks(MOptimal, "sublinear takes %d ns, chain-optimal %d (%s)", b.result.Clock, a.result.Clock, a.result.Verdict)
	}
	return err
}

// weighed compares a heuristic without settings with all of them at their defaults.
func (s Subject) weighed(a *audit, l Log) error {
	all := s.Config.Heuristic
	if strings.Contains(all, ":") || s.planned() {
		return nil
	}
	settings := remat.EvictionSettings()
	if all == "mge" || all == "mge-nofrag" {
		settings = append(settings, remat.ScoreSettings()...)
	}
	for _, setting := range settings {
		if setting.Name != "free" {
			all += ":" + setting.Name + "=" + setting.Default
		}
	}
	t := s
	t.Config.Heuristic = all
	b, err := t.run(a.s, l.Budget)
	if err == nil && b.result != a.result {
		a.breaks(MDefaults, "%s returns %+v, %s returns %+v", s.Config.Heuristic, a.result, all, b.result)
	}
	return err
}

// scaled compares with a run of operators that take four times as long.
func (s Subject) scaled(a *audit, l Log) error {
	if strings.Contains(s.Config.Heuristic, ":") {
		return nil // MegEngine's score adds a constant to times, and copies take as long as before
	}
	slow := *a.s
	slow.Ops = slices.Clone(slow.Ops)
	slow.Cost *= 4
	for i := range slow.Ops {
		slow.Ops[i].Cost *= 4
	}
	b, err := s.run(&slow, l.Budget)
	if err != nil {
		return err
	}
	if fmt.Sprint(a.events) != fmt.Sprint(b.events) {
		a.breaks(MScale, "with all times four times as long the events are %v, not %v", b.events, a.events)
	}
	return nil
}
