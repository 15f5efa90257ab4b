package offline

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/vramyard/vramyard/device"
)

// Limits say what a search looks for and when it gives up.
type Limits struct {
	// Capacity is the height that is low enough, in bytes; 0 asks for the lowest.
	Capacity device.Size `json:"capacity_bytes,omitempty"`
	// Steps bounds the work behind the first greedy placement; 0 is [DefaultSteps]. The same steps
	// give the same answer.
	Steps uint64 `json:"steps"`
	// Time ends the search early, if it is not 0; the answer then depends on the machine.
	Time time.Duration `json:"time_ns,omitempty"`
}

// DefaultSteps are the steps of a search that is not told otherwise: a few seconds.
const DefaultSteps = 200_000_000

const (
	// mostSearched is the most buffers of a part that is searched and not only packed again. A first
	// descent takes some n² steps.
	mostSearched = 50_000
	// repacks is how often the buffers are packed again at most before the search, and repackShare
	// the part of the steps that this may take.
	repacks, repackShare = 64, 4
	// stepsAtFirst is how many steps an attempt has at first for each pair of buffers. Attempts take
	// turns in all orders, with twice the steps in each round, because a bad beginning is seldom
	// mended.
	stepsAtFirst = 4
)

// Why a search stopped.
const (
	stoppedSteps   = "steps spent"
	stoppedTime    = "time spent"
	stoppedContext = "interrupted"
	stoppedMemory  = "memory for the orders of open buffers spent"
)

// meter counts work and knows when it is enough.
type meter struct {
	ctx          context.Context
	budget       uint64 // steps
	deadline     time.Time
	steps, nodes uint64
	looked       uint64 // steps when the clock was last looked at
	stopped      string // why no more is done
}

// lookEvery is how many steps pass between looks at the clock.
const lookEvery = 1 << 16

// spend counts steps and reports whether work may go on up to a limit.
func (m *meter) spend(n, limit uint64) bool {
	m.steps += n
	if m.steps-m.looked >= lookEvery {
		m.looked = m.steps
		m.look()
	}
	if m.stopped == "" && m.steps > m.budget {
		m.stopped = stoppedSteps
	}
	return m.stopped == "" && m.steps <= limit
}

func (m *meter) look() {
	switch {
	case m.ctx.Err() != nil:
		m.stopped = stoppedContext
	case !m.deadline.IsZero() && time.Now().After(m.deadline):
		m.stopped = stoppedTime
	}
}

// Search looks for a placement as low as the limits ask. It begins with the lowest of the greedy
// ones, packs again what lies too high, and then searches the parts of time that are still too high
// and have at most 50,000 buffers. Whenever it ends, it returns the lowest placement so far.
//
// A step is some tens of nanoseconds. The search keeps at most 512 MiB of orders and refuted
// states.
func (p *Problem) Search(ctx context.Context, l Limits) *Solution {
	return p.searchFrom(ctx, l, p.greedies())
}

func (p *Problem) greedies() []*Solution {
	var all []*Solution
	for _, o := range Orders() {
		all = append(all, p.Greedy(o))
	}
	return all
}

// searcher is a search on its way.
type searcher struct {
	p      *Problem
	meter  *meter
	limits Limits
	best   *Solution
	proven device.Size // nothing lower than that is possible
}

func (p *Problem) searchFrom(ctx context.Context, l Limits, from []*Solution) *Solution {
	m := &meter{ctx: ctx, budget: cmp.Or(l.Steps, DefaultSteps)}
	if l.Time > 0 {
		m.deadline = time.Now().Add(l.Time)
	}
	lowest := *slices.MinFunc(from, func(a, b *Solution) int { return cmp.Compare(a.Height, b.Height) })
	r := &searcher{p: p, meter: m, limits: l, best: &lowest, proven: p.total}
	m.look()
	r.repack()
	r.search()
	s := r.best
	s.Bound, s.Steps, s.Nodes = r.proven, m.steps, m.nodes
	s.Optimal = s.Height == r.proven
	switch {
	case s.Optimal || l.Capacity > 0 && s.Height <= l.Capacity:
	case l.Capacity > 0 && r.proven > l.Capacity:
		s.Stopped = fmt.Sprintf("nothing fits in %d bytes", uint64(l.Capacity))
	default:
		s.Stopped = m.stopped
	}
	return s
}

func (r *searcher) enough() bool {
	return r.meter.stopped != "" || r.best.Height <= r.proven || r.best.Height <= r.limits.Capacity ||
		r.limits.Capacity > 0 && r.proven > r.limits.Capacity
}

// repack packs greedily again and again, each time with the buffers that ended above the lower
// bound moved up in the order: what was in trouble gets its place earlier. It goes on from the last
// order, be it better or not.
func (r *searcher) repack() {
	order := r.p.byOffset(r.best.Offsets)
	most := r.meter.budget / repackShare
	for n := 0; n < repacks && !r.enough() && r.meter.steps < most; n++ {
		s := r.p.greedy(order, "repacked", most-r.meter.steps)
		r.meter.spend(s.Steps, math.MaxUint64)
		if s.Height < r.best.Height {
			r.best = s
		}
		order = r.p.promoted(order, s)
	}
}

func (p *Problem) byOffset(offsets []device.Size) []int32 {
	list := make([]int32, len(offsets))
	for i := range list {
		list[i] = int32(i)
	}
	slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(offsets[a], offsets[b]) })
	return list
}

// promoted returns an order in which each buffer that ends above the lower bound stands in half the
// place that it had.
func (p *Problem) promoted(order []int32, s *Solution) []int32 {
	type place struct {
		at int
		i  int32
	}
	places := make([]place, len(order))
	for k, i := range order {
		places[k] = place{2 * k, i}
		if s.Offsets[i]+p.buffers[i].Size > p.total {
			places[k].at = k - 1 // in front of the one that stands there
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	next := make([]int32, len(order))
	for k := range places {
		next[k] = places[k].i
	}
	return next
}
