package recall

import (
	"cmp"
	"math"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/packing"
	"github.com/vramyard/vramyard/strategies/bestfit"
)

// The parameters of planning.
const (
	rounds        = 10      // packings of each order
	lateShare     = 10      // buffers later than this part of the latest go to the front
	stepsEach     = 2048    // steps of packings for each allocation so far, which bounds the time of planning
	mostSteps     = 1 << 27 // of one plan
	targetShare   = 200     // part of the peak by which a plan may exceed it
	gainShare     = 100     // part of the peak that a plan must save,
	riskFactor    = 6       // or this many times the part of the last period's allocations that deviated,
	fewDeviations = 6       // not counting these
	mostDoubt     = 7       // plans given up that are counted
	outShare      = 30      // part of the peak that may find no place below the fallback's marks
)

// plan is the places of a period. The following periods get them again, until shapes change.
type plan struct {
	number  int32
	end     int32       // up to this position a block without a place is an exception
	era     int32       // in which it was made
	apart   device.Size // bytes of live blocks that are elsewhere than planned
	twins   []int32
	offsets []device.Size
	rooms   []device.Size
}

// prepare packs a forecast and returns the plan. It returns false if the plan would save too
// little, or if too much of it would lie above the fallback's marks at the time.
func (a *Allocator) prepare(f *forecast) (p plan, ok bool) {
	marks, high, ok := a.rehearse(f)
	if !ok || max(f.peak, a.top)+a.leastGain(f) > high { // no packing is below the peak
		return p, false
	}
	problem, err := packing.New(f.buffers)
	if err != nil { // sizes whose sum overflows
		return p, false
	}
	target := f.peak + f.peak/targetShare
	limits := make([]device.Size, len(f.buffers))
	for _, i := range f.list {
		limits[i] = max(a.top, min(a.guarded(marks[i]), target))
	}
	offsets, height := a.pack(f, problem, limits)
	var out device.Size
	for _, i := range f.list {
		if n := f.buffers[i].Size; offsets[i]+n > max(a.top, a.guarded(marks[i])) {
			out += n
		}
	}
	if out > f.peak/outShare || max(height, a.top)+a.leastGain(f) > high {
		return p, false
	}
	p.end, p.era, p.twins = f.end, a.watch.eras.now, f.twins
	for _, i := range f.list {
		p.offsets = append(p.offsets, offsets[i])
		p.rooms = append(p.rooms, f.buffers[i].Size)
	}
	return p, true
}

// leastGain returns the bytes that a plan must save. It is more if the last period had deviations,
// and for each plan given up, because blocks outside of a plan can cost more than the plan saves.
func (a *Allocator) leastGain(f *forecast) device.Size {
	deviations := max(0, a.watch.deviatedSince(a.watch.at)-fewDeviations)
	risk := f.peak / device.Size(f.period) * device.Size(riskFactor*deviations)
	return max(f.peak/gainShare, risk) * device.Size(1+a.doubt)
}

// guarded returns how far a planned place may reach if the fallback uses n bytes.
func (a *Allocator) guarded(n device.Size) device.Size {
	return n + n/100*device.Size(a.cfg.Guard)
}

// pack places the expected allocations so that each ends within its limit, or as little above it as
// can be found. Each packing is greedy; then the buffers that exceed their limits go to the front
// of the order, so that they get lower places in the next one. The second half of the orders takes
// the buffers with the lowest limits first, which are born while the fallback uses little.
func (a *Allocator) pack(
	f *forecast, p *packing.Problem, limits []device.Size,
) (best []device.Size, height device.Size) {
	least := device.Size(math.MaxInt64)
	steps := a.credit
	defer func() { a.credit = steps }()
	for k, order := range append(packing.Orders(), packing.Orders()...) {
		list := slices.DeleteFunc(p.Sorted(order), func(i int32) bool { return int(i) < len(f.fixed) })
		if k >= len(packing.Orders()) {
			slices.SortStableFunc(list, func(i, j int32) int { return cmp.Compare(limits[i], limits[j]) })
		}
		for round := 0; round < rounds && least > 0 && steps > 0; round++ {
			offsets := slices.Clone(f.offsets)
			k := p.Pack(list, f.fixed, offsets, steps)
			a.stats.Steps += k.Steps
			steps -= min(k.Steps, steps)
			late := func(i int32) device.Size {
				end := offsets[i] + f.buffers[i].Size
				return end - min(end, limits[i])
			}
			most := device.Size(0)
			for _, i := range list {
				most = max(most, late(i))
			}
			if most < least {
				least, best, height = most, offsets, k.Height
			}
			slices.SortStableFunc(list, func(i, j int32) int {
				return cmp.Compare(count(late(i) <= most/lateShare), count(late(j) <= most/lateShare))
			})
		}
	}
	return best, height
}

