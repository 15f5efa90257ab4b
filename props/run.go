package props

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// outcome is the effect of a call, which decides what must not have changed.
type outcome uint8

const (
	changed    outcome = iota // anything else
	freed                     // a live block was freed
	mistake                   // refused as the caller's mistake
	depleted                  // a request ran out of memory
	trimmed                   // cached regions were released
	polled                    // deferred frees were looked for
	cleared                   // the statistics were reset
	redirected                // a redirection into a private pool began or ended, or a pool was released
	configured                // the settings were changed
)

// sampleEvery is how many steps lie between two checks that cost a copy of the walk.
const sampleEvery = 8

// view is the state of a strategy and its device at one moment.
type view struct {
	walk     []alloc.Chunk
	stats    alloc.Stats
	held     []device.Region // regions and ranges, by address
	ranges   []device.Region // the ranges among them
	counters []int64
}

// runner observes an interpreter of two instances of a strategy and judges every answer, and the
// state of the first instance after every call, by the model. The second instance, the twin, is
// closed with its blocks live. Buffers are kept from one sequence to the next.
type runner struct {
	interpreter
	subject  *Subject // with the promises of the present settings
	initial  *Subject // as it is built
	confs    []string // the settings that were changed to, in order
	except   exceptions
	thorough bool // check everything after every step

	main, twin *machine
	watchers   []Watcher // of the two, or none
	powers     powers
	ceiling    device.Size // largest request
	model      Model
	index      *counterIndex // of the strategy's counters, which every sequence has

	was, is view                   // before and after the last call
	now     view                   // within it: only what is held
	gather  func(alloc.Chunk) bool // appends a chunk to is; one closure for all walks
	search  []alloc.Chunk
	maps    []sim.Mapping

	calls    device.Calls   // of the device, before the last call
	injected uint64         // faults before the last call
	moment   moment         // of the streams, before the last call
	captured bool           // a graph may have been captured before the last call
	reported []power.Action // actions of the history in the last call

	outcome   outcome
	isRequest bool          // whether the last call was a request
	request   alloc.Request // the last
	answer    Answer        // of the last call
	block     alloc.Block   // the last one granted
	fault     bool          // whether the device refused the last trim or poll

	armed     bool // the sequence let device calls fail
	emptied   bool // since a trim that left nothing there were only mistakes
	postponed bool // a block was freed during a capture, and may wait for later marks
	undrained int  // events before everything was freed; 0 if that was not reached

	stale []alloc.Block // blocks that the twin freed, the last few of them
	wrong []alloc.Block // references that the twin must refuse

	coming   []coming // the next calls
	ages     []device.Addr
	forecast forecast
}

func newRunner(s *Subject) *runner {
	r := &runner{subject: s, initial: s, except: s.exceptions()}
	r.observer = r
	r.gather = func(c alloc.Chunk) bool {
		r.is.walk = append(r.is.walk, c)
		return len(r.is.walk) <= mostChunks
	}
	return r
}

// judge returns the first violation that is not an exception of the subject.
func (r *runner) judge(violations ...error) error {
	for _, err := range violations {
		if err == nil {
			continue
		}
		v, ok := errors.AsType[*Violation](err)
		if !ok || !r.except[v.Number] {
			return err
		}
		r.tally.except(v.Number, 1)
	}
	return nil
}

// run builds the strategy, runs the sequence and takes everything down again. It returns
// a *Violation, or another error if the strategy cannot be built.
func (r *runner) run(seq Sequence, plan device.FaultPlan) error {
	r.starts(seq, plan)
	r.reset()
	seq = slices.Concat(r.subject.trained, seq)
	if r.subject.misled {
		r.mislead(seq)
	}
	return r.guard(func() error {
		if built, err := r.build(plan); !built {
			return err
		}
		if err := r.look(); err != nil {
			return err
		}
		for i, op := range seq {
			r.foresee(r.comingOf(seq[i:]))
			if err := r.apply(op); err != nil {
				return err
			}
		}
		return r.finish()
	}, r.judge)
}

// leaveCard checks invariant I63 for the last time, returns the memory of the sequence's card and
// counts its calls.
func (r *runner) leaveCard() error {
	if r.main == nil || r.main.beside == nil {
		return nil
	}
	found, card := r.main.carded(), r.main.beside
	if err := card.Close(); err != nil && found == nil {
		found = violated(ICard, "the card cannot be given back: %v", err)
	}
	r.tally.Card.Add(CardTally{card.CardCalls(), card.Traffic()})
	r.main.beside = nil
	return found
}

