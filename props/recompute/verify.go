package recompute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// Subject is a configuration of runs to check.
type Subject struct {
	Name   string                                // for people
	Config remat.Config                          // without the fields that a run of the suite sets
	Memory func(budget device.Size) remat.Memory // nil: remat.Counter
}

// Options are options of [Verify].
type Options struct {
	Logs      int   // to draw
	Operators int   // most of a log; 0: 30
	Seed      int64 // of the first log; each next one has the next seed
	Tries     int   // most runs of the shrinker; 0: none
}

// Failure is a log that breaks an invariant.
type Failure struct {
	Subject   string     // its name
	Seed      int64      // of the log before it was shrunk
	Log       Log        // shrunk
	Violation *Violation // of the shrunk log
}

// Error implements error.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s: %v, by the log of seed %d:\n%v", f.Subject, f.Violation, f.Seed, f.Log)
}

// Verify draws logs, runs each, and returns the number of logs run. The error is the first
// [Failure], shrunk, or of ctx or the configuration.
func Verify(ctx context.Context, s Subject, o Options) (int, error) {
	for i := range o.Logs {
		if err := ctx.Err(); err != nil {
			return i, err
		}
		l := s.draw(o.Seed+int64(i), cmp.Or(o.Operators, 30))
		v, err := s.Check(l)
		if err != nil {
			return i, err
		}
		if v == nil {
			continue
		}
		l = shrink(l, o.Tries, func(l Log) bool {
			smaller, err := s.Check(l)
			return err == nil && smaller != nil
		})
		v, err = s.Check(l)
		return i + 1, errors.Join(err, &Failure{s.Name, o.Seed + int64(i), l, v})
	}
	return o.Logs, nil
}

// draw draws a log. Half of them are chains, all for plans.
func (s Subject) draw(seed int64, most int) Log {
	r := workload.NewRand(uint64(seed))
	if s.planned() || r.Below(4) == 0 {
		return DrawChain(r, 2+int(r.Below(uint64(most)/3)), r.Below(4) > 0)
	}
	return Draw(r, 1+int(r.Below(uint64(most))))
}

func (s Subject) planned() bool {
	return slices.ContainsFunc(remat.Plans(), func(p remat.Plan) bool { return p.Name == s.Config.Heuristic })
}

// Check runs a log and returns the invariant that it breaks, nil for none. A panic breaks I35.
func (s Subject) Check(l Log) (v *Violation, err error) {
	defer func() {
		if p := recover(); p != nil {
			v = &Violation{"I35", fmt.Sprint("panic: ", p)}
		}
	}()
	schedule := l.Schedule()
	if remat.CanRun(schedule, s.Config.Heuristic) != nil {
		a := &audit{}
		err := s.rooted(a, l)
		return a.found, err
	}
	a, err := s.run(schedule, l.Budget)
	if err != nil || a.found != nil {
		return a.violation(), err
	}
	if a.result.Peak > l.Budget {
		a.breaks(MBytes, "%d bytes are resident within a budget of %d", a.result.Peak, l.Budget)
	}
	return s.relate(a, l)
}

func (a *audit) violation() *Violation {
	if a == nil {
		return nil
	}
	return a.found
}

// run runs a schedule within a budget.
func (s Subject) run(schedule *remat.Schedule, budget device.Size) (*audit, error) {
	c := s.Config
	c.Budget = budget
	if s.Memory != nil {
		return run(schedule, s.Memory(budget), c)
	}
	return run(schedule, &remat.Counter{Budget: budget}, c)
}