// rehearse runs a forecast through a copy of the fallback. It returns the most bytes used up to
// each expected allocation, and at the end.
func (a *Allocator) rehearse(f *forecast) (marks []device.Size, high device.Size, ok bool) {
	s, ok := a.copy()
	if !ok {
		return nil, 0, false
	}
	var q queue
	q.reset(int(f.period)+2, len(f.buffers))
	die := func(i int32, b alloc.Block) {
		q.add(int(f.buffers[i].Upper-int64(f.now)), i, b)
	}
	for k, i := range f.fixed {
		high = max(high, f.offsets[i]+f.buffers[i].Size)
		die(i, s.blocks[k])
	}
	marks = make([]device.Size, len(f.buffers))
	for _, i := range f.list {
		b := &f.buffers[i]
		for dead := range q.until(int(b.Lower - int64(f.now))) {
			_ = s.fit.FreeRef(dead) // it is live in the copy
		}
		got, err := s.fit.Alloc(alloc.Request{Size: b.Size})
		if err != nil {
			return nil, 0, false
		}
		high = max(high, got.Addr.Sub(a.start)+got.Size)
		marks[i] = high
		die(i, got)
	}
	return marks, high, true
}

// queue holds blocks by the time of their death.
type queue struct {
	first  []int32 // by time: a buffer, or none
	after  []int32 // by buffer: another one of the same time, or none
	blocks []alloc.Block
	now    int
}

func (q *queue) reset(times, buffers int) {
	q.first, q.after, q.blocks = make([]int32, times), make([]int32, buffers), make([]alloc.Block, buffers)
	for t := range q.first {
		q.first[t] = none
	}
}

func (q *queue) add(at int, buffer int32, b alloc.Block) {
	if at < len(q.first) {
		q.after[buffer], q.blocks[buffer] = q.first[at], b
		q.first[at] = buffer
	}
}

// until yields and removes the blocks that die up to a time.
func (q *queue) until(t int) func(func(alloc.Block) bool) {
	return func(yield func(alloc.Block) bool) {
		for ; q.now <= t; q.now++ {
			for i := q.first[q.now]; i != none; i = q.after[i] {
				if !yield(q.blocks[i]) {
					return
				}
			}
		}
	}
}

// copied is a best fit with the live blocks of the allocator at their addresses.
type copied struct {
	fit    bestfit.Placer
	blocks []alloc.Block // in the order of Walk
}

// copy returns a copy of the fallback over no memory.
func (a *Allocator) copy() (c copied, ok bool) {
	fit, err := bestfit.NewPlacer(mirror{a.start}, mirrored)
	if err != nil {
		return c, false
	}
	c.fit = fit
	first, err := fit.Alloc(alloc.Request{Size: quantum}) // reserves the region
	if err != nil || fit.FreeRef(first) != nil {
		return c, false
	}
	fit.Track()
	for k := range a.real.Blocks {
		b, ok := fit.Place(&alloc.Request{Size: k.Size}, k.Addr, k.Size)
		if !ok {
			return c, false
		}
		c.blocks = append(c.blocks, b)
	}
	fit.Untrack()
	return c, true
}

// mirrored is the configuration of a copy: the fallback without its limit.
var mirrored = Config{Limit: mostSize}.fallback()

// mirror is a source of one region of addresses without memory, where the region of the allocator
// begins.
type mirror struct{ start device.Addr }

func (m mirror) Reserve(size, _ device.Size) (device.Region, error) {
	return device.Region{Addr: m.start, Size: size}, nil
}

func (m mirror) Release(device.Addr) error { return nil }

// follow makes a plan the present one.
func (a *Allocator) follow(p plan) {
	a.plans++
	p.number = a.plans
	a.watch.makeRoom()
	for k, x := range p.twins {
		e := a.watch.placed(x)
		e.place, e.room, e.plan = p.offsets[k], p.rooms[k], p.number
	}
	p.twins, p.offsets, p.rooms = nil, nil, nil
	a.plan = p
	a.stats.Plans++
}

// gap returns the offset of the smallest free range of n bytes that the plan does not use while a
// block lives, or false if the range would end above the guard.
func (a *Allocator) gap(n device.Size, life int32) (device.Size, bool) {
	w := &a.watch
	type span struct{ from, to device.Size }
	var spans []span
	if w.at != none {
		now := w.next() - 1
		first := w.at + now - w.from + 1
		for x := first; x < min(first+life-1, now); x++ {
			if e := w.placed(x); e.plan == a.plan.number {
				spans = append(spans, span{e.place, e.place + e.room})
			}
		}
	}
	slices.SortFunc(spans, func(x, y span) int { return cmp.Compare(x.from, y.from) })
	best, size := device.Size(0), device.Size(math.MaxUint64)
	try := func(from, to device.Size) {
		if to > from && to-from >= n && to-from < size {
			best, size = from, to-from
		}
	}
	k := 0
	for at, free := range a.real.Gaps {
		from := at.Sub(a.start)
		to := from + free
		for k > 0 && spans[k-1].to > from {
			k--
		}
		for k < len(spans) && spans[k].from < to {
			try(from, min(spans[k].from, to))
			from = max(from, spans[k].to)
			k++
		}
		try(from, to)
	}
	return best, size != math.MaxUint64 && best+n <= max(a.top, a.guarded(a.mark))
}
