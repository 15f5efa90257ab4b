package workload

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// Perturbation describes random changes of a trace, to test strategies that expect a repetition.
// Each rate is a probability from 0 to 1, which applies to each request independently. The choices
// of a rate do not depend on the other rates.
type Perturbation struct {
	Drop   float64 // to remove a request with all events of its block
	Insert float64 // to insert another request before it
	Resize float64 // to change its size
	Swap   float64 // to swap it with the next event
	Eval   int     // requests of an evaluation that is inserted in the middle; 0 for none
	Seed   uint64  // of the choices
}

// The parameters of inserted and changed requests.
const (
	perturbRecent = 64 // number of latest requests from which an inserted one takes its size
	perturbLife   = 64 // requests until its block is freed, at most
	perturbEval   = 8  // requests until a block of an evaluation is freed
)

const (
	perturbTag  = "inserted"            // tag of inserted requests
	perturbMark = "inserted evaluation" // mark before an evaluation
)

// Check reports the first rate or number that is out of bounds.
func (p Perturbation) Check() error {
	for _, r := range p.rates() {
		if !(r.rate >= 0 && r.rate <= 1) {
			return fmt.Errorf("%s: %v: want a share from 0%% to 100%%", r.name, r.rate)
		}
	}
	if p.Eval < 0 {
		return fmt.Errorf("insert-eval: %d: want a number of requests from 0", p.Eval)
	}
	return nil
}

type perturbRate struct {
	name string
	rate float64
}

func (p Perturbation) rates() []perturbRate {
	return []perturbRate{{"drop", p.Drop}, {"insert", p.Insert}, {"resize", p.Resize}, {"swap", p.Swap}}
}

// String returns the changes as flags of the command.
func (p Perturbation) String() string {
	var all []string
	for _, r := range p.rates() {
		if r.rate != 0 {
			all = append(all, r.name+"="+strconv.FormatFloat(100*r.rate, 'g', 10, 64)+"%")
		}
	}
	if p.Eval != 0 {
		all = append(all, fmt.Sprintf("insert-eval=%d", p.Eval))
	}
	return strings.Join(append(all, fmt.Sprintf("seed=%d", p.Seed)), " ")
}

// Perturb returns a trace with random changes of its Alloc events:
//
//   - A dropped request is missing, with all events of its block.
//   - A resized request has a size from half to twice the recorded one, uniformly distributed.
//   - An inserted request has the size, alignment and stream of one of the 64 latest requests. Its
//     block is freed after at most 63 requests of the trace.
//   - A swapped request follows the next event, if that is a request or a free of another block.
//     The two exchange their times, and the next one is not swapped again.
//   - An evaluation repeats the next Eval requests after a mark, without other events. Each block
//     is freed before the eighth request after it. It is inserted at the begin of the middle step,
//     or without steps at the middle event. It is shorter if fewer requests follow.
//
// Inserted blocks have new names. It fails for an invalid perturbation and for more than
// [trace.DefaultMaxEvents] events. O(events); the result is in memory.
func Perturb(s trace.Source, p Perturbation) (*trace.Trace, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	h := s.Head().Header
	h.Hash = ""
	h.Meta = append(slices.Clip(h.Meta), trace.Pair{Key: "perturbed", Value: p.String()})
	x := perturber{Perturbation: p, s: s, b: trace.NewBuilder(h), dropped: map[uint32]struct{}{}, evalAt: -1}
	for i := range x.rngs {
		x.rngs[i] = NewRand(p.Seed ^ uint64(i+1)<<56)
	}
	if err := x.survey(); err != nil {
		return nil, err
	}
	if err := s.Batches(x.batch); err != nil {
		return nil, err
	}
	x.requests += perturbLife // the frees that are left
	if err := errors.Join(x.emitHeld(), x.freeDue()); err != nil {
		return nil, err
	}
	return x.b.Trace(), nil
}

// The random generators. Each rate has its own, so that the choices are independent.
const (
	rngDrop = iota
	rngInsert
	rngResize
	rngSwap
	rngSizes
	rngRecent
	numRngs
)

// perturber copies a trace with changes.
type perturber struct {
	Perturbation
	s    trace.Source
	b    *trace.Builder
	rngs [numRngs]*Rand

	i        int                 // events read
	written  int                 // events of the result
	requests int                 // of these, requests
	last     uint64              // greatest name of a block
	dropped  map[uint32]struct{} // slots of dropped blocks
	recent   []trace.Event       // latest requests
	due      []dueFree           // frees of inserted blocks
	held     *trace.Event        // request that is being swapped
	eval     []trace.Event       // requests of the evaluation
	evalAt   int                 // index of the event that follows them, -1 for none
}

// dueFree is the free of an inserted block.
type dueFree struct {
	id    uint64
	after int // request of this number
}

// survey finds the greatest name, and the place and the requests of the evaluation.
func (x *perturber) survey() error {
	steps, err := trace.Steps(x.s)
	if err != nil {
		return err
	}
	middle := x.s.Head().Events / 2
	if n := len(steps); n > 1 {
		middle = steps[n/2].First
	}
	i := 0
	return x.s.Batches(func(batch []trace.Event) error {
		for _, e := range batch {
			x.last = max(x.last, e.ID)
			if i >= middle && e.Kind != trace.LiveAtStart && x.evalAt < 0 {
				x.evalAt = i
			}
			if x.evalAt >= 0 && e.Kind == trace.Alloc && len(x.eval) < x.Eval {
				x.eval = append(x.eval, e)
			}
			i++
		}
		return nil
	})
}