// reset forgets the last sequence. Instances that it left open are closed, because some hold more
// than memory of this program.
func (r *runner) reset() {
	r.dispose(r.main, r.twin)
	_ = r.leaveCard() // the sequence reported its violation
	r.main, r.twin = nil, nil
	if len(r.confs) > 0 {
		r.subject, r.except, r.confs = r.initial, r.initial.exceptions(), r.confs[:0]
	}
	r.interpreter.reset()
	r.model.reset()
	r.undrained, r.outcome, r.isRequest, r.armed, r.emptied, r.postponed = 0, changed, false, false, false, false
	r.was, r.is = r.was.cleared(), r.is.cleared()
	r.reported, r.calls, r.stale = r.reported[:0], device.Calls{}, r.stale[:0]
	r.forecast.frees, r.forecast.requests = false, false
}

func (v view) cleared() view {
	return view{walk: v.walk[:0], held: v.held[:0], ranges: v.ranges[:0], counters: v.counters[:0]}
}

// build makes both instances. It returns false if there is nothing to run: the strategy
// could not be built. That is no violation if a fault was injected and nothing is held.
func (r *runner) build(plan device.FaultPlan) (built bool, err error) {
	if r.main, err = newWatched(r.subject, plan); err != nil {
		if r.main.faults == nil || r.main.faults.Injected() == 0 {
			return false, fmt.Errorf("%s: cannot be built: %w", r.subject.Name, err)
		}
		return false, r.judge(unbuilt(r.main.dev.Usage()), r.leaveCard())
	}
	twin, err := newTwin(r.subject, plan, r.main)
	return err == nil, r.study(twin, err)
}

// study takes the second instance, whose strategy may be missing with an error, and notes the
// powers of the strategy.
func (r *runner) study(twin *machine, err error) error {
	if r.twin = twin; err != nil {
		return r.judge(violated(IDeterminism, "the second instance could not be built: %v", err))
	}
	r.machines = append(r.machines[:0], r.main, r.twin)
	for i, w := range r.watchers {
		r.machines[i].watch = w
	}
	s := r.main.Strategy
	r.ceiling = power.MaxRequest(s)
	r.powers = powersOf(s, r.main.dev.Config().Clock == sim.Timed)
	_ = power.SetHistory(s, func(a power.Action) { r.reported = append(r.reported, a) }) // if it has the power
	listen(r.twin)
	return nil
}

func (r *runner) before() {
	r.tally.Calls++
	r.outcome, r.isRequest = changed, false
	r.calls, r.captured = r.usage().Calls, r.capturing()
	r.injected = r.main.faults.Injected()
	r.reported = r.reported[:0]
	if r.powers.has(power.PowerStreamRecorder) {
		r.moment = r.main.limiter.order.now()
	}
}

func (r *runner) aim(c *Call) bool {
	ok := true
	switch c.Kind {
	case OpAlloc:
		c.Request = r.requestOf(c.Op, c.ID)
		r.mark()
	case OpFault:
		r.armed = true
	case OpDoubleFree:
		var g Grant
		g, ok = r.model.Freed(c.Pick)
		c.ID, c.Addr = g.ID, g.Block.Addr
	case OpInterior:
		n := r.main.blocks[c.nth].Size
		if ok = n >= 2; ok {
			c.inside = interior(c.Pick, n)
			c.Addr = c.Addr.Add(c.inside)
		}
	case OpForeign:
		c.Addr = r.foreign(c.Pick)
		_, live := r.model.At(c.Addr)
		ok = !live && c.Addr != 0
	}
	return ok
}

// foreign returns an address that was never granted, or 0 if the choice does not exist
// now: far below, just below or at the end of a held region, or a free chunk.
func (r *runner) foreign(pick uint64) device.Addr {
	nth := pick / 4
	switch pick % 4 {
	case 0:
		return device.Addr(nth + 1)
	case 1:
		return sim.Base - device.Addr(1+nth%1024)
	case 2:
		if n := uint64(len(r.is.held)); n > 0 {
			return r.is.held[nth%n].End()
		}
	default:
		if n := uint64(len(r.is.walk)); n > 0 && r.is.walk[nth%n].State == alloc.Free {
			return r.is.walk[nth%n].Addr
		}
	}
	return 0
}

func (r *runner) answered(m *machine, c *Call) error {
	if m == r.main {
		r.answer = m.answer
		return r.judge(corrupted(m.answer.Err))
	}
	if c.Kind.wrong() {
		r.tally.BadFrees++
	}
	return r.judge(agreed(c, r.main.answer, m.answer))
}

