package device

import (
	"fmt"
	"math/rand/v2"
)

// FaultPlan says which calls a [Faults] wrapper refuses. The zero plan refuses none;
// several rules may be set together and any of them refuses.
type FaultPlan struct {
	// Nth refuses the call with this number; the first call is 1. Reserve and Release
	// both count. Zero refuses none by number.
	Nth uint64 `json:"nth"`
	// Probability in [0, 1] refuses each call with this chance, drawn from Seed.
	Probability float64 `json:"probability"`
	// Seed selects the sequence of draws.
	Seed uint64 `json:"seed"`
	// Above refuses reservations of more than this many bytes. Zero refuses none by size.
	Above Size `json:"above"`
}

// Validate returns an error that names the first field out of range.
func (p FaultPlan) Validate() error {
	if !(p.Probability >= 0 && p.Probability <= 1) {
		return fmt.Errorf("faults: probability %v: want a number from 0 to 1", p.Probability)
	}
	return nil
}

// Faults wraps a device and refuses calls on a plan. A refused Reserve fails with
// [ErrOutOfMemory] and [ErrInjected], a refused Release with [ErrInjected]; neither
// reaches the wrapped device.
type Faults struct {
	inner    Device
	plan     FaultPlan
	rng      *rand.Rand
	calls    uint64
	armed    uint64
	refused  uint64
	rejected uint64
}

// errRefused is built once: running out is a normal answer that loops meet thousands of times.
var errRefused = fmt.Errorf("%w: %w", ErrOutOfMemory, ErrInjected)

// NewFaults returns a wrapper of inner that follows plan. It fails if the plan is invalid.
func NewFaults(inner Device, plan FaultPlan) (*Faults, error) {
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	return &Faults{inner: inner, plan: plan, rng: rand.New(rand.NewPCG(plan.Seed, 0))}, nil
}

// FailNext makes the next n calls fail, on top of the plan. It lets a test or a trace
// place a fault at one point of a sequence.
func (f *Faults) FailNext(n uint64) { f.armed = n }

// Injected returns how many calls were refused so far.
func (f *Faults) Injected() uint64 { return f.refused + f.rejected }

// Reserve implements [Source].
func (f *Faults) Reserve(size, align Size) (Region, error) {
	if f.strike() || f.plan.Above != 0 && size > f.plan.Above {
		f.refused++
		return Region{}, errRefused
	}
	return f.inner.Reserve(size, align)
}

// Release implements [Source].
func (f *Faults) Release(a Addr) error {
	if f.strike() {
		f.rejected++
		return ErrInjected
	}
	return f.inner.Release(a)
}

// Usage implements [Device]; calls refused here are counted with those refused below.
func (f *Faults) Usage() Usage {
	u := f.inner.Usage()
	u.Calls.Refused += f.refused
	u.Calls.Rejected += f.rejected
	return u
}

// strike counts a call and reports whether the plan refuses it. The draw is made for
// every call, so that one rule does not shift the sequence of another.
func (f *Faults) strike() bool {
	f.calls++
	hit := f.calls == f.plan.Nth
	if f.plan.Probability > 0 {
		hit = f.rng.Float64() < f.plan.Probability || hit
	}
	if f.armed > 0 {
		f.armed--
		hit = true
	}
	return hit
}
