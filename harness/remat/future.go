package remat

import (
	"math"
	"slices"
)

// future lists the steps of the schedule that read each storage. Reads by reruns are not included:
// they depend on the victims.
type future struct {
	noopHooks
	r     *runner
	steps [][]int32 // by storage: the steps that read it, in order
}

// newFuture lists the steps of these kinds, Compute and Pin.
func newFuture(r *runner, kinds ...StepKind) future {
	f := future{r: r, steps: make([][]int32, len(r.stores))}
	add := func(t Tensor, step int) {
		s := r.s.Tensors[t].Storage
		f.steps[s] = append(f.steps[s], int32(step))
	}
	for i, step := range r.s.Steps {
		switch {
		case !slices.Contains(kinds, step.Kind):
		case step.Kind == Compute:
			for _, a := range r.s.Ops[step.Of].Args {
				add(a, i)
			}
		default:
			add(Tensor(step.Of), i)
		}
	}
	return f
}

// nextStep returns the next step that reads a storage, or none32. It may be the current one.
func (f *future) nextStep(s int32) int32 {
	list := f.steps[s]
	for len(list) > 0 && list[0] < f.r.step {
		list = list[1:]
	}
	f.steps[s] = list
	if len(list) == 0 {
		return none32
	}
	return list[0]
}

// next returns the number of steps until a storage is read next: 1 for the current step, infinity
// for never.
func (f *future) next(s int32) float64 {
	step := f.nextStep(s)
	if step == none32 {
		return math.Inf(1)
	}
	return float64(step-f.r.step) + 1
}

// belady evicts the storage whose next read is farthest, a rule that is optimal if all storages
// have the same size and reloading costs the same. Among equals it evicts the one with the least
// cost.
type belady struct{ future }

func newBelady(r *runner) scorer { return &belady{newFuture(r, Compute, Pin)} }

func (b *belady) rank(s int32) (score, tie float64) {
	return -b.next(s), float64(b.r.stores[s].local)
}

// static is MegEngine's score for graphs that are known ahead:
//
//	recompute · descendants · inputBytes / size / next
//
// In the letters of [Symbols]: R·F·M / m / n. Each sum is stored per operator or tensor, so a
// tensor that is reached on two paths counts twice.
type static struct {
	future
	stale       bool      // a storage was evicted, restored or forgotten since the last sweep
	recompute   []float64 // by operator: bytes moved by it and by its missing operators
	inputBytes  []float64 // by tensor: bytes of it and of its missing inputs, recursively
	descendants []float64 // by tensor: 1 plus its missing descendants
}

func newStatic(r *runner) scorer {
	n := len(r.s.Tensors)
	return &static{newFuture(r, Compute, Pin), true, make([]float64, len(r.s.Ops)), make([]float64, n), make([]float64, n)}
}

func (m *static) onEvict(int32, Cause) { m.stale = true }
func (m *static) onRestore([]int32)    { m.stale = true }
func (m *static) onForget(int32)       { m.stale = true }

// sweep computes the sums of all operators and tensors: ancestors in the order of operators,
// descendants in reverse. O(operators).
func (m *static) sweep() {
	m.stale = false
	s := m.r.s
	for i := range s.Ops {
		op := &s.Ops[i]
		before, memory := bytesMoved(m.r, op)/mgeSecond, 0.0
		for _, a := range op.Args {
			if !m.r.defined[a] {
				before += m.recompute[s.Tensors[a].Op]
				memory += m.inputBytes[a]
			}
		}
		m.recompute[i] = before
		for t := range op.outputs() {
			m.inputBytes[t], m.descendants[t] = memory+float64(m.r.sizeOf(t)), 1
		}
	}
	for i := len(s.Ops) - 1; i >= 0; i-- {
		op := &s.Ops[i]
		missing := 0.0
		for t := range op.outputs() {
			if !m.r.defined[t] {
				missing += m.descendants[t]
			}
		}
		for _, a := range op.Args {
			m.descendants[a] += missing
		}
	}
}

func (m *static) rank(s int32) (score, tie float64) {
	if m.stale {
		m.sweep()
	}
	size := float64(m.r.s.Storages[s].Size)
	if size == 0 {
		return math.Inf(1), 0
	}
	before, behind, op := 0.0, 1.0, int32(-1)
	for t := m.r.stores[s].first; t != none; t = m.r.nextView[t] {
		if of := m.r.s.Tensors[t].Op; of != op {
			op = of
			before += m.recompute[of]
		}
		behind += m.descendants[t] - 1
	}
	next := m.next(s)
	if math.IsInf(next, 1) || before == 0 {
		return 0, 0
	}
	return before * behind * m.inputBytes[m.r.stores[s].first] / size / next, 0
}
