package props

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/prop"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/trace"
)

// member is one of several instances that get the same calls. The first is what the
// others are compared with.
type member struct {
	*machine
	name    string
	number  Number               // invariant that is broken if it differs from the first
	blocks  []alloc.Block        // live, in the order of ensemble.live
	freed   []device.Addr        // in the order of the frees
	shift   device.Size          // its addresses are higher by this
	before  func(*member)        // called before each call; nil for nothing
	relabel func(*alloc.Request) // changes what should not matter; nil for nothing
	walk    []alloc.Chunk
}

// stream returns the member's name of a stream.
func (m *member) stream(s device.Stream) device.Stream {
	if m.relabel == nil {
		return s
	}
	r := alloc.Request{Stream: s}
	m.relabel(&r)
	return r.Stream
}

// pool returns an operation of private pools with the member's names of stream and pool. They
// are in the same order as the others, because pools may go back to the device in it.
func (m *member) pool(o Op) Op {
	if m.relabel == nil || o.Pool == 0 {
		return o
	}
	if o.Pool = 2*o.Pool + 1000; o.Stream != alloc.AllStreams {
		o.Stream = m.stream(o.Stream)
	}
	return o
}

// demand is a live block as all members know it.
type demand struct {
	id   uint64
	size device.Size // bytes asked for
}

// ensemble gives operations to its members in lockstep. A block is named by its place
// among the live ones by age, so that an operation means the same block for every member,
// wherever it was placed.
type ensemble struct {
	subjects []Subject
	enrol    func() ([]*member, error) // builds the members for one sequence
	suits    func(alloc.Request) bool  // whether a request is given to the members
	same     func(first, other *member, a, b reply) bool
	look     func() error // compares what the members show
	faults   bool         // whether the device may refuse

	members []*member
	live    []demand
	ids     uint64
	frees   uint64
	step    int
	called  string // name of the member called last

	record bool
	events []trace.Event
	stack  []byte
	tally  Result
}

// reply is what a call answered.
type reply struct {
	block alloc.Block
	bytes device.Size // of a trim
	err   error
}

// String returns the reply in words.
func (r reply) String() string {
	if r.err == nil && r.block.Size != 0 {
		return "block " + blockText(r.block).String()
	}
	return answer(r.err)
}

// run builds the members and gives them the sequence. It returns a *Violation, or another
// error if a member cannot be built.
func (e *ensemble) run(seq Sequence) (err error) {
	e.live, e.events, e.stack = e.live[:0], e.events[:0], nil
	e.ids, e.frees, e.step = 0, 0, 0
	defer func() {
		if p := recover(); p != nil {
			e.stack = debug.Stack()
			err = violated(INoPanic, "%s: panic: %v", e.called, p)
		}
	}()
	if e.members, err = e.enrol(); err != nil {
		return err
	}
	for _, op := range seq {
		e.step++
		if err := e.apply(op); err != nil {
			return err
		}
		if e.step%sampleEvery == 0 {
			if err := e.look(); err != nil {
				return err
			}
		}
	}
	return e.look()
}

// close gives the memory of all members back to their devices, which are thrown away.
func (e *ensemble) close() {
	for _, m := range e.members {
		m.faults.FailNext(0)
		_ = m.Close()
	}
}

// ask makes the same call of every member and compares the replies with the first.
func (e *ensemble) ask(op Op, call func(*member, int) reply) (reply, error) {
	e.tally.Calls++
	var first reply
	for i, m := range e.members {
		m.leash.begin()
		e.called = m.name
		if m.before != nil {
			m.before(m)
		}
		r := call(m, i)
		if i == 0 {
			first = r
			continue
		}
		if !e.same(e.members[0], m, first, r) {
			return r, violated(m.number, "call %d, %v: %s answered %v, %s answered %v",
				e.step, op, e.members[0].name, first, m.name, r)
		}
	}
	return first, nil
}

