package device

import (
	"fmt"
	"math/rand/v2"
)

// FaultPlan says which calls a [Faults] wrapper refuses. The zero plan refuses none;
// several rules may be set together and any of them refuses.
type FaultPlan struct {
	// Nth refuses the call with this number; the first call is 1. All kinds of calls count
	// that Calls has. Zero refuses none by number.
	Nth uint64 `json:"nth"`
	// Probability in [0, 1] refuses each call with this chance, drawn from Seed.
	Probability float64 `json:"probability"`
	// Seed selects the sequence of draws.
	Seed uint64 `json:"seed"`
	// Above refuses calls that take more than this many bytes: regions, ranges, handles and
	// blocks of pools. Zero refuses none by size.
	Above Size `json:"above"`
	// Calls are the kinds of calls that count and may be refused; none stands for all.
	Calls CallSet `json:"calls"`
}

// Validate returns an error that names the first field out of range.
func (p FaultPlan) Validate() error {
	if !(p.Probability >= 0 && p.Probability <= 1) {
		return fmt.Errorf("faults: probability %v: want a number from 0 to 1", p.Probability)
	}
	return nil
}

// Faults wraps a device and refuses calls of every capability on a plan. A refused call that
// asks for something fails with [ErrOutOfMemory] and [ErrInjected], any other with
// [ErrInjected]; none reaches the wrapped device. A [Timeline] is never refused.
type Faults struct {
	Forwarder
	plan    FaultPlan
	rng     *rand.Rand
	calls   uint64
	armed   uint64
	refused [NumCalls]uint64
	total   uint64 // refused
}

// errRefused is built once: running out is a normal answer that loops meet thousands of times.
var errRefused = fmt.Errorf("%w: %w", ErrOutOfMemory, ErrInjected)

// NewFaults returns a wrapper of inner that follows plan. It fails if the plan is invalid.
func NewFaults(inner Device, plan FaultPlan) (*Faults, error) {
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	f := &Faults{plan: plan, rng: rand.New(rand.NewPCG(plan.Seed, 0))}
	f.Forwarder = Hooked(inner, Hook{Before: f.strike})
	return f, nil
}

// FailNext makes the next n calls fail, on top of the plan. It lets a test or a trace
// place a fault at one point of a sequence.
func (f *Faults) FailNext(n uint64) { f.armed = n }

// Injected returns how many calls were refused so far.
func (f *Faults) Injected() uint64 { return f.total }

// Usage implements [Device]; calls refused here are counted with those refused below.
func (f *Faults) Usage() Usage {
	u := f.inner.Usage()
	for c, n := range f.refused {
		u.Calls[c].Failed += n
	}
	return u
}

// strike counts a call and returns the error with which the plan refuses it, nil if it does not.
// The draw is made for every call that counts, so that one rule does not shift the sequence of
// another.
func (f *Faults) strike(v *Invocation) error {
	c := v.Call
	if f.plan.Calls != 0 && !f.plan.Calls.Has(c) {
		return nil
	}
	f.calls++
	sized := c.takes() && c != CallMap && c != CallNewPool // a mapping takes no more memory, a pool none yet
	hit := f.calls == f.plan.Nth || sized && f.plan.Above != 0 && v.Size > f.plan.Above
	if f.plan.Probability > 0 {
		hit = f.rng.Float64() < f.plan.Probability || hit
	}
	if f.armed > 0 {
		f.armed--
		hit = true
	}
	if !hit {
		return nil
	}
	f.refused[c]++
	f.total++
	if c.takes() {
		return errRefused
	}
	return ErrInjected
}
