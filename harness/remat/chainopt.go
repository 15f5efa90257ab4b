package remat

import (
	"math"

	"github.com/vramyard/vramyard/device"
)

// The bounds of the dynamic program. A budget is divided into at most maxStates / links² units of
// memory, or minUnits if that is more.
const (
	maxLinks  = 128
	minUnits  = 64
	maxStates = 1 << 20
)

// subproblem is a state of the dynamic program: to run phases j to i backward, when the result of
// link i-1 is resident.
type subproblem struct {
	i, j    int32
	endHeld bool  // the result of link j is resident, too
	held    int32 // units of memory of all resident results
}

// solution is the answer to a subproblem.
type solution struct {
	time   int64 // least nanoseconds of running links; math.MaxInt64 if it does not fit into the budget
	keep   int32 // the link, from i to j, whose result is the next to compute and keep; 0: run phase j
	solved bool
}

// chainSolver finds the results to keep that take the least time, by dynamic programming. Sizes are
// rounded up to units; apart from that the solution is exact.
type chainSolver struct {
	*chain
	budget      device.Size
	unit        device.Size
	units       []int32      // by link: size of its result in units
	budgetUnits int32        // the budget in units
	solutions   [][]solution // by i, j and endHeld: by units held
}

// optimal returns the policy that takes the least time within a budget. If none fits, the policy
// keeps no result.
func optimal(c *chain, budget device.Size) keepPolicy {
	o := newChainSolver(c, budget)
	whole := subproblem{i: 1, j: int32(len(c.ops) - 1)}
	list := []bool{}
	if o.solve(whole).time < math.MaxInt64 {
		o.appendDecisions(whole, &list)
	}
	return func() func(int32, bool) bool {
		at := -1
		return func(int32, bool) bool {
			at++
			return at < len(list) && list[at]
		}
	}
}

func newChainSolver(c *chain, budget device.Size) *chainSolver {
	o := &chainSolver{chain: c, budget: budget, units: make([]int32, len(c.ops)),
		solutions: make([][]solution, 2*len(c.ops)*len(c.ops))}
	for _, size := range c.sizes {
		for a := size; a > 0; {
			o.unit, a = a, o.unit%a // greatest common divisor
		}
	}
	n := len(c.ops) - 1
	most := device.Size(max(minUnits, maxStates/(n*n)))
	if o.unit = max(o.unit, 1); budget/o.unit > most {
		o.unit = budget/most + 1
	}
	o.budgetUnits = int32(budget / o.unit)
	for i, size := range c.sizes {
		o.units[i] = int32(min((size+o.unit-1)/o.unit, device.Size(o.budgetUnits)+1))
	}
	return o
}

// fits reports whether other bytes fit into the budget beside the units of resident results.
func (o *chainSolver) fits(held int32, bytes device.Size) bool {
	return device.Size(held)*o.unit+bytes <= o.budget
}

// solve returns the solution of a subproblem.
func (o *chainSolver) solve(g subproblem) solution {
	best := solution{time: math.MaxInt64}
	if g.held > o.budgetUnits {
		return best
	}
	at := (int(g.i)*len(o.ops) + int(g.j)) * 2
	if g.endHeld {
		at++
	}
	if o.solutions[at] == nil {
		o.solutions[at] = make([]solution, o.budgetUnits+1)
	}
	if a := o.solutions[at][g.held]; a.solved {
		return a
	}
	p := &o.phases[g.j]
	n := int32(len(o.ops) - 1)
	switch {
	case !g.endHeld && !p.readsOwn && g.j < n:
		if best = (solution{}); g.i < g.j {
			best.time = o.solve(subproblem{g.i, g.j - 1, false, g.held}).time
		}
	case g.endHeld && (g.i == g.j || !p.readsBelow):
		best.time = o.phaseTime(g)
	default:
		best = o.search(g)
	}
	best.solved = true
	o.solutions[at][g.held] = best
	return best
}

// phaseTime returns the time of the subproblem if phase j runs now: the time of the phases below.
func (o *chainSolver) phaseTime(g subproblem) int64 {
	p, freed := &o.phases[g.j], g.held-o.units[g.j]
	if !o.fits(g.held, p.peakBoth) || !o.fits(freed, p.peakAfter) {
		return math.MaxInt64
	}
	if g.i == g.j {
		return 0
	}
	return o.solve(subproblem{g.i, g.j - 1, false, freed}).time
}

// search tries each result from i to j as the next to keep.
func (o *chainSolver) search(g subproblem) solution {
	best, n := solution{time: math.MaxInt64}, int32(len(o.ops)-1)
	p := &o.phases[g.j]
	last, resident := g.j, p.atOwn
	if g.endHeld {
		last, resident = g.j-1, p.atBelow
	}
	time := int64(0)
	for k := g.i; k <= last; k++ {
		op := &o.s.Ops[o.ops[k]]
		need, other := o.units[k], resident
		if k > g.i {
			need += o.units[k-1]
		}
		if !g.endHeld && g.j == n {
			other = o.firstRunOther[k] // the forward pass
		}
		if !o.fits(g.held+need, other+op.Workspace) {
			break
		}
		time += op.Cost
		if k == g.j && g.i < g.j && p.readsBothFirst {
			break // the operator reads the result below, too: that one has to be kept first
		}
		if t := o.timeKeeping(g, k); t < math.MaxInt64 && time+t < best.time {
			best = solution{time: time + t, keep: k}
		}
	}
	return best
}

// timeKeeping returns the time of the rest when the result of link k has been computed and kept.
func (o *chainSolver) timeKeeping(g subproblem, k int32) int64 {
	sum := int64(0)
	for _, next := range o.subproblems(g, k) {
		phaseBegins := next.endHeld && (next.j != g.j || !g.endHeld)
		if phaseBegins && !o.fits(next.held, o.phases[next.j].peakBeforeBelow) {
			return math.MaxInt64
		}
		t := o.solve(next).time
		if t == math.MaxInt64 {
			return t
		}
		sum += t
	}
	return sum
}

// subproblems returns the rest, in order, when the result of link k has been computed and kept.
func (o *chainSolver) subproblems(g subproblem, k int32) []subproblem {
	held := g.held + o.units[k]
	if k == g.j {
		return []subproblem{{g.i, g.j, true, held}}
	}
	below := held
	if g.endHeld {
		below -= o.units[g.j]
	}
	return []subproblem{{k + 1, g.j, g.endHeld, held}, {g.i, k, true, below}}
}

// appendDecisions appends a decision for each run of a link above 1, in order: whether the result
// of the link below is kept.
func (o *chainSolver) appendDecisions(g subproblem, list *[]bool) {
	a := o.solve(g)
	if a.keep == 0 {
		if g.i < g.j && (g.endHeld || !o.phases[g.j].readsOwn) {
			held := g.held
			if g.endHeld {
				held -= o.units[g.j]
			}
			o.appendDecisions(subproblem{g.i, g.j - 1, false, held}, list)
		}
		return
	}
	for k := g.i; k <= a.keep; k++ {
		if k > 1 {
			*list = append(*list, k == g.i)
		}
	}
	for _, next := range o.subproblems(g, a.keep) {
		o.appendDecisions(next, list)
	}
}