// apply makes the call of one operation, if it finds something to act on.
func (e *ensemble) apply(op Op) error {
	switch op.Kind {
	case OpAlloc:
		return e.alloc(op)
	case OpFree:
		return e.free(op)
	case OpDoubleFree, OpInterior, OpForeign, OpNull:
		return e.badFree(op)
	case OpTrim:
		e.note(trace.Event{Kind: trace.Trim})
		_, err := e.ask(op, func(m *member, _ int) reply {
			n, err := alloc.Trim(m.Strategy)
			return reply{bytes: n, err: err}
		})
		return err
	case OpFrontier:
		count := e.frees + 2 - min(op.Pick%8, e.frees+2)
		e.note(trace.Event{Kind: trace.Frontier, Arg: count})
		_, err := e.ask(op, func(m *member, _ int) reply { return reply{err: alloc.SetFrontier(m.Strategy, count)} })
		return err
	case OpClear:
		e.note(trace.Event{Kind: trace.ClearStats})
		_, err := e.ask(op, func(m *member, _ int) reply { return reply{err: alloc.ClearStats(m.Strategy)} })
		return err
	case OpFault:
		if !e.faults {
			return nil
		}
		e.note(trace.Event{Kind: trace.Fault, Arg: op.Pick})
		for _, m := range e.members {
			m.faults.FailNext(op.Pick)
		}
	case OpUse, OpDrain, OpPoll:
		return e.stream(op)
	case OpPoolBegin, OpPoolEnd, OpPoolRelease:
		e.note(poolEvent(op))
		_, err := e.ask(op, func(m *member, _ int) reply { return reply{err: callPool(m.Strategy, m.pool(op))} })
		return err
	}
	return nil
}

// stream makes the call of an operation of streams. A member with other labels has other
// names for the streams.
func (e *ensemble) stream(op Op) error {
	switch op.Kind {
	case OpUse:
		if len(e.live) == 0 {
			return nil
		}
		n := int(op.Pick % uint64(len(e.live)))
		e.note(trace.Event{Kind: trace.Use, ID: e.live[n].id, Stream: op.Stream})
		_, err := e.ask(op, func(m *member, _ int) reply {
			return reply{err: alloc.RecordStream(m.Strategy, m.blocks[n].Addr, m.stream(op.Stream))}
		})
		return err
	case OpDrain:
		e.note(trace.Event{Kind: trace.Drain, Stream: op.Stream})
		for _, m := range e.members {
			if err := m.leash.Drain(m.stream(op.Stream)); err != nil {
				return err
			}
		}
		return nil
	}
	e.note(trace.Event{Kind: trace.Poll})
	_, err := e.ask(op, func(m *member, _ int) reply {
		n, err := alloc.Poll(m.Strategy)
		return reply{bytes: n, err: err}
	})
	return err
}

// alloc requests a block of every member.
func (e *ensemble) alloc(op Op) error {
	req := op.request(e.ids + 1)
	if !e.suits(req) {
		return nil
	}
	e.ids++
	e.note(trace.Event{
		Kind: trace.Alloc, ID: req.Tag, Size: req.Size, Align: req.Align, Stream: req.Stream, Hint: req.Hint, Arg: req.Before,
	})
	granted := make([]alloc.Block, len(e.members))
	got, err := e.ask(op, func(m *member, i int) reply {
		own := req
		if m.relabel != nil {
			m.relabel(&own)
		}
		b, err := m.Alloc(own)
		granted[i] = b
		return reply{block: b, err: err}
	})
	switch {
	case err != nil:
		return err
	case errors.Is(got.err, alloc.ErrOutOfMemory):
		e.tally.OutOfMemory++
		return nil
	case got.err != nil:
		e.tally.Mistakes++
		return nil
	}
	e.tally.Grants++
	e.live = append(e.live, demand{req.Tag, req.Size})
	for i, m := range e.members {
		m.blocks = append(m.blocks, granted[i])
	}
	return nil
}

// free frees one live block of every member.
func (e *ensemble) free(op Op) error {
	if len(e.live) == 0 {
		return nil
	}
	n := int(op.Pick % uint64(len(e.live)))
	e.note(trace.Event{Kind: trace.Free, ID: e.live[n].id})
	got, err := e.ask(op, func(m *member, _ int) reply { return reply{err: m.Free(m.blocks[n].Addr)} })
	if err != nil {
		return err
	}
	if got.err != nil {
		return violated(IFreeAnswer, "call %d, %v: %s answered %v for a live block", e.step, op, e.members[0].name, got)
	}
	e.tally.Frees++
	e.frees++
	e.live = slices.Delete(e.live, n, n+1)
	for _, m := range e.members {
		if len(m.freed) == freedKept {
			m.freed = slices.Delete(m.freed, 0, 1)
		}
		m.freed = append(m.freed, m.blocks[n].Addr)
		m.blocks = slices.Delete(m.blocks, n, n+1)
	}
	return nil
}

// badFree frees an address at which no member has a live block.
func (e *ensemble) badFree(op Op) error {
	at := e.wrongAddresses(op)
	for i, m := range e.members {
		if len(at) == 0 || slices.ContainsFunc(m.blocks, func(b alloc.Block) bool { return b.Addr == at[i] }) {
			return nil // nothing to act on, or legal for this member
		}
	}
	e.tally.BadFrees++
	_, err := e.ask(op, func(m *member, i int) reply { return reply{err: m.Free(at[i])} })
	return err
}

