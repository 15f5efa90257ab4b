package props

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/trace"
)

// outcome is what became of a call, which decides what must not have changed.
type outcome uint8

const (
	changed    outcome = iota // whatever the call is for
	freed                     // a live block was freed
	mistake                   // refused as the caller's mistake
	depleted                  // a request ran out of memory
	trimmed                   // cached regions went back
	polled                    // deferred frees were looked for
	cleared                   // the statistics were reset
	redirected                // a redirection into a private pool began or ended, or a pool was released
)

// sampleEvery is how many steps lie between two looks at what costs a copy of the walk.
const sampleEvery = 8

// runner drives a strategy through one sequence after another and judges it. Its buffers
// are kept from one sequence to the next.
type runner struct {
	subject  *Subject
	except   [len(invariantNames)]bool
	thorough bool // look at everything after every step
	record   bool // note the events

	main, twin *machine // the twin gets the same calls, and is closed with its blocks live
	alone      bool     // the twin gets no more calls
	armed      bool     // the sequence let device calls fail
	ceiling    device.Size
	ceilinged  bool
	powers     powers
	model      Model
	step       int

	before, walk []alloc.Chunk // what Walk showed before and after the last call
	search       []alloc.Chunk
	held         []device.Region // regions and ranges
	ranges       []device.Region // the ranges among them
	maps         []sim.Mapping
	was, stats   alloc.Stats
	calls        device.Calls // of the device, before the last call
	injected     uint64       // faults before the last call
	emptied      bool         // nothing but a trim that left nothing came before the last call, or mistakes
	moment       moment       // of the streams, before the last call

	coming   []coming // the next calls
	ages     []device.Addr
	forecast forecast

	outcome  outcome
	asked    bool          // whether the last call was a request
	request  alloc.Request // the last
	answer   error         // to it
	block    alloc.Block   // the last one granted
	returned device.Size   // bytes, by the last trim or poll
	refused  bool          // whether the device refused the last trim or poll

	told         []alloc.Action  // by the strategy, in the last call
	rangesBefore []device.Region // the ranges before it
	index        *counterIndex   // of its counters, which every sequence has
	counters     []int64
	countersWere []int64

	captured  bool // requests were redirected before the last call
	postponed bool // a block was freed while requests were redirected, and may wait for later marks

	events    []trace.Event
	undrained int    // events before everything was freed; 0 if that was not reached
	stack     []byte // of a panic
	tally     Result
}

// newRunner returns a runner for the subject.
func newRunner(s *Subject) *runner {
	r := &runner{subject: s}
	for _, e := range s.Promises.Except {
		if n, ok := ParseNumber(e.Invariant); ok {
			r.except[n] = true
		}
	}
	return r
}

// judge returns the first of the violations that is no exception of the subject's.
func (r *runner) judge(violations ...error) error {
	for _, err := range violations {
		if err == nil {
			continue
		}
		v, ok := errors.AsType[*Violation](err)
		switch {
		case !ok, !r.except[v.Number]:
			return err
		case r.tally.Excepted == nil:
			r.tally.Excepted = map[Number]int{v.Number: 1}
		default:
			r.tally.Excepted[v.Number]++
		}
	}
	return nil
}

// run builds the strategy, runs the sequence and takes everything down again. It returns
// a *Violation, or another error if the strategy cannot be built.
func (r *runner) run(seq Sequence, plan device.FaultPlan) (err error) {
	r.reset()
	defer func() {
		if p := recover(); p != nil {
			err = r.panicked(p)
		}
	}()
	if built, err := r.build(plan); !built {
		return err
	}
	if err := r.observe(); err != nil {
		return err
	}
	for i, op := range seq {
		r.foresee(r.comingOf(seq[i:]))
		if err := r.apply(op); err != nil {
			return err
		}
	}
	return r.finish()
}

// leaveCard gives back what the card of the last sequence has, and counts what was done with it.
func (r *runner) leaveCard() error {
	if r.main == nil || r.main.beside == nil {
		return nil
	}
	err := r.main.giveCardBack()
	r.tally.Card.Add(CardTally{r.main.beside.CardCalls(), r.main.beside.Traffic()})
	r.main.beside = nil
	return err
}

