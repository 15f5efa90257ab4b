package props

import (
	"cmp"
	"errors"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// collect stores a view of the strategy and its device, and keeps the previous one.
func (r *runner) collect() error {
	r.was, r.is = r.is, r.was.cleared()
	r.main.Walk(r.gather)
	if len(r.is.walk) > mostChunks {
		return r.judge(violated(ITerminates, "Walk showed more than %d chunks", mostChunks))
	}
	r.is.stats = r.main.Stats()
	r.is.collectHeld(r.main.dev)
	return nil
}

// collectHeld stores the regions and ranges of the device.
func (v *view) collectHeld(d *sim.Device) {
	v.held, v.ranges = v.held[:0], v.ranges[:0]
	for region := range d.Regions {
		v.held = append(v.held, region)
	}
	for region := range d.Ranges {
		v.ranges = append(v.ranges, region)
	}
	if len(v.ranges) > 0 {
		v.held = append(v.held, v.ranges...)
		slices.SortFunc(v.held, func(a, b device.Region) int { return cmp.Compare(a.Addr, b.Addr) })
	}
}

// observeMappings checks the memory under the ranges of the walk.
func (r *runner) observeMappings() error {
	r.maps = r.maps[:0]
	for m := range r.main.dev.Mappings {
		r.maps = append(r.maps, m)
	}
	if err := r.judge(Mapped(r.is.walk, r.is.ranges, r.maps)); err != nil || len(r.is.ranges) == 0 {
		return err
	}
	return r.judge(Aliases(r.is.walk, r.is.ranges, r.maps))
}

// look checks everything that the strategy shows after a call.
func (r *runner) look() error {
	if err := r.judge(r.main.carded()); err != nil {
		return err
	}
	if err := r.collect(); err != nil {
		return err
	}
	p := &r.subject.Promises
	if err := r.judge(Tiling(r.is.walk)); err != nil {
		return err
	}
	if err := r.judge(
		Regions(r.is.walk, r.is.held, p.JoinsRegions),
		Chunks(r.is.walk, p.Quantum, r.powers.has(power.PowerStreamRecorder)),
		Shown(r.is.walk, &r.model),
		Labels(r.is.walk, &r.model),
		Accounting(r.is.walk, r.is.stats),
		Nesting(r.is.stats),
		Limit(r.is.stats),
		DeviceAccount(r.is.stats, r.usage(), p.JoinsRegions),
	); err != nil {
		return err
	}
	for _, observe := range [...]func() error{
		r.observeMappings, r.observeStreams, r.observePools, r.observeCounters, r.observeHistory, r.observeModel,
		r.observePromises,
		r.observeIndexes, r.observeOutcome, r.observeLocated,
	} {
		if err := observe(); err != nil {
			return err
		}
	}
	r.emptied = r.outcome == trimmed && r.is.stats.Reserved == 0 || r.emptied && r.outcome == mistake
	// Last, because most bugs that break a forecast also break a more specific invariant.
	return r.judge(r.joined(), r.foreseen())
}

// observeModel compares the statistics with the model, which cannot predict the active bytes: they
// were compared with the walk.
func (r *runner) observeModel() error {
	r.model.counts.PeakActive = max(r.model.counts.PeakActive, r.is.stats.Active)
	return r.judge(Counters(r.is.stats, r.model.Expected()))
}

func (r *runner) observeIndexes() error { return r.judge(checked(r.main.Check())) }

func checked(err error) error {
	if found := corrupted(err); found != nil || err == nil {
		return found
	}
	return violated(ICheck, "%v", err)
}

// page returns the bytes that memory of a range goes back in.
func (r *runner) page() device.Size {
	return cmp.Or(r.subject.Promises.Page, r.main.limiter.Granularity(), 1)
}

// usage returns the device's account, including the injected refusals.
func (r *runner) usage() device.Usage { return r.main.faults.Usage() }

// observePromises checks the promises of this strategy about its free chunks.
func (r *runner) observePromises() error {
	p := &r.subject.Promises
	if err := r.judge(Coalescing(r.is.walk, p.MustMerge)); err != nil {
		return err
	}
	if p.Stamped {
		r.model.released(r.usage().Calls.Returned())
		if err := r.judge(Recency(r.is.walk, &r.model)); err != nil {
			return err
		}
	}
	if err := r.judge(Classes(r.is.walk, p.ClassOf)); err != nil || !r.thorough && r.step%sampleEvery != 0 {
		return err
	}
	if err := r.judge(Hole(r.is.walk, power.LargestFree(r.main.Strategy)), stoppable(r.main, r.is.walk)); err != nil {
		return err
	}
	if !r.powers.has(power.PowerFreeWalker) {
		return nil
	}
	r.search = r.search[:0]
	power.WalkFree(r.main.Strategy, func(c alloc.Chunk) bool {
		r.search = append(r.search, c)
		return len(r.search) <= len(r.is.walk)
	})
	return r.judge(FreeList(r.is.walk, r.search), SearchOrder(r.search, p.SearchOrder))
}

// observeOutcome checks the state that the last call must not have changed.
func (r *runner) observeOutcome() error {
	p := &r.subject.Promises
	switch r.outcome {
	case changed:
		return r.observePlacement()
	case mistake:
		return r.judge(SameWalk(r.was.walk, r.is.walk, r.was.stats, r.is.stats), r.recorded(false))
	case depleted:
		if err := r.judge(SameLive(r.was.walk, r.is.walk), r.recorded(true), r.renewed()); err != nil || p.Serves == nil {
			return err
		}
		into := r.into(r.request)
		return r.judge(Honest(r.is.walk, r.request, func(c alloc.Chunk, asked alloc.Request) bool {
			return c.Pool == into && p.Serves(c, asked)
		}))
	case freed:
		if !p.FreeReleases {
			return r.judge(Holding(r.was.stats, r.is.stats))
		}
	case polled:
		return r.judge(SameLive(r.was.walk, r.is.walk), Polled(r.was.stats, r.is.stats, r.answer.Bytes))
	case trimmed:
		kept := r.fault || r.capturing()
		return r.judge(
			Trimmed(r.releasable(), r.is.ranges, r.page(), r.was.stats, r.is.stats, r.answer.Bytes, kept),
			ReturnedInOrder(r.was.walk, r.main.limiter.returned, p.ReturnOrder),
		)
	case redirected:
		if v, ok := errors.AsType[*Violation](SameLive(r.was.walk, r.is.walk)); ok {
			return r.judge(violated(IPoolAnswer, "%s", v.Detail))
		}
	case configured:
		if v, ok := errors.AsType[*Violation](SameWalk(r.was.walk, r.is.walk, r.was.stats, r.is.stats)); ok {
			return r.judge(violated(IConfAnswer, "%s", v.Detail))
		}
	}
	return nil
}

// recorded compares the strategy's record of its last refusal with the walk. Only a
// request leaves a record.
func (r *runner) recorded(outOfMemory bool) error {
	f, ok := power.LastRefusal(r.main.Strategy)
	if !ok || !r.powers.has(power.PowerFailure) || !r.isRequest {
		return nil
	}
	u := r.usage().Calls
	return RefusalRecord(r.is.walk, f, r.request, outOfMemory, refusals(u) > refusals(r.calls),
		u.Obtained() > r.calls.Obtained())
}

// refusals returns how many calls of any kind failed: new memory may be created and not be mapped.
func refusals(c device.Calls) (n uint64) {
	for _, k := range c {
		n += k.Failed
	}
	return n
}

// finish frees every block, closes the strategy and checks that nothing is left. The twin
// is closed with its blocks live, after they were moved.
func (r *runner) finish() error {
	r.undrained, r.ended = len(r.events), true
	for _, step := range [...]func() error{
		r.drain, r.leavePools, r.settleStreams, r.empty,
		func() error { return r.call(Call{Op: Op{Kind: OpTrim}}) },
		r.empty, r.renew,
		func() error { r.begin(); return cmp.Or(r.stop(), r.move(r.twin)) },
		func() error { return r.closeInstance(r.main) },
		func() error { return r.closeInstance(r.twin) },
		func() error { return r.judge(r.leaveCard()) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// closeInstance closes an instance and checks that nothing is left of it.
func (r *runner) closeInstance(m *machine) error {
	if r.record && m == r.main {
		r.closing = append(r.closing, "close")
	} else if r.record {
		r.closing = append(r.closing, "close a second instance, with its blocks live")
	}
	err := r.judge(m.closeAll())
	if err != nil || !m.dev.Usage().Empty() {
		return err // the device refused on its plan, which explains the refusal
	}
	return r.judge(m.checkClosed())
}

// empty checks a strategy whose blocks were all freed.
func (r *runner) empty() error {
	if !r.settled() {
		return nil
	}
	return r.judge(Drained(r.is.walk, r.is.stats))
}

// drain frees the live blocks of the main instance, oldest first. Faults still pending are
// cancelled, so that every free can succeed; a planned one may still need a second try.
// The twin keeps its blocks: it gets no more calls until it is closed.
func (r *runner) drain() error {
	if r.armed {
		if err := r.perform(&Call{Op: Op{Kind: OpFault}}); err != nil {
			return err
		}
	}
	r.machines = r.machines[:1]
	for tries := 2 * len(r.live); len(r.live) > 0 && tries > 0; tries-- {
		c := Call{Op: Op{Kind: OpFree}}
		r.name(&c, 0)
		r.foresee(append(r.coming[:0], coming{frees: true, addr: c.Addr}))
		if err := r.call(c); err != nil {
			return err
		}
	}
	return nil
}
