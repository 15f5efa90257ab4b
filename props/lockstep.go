package props

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leanovate/gopter"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/trace"
)

// lockstep is how one of several instances that get the same calls differs from the first.
type lockstep struct {
	name    string
	number  Number          // invariant that is broken if its answers differ
	shift   device.Size     // its addresses are higher by this
	before  func(*machine)  // called before each call; nil for none
	relabel func(own *Call) // changes what should not matter; nil for nothing
	target  device.Addr     // of an illegal free
	walk    []alloc.Chunk
}

// ensemble observes an interpreter of several instances and compares their answers.
type ensemble struct {
	interpreter
	silent
	subjects []Subject
	enrol    func(Sequence) ([]*machine, error) // builds the instances for one sequence
	suits    func(alloc.Request) bool           // whether a request is given to the instances
	same     func(first, other *machine) bool
	compare  func() error         // compares what the instances show
	finish   func(Sequence) error // called at the end of a sequence; nil for nothing
	faults   bool                 // whether the device may refuse
}

// run builds the instances and gives them the sequence. It returns a *Violation, or another error
// if an instance cannot be built.
func (e *ensemble) run(seq Sequence) error {
	e.starts(seq, device.FaultPlan{})
	e.reset()
	return e.guard(func() (err error) {
		if e.machines, err = e.enrol(seq); err != nil {
			return err
		}
		for _, op := range seq {
			if err := e.apply(op); err != nil {
				return err
			}
			if e.step%sampleEvery == 0 {
				if err := e.compare(); err != nil {
					return err
				}
			}
		}
		if err := e.compare(); err != nil || e.finish == nil {
			return err
		}
		return e.finish(seq)
	}, nil)
}

// close returns the memory of all instances to their devices, which are thrown away.
func (e *ensemble) close() {
	e.dispose(e.machines...)
}

// aim skips operations that some instance does not support.
func (e *ensemble) aim(c *Call) bool {
	switch {
	case c.Kind == OpAlloc && !e.suits(c.Request), c.Kind == OpFault && !e.faults, c.Kind.wrong() && !e.miss(c):
		return false
	case c.Kind.wrong():
		e.tally.BadFrees++
	}
	if c.Kind.calls() {
		e.tally.Calls++
	}
	return true
}

// miss gives every instance an address at which none of them has a live block. It returns false
// if there is no such address now.
func (e *ensemble) miss(c *Call) bool {
	switch c.Kind {
	case OpDoubleFree:
		if len(e.freed) == 0 {
			return false
		}
		c.nth = int(c.Pick % uint64(len(e.freed)))
		c.ID = e.freed[c.nth].id
	case OpInterior:
		n := e.live[c.nth].size
		if n < 2 {
			return false
		}
		c.inside = interior(c.Pick, n)
	case OpNull:
		if slices.ContainsFunc(e.subjects, func(s Subject) bool {
			return s.Promises.FreesNull != e.subjects[0].Promises.FreesNull
		}) {
			return false
		}
	case OpForeign:
		c.Addr = device.Addr(c.Pick + 1)
		if c.Pick%2 == 0 {
			c.Addr = sim.Base - device.Addr(1+c.Pick%1024)
		}
	}
	for _, m := range e.machines {
		switch m.target = c.Addr; c.Kind {
		case OpDoubleFree:
			m.target = m.freed[c.nth]
		case OpInterior:
			m.target = m.blocks[c.nth].Addr.Add(c.inside)
		}
		if slices.ContainsFunc(m.blocks, func(b alloc.Block) bool { return b.Addr == m.target }) {
			return false
		}
	}
	return true
}

func (e *ensemble) adapt(m *machine, c *Call) {
	switch {
	case c.Kind == OpFree || c.Kind == OpUse:
		c.Addr = m.blocks[c.nth].Addr
	case c.Kind.wrong():
		c.Addr = m.target
	}
	if m.relabel != nil {
		m.relabel(c)
	}
}

func (e *ensemble) answered(m *machine, c *Call) error {
	first := e.machines[0]
	if m == first || e.same(first, m) {
		return nil
	}
	return violated(m.number, "call %d, %v: %s answered %v, %s answered %v", e.step, c.Op, first.name, first.answer,
		m.name, m.answer)
}

func (e *ensemble) after(c *Call) error {
	first := e.machines[0]
	switch err := first.answer.Err; {
	case c.Kind == OpAlloc && err == nil:
		e.bookGrant(c)
	case c.Kind == OpAlloc:
		e.bookRefusal(err)
	case c.Kind == OpFree && err == nil:
		e.bookFree(c)
	case c.Kind == OpFree:
		return violated(IFreeAnswer, "call %d, %v: %s answered %v for a live block", e.step, c.Op, first.name, first.answer)
	}
	return nil
}

// searchAll runs the sequences of all seeds on ensembles that build returns.
func searchAll(name string, profile Profile, o Options, build func() (*ensemble, error)) (Result, error) {
	sequences := Sequences(profile)
	return watched(name, o, func() (search, error) {
		e, err := build()
		if err != nil {
			return search{}, err
		}
		one := func(seed int64) error { return e.one(name, sequences, seed, o) }
		return search{&e.interpreter, func() (Result, error) { return e.eachSeed(o, one) }, func(f *Failure) *trace.Trace {
			e.finish = nil
			_ = e.run(f.Sequence) // the violation of f
			t := e.trace(f.Violation.Number.String())
			e.describe(t)
			return t
		}}, nil
	})
}

func (e *ensemble) describe(t *trace.Trace) {
	for _, s := range e.subjects {
		describe(t, "subject", s.Name, "config", asJSON(s.Config))
	}
}

func (e *ensemble) one(name string, sequences gopter.Gen, seed int64, o Options) error {
	attempt := func(seq Sequence) error {
		defer e.close()
		return e.run(seq)
	}
	small, generated, v, err := e.hunt(sequences, seed, o, attempt, nil)
	if err != nil {
		return fmt.Errorf("%s: seed %d: %w", name, seed, err)
	}
	if v == nil {
		return nil
	}
	e.record = true
	err = attempt(small)
	e.record = false
	again, ok := errors.AsType[*Violation](err)
	if !ok {
		return fmt.Errorf("%s: seed %d: %w, but not when run again: a strategy depends on more than its calls",
			name, seed, v)
	}
	f := e.failure(name, seed, generated, small, again)
	e.describe(f.Trace)
	return f
}
