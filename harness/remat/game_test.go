package remat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// exhaustive decides by trying everything whether any order of evictions and reruns runs a schedule
// within a budget. A state is the set of resident storages. Dead and constant storages may be
// evicted even if they are pinned, as banish does, and a view is defined if its storage is
// resident. So it accepts all schedules that Run completes, and perhaps others.
type exhaustive struct {
	s      *remat.Schedule
	budget device.Size
	states []bool // by set: whether it can be reached
	pinned int    // the set of pinned storages with references
	refs   []int  // references by storage
	ran    int    // operators that have run
}

// storages returns the set of the storages of tensors.
func (g *exhaustive) storages(list ...remat.Tensor) (set int) {
	for _, t := range list {
		set |= 1 << g.s.Tensors[t].Storage
	}
	return set
}

// run returns the set after an operator has run, or false if it cannot run.
func (g *exhaustive) run(set int, op *remat.Op) (int, bool) {
	used := op.OutputBytes + op.Workspace
	for i := range g.s.Storages {
		if set>>i&1 != 0 {
			used += g.s.Storages[i].Size
		}
	}
	args := g.storages(op.Args...)
	if used > g.budget || set&args != args {
		return 0, false
	}
	for i := range op.Outputs {
		set |= g.storages(op.First + remat.Tensor(i))
	}
	return set, true
}

// expand adds all states that can be reached before the next step.
func (g *exhaustive) expand() {
	work := []int{}
	for set, is := range g.states {
		if is {
			work = append(work, set)
		}
	}
	reach := func(set int) {
		if !g.states[set] {
			g.states[set] = true
			work = append(work, set)
		}
	}
	for len(work) > 0 {
		set := work[len(work)-1]
		work = work[:len(work)-1]
		for i := range g.s.Storages {
			if set&^g.pinned>>i&1 != 0 {
				reach(set &^ (1 << i))
			}
		}
		for i := range g.ran {
			if op := &g.s.Ops[i]; !op.Fixed {
				if next, ok := g.run(set, op); ok {
					reach(next)
				}
			}
		}
	}
}

// countRefs counts the references of a step. A storage without references is no longer pinned.
func (g *exhaustive) countRefs(step remat.Step) {
	switch step.Kind {
	case remat.Compute:
		op := &g.s.Ops[step.Of]
		for i := range op.Outputs {
			g.refs[g.s.Tensors[op.First+remat.Tensor(i)].Storage]++
		}
	case remat.Retain:
		g.refs[g.s.Tensors[step.Of].Storage]++
	case remat.Release:
		of := g.s.Tensors[step.Of].Storage
		if g.refs[of]--; g.refs[of] == 0 {
			g.pinned &^= 1 << of
		}
	}
}

// feasible reports whether the schedule can run to its end.
func (g *exhaustive) feasible() bool {
	g.states = make([]bool, 1<<len(g.s.Storages))
	g.states[0] = true
	g.refs = make([]int, len(g.s.Storages))
	for _, step := range g.s.Steps {
		g.countRefs(step)
		if step.Kind != remat.Compute && step.Kind != remat.Pin {
			continue
		}
		g.expand()
		next, possible := make([]bool, len(g.states)), false
		for set, is := range g.states {
			if !is {
				continue
			}
			var to int
			var ok bool
			if step.Kind == remat.Compute {
				to, ok = g.run(set, &g.s.Ops[step.Of])
			} else {
				to, ok = set, set&g.storages(remat.Tensor(step.Of)) != 0
			}
			if ok {
				next[to], possible = true, true
			}
		}
		if !possible {
			return false
		}
		g.states = next
		if step.Kind == remat.Compute {
			g.ran++
		} else {
			g.pinned |= g.storages(remat.Tensor(step.Of))
		}
	}
	return true
}

func TestOnlyFeasibleSchedulesComplete(t *testing.T) {
	infeasible, completed, improvable := 0, 0, 0
	for i := range 120 {
		r := workload.NewRand(*seed*7919 + uint64(i))
		s := randomScheduleOf(t, r, 3+int(r.Below(5)))
		if len(s.Storages) > 10 {
			continue
		}
		budget := device.Size(r.Below(uint64(peakOf(t, s, "none")) + 1))
		feasible := (&exhaustive{s: s, budget: budget}).feasible()
		if !feasible {
			infeasible++
		}
		all := true
		for _, liveness := range remat.Livenesses() {
			for _, h := range remat.Heuristics() {
				res, err := remat.Run(s, &remat.Counter{Budget: budget}, remat.Config{Heuristic: h.Name, Liveness: liveness,
					Limit: 20*s.Cost + 1, EagerInRemat: r.Below(2) == 0, ParentOrder: remat.ParentOrder(r.Below(3)), Seed: r.Next()})
				require.NoError(t, err)
				if res.Verdict == remat.OK {
					completed++
					require.True(t, feasible, "seed=%d/%d: %s with %s runs in %v", *seed, i, h.Name, liveness, budget)
				} else {
					all = false
				}
			}
		}
		if feasible && !all {
			improvable++
		}
	}
	require.Positive(t, infeasible, "some budgets are infeasible")
	require.Positive(t, completed)
	require.Positive(t, improvable, "some heuristics fail within a feasible budget")
}