func (r *runner) after(c *Call) error {
	switch c.Kind {
	case OpAlloc:
		return r.requested(c)
	case OpFree:
		return r.released(c)
	case OpDoubleFree, OpInterior, OpForeign, OpNull:
		return r.misused(c)
	case OpTrim:
		return r.returned(c, power.PowerTrimmer, trimmed)
	case OpPoll:
		return r.returned(c, power.PowerPoller, polled)
	case OpUse:
		return r.used(c)
	case OpPoolBegin, OpPoolEnd, OpPoolRelease:
		return r.pooled(c)
	case OpConf:
		return r.configured(c)
	}
	switch {
	case r.answer.Err != nil: // the strategy lacks the power
	case c.Kind == OpFrontier:
		r.model.stamps.raise(c.Count)
	case c.Kind == OpClear:
		r.model.clear()
		r.outcome = cleared
	}
	return nil
}

func (r *runner) requested(c *Call) error {
	r.request, r.isRequest = c.Request, true
	err := r.answer.Err
	known := r.powers.has(power.PowerCeiling)
	if err := r.judge(RequestAnswer(&r.subject.Promises, c.Request, r.ceiling, known, err)); err != nil {
		return err
	}
	if err == nil {
		return r.granted(c)
	}
	r.bookRefusal(err)
	if r.outcome = mistake; errors.Is(err, alloc.ErrOutOfMemory) {
		r.outcome = depleted
		r.model.counts.OOMs++
	}
	return nil
}

func (r *runner) granted(c *Call) error {
	g := Grant{ID: c.ID, Request: c.Request, Block: r.answer.Block, Pool: r.into(c.Request)}
	p := &r.subject.Promises
	if err := r.contents(); err != nil {
		return err
	}
	r.now.collectHeld(r.main.dev)
	if err := r.judge(
		GrantSize(g.Block, g.Request, p.MaxGrant),
		Contained(g.Block, r.now.held, p.JoinsRegions),
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
		if err := r.judge(inOrder(&r.model, &r.main.limiter.order, g.Block, g.Request.Stream)); err != nil {
			return err
		}
		r.model.cover(g.Block)
	}
	if r.powers.has(power.PowerReferenced) {
		if err := r.judge(Referenced(g.Block)); err != nil {
			return err
		}
	}
	// Without this one the model itself makes no sense, so there is no exception to it.
	if err := Disjoint(&r.model, g.Block); err != nil {
		return err
	}
	r.block = g.Block
	r.model.grant(g)
	r.bookGrant(c)
	return nil
}

// released judges and books the answer to the free of a live block. The free succeeds even if the
// device refuses to release its region: the region stays, without the block.
func (r *runner) released(c *Call) error {
	if err := r.answer.Err; errors.Is(err, device.ErrInjected) {
		return r.judge(violated(IFault, "free of %v was answered by the refusal of the device: %q", c.Addr, err))
	}
	if err := r.judge(FreeAnswer(&r.subject.Promises, &r.model, c.Addr, r.answer.Err)); err != nil {
		return err
	}
	if r.powers.ordered() {
		g, _ := r.model.At(c.Addr)
		r.model.leave(g, r.moment)
		r.postponed = r.postponed || len(g.Uses) > 0 && r.capturing()
	}
	r.model.release(c.Addr)
	if len(r.machines) > 1 {
		r.remember(r.twin.blocks[c.nth])
	}
	r.bookFree(c)
	r.outcome = freed
	return r.misreference()
}

// misused judges the answer to an illegal free. No stream can be recorded for the address either.
func (r *runner) misused(c *Call) error {
	r.outcome = mistake
	err := r.judge(FreeAnswer(&r.subject.Promises, &r.model, c.Addr, r.answer.Err), r.noNeighbours(c.Addr))
	if err != nil || !r.powers.has(power.PowerStreamRecorder) {
		return err
	}
	return r.exchange(&Call{Op: Op{Kind: OpUse, Stream: 1}, Addr: c.Addr}, nil)
}

// returned judges the answer to a trim or a poll, which fails only if the device refuses a call.
func (r *runner) returned(c *Call, p power.Power, o outcome) error {
	r.fault = r.main.faults.Injected() > r.injected
	switch err := r.answer.Err; {
	case !r.powers.has(p):
		r.outcome = mistake
	case err != nil && !r.fault:
		return r.judge(violated(IFault, "%s failed with %q though the device refused nothing", kinds[c.Kind].method, err))
	case err == nil && r.fault:
		return r.judge(violated(IFault, "%s succeeded though the device refused a call", kinds[c.Kind].method))
	default:
		r.outcome = o
	}
	return nil
}