// reset forgets the last sequence. Instances that it left open are closed, because some hold more
// than memory of this program.
func (r *runner) reset() {
	for _, m := range []*machine{r.main, r.twin} {
		m.abandon()
	}
	_ = r.leaveCard() // what is wrong with it was said by the sequence
	r.main, r.twin = nil, nil
	r.model.reset()
	r.step, r.undrained, r.outcome, r.asked, r.alone, r.armed = 0, 0, changed, false, false, false
	r.walk, r.before, r.events, r.stack = r.walk[:0], r.before[:0], r.events[:0], nil
	r.held, r.ranges, r.told = r.held[:0], r.ranges[:0], r.told[:0]
	r.forecast.frees, r.forecast.requests = false, false
	r.stats, r.was, r.calls, r.postponed = alloc.Stats{}, alloc.Stats{}, device.Calls{}, false
	r.emptied = false
}

// panicked turns what was recovered into a violation.
func (r *runner) panicked(p any) error {
	if r.record {
		r.stack = debug.Stack()
	}
	if err, ok := p.(error); ok && errors.Is(err, errRunaway) {
		return r.judge(violated(ITerminates, "%v", err))
	}
	return r.judge(violated(INoPanic, "panic: %v", p))
}

// build makes both machines. It returns false if there is nothing to run: the strategy
// could not be built, which is no violation if a fault was injected and nothing is held.
func (r *runner) build(plan device.FaultPlan) (built bool, err error) {
	if r.main, err = newWatched(r.subject, plan); err != nil {
		if r.main.faults == nil || r.main.faults.Injected() == 0 {
			return false, fmt.Errorf("%s: cannot be built: %w", r.subject.Name, err)
		}
		return false, r.judge(unbuilt(r.main.dev.Usage()), r.leaveCard())
	}
	if r.twin, err = newTwin(r.subject, plan, r.main); err != nil {
		return false, r.judge(violated(IDeterminism, "the second instance could not be built: %v", err))
	}
	r.study()
	return true, nil
}

// study notes what the strategy says of itself.
func (r *runner) study() {
	s := r.main.Strategy
	r.ceiling = alloc.MaxRequest(s)
	r.ceilinged = alloc.Has(s, alloc.PowerCeiling)
	r.powers = powers{
		recorder: alloc.Has(s, alloc.PowerStreamRecorder),
		poller:   alloc.Has(s, alloc.PowerPoller),
		pools:    alloc.Has(s, alloc.PowerPrivatePools),
		timed:    r.main.dev.Config().Clock == sim.Timed,
		counted:  alloc.Has(s, alloc.PowerCounted),

		neighbours: alloc.Has(s, alloc.PowerNeighbours),
		placer:     alloc.Has(s, alloc.PowerPlacer),
	}
	r.powers.historian = alloc.SetHistory(s, func(a alloc.Action) { r.told = append(r.told, a) }) == nil
	listen(r.twin)
}

// begin notes what the next call is compared with.
func (r *runner) begin() {
	r.step++
	r.tally.Calls++
	r.main.leash.begin()
	r.twin.leash.begin()
	r.calls, r.captured = r.usage().Calls, r.redirecting()
	r.injected = r.main.faults.Injected()
	r.told, r.rangesBefore = r.told[:0], append(r.rangesBefore[:0], r.ranges...)
	if r.powers.recorder {
		r.moment = r.main.leash.order.now()
	}
	r.outcome, r.asked = changed, false
}

// apply makes the call of one operation and judges it.
func (r *runner) apply(op Op) error {
	r.begin()
	done, err := r.call(op)
	if err != nil || !done {
		return err
	}
	return r.observe()
}

// call makes the call of one operation. It returns false if there was nothing to act on.
func (r *runner) call(op Op) (done bool, err error) {
	switch op.Kind {
	case OpAlloc:
		return true, r.alloc(op)
	case OpFree:
		g, ok := r.model.Oldest(op.Pick)
		if !ok {
			return false, nil
		}
		return true, r.free(g)
	case OpDoubleFree, OpInterior, OpForeign, OpNull:
		return r.badFree(op)
	case OpTrim:
		return true, r.trim()
	case OpFrontier:
		return true, r.frontier(op)
	case OpClear:
		return true, r.clear()
	case OpFault:
		r.note(trace.Event{Kind: trace.Fault, Arg: op.Pick})
		r.armed = true
		r.main.faults.FailNext(op.Pick)
		r.twin.faults.FailNext(op.Pick)
	case OpUse:
		g, ok := r.model.Oldest(op.Pick)
		if !ok {
			return false, nil
		}
		return true, r.use(g, op.Stream)
	case OpDrain:
		return false, r.drainStream(op.Stream)
	case OpPoll:
		return true, r.poll()
	case OpPoolBegin, OpPoolEnd, OpPoolRelease:
		return true, r.pool(op)
	}
	return false, nil
}

// note keeps an event for the trace of a failure.
func (r *runner) note(e trace.Event) {
	if !r.record {
		return
	}
	e.Time = trace.NoTime
	e.Slot = trace.NoSlot
	if e.ID != 0 {
		e.Slot = uint32(e.ID - 1)
	}
	r.events = append(r.events, e)
}