// wrongAddresses returns the address that an illegal free names, for each member; none if
// there is no such address now.
func (e *ensemble) wrongAddresses(op Op) []device.Addr {
	at := make([]device.Addr, len(e.members))
	event := trace.Event{Kind: trace.BadFree}
	switch op.Kind {
	case OpDoubleFree:
		if len(e.members[0].freed) == 0 {
			return nil
		}
		for i, m := range e.members {
			at[i] = m.freed[op.Pick%uint64(len(m.freed))]
		}
	case OpInterior:
		if len(e.live) == 0 {
			return nil
		}
		n := op.Pick % uint64(len(e.live))
		if e.live[n].size < 2 {
			return nil
		}
		event.ID, event.Size = e.live[n].id, interior(op.Pick, e.live[n].size)
		for i, m := range e.members {
			at[i] = m.blocks[n].Addr.Add(event.Size)
		}
	case OpForeign:
		a := device.Addr(op.Pick + 1)
		if op.Pick%2 == 0 {
			a = sim.Base - device.Addr(1+op.Pick%1024)
		}
		event.Arg = uint64(a)
		for i := range at {
			at[i] = a
		}
	}
	if op.Kind != OpDoubleFree { // a freed block has no place among the live ones to note
		e.note(event)
	}
	return at
}

// note keeps an event for the trace of a failure.
func (e *ensemble) note(event trace.Event) {
	if !e.record {
		return
	}
	event.Time, event.Slot = trace.NoTime, trace.NoSlot
	if event.ID != 0 {
		event.Slot = uint32(event.ID - 1)
	}
	e.events = append(e.events, event)
}

// search runs the sequences of all seeds; finish is called after each that broke nothing.
func (e *ensemble) search(name string, profile Profile, o Options, finish func(Sequence) error) (int, error) {
	sequences := Sequences(profile)
	attempt := func(seq Sequence) error {
		err := e.run(seq)
		if err == nil && finish != nil {
			err = finish(seq)
		}
		e.close()
		return err
	}
	for i := range o.Sequences {
		seed := o.Seed + int64(i)
		small, generated, v, err := hunt(sequences, seed, o.Tries, attempt)
		if err != nil {
			return i + 1, fmt.Errorf("%s: seed %d: %w", name, seed, err)
		}
		if v == nil {
			continue
		}
		e.record = true
		err = attempt(small)
		e.record = false
		again, ok := errors.AsType[*Violation](err)
		if !ok {
			return i + 1, fmt.Errorf("%s: seed %d: %w, but not when run again: a strategy depends on something besides its calls",
				name, seed, v)
		}
		return i + 1, e.failure(name, seed, generated, small, again)
	}
	return o.Sequences, nil
}

// failure gathers what is known of a failing sequence that was just run and recorded.
func (e *ensemble) failure(name string, seed int64, generated int, seq Sequence, v *Violation) *Failure {
	meta := []trace.Pair{
		{Key: "invariant", Value: v.Number.String()},
		{Key: "detail", Value: v.Detail},
	}
	for _, s := range e.subjects {
		meta = append(meta, trace.Pair{Key: "subject", Value: s.Name}, trace.Pair{Key: "config", Value: asJSON(s.Config)})
	}
	return &Failure{
		Subject: name, Seed: seed, Operations: generated, Step: e.step, Violation: v, Sequence: seq, Stack: e.stack,
		Trace: &trace.Trace{
			Header: trace.Header{Name: v.Number.String(), Format: "text", Meta: meta},
			Events: slices.Clone(e.events), Tags: []string{""}, Slots: int(e.ids),
		},
	}
}

// hunt runs the one sequence of a seed. If it breaks an invariant, the generator's
// shrinker and then ours make it smaller; only what breaks the same invariant counts.
func hunt(sequences gopter.Gen, seed int64, tries int, attempt func(Sequence) error) (
	small Sequence, generated int, first *Violation, err error,
) {
	var other error
	fails := func(seq Sequence) bool {
		err := attempt(seq)
		v, ok := errors.AsType[*Violation](err)
		switch {
		case err == nil:
			return false
		case !ok:
			other = err
			return true
		case first == nil:
			first, generated = v, len(seq)
		}
		return v.Number == first.Number
	}
	params := gopter.DefaultTestParametersWithSeed(seed)
	params.MinSuccessfulTests = 1
	result := prop.ForAll(func(seq Sequence) bool { return !fails(seq) }, sequences).Check(params)
	switch {
	case result.Passed():
		return nil, 0, nil, nil
	case other != nil:
		return nil, 0, nil, other
	case first == nil:
		return nil, 0, nil, fmt.Errorf("generator failed: %w", result.Error)
	}
	return Shrink(result.Args[0].Arg.(Sequence), tries, fails), generated, first, nil
}
