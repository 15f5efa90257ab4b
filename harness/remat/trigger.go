package remat

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/device"
)

// Trigger is a rule for when victims are chosen. With every trigger, a refused request climbs the
// [Ladder].
type Trigger struct {
	Kind  string      // one of Triggers; empty: room
	Bytes device.Size // bound in bytes, for budget, threshold and post-op
}

// trigger holds the hooks of a kind of trigger.
type trigger struct {
	name    string
	before  func(r *runner, need device.Size) Verdict // before an operator that allocates need bytes
	request func(r *runner, size device.Size)         // before a block is requested
	after   func(r *runner, wanted Tensor)            // after an operator has run
}

// Triggers returns the kinds of triggers:
//
//   - room evicts before an operator until Memory.Room reports room for it.
//   - budget evicts before an operator until used plus needed bytes are at most a bound.
//   - threshold evicts before an operator while used bytes exceed a bound (MegEngine before 1.5).
//   - post-op evicts after an operator while used bytes exceed a bound (PyTorch's prototype).
//   - on-failure evicts only when memory refuses.
//   - reserve evicts before each request until memory reserved from the device has a hole that is
//     large enough (MegEngine since 1.5).
func Triggers() []string {
	names := []string{}
	for _, t := range triggers() {
		names = append(names, t.name)
	}
	return names
}

// triggers returns all kinds, the default first.
func triggers() []*trigger {
	noBefore := func(*runner, device.Size) Verdict { return OK }
	noRequest := func(*runner, device.Size) {}
	noAfter := func(*runner, Tensor) {}
	return []*trigger{
		{"room", (*runner).evictForRoom, noRequest, noAfter},
		{"budget", (*runner).evictForBudget, noRequest, noAfter},
		{"threshold", func(r *runner, _ device.Size) Verdict {
			r.evictAhead()
			return OK
		}, noRequest, noAfter},
		{"post-op", noBefore, noRequest, (*runner).evictAfter},
		{"on-failure", noBefore, noRequest, noAfter},
		{"reserve", noBefore, func(r *runner, size device.Size) {
			r.evictWhile(func() bool {
				for r.addressed.LargestFree() < size {
					if !r.awaitCopy() {
						return true
					}
				}
				return false
			})
		}, noAfter},
	}
}

// configureEviction looks up the trigger, the ladder and the kind of defragmentation.
func (r *runner) configureEviction() (err error) {
	r.addressed, _ = r.mem.(Addressed)
	if r.addressed != nil && r.h.traits&atEnds != 0 {
		for i := range r.s.Ops {
			r.outputBytes += r.s.Ops[i].OutputBytes
		}
		r.addressed.SetHints(r.hintFor)
	}
	for _, t := range triggers() {
		if t.name == r.c.Trigger.Kind || r.c.Trigger.Kind == "" && r.trigger == nil {
			r.trigger = t
		}
	}
	if r.trigger == nil {
		return fmt.Errorf("trigger %q: want %s", r.c.Trigger.Kind, strings.Join(Triggers(), ", "))
	}
	if r.ladder, err = ladderOf(r.c.Ladder); err != nil {
		return err
	}
	if err := r.c.Defrag.check(); err != nil {
		return err
	}
	for _, s := range r.ladder {
		if r.addressed == nil && s.moves {
			return fmt.Errorf("ladder %q: step %s needs a memory with addresses", r.c.Ladder, s.name)
		}
	}
	if r.addressed == nil && r.trigger.name == "reserve" {
		return fmt.Errorf("trigger %s needs a memory with addresses", r.trigger.name)
	}
	return nil
}

func (r *runner) evictForRoom(need device.Size) Verdict {
	r.requested = need
	for !r.mem.Room(need) {
		if !r.awaitCopy() && r.evictFor(need) == nothing {
			return r.outOfMemory()
		}
	}
	return OK
}

func (r *runner) evictForBudget(need device.Size) Verdict {
	r.requested = need
	for r.used+need > r.c.Trigger.Bytes {
		switch {
		case r.evictFor(need) != nothing:
		case r.addressed != nil:
			return OOMCapacity
		default:
			return OOM
		}
	}
	return OK
}

func (r *runner) evictWhile(holds func() bool) {
	for r.hasCandidates() && holds() {
		r.evictFor(r.requested)
	}
}

// evictAhead evicts down to the bound. Nothing needs the memory yet, so copies to the host overlap
// with operators.
func (r *runner) evictAhead() {
	if r.swap != nil {
		r.swap.ahead = true
		defer func() { r.swap.ahead = false }()
	}
	r.evictWhile(func() bool { return r.used > r.c.Trigger.Bytes })
}

// evictAfter evicts down to the bound. It keeps the wanted tensor, which another operator may be
// waiting for, and outputs that are about to be pinned.
func (r *runner) evictAfter(wanted Tensor) {
	op := &r.s.Ops[r.s.Tensors[wanted].Op]
	each := func(f func(s int32)) {
		for t := range op.outputs() {
			s := r.s.Tensors[t].Storage // the liveness policy may have evicted it already
			if r.stores[s].resident && (t == wanted || op.Fixed || r.small(t)) {
				f(s)
			}
		}
	}
	each(r.lock)
	r.evictAhead()
	each(r.unlock)
}
