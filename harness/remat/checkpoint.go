package remat

import (
	"fmt"
	"math"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// Plan chooses the tensors to keep before the run: a baseline for heuristics, which choose victims
// during the run. It needs a log whose forward part is a chain of operators. Config.Budget is the
// memory that it plans for. Liveness, trigger and the step evict of the ladder have no effect.
type Plan struct {
	Name   string // as in Config.Heuristic
	Keeps  string // the results it keeps
	Source string // publication

	maxLinks int // most links of a chain
	policy   func(c *chain, budget device.Size) keepPolicy
}

// keepPolicy returns a function that is called for each run of a link above 1, in order. It reports
// whether the result of the link below is kept. Again is true for a rerun.
type keepPolicy func() func(link int32, again bool) bool

// Plans returns all plans.
func Plans() []Plan {
	return []Plan{
		{"sublinear", "the last result of each segment, and all of the last segment; the number of segments is the one " +
			"with the least time within the budget", "Training Deep Nets with Sublinear Memory Cost, arXiv 1604.06174, 2016",
			math.MaxInt, sublinear},
		{"chain-optimal", "the results that take the least time within the budget, among plans that keep each one until " +
			"its last read", "Optimal checkpointing for heterogeneous chains, arXiv 1911.13214, 2019; here over single results",
			maxLinks, optimal},
	}
}

func planOf(name string) *Plan {
	for _, p := range Plans() {
		if p.Name == name {
			return &p
		}
	}
	return nil
}

// CanRun returns an error if a heuristic cannot run a schedule: one of [Plans] needs a chain, and
// others may need the times of the operators. An unknown name is no error.
func CanRun(s *Schedule, heuristic string) error {
	p := planOf(heuristic)
	switch {
	case len(s.Ops) == 0:
		return nil
	case p != nil:
		_, err := p.chainOf(s)
		return err
	}
	h, swap, err := heuristicOf(heuristic)
	switch {
	case err != nil || s.Cost > 0:
		return nil
	case h.traits&needsTimes != 0:
		return fmt.Errorf("heuristic %s: the log has no times, want measure=bytes", heuristic)
	case swap.way == swapIfCheaper:
		return fmt.Errorf("heuristic %s: the log has no times, want evict=drop or swap", heuristic)
	}
	return nil
}

// chainOf returns the chain of a schedule, if the plan accepts it.
func (p *Plan) chainOf(s *Schedule) (*chain, error) {
	c, err := chainOf(s)
	if err == nil && len(c.ops)-1 > p.maxLinks {
		err = fmt.Errorf("the chain has %d operators, want at most %d", len(c.ops)-1, p.maxLinks)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	return c, nil
}

// runPlan runs a schedule by a plan.
func runPlan(p *Plan, s *Schedule, m Memory, c Config) (Result, error) {
	if len(s.Ops) > 0 {
		links, err := p.chainOf(s)
		if err != nil {
			return Result{}, err
		}
		c.plan = &planLiveness{c: links, next: p.policy(links, c.Budget)()}
	}
	return runPlanned(s, m, c)
}

func runPlanned(s *Schedule, m Memory, c Config) (Result, error) {
	c.Heuristic, c.Trigger = "lru", Trigger{Kind: "on-failure"} // never used: the plan evicts
	return Run(s, m, c)
}

// planLiveness is the liveness of a plan: it evicts results of links as planned, and other storages
// when they die.
type planLiveness struct {
	eager
	c    *chain
	next func(link int32, again bool) bool
	ran  []bool // by link
	kept []bool // by link: its result stays resident until its last read
}

func (k *planLiveness) begin(r *runner) liveness {
	k.eager, k.ran, k.kept = eager{keepDead{r}}, make([]bool, len(k.c.ops)), make([]bool, len(k.c.ops))
	r.ladder = slices.DeleteFunc(r.ladder, func(s *ladderStep) bool { return s.name == "evict" })
	return k
}

func (k *planLiveness) onRelease(s int32) Verdict {
	if k.c.linkOf[s] == 0 {
		return k.eager.onRelease(s)
	}
	return OK
}

func (k *planLiveness) onRun(t Tensor) {
	k.eager.onRun(t)
	number := k.r.s.Tensors[t].Op
	if link := k.c.linkOf[k.r.s.Tensors[t].Storage]; link > 0 {
		again := k.ran[link]
		k.ran[link] = true
		if link > 1 {
			k.kept[link-1] = k.next(link, again) || k.kept[link-1]
			if !k.kept[link-1] {
				k.drop(link - 1)
			}
		}
	}
	for _, link := range k.c.freeAfter[number] {
		k.kept[link] = false
		k.drop(link)
	}
}

func (k *planLiveness) drop(link int32) {
	s := k.r.s.Tensors[k.r.s.Ops[k.c.ops[link]].First].Storage
	if st := &k.r.stores[s]; st.resident && st.locks == 0 {
		k.r.evict(s, Pressure)
	}
}

// sublinear divides the chain into segments of about equal bytes. It tries every number of segments
// and takes the one with the least rerun time.
func sublinear(c *chain, budget device.Size) keepPolicy {
	n, total := len(c.ops)-1, device.Size(0)
	for _, size := range c.sizes {
		total += size
	}
	var best keepPolicy
	least := int64(-1)
	for count := 1; count <= n; count++ {
		keep := c.segments(total / device.Size(count))
		d := func() func(int32, bool) bool {
			return func(link int32, again bool) bool { return again || keep[link-1] }
		}
		res, err := runPlanned(c.s, &Counter{Budget: budget}, Config{Liveness: "eager", plan: &planLiveness{c: c, next: d()}})
		if ok := err == nil && res.Verdict == OK; best == nil || ok && (least < 0 || res.RematTime < least) {
			if best = d; ok {
				least = res.RematTime
			}
		}
	}
	return best
}

// segments returns, for each link, whether its result is kept in the forward pass. A segment ends
// when its results have at least size bytes.
func (c *chain) segments(size device.Size) []bool {
	keep := make([]bool, len(c.ops))
	begin, sum := 1, device.Size(0)
	for i := 1; i < len(c.ops); i++ {
		if sum += c.sizes[i]; sum >= size && i+1 < len(c.ops) {
			keep[i], begin, sum = true, i+1, 0
		}
	}
	for i := begin; i < len(c.ops); i++ {
		keep[i] = true
	}
	return keep
}
