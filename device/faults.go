package device

import (
	"fmt"
	"math/rand/v2"
)

// FaultPlan selects the calls that a [Faults] wrapper fails. The zero plan fails none. Rules may be
// combined; a call fails if any rule selects it.
type FaultPlan struct {
	// Nth selects the call with this number, counted from 1 over the kinds in Calls. Zero selects
	// none.
	Nth uint64 `json:"nth"`
	// Probability in [0, 1] selects each call at random, with draws from Seed.
	Probability float64 `json:"probability"`
	// Seed selects the sequence of draws.
	Seed uint64 `json:"seed"`
	// Above selects calls for more than this many bytes: regions, ranges, handles and blocks of pools.
	// Zero selects none.
	Above Size `json:"above"`
	// Calls are the kinds of calls to count and fail; empty means all.
	Calls CallSet `json:"calls"`
}

// Validate returns an error that names the first field out of range.
func (p FaultPlan) Validate() error {
	if !(p.Probability >= 0 && p.Probability <= 1) {
		return fmt.Errorf("faults: probability %v: want a number from 0 to 1", p.Probability)
	}
	return nil
}

// Faults wraps a device and fails calls of every capability according to a plan. A call that takes
// a resource fails with [ErrOutOfMemory] and [ErrInjected], any other with [ErrInjected]. A failed
// call does not reach the wrapped device. A [Timeline] never fails.
type Faults struct {
	Forwarder
	plan    FaultPlan
	rng     *rand.Rand
	calls   uint64 // counted calls
	armed   uint64 // number of the next calls that FailNext selected
	refused [NumCalls]uint64
	total   uint64 // failed calls
}

// errRefused is built once, because out of memory is a normal result that loops meet often.
var errRefused = fmt.Errorf("%w: %w", ErrOutOfMemory, ErrInjected)

// NewFaults returns a wrapper of inner that follows plan. It fails if the plan is invalid.
func NewFaults(inner Device, plan FaultPlan) (*Faults, error) {
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	f := &Faults{plan: plan, rng: rand.New(rand.NewPCG(plan.Seed, 0))}
	f.Forwarder = Hooked(inner, Hook{Before: f.inject})
	return f, nil
}

// FailNext makes the next n calls fail, in addition to the plan, so that a test or a trace can
// place a fault.
func (f *Faults) FailNext(n uint64) { f.armed = n }

// Injected returns the number of failures so far.
func (f *Faults) Injected() uint64 { return f.total }

// Usage implements [Device]. Its failed calls include the injected failures.
func (f *Faults) Usage() Usage {
	u := f.inner.Usage()
	for c, n := range f.refused {
		u.Calls[c].Failed += n
	}
	return u
}

// inject counts a call and returns the error with which it fails, or nil. Every counted call draws
// a random number, so that one rule does not shift the sequence of another.
func (f *Faults) inject(v *Invocation) error {
	c := v.Call
	if f.plan.Calls != 0 && !f.plan.Calls.Has(c) {
		return nil
	}
	f.calls++
	sized := c.takes() && c != CallMap && c != CallNewPool // Map takes no further memory, NewPool none yet
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
