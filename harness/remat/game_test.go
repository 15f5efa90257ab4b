package remat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// game says whether a schedule can be run within a budget at all, whatever is evicted when and made
// again when: it tries everything. A state is the set of resident storages. It is generous: what is
// dead or constant may be evicted, pinned or not, as banish does, and a view is there when its
// storage is.
type game struct {
	s      *remat.Schedule
	budget device.Size
	states []bool // by set: it can be reached
	kept   int    // storages that are pinned and have references
	refs   []int  // references by storage
	born   int    // operators that have run
}

// storages returns the set of the storages of tensors.
func (g *game) storages(list ...remat.Tensor) (set int) {
	for _, t := range list {
		set |= 1 << g.s.Tensors[t].Storage
	}
	return set
}

// run returns the set after an operator has run, or false if it cannot.
func (g *game) run(set int, op *remat.Op) (int, bool) {
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

// close adds all states that can be reached before the next step.
func (g *game) close() {
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
			if set&^g.kept>>i&1 != 0 {
				reach(set &^ (1 << i))
			}
		}
		for i := range g.born {
			if op := &g.s.Ops[i]; !op.Fixed {
				if next, ok := g.run(set, op); ok {
					reach(next)
				}
			}
		}
	}
}

// count keeps the references of a step. What has lost its last one is no longer kept.
func (g *game) count(step remat.Step) {
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
			g.kept &^= 1 << of
		}
	}
}

// wins reports whether the schedule can be run.
func (g *game) wins() bool {
	g.states = make([]bool, 1<<len(g.s.Storages))
	g.states[0] = true
	g.refs = make([]int, len(g.s.Storages))
	for _, step := range g.s.Steps {
		g.count(step)
		if step.Kind != remat.Compute && step.Kind != remat.Pin {
			continue
		}
		g.close()
		next, goes := make([]bool, len(g.states)), false
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
				next[to], goes = true, true
			}
		}
		if !goes {
			return false
		}
		g.states = next
		if step.Kind == remat.Compute {
			g.born++
		} else {
			g.kept |= g.storages(remat.Tensor(step.Of))
		}
	}
	return true
}

func TestOnlyWinnableSchedulesComplete(t *testing.T) {
	lost, ended, better := 0, 0, 0
	for i := range 120 {
		r := workload.NewRand(*seed*7919 + uint64(i))
		s := drawOps(t, r, 3+int(r.Below(5)))
		if len(s.Storages) > 10 {
			continue
		}
		budget := device.Size(r.Below(uint64(peakOf(t, s, "none")) + 1))
		wins := (&game{s: s, budget: budget}).wins()
		if !wins {
			lost++
		}
		all := true
		for _, liveness := range remat.Livenesses() {
			for _, h := range remat.Heuristics() {
				res, err := remat.Run(s, &remat.Counter{Budget: budget}, remat.Config{Heuristic: h.Name, Liveness: liveness,
					Limit: 20*s.Cost + 1, EagerInRemat: r.Below(2) == 0, ParentOrder: remat.ParentOrder(r.Below(3)), Seed: r.Next()})
				require.NoError(t, err)
				if res.Verdict == remat.OK {
					ended++
					require.True(t, wins, "seed=%d/%d: %s with %s runs in %v", *seed, i, h.Name, liveness, budget)
				} else {
					all = false
				}
			}
		}
		if wins && !all {
			better++
		}
	}
	require.Positive(t, lost, "some budgets are too small for anybody")
	require.Positive(t, ended)
	require.Positive(t, better, "some runs fail where they need not")
}
