package props

import (
	"cmp"
	"errors"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// collect takes a walk into the buffer of the older of the last two.
func (r *runner) collect() error {
	r.before, r.walk = r.walk, r.before[:0]
	for c := range r.main.Walk {
		r.walk = append(r.walk, c)
		if len(r.walk) > mostChunks {
			return r.judge(violated(ITerminates, "Walk showed more than %d chunks", mostChunks))
		}
	}
	r.was, r.stats = r.stats, r.main.Stats()
	r.collectHeld()
	return nil
}

// collectHeld asks the device for its regions and ranges.
func (r *runner) collectHeld() {
	r.held, r.ranges = r.held[:0], r.ranges[:0]
	for region := range r.main.dev.Regions {
		r.held = append(r.held, region)
	}
	for region := range r.main.dev.Ranges {
		r.ranges = append(r.ranges, region)
	}
	if len(r.ranges) > 0 {
		r.held = append(r.held, r.ranges...)
		slices.SortFunc(r.held, func(a, b device.Region) int { return cmp.Compare(a.Addr, b.Addr) })
	}
}

// observeMappings looks at the memory under the ranges of the walk.
func (r *runner) observeMappings() error {
	r.maps = r.maps[:0]
	for m := range r.main.dev.Mappings {
		r.maps = append(r.maps, m)
	}
	if err := r.judge(Mapped(r.walk, r.ranges, r.maps)); err != nil || len(r.ranges) == 0 {
		return err
	}
	return r.judge(Aliases(r.walk, r.ranges, r.maps))
}

// observe looks at everything that the strategy shows after a call.
func (r *runner) observe() error {
	if err := r.judge(r.main.carded()); err != nil {
		return err
	}
	if err := r.collect(); err != nil {
		return err
	}
	p := &r.subject.Promises
	if err := r.judge(Tiling(r.walk)); err != nil {
		return err
	}
	if err := r.judge(
		Regions(r.walk, r.held, p.JoinsRegions),
		Chunks(r.walk, p.Quantum, r.powers.recorder),
		Shown(r.walk, &r.model),
		Labels(r.walk, &r.model),
		Accounting(r.walk, r.stats),
		Nesting(r.stats),
		Limit(r.stats),
		DeviceAccount(r.stats, r.usage(), p.JoinsRegions),
	); err != nil {
		return err
	}
	if err := r.observeMappings(); err != nil {
		return err
	}
	if err := r.observeStreams(); err != nil {
		return err
	}
	if err := r.observePools(); err != nil {
		return err
	}
	if err := r.observeCounters(); err != nil {
		return err
	}
	if err := r.observeHistory(); err != nil {
		return err
	}
	// What is active was just compared with the walk; the model cannot know it.
	r.model.counts.PeakActive = max(r.model.counts.PeakActive, r.stats.Active)
	want := r.model.Expected()
	if err := r.judge(Counters(r.stats, want)); err != nil {
		return err
	}
	if err := r.observePromises(p); err != nil {
		return err
	}
	if err := r.main.Check(); err != nil {
		found := corrupted(err)
		if found == nil {
			found = violated(ICheck, "%v", err)
		}
		if err := r.judge(found); err != nil {
			return err
		}
	}
	if err := r.observeOutcome(); err != nil {
		return err
	}
	r.emptied = r.outcome == trimmed && r.stats.Reserved == 0 || r.emptied && r.outcome == mistake
	// Last, because what breaks a forecast mostly breaks something that says more.
	return r.judge(r.joined(), r.foreseen())
}

// page returns the bytes that memory of a range goes back in.
func (r *runner) page() device.Size {
	return cmp.Or(r.subject.Promises.Page, r.main.leash.Granularity(), 1)
}

// usage returns the device's account, with what the faults refused.
func (r *runner) usage() device.Usage { return r.main.faults.Usage() }

// observePromises looks at what only this strategy keeps.
func (r *runner) observePromises(p *alloc.Promises) error {
	if p.MustMerge != nil {
		if err := r.judge(Coalescing(r.walk, p.MustMerge)); err != nil {
			return err
		}
	}
	if p.Stamped {
		r.model.released(r.usage().Calls.Returned())
		if err := r.judge(Recency(r.walk, &r.model)); err != nil {
			return err
		}
	}
	if p.ClassOf != nil {
		if err := r.judge(Classes(r.walk, p.ClassOf)); err != nil {
			return err
		}
	}
	if !r.thorough && r.step%sampleEvery != 0 {
		return nil
	}
	if err := r.judge(Hole(r.walk, alloc.LargestFree(r.main.Strategy)), stoppable(r.main, r.walk)); err != nil {
		return err
	}
	if !alloc.Has(r.main.Strategy, alloc.PowerFreeWalker) {
		return nil
	}
	r.search = r.search[:0]
	alloc.WalkFree(r.main.Strategy, func(c alloc.Chunk) bool {
		r.search = append(r.search, c)
		return len(r.search) <= len(r.walk)
	})
	if err := r.judge(FreeList(r.walk, r.search)); err != nil || p.SearchOrder == nil {
		return err
	}
	return r.judge(SearchOrder(r.search, p.SearchOrder))
}

// observeOutcome looks at what the last call must not have changed.
func (r *runner) observeOutcome() error {
	p := &r.subject.Promises
	switch r.outcome {
	case changed:
		return r.observePlacement()
	case mistake:
		return r.judge(SameWalk(r.before, r.walk, r.was, r.stats), r.recorded(false))
	case depleted:
		if err := r.judge(SameLive(r.before, r.walk), r.recorded(true), r.renewed()); err != nil || p.Serves == nil {
			return err
		}
		into := r.into(r.request)
		return r.judge(Honest(r.walk, r.request, func(c alloc.Chunk, asked alloc.Request) bool {
			return c.Pool == into && p.Serves(c, asked)
		}))
	case freed:
		if !p.FreeReleases {
			return r.judge(Holding(r.was, r.stats))
		}
	case polled:
		return r.judge(SameLive(r.before, r.walk), Polled(r.was, r.stats, r.returned))
	case trimmed:
		kept := r.refused || r.redirecting()
		if err := r.judge(Trimmed(r.releasable(), r.ranges, r.page(), r.was, r.stats, r.returned, kept)); err != nil {
			return err
		}
		return r.observeReturned()
	case redirected:
		if v, ok := errors.AsType[*Violation](SameLive(r.before, r.walk)); ok {
			return r.judge(violated(IPoolAnswer, "%s", v.Detail))
		}
	}
	return nil
}

// recorded compares the strategy's record of its last refusal with the walk. Only a
// request leaves a record.
func (r *runner) recorded(outOfMemory bool) error {
	f, ok := alloc.LastRefusal(r.main.Strategy)
	if !ok || !alloc.Has(r.main.Strategy, alloc.PowerFailure) || !r.asked {
		return nil
	}
	u := r.usage().Calls
	return RefusalRecord(r.walk, f, r.request, outOfMemory, refusals(u) > refusals(r.calls), u.Obtained() > r.calls.Obtained())
}

// refusals returns how many calls of any kind failed: new memory may be created and not be mapped.
func refusals(c device.Calls) (n uint64) {
	for _, k := range c {
		n += k.Failed
	}
	return n
}

// finish frees every block, closes the strategy and looks at what is left of it. The twin
// is closed with its blocks live.
func (r *runner) finish() error {
	r.undrained = len(r.events)
	if err := r.drain(); err != nil {
		return err
	}
	if err := r.leavePools(); err != nil {
		return err
	}
	if err := r.settleStreams(); err != nil {
		return err
	}
	if err := r.empty(); err != nil {
		return err
	}
	r.begin()
	if err := r.trim(); err != nil {
		return err
	}
	if err := r.observe(); err != nil {
		return err
	}
	if r.powers.recorder { // else that was judged before
		if err := r.empty(); err != nil {
			return err
		}
	}
	if err := r.renew(); err != nil {
		return err
	}
	r.begin()
	if err := r.move(r.twin); err != nil {
		return err
	}
	for _, m := range []*machine{r.main, r.twin} {
		if err := r.judge(m.closeAll()); err != nil {
			return err
		}
		if !m.dev.Usage().Empty() {
			continue // the device refused on its plan; there is nothing more to say
		}
		if err := r.judge(m.checkClosed(device.Addr(1 << 20))); err != nil {
			return err
		}
	}
	return r.judge(r.leaveCard())
}

// empty looks at a strategy that was freed of all its blocks.
func (r *runner) empty() error {
	if !r.settled() {
		return nil
	}
	return r.judge(Drained(r.walk, r.stats))
}

// drain frees the live blocks of the main machine, oldest first. Faults still pending are
// called off, so that every free can succeed; one on the plan may still need a second try.
// The twin keeps its blocks: it is only asked again when it is closed.
func (r *runner) drain() error {
	if r.armed {
		r.note(trace.Event{Kind: trace.Fault, Arg: 0})
		r.main.faults.FailNext(0)
		r.twin.faults.FailNext(0)
	}
	r.alone = true
	for tries := 2 * len(r.model.byAge); len(r.model.byAge) > 0 && tries > 0; tries-- {
		g, _ := r.model.Oldest(0)
		r.begin()
		r.foresee(append(r.coming[:0], coming{frees: true, addr: g.Block.Addr}))
		if err := r.free(g); err != nil {
			return err
		}
		if err := r.observe(); err != nil {
			return err
		}
	}
	return nil
}