// alloc requests a block.
func (r *runner) alloc(op Op) error {
	r.model.ids++
	req := op.request(r.model.ids)
	r.note(trace.Event{
		Kind: trace.Alloc, ID: req.Tag, Size: req.Size, Align: req.Align, Stream: req.Stream, Hint: req.Hint, Arg: req.Before,
	})
	b, err := r.main.Alloc(req)
	return r.answered(r.model.ids, req, b, err)
}

// answered asks the twin for the same block, and judges and books the answer to a request.
func (r *runner) answered(id uint64, req alloc.Request, b alloc.Block, err error) error {
	r.request, r.asked, r.answer = req, true, err
	other, otherErr := b, err
	if !r.alone {
		other, otherErr = r.twin.Alloc(req)
	}
	if err := r.judge(
		corrupted(err),
		agree("Alloc", blockText(b), blockText(other), err, otherErr),
		RequestAnswer(&r.subject.Promises, req, r.ceiling, r.ceilinged, err),
	); err != nil {
		return err
	}
	switch {
	case errors.Is(err, alloc.ErrOutOfMemory):
		r.outcome = depleted
		r.model.counts.OOMs++
		r.tally.OutOfMemory++
		return nil
	case err != nil:
		r.outcome = mistake
		r.tally.Mistakes++
		return nil
	}
	return r.granted(Grant{ID: id, Request: req, Block: b, Pool: r.into(req)})
}

// granted judges and books a new block.
func (r *runner) granted(g Grant) error {
	p := &r.subject.Promises
	if err := r.contents(); err != nil {
		return err
	}
	r.collectHeld()
	if err := r.judge(
		GrantSize(g.Block, g.Request, p.MaxGrant),
		Contained(g.Block, r.held, p.JoinsRegions),
		Aligned(g.Block, g.Request),
	); err != nil {
		return err
	}
	r.model.released(r.usage().Calls.Returned())
	if p.Stamped {
		if err := r.judge(InBound(g.Block, g.Request, &r.model)); err != nil {
			return err
		}
	}
	if r.powers.ordered() {
		if err := r.judge(inOrder(&r.model, &r.main.leash.order, g.Block, g.Request.Stream)); err != nil {
			return err
		}
		r.model.cover(g.Block)
	}
	// Without this one the model itself makes no sense, so there is no exception to it.
	if err := Disjoint(&r.model, g.Block); err != nil {
		return err
	}
	r.block = g.Block
	r.model.grant(g)
	r.tally.Grants++
	return nil
}

// twinFree frees an address on the twin and returns a violation if its answer differs.
func (r *runner) twinFree(a device.Addr, answer error) error {
	if r.alone {
		return nil
	}
	return agree("Free", nil, nil, answer, r.twin.Free(a))
}

// free frees a live block.
func (r *runner) free(g Grant) error {
	r.note(trace.Event{Kind: trace.Free, ID: g.ID})
	return r.released(g.Block.Addr, r.main.Free(g.Block.Addr))
}

// released judges and books the answer to the free of a live block. It succeeds whatever the
// device does: a region whose release the device refuses stays, without the block.
func (r *runner) released(a device.Addr, err error) error {
	if err := r.judge(corrupted(err), r.twinFree(a, err)); err != nil {
		return err
	}
	if errors.Is(err, device.ErrInjected) {
		return r.judge(violated(IFault, "free of %v was answered by the refusal of the device: %q", a, err))
	}
	if err := r.judge(FreeAnswer(&r.model, a, err)); err != nil {
		return err
	}
	if r.powers.ordered() {
		g, _ := r.model.At(a)
		r.model.leave(g, r.moment)
		r.postponed = r.postponed || len(g.Uses) > 0 && r.redirecting()
	}
	r.model.release(a)
	r.outcome = freed
	r.tally.Frees++
	return nil
}

// badFree frees what must not be freed, if there is such a thing.
func (r *runner) badFree(op Op) (done bool, err error) {
	a, e, ok := r.wrongAddress(op)
	if !ok {
		return false, nil
	}
	e.Kind = trace.BadFree
	r.note(e)
	return true, r.misused(a, r.main.Free(a))
}

// misused judges the answer to an illegal free.
func (r *runner) misused(a device.Addr, answer error) error {
	r.outcome = mistake
	r.tally.BadFrees++
	if err := r.judge(r.twinFree(a, answer), FreeAnswer(&r.model, a, answer), r.noNeighbours(a)); err != nil || !r.powers.recorder {
		return err
	}
	const stream = 1 // any: no stream can be recorded for the address either
	return r.used(a, stream, alloc.RecordStream(r.main.Strategy, a, stream))
}

