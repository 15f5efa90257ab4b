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

// Limits are the goal and the limits of a search.
type Limits struct {
	// Capacity is a sufficient height in bytes; 0: minimise.
	Capacity device.Size `json:"capacity_bytes,omitempty"`
	// Steps limits the work after the first greedy placement; 0: [DefaultSteps]. Results are
	// deterministic in it.
	Steps uint64 `json:"steps"`
	// Time limits the time, if not 0; results then depend on the machine.
	Time time.Duration `json:"time_ns,omitempty"`
}

// DefaultSteps is the default of Limits.Steps: a few seconds.
const DefaultSteps = 200_000_000

const (
	// mostSearched bounds the buffers of a part to search; larger parts are only repacked. A first
	// descent takes about n² steps.
	mostSearched = 50_000
	// repacks bounds the repackings before the search, and repackShare is the inverse of their share
	// of the steps.
	repacks, repackShare = 64, 4
	// stepsAtFirst is the initial limit of an attempt in steps per pair of buffers. Attempts alternate
	// between orders, with twice the steps in each round, because a bad start is rarely repaired.
	stepsAtFirst = 4
)

// Reasons why a search stopped.
const (
	stoppedSteps   = "steps spent"
	stoppedTime    = "time spent"
	stoppedContext = "interrupted"
	stoppedMemory  = "memory for the orders of open buffers spent"
)

// meter counts work against the limits.
type meter struct {
	ctx          context.Context
	budget       uint64 // steps
	deadline     time.Time
	steps, nodes uint64
	looked       uint64 // steps at the last check of the clock
	stopped      string // why the work ended; empty: not yet
}

// lookEvery is the number of steps between checks of the clock.
const lookEvery = 1 << 16

// spend counts steps and reports whether the work may continue, up to a limit.
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

// Search looks for a low placement within the limits. It starts with the lowest greedy one, repacks
// buffers that lie too high, and searches the parts of time that are still too high and have at
// most 50,000 buffers. It always returns the lowest placement found.
//
// A step takes some tens of nanoseconds. Orders and refuted states take at most 512 MiB.
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

// searcher is the state of [Problem.Search].
type searcher struct {
	p      *Problem
	meter  *meter
	limits Limits
	best   *Solution
	proven device.Size // nothing lower is possible
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

// repack packs greedily again and again, each time moving the buffers that ended above the lower
// bound up in the order, so that difficult ones are placed earlier. It continues from the last
// order, better or not.
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

// promoted returns an order in which each buffer that ends above the lower bound moves to half its
// index.
func (p *Problem) promoted(order []int32, s *Solution) []int32 {
	type place struct {
		at int
		i  int32
	}
	places := make([]place, len(order))
	for k, i := range order {
		places[k] = place{2 * k, i}
		if s.Offsets[i]+p.buffers[i].Size > p.total {
			places[k].at = k - 1 // before the buffer now at that index
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	next := make([]int32, len(order))
	for k := range places {
		next[k] = places[k].i
	}
	return next
}
