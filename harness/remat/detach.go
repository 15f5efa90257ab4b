package remat

import (
	"math"
	"slices"
)

// detach frees dead storages permanently at once, as MegEngine does if the program and not a
// heuristic drops tensors. The outputs of their readers can then never be recomputed, so
// missing ones are restored first, and all of them are pinned until they die themselves. Views that
// are not needed again are left alone, because they may show content that was overwritten.
type detach struct {
	keepDead
	users [][]int32 // by storage: operators that read it, once per argument
	death []int32   // by tensor: the step that releases its last reference
}

func newDetach(r *runner) liveness {
	d := &detach{keepDead{r}, make([][]int32, len(r.s.Storages)),
		slices.Repeat([]int32{math.MaxInt32}, len(r.s.Tensors))}
	released := make([]int32, len(r.s.Tensors)) // releases less retains
	for i, step := range r.s.Steps {
		switch step.Kind {
		case Retain:
			released[step.Of]--
		case Release:
			if released[step.Of]++; released[step.Of] == 1 {
				d.death[step.Of] = int32(i)
			}
		}
	}
	return d
}

// needed reports whether a tensor is referenced, or needed to recompute one that is. A tensor of a
// pinned storage is not recomputed once it is defined.
func (d *detach) needed(t Tensor) bool {
	if d.death[t] > d.r.step {
		return true
	}
	for _, user := range d.users[d.r.s.Tensors[t].Storage] {
		op := &d.r.s.Ops[user]
		if !slices.Contains(op.Args, t) {
			continue
		}
		for out := range op.outputs() {
			st := d.r.storeOf(out)
			if kept := st.pinned && d.r.defined[out]; !st.discarded && !kept && d.needed(out) {
				return true
			}
		}
	}
	return false
}

func (d *detach) onCreate(op *Op) {
	for _, a := range op.Args {
		s := d.r.s.Tensors[a].Storage
		d.users[s] = append(d.users[s], d.r.s.Tensors[op.First].Op)
	}
}

func (d *detach) onRelease(s int32) Verdict {
	for _, user := range d.users[s] {
		for t := range d.r.s.Ops[user].outputs() {
			of := d.r.s.Tensors[t].Storage
			if of == s || d.r.stores[of].discarded || !d.needed(t) {
				continue
			}
			if !d.r.defined[t] {
				if v := d.r.materialize(t, true); v != OK {
					return v
				}
			}
			d.r.pin(of)
		}
	}
	if st := &d.r.stores[s]; st.resident {
		st.locks, st.pinned = 0, false
		d.r.evict(s, Banished)
	}
	d.users[s], d.r.stores[s].discarded = nil, true
	d.r.forget(s)
	return OK
}
