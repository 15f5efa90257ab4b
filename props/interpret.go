package props

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// interpreter executes operations. Each becomes a call, which is recorded, made on every
// instance in turn and judged by the observer. A block is named by its index among the live blocks
// by age, so that an operation means the same block for every instance, at any address.
type interpreter struct {
	observer
	machines []*machine // the others are compared with the first
	called   *machine   // the last that was called
	broken   bool       // an instance panicked and may hold locks: none is called any more

	present, own Call // the present call, and as one instance gets it; kept here to take nothing from the heap

	live  []demand // by age; the blocks are in machine.blocks, in the same order
	freed []demand // the last of them, in the order of the frees; see machine.freed
	ids   uint64   // requests so far
	frees uint64
	step  int

	record  bool     // keep the events
	closing []string // the calls among them that close the sequence
	ended   bool     // the sequence is over, and is being closed
	events  []trace.Event
	tags    []string // of the events
	tally   Result

	seed      int64      // of the present sequence
	found     bool       // it broke an invariant, and is being shrunk
	hanging   []Sequence // candidates of the shrinker that do not return
	exhausted bool       // the last of them was met, and the sequence stays as it is
	pulse     pulse
	last      *Failure // that of a call that hangs, before which to stop; nil for none
}

// demand is a request for a block, shared by all instances.
type demand struct {
	id   uint64
	size device.Size // bytes asked for
}

// freedKept bounds the freed blocks that are kept for illegal frees.
const freedKept = 64

type observer interface {
	// before is called before an operation.
	before()
	// aim completes the call of an operation. It returns false if there is nothing to act on.
	aim(c *Call) bool
	// adapt changes a call for one instance, which has its own addresses.
	adapt(m *machine, c *Call)
	// answered judges the answer of one instance, machine.answer.
	answered(m *machine, c *Call) error
	// after checks and records a call that all instances have answered.
	after(c *Call) error
	// look checks the state that the instances show after a call.
	look() error
}

// silent is an observer that checks nothing.
type silent struct{}

func (silent) before()                        {}
func (silent) aim(*Call) bool                 { return true }
func (silent) adapt(*machine, *Call)          {}
func (silent) answered(*machine, *Call) error { return nil }
func (silent) look() error                    { return nil }

func (in *interpreter) reset() {
	in.machines, in.called, in.broken = in.machines[:0], nil, false
	in.live, in.freed, in.events, in.tags = in.live[:0], in.freed[:0], in.events[:0], append(in.tags[:0], "")
	in.closing, in.ended = in.closing[:0], false
	in.ids, in.frees, in.step = 0, 0, 0
}

func (in *interpreter) begin() {
	in.step++
	in.pulse.looking.Store(false)
	in.pulse.beats.Add(1)
	for _, m := range in.machines {
		m.limiter.begin()
	}
	in.before()
}

func (in *interpreter) apply(op Op) error {
	in.begin()
	c := &in.present
	*c = Call{Op: op}
	switch op.Kind {
	case OpAlloc:
		c.ID = in.ids + 1
		c.Request = op.request(c.ID)
	case OpFree, OpInterior, OpUse:
		if len(in.live) == 0 {
			return nil
		}
		in.name(c, int(op.Pick%uint64(len(in.live))))
	case OpFrontier:
		c.Count = in.frees + 2 - min(op.Pick%8, in.frees+2)
	case OpFault:
		c.Count = op.Pick
	}
	if !in.aim(c) {
		return nil
	}
	return in.perform(c)
}

// name sets the nth live block as the argument of a call.
func (in *interpreter) name(c *Call, n int) {
	c.nth, c.ID, c.Addr = n, in.live[n].id, in.machines[0].blocks[n].Addr
}

func (in *interpreter) call(c Call) error {
	in.begin()
	in.present = c
	return in.perform(&in.present)
}

// perform records a call, makes it and looks at the instances afterwards.
func (in *interpreter) perform(c *Call) error {
	if c.Kind == OpAlloc {
		in.ids = c.ID
	}
	in.note(c)
	if err := in.stop(); err != nil {
		return err
	}
	if err := in.exchange(c, nil); err != nil || !c.Kind.calls() {
		return err
	}
	in.pulse.looking.Store(true)
	return in.look()
}