// wrongAddress returns an address at which no live block starts, and how a trace names it.
func (r *runner) wrongAddress(op Op) (a device.Addr, e trace.Event, ok bool) {
	switch op.Kind {
	case OpNull:
		return 0, e, true
	case OpDoubleFree:
		g, ok := r.model.Freed(op.Pick)
		e.ID = g.ID
		return g.Block.Addr, e, ok
	case OpInterior:
		g, ok := r.model.Oldest(op.Pick)
		if !ok || g.Block.Size < 2 {
			return 0, e, false
		}
		e.ID = g.ID
		e.Size = interior(op.Pick, g.Block.Size)
		return g.Block.Addr.Add(e.Size), e, true
	}
	a = r.foreign(op.Pick)
	_, live := r.model.At(a)
	e.Arg = uint64(a)
	return a, e, !live && a != 0
}

// interior returns how far inside a block of n bytes an illegal free aims: one byte, the
// middle, the last byte, or anything.
func interior(pick uint64, n device.Size) device.Size {
	switch pick / 7 % 4 {
	case 0:
		return 1
	case 1:
		return n / 2
	case 2:
		return n - 1
	}
	return 1 + device.Size(pick*0x9e3779b97f4a7c15)%(n-1)
}

// foreign returns an address that was never granted, or 0 if the choice does not exist
// now: far below, just below or at the end of what is held, or a free chunk.
func (r *runner) foreign(pick uint64) device.Addr {
	nth := pick / 4
	switch pick % 4 {
	case 0:
		return device.Addr(nth + 1)
	case 1:
		return sim.Base - device.Addr(1+nth%1024)
	case 2:
		if n := uint64(len(r.held)); n > 0 {
			return r.held[nth%n].End()
		}
	default:
		if n := uint64(len(r.walk)); n > 0 && r.walk[nth%n].State == alloc.Free {
			return r.walk[nth%n].Addr
		}
	}
	return 0
}

// trim gives cached regions back.
func (r *runner) trim() error {
	r.note(trace.Event{Kind: trace.Trim})
	injected := r.main.faults.Injected()
	n, err := alloc.Trim(r.main.Strategy)
	return r.trimmed(n, err, injected)
}

// trimmed judges the answer to a trim; injected is how many faults there had been before.
func (r *runner) trimmed(n device.Size, err error, injected uint64) error {
	r.refused = r.main.faults.Injected() > injected
	if err := r.judge(corrupted(err)); err != nil {
		return err
	}
	if !r.alone {
		other, otherErr := alloc.Trim(r.twin.Strategy)
		if err := r.judge(agree("Trim", n, other, err, otherErr)); err != nil {
			return err
		}
	}
	switch {
	case !alloc.Has(r.main.Strategy, alloc.PowerTrimmer):
		r.outcome = mistake
	case err != nil && !r.refused:
		return r.judge(violated(IFault, "Trim failed with %q though the device refused nothing", err))
	case err == nil && r.refused:
		return r.judge(violated(IFault, "Trim succeeded though the device refused a release"))
	default:
		r.outcome, r.returned = trimmed, n
	}
	return nil
}

// frontier raises the safe frontier to about the number of frees so far.
func (r *runner) frontier(op Op) error {
	count := r.model.frees + 2 - min(op.Pick%8, r.model.frees+2)
	r.note(trace.Event{Kind: trace.Frontier, Arg: count})
	return r.raised(count, alloc.SetFrontier(r.main.Strategy, count))
}

// raised judges the answer to a new frontier.
func (r *runner) raised(count uint64, err error) error {
	if err == nil {
		r.model.stamps.raise(count)
	}
	return r.judge(agree("SetFrontier", nil, nil, err, alloc.SetFrontier(r.twin.Strategy, count)))
}

// clear resets the statistics.
func (r *runner) clear() error {
	r.note(trace.Event{Kind: trace.ClearStats})
	return r.cleared(alloc.ClearStats(r.main.Strategy))
}

// cleared judges and books the answer to a reset of the statistics.
func (r *runner) cleared(err error) error {
	if err == nil {
		r.model.clear()
		r.outcome = cleared
	}
	return r.judge(agree("ClearStats", nil, nil, err, alloc.ClearStats(r.twin.Strategy)))
}

// blockText prints as address+size.
type blockText alloc.Block

// String returns the block as address+size.
func (b blockText) String() string { return fmt.Sprintf("%v+%d", b.Addr, uint64(b.Size)) }
