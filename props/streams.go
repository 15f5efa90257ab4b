package props

import (
	"errors"
	"maps"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// remnant is memory that was freed and not granted since, and that streams may still use.
type remnant struct {
	span
	id      uint64  // of the allocation
	places  []place // of the stream of the request, and of the streams that were recorded for it
	perhaps []place // of streams that a strategy may also wait for
}

func (r *remnant) used(o *order) (place, bool) {
	for _, p := range r.places[1:] {
		if !o.finished(p) {
			return p, true
		}
	}
	return place{}, false
}

func (r *remnant) settled(o *order) bool {
	return !slices.ContainsFunc(r.places, func(p place) bool { return !o.finished(p) })
}

// forgotten reports whether the memory is free for every stream, so that no strategy may wait for
// one.
func (r *remnant) forgotten(o *order) bool {
	return r.settled(o) && !slices.ContainsFunc(r.perhaps, func(p place) bool { return !o.finished(p) })
}

// use records that a stream was recorded for the live block at a, during a capture or not.
//
// Precondition: a live block starts there.
func (m *Model) use(a device.Addr, s device.Stream, captured bool) {
	i, _ := m.find(a)
	g := &m.byAddr[i]
	if s != g.Request.Stream && !slices.Contains(g.Uses, s) {
		g.Uses = append(slices.Clip(g.Uses), s)
	}
	if captured {
		g.Captured = append(slices.Clip(g.Captured), s)
	}
}

func (m *Model) leave(g Grant, at moment) {
	r := remnant{span: span{g.Block.Addr, g.End()}, id: g.ID, places: []place{at.place(g.Request.Stream)}}
	for _, s := range g.Uses {
		if slices.Contains(g.Captured, s) {
			r.perhaps = append(r.perhaps, at.place(s))
		} else {
			r.places = append(r.places, at.place(s))
		}
	}
	m.remnants = append(m.remnants, r)
}

// cover records that remnants are granted again: users of the new block come after them.
func (m *Model) cover(b alloc.Block) {
	granted := []span{{b.Addr, b.Addr.Add(b.Size)}}
	for i := len(m.remnants) - 1; i >= 0; i-- {
		r := m.remnants[i]
		if len(within([]span{r.span}, granted)) == 0 {
			continue
		}
		m.remnants = slices.Delete(m.remnants, i, i+1)
		for _, s := range without([]span{r.span}, granted) {
			r.span = s
			m.remnants = append(m.remnants, r)
		}
	}
}

// settle forgets the remnants that no stream uses any more.
func (m *Model) settle(o *order) {
	m.remnants = slices.DeleteFunc(m.remnants, func(r remnant) bool { return r.forgotten(o) })
}

// inOrder checks invariant I49: the stream that a block was just granted to comes after the last
// uses of its memory by other streams.
func inOrder(m *Model, o *order, b alloc.Block, s device.Stream) error {
	granted := []span{{b.Addr, b.Addr.Add(b.Size)}}
	for _, r := range m.remnants {
		if len(within([]span{r.span}, granted)) == 0 {
			continue
		}
		for _, p := range r.places {
			if !o.ordered(p, s) {
				return violated(IOrder, "block %v of %d bytes is granted to stream %d, in it stream %d may still use freed "+
					"allocation %d",
					b.Addr, uint64(b.Size), uint64(s), uint64(p.stream), r.id)
			}
		}
	}
	return nil
}

// pending checks invariant I50: what streams still use is pending, where it was recorded for
// them, and keeps its memory. If the strategy has just polled, nothing else is pending.
func pending(walk []alloc.Chunk, m *Model, o *order, polled bool) error {
	for _, c := range walk {
		if c.State == alloc.Live {
			continue // granted again, which invariant I49 judges
		}
		chunk, busy := []span{{c.Addr, c.End()}}, false
		for i := range m.remnants {
			r := &m.remnants[i]
			if len(within([]span{r.span}, chunk)) == 0 || r.forgotten(o) {
				continue
			}
			if busy = true; r.settled(o) {
				continue
			}
			if p, ok := r.used(o); ok && c.State != alloc.Pending {
				return violated(IPending, "%v chunk %v of %d bytes: stream %d was recorded for freed allocation %d in it and has "+
					"not passed the free",
					c.State, c.Addr, uint64(c.Size), uint64(p.stream), r.id)
			}
			if c.State == alloc.Unmapped {
				return violated(IPending, "chunk %v of %d bytes is unmapped, and stream %d may still use freed allocation %d in it",
					c.Addr, uint64(c.Size), uint64(r.places[0].stream), r.id)
			}
		}
		if polled && c.State == alloc.Pending && !busy {
			return violated(IPending, "after Poll chunk %v of %d bytes is pending, and no stream uses it", c.Addr,
				uint64(c.Size))
		}
	}
	return nil
}

// Polled checks invariant I50 of the answer to a poll: it returns the bytes by which the active
// bytes fell, which are no longer pending.
func Polled(before, after alloc.Stats, settled device.Size) error {
	if before.Active-after.Active != settled {
		return violated(IPending, "Poll says %d bytes, Stats.Active went from %d to %d",
			uint64(settled), uint64(before.Active), uint64(after.Active))
	}
	return nil
}

type powers struct {
	all   [64]bool
	timed bool // work on its device finishes by itself, which the model of streams cannot predict
}

// powersOf returns the powers of a strategy on a device with or without a clock.
func powersOf(s alloc.Inspector, timed bool) powers {
	all := powers{timed: timed}
	for p := range power.Powers {
		all.all[p] = power.Has(s, p)
	}
	return all
}

func (p *powers) has(one power.Power) bool { return p.all[one] }

// ordered reports whether the model of streams predicts what the strategy may do.
func (p *powers) ordered() bool { return p.has(power.PowerStreamRecorder) && !p.timed }

func (r *runner) used(c *Call) error {
	if !r.powers.has(power.PowerStreamRecorder) {
		r.outcome = mistake
		return nil
	}
	if err := r.judge(UseAnswer(&r.model, c.Addr, r.answer.Err)); err != nil {
		return err
	}
	if r.answer.Err != nil {
		r.outcome = mistake
		return nil
	}
	r.model.use(c.Addr, c.Stream, r.capturing())
	return nil
}

func (r *runner) observeStreams() error {
	if !r.powers.ordered() {
		return nil
	}
	o := &r.main.limiter.order
	r.model.settle(o)
	complete := r.outcome == polled && !r.fault && !r.late()
	if complete {
		r.postponed = false
	}
	return r.judge(pending(r.is.walk, &r.model, o, complete))
}

// late reports whether the strategy may wait for a mark that it could not put where the block
// was freed, because the device refused it there or a graph was captured.
func (r *runner) late() bool {
	c := r.usage().Calls
	refused := c[device.CallNewEvent].Failed+c[device.CallRecord].Failed > 0
	return r.capturing() || (refused || r.postponed) && r.main.limiter.order.unfinished()
}

// settleStreams finishes the work on all streams and polls, so that nothing is pending. It does so
// twice if the device refuses a call or has.
func (r *runner) settleStreams() error {
	for tries := 0; r.powers.has(power.PowerStreamRecorder) && tries < 2; tries++ {
		for _, s := range slices.Sorted(maps.Keys(r.main.limiter.order.queued)) {
			if err := r.perform(&Call{Op: Op{Kind: OpDrain, Stream: s}}); err != nil {
				return err
			}
		}
		if err := r.call(Call{Op: Op{Kind: OpPoll}}); err != nil || r.settled() {
			return err
		}
	}
	return nil
}

// settled reports whether nothing may be in use: no block is live, and a strategy with streams
// has just been made to look for what they have finished with.
func (r *runner) settled() bool {
	switch {
	case len(r.model.Live()) > 0 || len(r.model.remnants) > 0:
		return false
	case !r.powers.has(power.PowerStreamRecorder):
		return true
	case r.late():
		return false
	case !r.powers.has(power.PowerPoller):
		return r.outcome == trimmed && !r.fault
	}
	return r.outcome == polled && !r.fault
}

// UseAnswer checks invariant I23 of a stream that was recorded: for a live block that succeeds,
// for anything else it is answered by alloc.ErrInvalidFree.
func UseAnswer(m *Model, a device.Addr, err error) error {
	g, live := m.At(a)
	switch {
	case live && err != nil:
		return violated(IFreeAnswer, "a stream recorded for %v (allocation %d) was answered by %q", a, g.ID, err)
	case !live && !errors.Is(err, alloc.ErrInvalidFree):
		return violated(IFreeAnswer, "no live block starts at %v and a stream recorded for it was answered by %v, want %q",
			a, quoted(err), alloc.ErrInvalidFree)
	}
	return nil
}