// chosen draws one choice of a rate.
func (x *perturber) chosen(rng int, rate float64) bool {
	return float64(x.rngs[rng].Next()>>32) < rate*(1<<32)
}

func (x *perturber) batch(batch []trace.Event) error {
	for _, e := range batch {
		if x.i == x.evalAt && x.Eval > 0 {
			if err := x.evaluate(); err != nil {
				return err
			}
		}
		x.i++
		if err := x.event(e); err != nil {
			return err
		}
	}
	return nil
}

// event copies one event of the source.
func (x *perturber) event(e trace.Event) error {
	if e.Kind == trace.Alloc {
		return x.request(e)
	}
	if _, dropped := x.dropped[e.Slot]; dropped {
		return nil
	}
	return x.put(e)
}

// request copies a request with its changes.
func (x *perturber) request(e trace.Event) error {
	drop, insert := x.chosen(rngDrop, x.Drop), x.chosen(rngInsert, x.Insert)
	resize, swap := x.chosen(rngResize, x.Resize), x.chosen(rngSwap, x.Swap)
	if err := x.freeDue(); err != nil {
		return err
	}
	x.requests++
	if len(x.recent) < perturbRecent {
		x.recent = append(x.recent, e)
	} else {
		x.recent[x.requests%perturbRecent] = e
	}
	if insert {
		like := x.recent[x.rngs[rngRecent].Below(uint64(len(x.recent)))]
		life := int(x.rngs[rngRecent].Below(perturbLife))
		if err := x.insert(like, x.requests+life, e.Time); err != nil {
			return err
		}
	}
	if resize {
		least := max(1, e.Size-e.Size/2)
		e.Size = least + device.Size(x.rngs[rngSizes].Below(uint64(2*e.Size-least+1)))
	}
	delete(x.dropped, e.Slot) // a name may be used again
	if drop {
		x.dropped[e.Slot] = struct{}{}
		return nil
	}
	if swap && x.held == nil {
		x.held = &e
		return nil
	}
	return x.put(e)
}

// put adds an event, before the held request if they may be swapped.
func (x *perturber) put(e trace.Event) error {
	h := x.held
	if h == nil || e.Kind != trace.Alloc && (e.Kind != trace.Free || e.ID == h.ID) {
		if err := x.emitHeld(); err != nil {
			return err
		}
		return x.write(e, x.s.TagOf(&e))
	}
	x.held = nil
	e.Time, h.Time = h.Time, e.Time
	if err := x.write(e, x.s.TagOf(&e)); err != nil {
		return err
	}
	return x.write(*h, x.s.TagOf(h))
}

// emitHeld adds the held request without a swap.
func (x *perturber) emitHeld() error {
	if x.held == nil {
		return nil
	}
	e := *x.held
	x.held = nil
	return x.write(e, x.s.TagOf(&e))
}

// write adds an event with the text of its tag.
func (x *perturber) write(e trace.Event, tag string) error {
	if x.written++; x.written > trace.DefaultMaxEvents {
		return fmt.Errorf("the result has more than %d events", trace.DefaultMaxEvents)
	}
	e.Tag = x.b.Tag(tag)
	return x.b.Add(e)
}

// insert adds a copy of a request. Its block is freed after the request with number after.
func (x *perturber) insert(like trace.Event, after int, now int64) error {
	if err := x.emitHeld(); err != nil {
		return err
	}
	x.last++
	x.due = append(x.due, dueFree{x.last, after})
	return x.write(trace.Event{
		Kind: trace.Alloc, ID: x.last, Size: like.Size, Align: like.Align, Stream: like.Stream, Time: now,
	}, perturbTag)
}

// freeDue frees inserted blocks that are due before the next request.
func (x *perturber) freeDue() error {
	left := x.due[:0]
	for _, d := range x.due {
		if d.after > x.requests {
			left = append(left, d)
			continue
		}
		if err := x.put(trace.Event{Kind: trace.Free, ID: d.id, Time: trace.NoTime}); err != nil {
			return err
		}
	}
	x.due = left
	return nil
}

// evaluate adds the requests of the evaluation.
func (x *perturber) evaluate() error {
	err := x.emitHeld()
	if err == nil {
		err = x.write(trace.Event{Kind: trace.Mark, Slot: trace.NoSlot, Time: trace.NoTime}, perturbMark)
	}
	first := x.last + 1
	for k := 0; err == nil && k < len(x.eval)+perturbEval; k++ {
		if old := k - perturbEval; old >= 0 {
			err = x.write(trace.Event{Kind: trace.Free, ID: first + uint64(old), Time: trace.NoTime}, "")
		}
		if err == nil && k < len(x.eval) {
			e := x.eval[k]
			x.last++
			e.ID, e.Time = x.last, trace.NoTime
			err = x.write(e, perturbTag)
		}
	}
	return err
}
