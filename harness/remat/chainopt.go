package remat

import (
	"math"

	"github.com/vramyard/vramyard/device"
)

// The bounds of the dynamic program: units of memory, and states.
const (
	mostLinks  = 128
	leastUnits = 64
	mostStates = 1 << 20
)

// goal is a state of the dynamic program: the result of link i-1 is held, links i to j are to be
// run forward and phases j to i backward.
type goal struct {
	i, j int32
	has  bool  // the result of link j is held, too
	held int32 // units of memory of all results held
}

// answer is the least time of a goal and the next result to keep: one of i to j, or 0 to run phase
// j at once. Time math.MaxInt64 is infeasible.
type answer struct {
	time  int64
	keep  int32
	known bool
}

// optimum solves the choice of results to keep exactly, except that sizes are rounded up to units.
type optimum struct {
	*chain
	budget device.Size
	unit   device.Size
	units  []int32    // by link: of its result
	most   int32      // units of the budget
	known  [][]answer // by has, i and j: by units held
}

// optimal returns the decisions that take the least time within a budget. If none fits, the plan
// keeps nothing.
func optimal(c *chain, budget device.Size) decisions {
	o := newOptimum(c, budget)
	whole := goal{i: 1, j: int32(len(c.ops) - 1)}
	list := []bool{}
	if o.solve(whole).time < math.MaxInt64 {
		o.decide(whole, &list)
	}
	return func() func(int32, bool) bool {
		at := -1
		return func(int32, bool) bool {
			at++
			return at < len(list) && list[at]
		}
	}
}

func newOptimum(c *chain, budget device.Size) *optimum {
	o := &optimum{chain: c, budget: budget, units: make([]int32, len(c.ops)),
		known: make([][]answer, 2*len(c.ops)*len(c.ops))}
	for _, size := range c.sizes {
		for a := size; a > 0; {
			o.unit, a = a, o.unit%a // greatest common divisor
		}
	}
	n := len(c.ops) - 1
	most := device.Size(max(leastUnits, mostStates/(n*n)))
	if o.unit = max(o.unit, 1); budget/o.unit > most {
		o.unit = budget/most + 1
	}
	o.most = int32(budget / o.unit)
	for i, size := range c.sizes {
		o.units[i] = int32(min((size+o.unit-1)/o.unit, device.Size(o.most)+1))
	}
	return o
}

// fits reports whether this many other bytes fit beside the results held.
func (o *optimum) fits(held int32, bytes device.Size) bool {
	return device.Size(held)*o.unit+bytes <= o.budget
}

// solve returns the answer of a goal.
func (o *optimum) solve(g goal) answer {
	best := answer{time: math.MaxInt64}
	if g.held > o.most {
		return best
	}
	at := (int(g.i)*len(o.ops) + int(g.j)) * 2
	if g.has {
		at++
	}
	if o.known[at] == nil {
		o.known[at] = make([]answer, o.most+1)
	}
	if a := o.known[at][g.held]; a.known {
		return a
	}
	p := &o.phases[g.j]
	n := int32(len(o.ops) - 1)
	switch {
	case !g.has && !p.reads && g.j < n:
		if best = (answer{}); g.i < g.j {
			best.time = o.solve(goal{g.i, g.j - 1, false, g.held}).time
		}
	case g.has && (g.i == g.j || !p.below):
		best.time = o.phaseTime(g)
	default:
		best = o.search(g)
	}
	best.known = true
	o.known[at][g.held] = best
	return best
}

// phaseTime returns the time of the goals below phase j, which runs at once.
func (o *optimum) phaseTime(g goal) int64 {
	p, freed := &o.phases[g.j], g.held-o.units[g.j]
	if !o.fits(g.held, p.both) || !o.fits(freed, p.after) {
		return math.MaxInt64
	}
	if g.i == g.j {
		return 0
	}
	return o.solve(goal{g.i, g.j - 1, false, freed}).time
}

// search tries each result to keep.
func (o *optimum) search(g goal) answer {
	best, n := answer{time: math.MaxInt64}, int32(len(o.ops)-1)
	p := &o.phases[g.j]
	last, base := g.j, p.begin
	if g.has {
		last, base = g.j-1, p.middle
	}
	time := int64(0)
	for k := g.i; k <= last; k++ {
		op := &o.s.Ops[o.ops[k]]
		need, other := o.units[k], base
		if k > g.i {
			need += o.units[k-1]
		}
		if !g.has && g.j == n {
			other = o.first[k] // links up to n run for the first time
		}
		if !o.fits(g.held+need, other+op.Workspace) {
			break
		}
		time += op.Cost
		if k == g.j && g.i < g.j && p.together {
			break // the result below is locked when this one is made: keep that one first
		}
		if t := o.timeKeeping(g, k); t < math.MaxInt64 && time+t < best.time {
			best = answer{time: time + t, keep: k}
		}
	}
	return best
}

// timeKeeping returns the time that remains when the result of link k has been computed and kept.
func (o *optimum) timeKeeping(g goal, k int32) int64 {
	sum := int64(0)
	for _, next := range o.after(g, k) {
		begins := next.has && (next.j != g.j || !g.has)
		if begins && !o.fits(next.held, o.phases[next.j].before) {
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

// after returns the goals that remain when the result of link k is kept, in order.
func (o *optimum) after(g goal, k int32) []goal {
	held := g.held + o.units[k]
	if k == g.j {
		return []goal{{g.i, g.j, true, held}}
	}
	below := held
	if g.has {
		below -= o.units[g.j]
	}
	return []goal{{k + 1, g.j, g.has, held}, {g.i, k, true, below}}
}

// decide lists the decisions of a goal in the order in which links run.
func (o *optimum) decide(g goal, list *[]bool) {
	a := o.solve(g)
	if a.keep == 0 {
		if g.i < g.j && (g.has || !o.phases[g.j].reads) {
			held := g.held
			if g.has {
				held -= o.units[g.j]
			}
			o.decide(goal{g.i, g.j - 1, false, held}, list)
		}
		return
	}
	for k := g.i; k <= a.keep; k++ {
		if k > 1 {
			*list = append(*list, k == g.i)
		}
	}
	for _, next := range o.after(g, a.keep) {
		o.decide(next, list)
	}
}