// stop returns the violation of a call that hangs before that call is repeated.
func (in *interpreter) stop() error {
	if in.last != nil && in.step >= in.last.Step {
		return in.last.Violation
	}
	return nil
}

// exchange makes a call on every instance and checks the answers. The first instance is not
// called if its answer is given.
func (in *interpreter) exchange(c *Call, given *Answer) error {
	for i, m := range in.machines {
		in.own = *c
		in.adapt(m, &in.own)
		in.called = m
		if m.before != nil && c.Kind.calls() {
			m.before(m)
		}
		if i == 0 && given != nil {
			m.answer = *given
		} else {
			m.answer = m.do(&in.own)
		}
		if !c.Kind.calls() {
			if m.answer.Err != nil {
				return m.answer.Err
			}
		} else if err := in.answered(m, c); err != nil {
			return err
		}
	}
	if !c.Kind.calls() {
		return nil
	}
	return in.after(c)
}

// bookGrant records the granted blocks of a request.
func (in *interpreter) bookGrant(c *Call) {
	in.tally.Grants++
	in.live = append(in.live, demand{c.ID, c.Request.Size})
	for _, m := range in.machines {
		m.blocks = append(m.blocks, m.answer.Block)
	}
}

func (in *interpreter) bookFree(c *Call) {
	in.tally.Frees++
	in.frees++
	if len(in.freed) == freedKept {
		in.freed = slices.Delete(in.freed, 0, 1)
	}
	in.freed = append(in.freed, in.live[c.nth])
	in.live = slices.Delete(in.live, c.nth, c.nth+1)
	for _, m := range in.machines {
		if len(m.freed) == freedKept {
			m.freed = slices.Delete(m.freed, 0, 1)
		}
		m.freed = append(m.freed, m.blocks[c.nth].Addr)
		m.blocks = slices.Delete(m.blocks, c.nth, c.nth+1)
	}
}

// bookRefusal counts a request that was refused.
func (in *interpreter) bookRefusal(err error) {
	if errors.Is(err, alloc.ErrOutOfMemory) {
		in.tally.OutOfMemory++
	} else {
		in.tally.Mistakes++
	}
}

// note keeps the event of a call for the trace of a failure.
func (in *interpreter) note(c *Call) {
	if !in.record {
		return
	}
	e := c.event()
	e.Time, e.Slot = trace.NoTime, trace.NoSlot
	if e.ID != 0 {
		e.Slot = uint32(e.ID - 1)
	}
	if e.Kind == trace.Conf && c.Conf != "" {
		if e.Tag = uint32(max(slices.Index(in.tags, c.Conf), 0)); e.Tag == 0 {
			e.Tag, in.tags = uint32(len(in.tags)), append(in.tags, c.Conf)
		}
	}
	in.events = append(in.events, e)
	if in.ended {
		in.closing = append(in.closing, c.String())
	}
}

func (in *interpreter) trace(name string) *trace.Trace {
	return &trace.Trace{
		Header: trace.Header{Name: name, Format: "text"},
		Events: slices.Clone(in.events), Tags: slices.Clone(in.tags), Slots: int(in.ids),
	}
}

// guard calls f and turns a panic into a violation, which judge may excuse; nil excuses nothing.
func (in *interpreter) guard(f func() error, judge func(...error) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if err = in.panicked(p); judge != nil {
				err = judge(err)
			}
		}
	}()
	return f()
}

func (in *interpreter) panicked(p any) error {
	in.broken = true
	name := ""
	if in.called != nil && in.called.name != "" {
		name = in.called.name + ": "
	}
	if r, ok := p.(runaway); ok {
		return violated(ITerminates, "%s%s", name, string(r))
	}
	return &Violation{INoPanic, fmt.Sprintf("%spanic: %v", name, p), debug.Stack()}
}

// interior returns the offset into a block of n bytes at which an illegal free
// aims: one byte, the middle, the last byte, or any.
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
