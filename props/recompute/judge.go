package recompute

import (
	"slices"

	"github.com/vramyard/vramyard/harness/remat"
)

// isDropped reports whether a step before the next operator drops a storage.
func (a *audit) isDropped(storage int32) bool {
	return slices.ContainsFunc(a.between, func(s remat.Step) bool {
		return s.Kind == remat.Drop && a.s.Tensors[s.Of].Storage == storage
	})
}

// judgeDrops judges, when the next operator runs, the drops before it. Storages that the operator
// needs may be back.
func (a *audit) judgeDrops(next int32) {
	if a.keeps() || a.materialises() {
		return
	}
	for _, step := range a.between {
		storage := a.s.Tensors[step.Of].Storage
		if step.Kind == remat.Drop && a.resident[storage] && !a.lasting[storage] && !a.ancestors(next).makes(a.s, storage) {
			a.breaks(MDrop, "storage %d is resident after a drop", storage)
		}
	}
}

// keeps reports whether the policy for dead storages keeps others: banish and detach keep the
// consumers of storages that are freed for good.
func (a *audit) keeps() bool { return a.c.Liveness == "banish" || a.c.Liveness == "detach" }

// materialises reports whether a step before the next operator may compute a tensor.
func (a *audit) materialises() bool {
	return slices.ContainsFunc(a.between, func(s remat.Step) bool { return s.Kind == remat.Pin })
}

// family is operators.
type family map[int32]bool

// ancestors returns the operators that may run for another, itself included.
func (a *audit) ancestors(number int32) family {
	f := family{number: true}
	for list := []int32{number}; len(list) > 0; {
		at := list[0]
		list = list[1:]
		for _, t := range a.s.Ops[at].Args {
			if of := a.s.Tensors[t].Op; !f[of] {
				f[of] = true
				list = append(list, of)
			}
		}
	}
	return f
}

// makes reports whether one of the operators makes a tensor of a storage.
func (f family) makes(s *remat.Schedule, storage int32) bool {
	return slices.ContainsFunc(s.Tensors, func(v remat.View) bool { return v.Storage == storage && f[v.Op] })
}

// judgeRefusal judges that a run which ends for lack of memory has nothing left to evict: every
// resident storage lasts, or may be an input of an operator that is about to run. Plans evict what
// they planned only. Storages of any kind may be swapped, if they are not small and the host has
// room.
func (a *audit) judgeRefusal() {
	swaps := a.setting("evict") == "swap" || a.setting("evict") == "cheaper"
	if swaps && a.setting("host") != "" {
		return
	}
	if a.keeps() || a.materialises() || a.planned() || a.step >= len(a.s.Steps) {
		return
	}
	family := a.ancestors(a.s.Steps[a.step].Of)
	locked := map[int32]bool{}
	for number := range family {
		for _, t := range a.s.Ops[number].Args {
			locked[a.s.Tensors[t].Storage] = true
		}
	}
	for s, is := range a.resident {
		size := a.s.Storages[s].Size
		swappable := swaps && size > 0 && !(a.c.MinEvictee.Cut && size <= a.c.MinEvictee.Size)
		if is && !a.away[s] && (swappable || !swaps && !a.lasting[s]) && !locked[int32(s)] {
			a.breaks(MHonest, "the run ends for lack of memory, and storage %d could be evicted", s)
		}
	}
}

// planned reports whether a plan chooses the victims.
func (a *audit) planned() bool {
	return slices.ContainsFunc(remat.Plans(), func(p remat.Plan) bool { return p.Name == a.c.Heuristic })
}

// judgeDetached judges that exactly the storages without references were freed for good.
func (a *audit) judgeDetached() {
	for s, refs := range a.refs {
		if a.gone[s] != (refs == 0) {
			a.breaks(MDetach, "storage %d has %d references; freed for good: %v", s, refs, a.gone[s])
		}
	}
}
