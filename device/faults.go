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
// [ErrInjected]; none reaches the wrapped device. What a [Timeline] tells is never refused.
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
	return &Faults{Forwarder: Forward(inner), plan: plan, rng: rand.New(rand.NewPCG(plan.Seed, 0))}, nil
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

// strike counts a call that would take size bytes, and returns the error with which the plan
// refuses it, nil if it does not. The draw is made for every call that counts, so that one
// rule does not shift the sequence of another.
func (f *Faults) strike(c Call, size Size) error {
	if f.plan.Calls != 0 && !f.plan.Calls.Has(c) {
		return nil
	}
	f.calls++
	hit := f.calls == f.plan.Nth || f.plan.Above != 0 && size > f.plan.Above
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

// Reserve implements [Source].
func (f *Faults) Reserve(size, align Size) (Region, error) {
	if err := f.strike(CallReserve, size); err != nil {
		return Region{}, err
	}
	return f.Forwarder.Reserve(size, align)
}

// Release implements [Source].
func (f *Faults) Release(a Addr) error {
	if err := f.strike(CallRelease, 0); err != nil {
		return err
	}
	return f.Forwarder.Release(a)
}

// ReserveRange implements [VirtualMemory].
func (f *Faults) ReserveRange(size, align Size, at Addr) (Region, error) {
	if err := f.strike(CallReserveRange, size); err != nil {
		return Region{}, err
	}
	return f.Forwarder.ReserveRange(size, align, at)
}

// ReleaseRange implements [VirtualMemory].
func (f *Faults) ReleaseRange(a Addr) error {
	if err := f.strike(CallReleaseRange, 0); err != nil {
		return err
	}
	return f.Forwarder.ReleaseRange(a)
}

// CreateHandle implements [VirtualMemory].
func (f *Faults) CreateHandle(size Size) (Handle, error) {
	if err := f.strike(CallCreateHandle, size); err != nil {
		return 0, err
	}
	return f.Forwarder.CreateHandle(size)
}

// ReleaseHandle implements [VirtualMemory].
func (f *Faults) ReleaseHandle(h Handle) error {
	if err := f.strike(CallReleaseHandle, 0); err != nil {
		return err
	}
	return f.Forwarder.ReleaseHandle(h)
}

// Map implements [VirtualMemory].
func (f *Faults) Map(a Addr, size Size, h Handle, offset Size) error {
	if err := f.strike(CallMap, 0); err != nil {
		return err
	}
	return f.Forwarder.Map(a, size, h, offset)
}

// SetAccess implements [VirtualMemory].
func (f *Faults) SetAccess(a Addr, size Size, access Access) error {
	if err := f.strike(CallSetAccess, 0); err != nil {
		return err
	}
	return f.Forwarder.SetAccess(a, size, access)
}

// Unmap implements [VirtualMemory].
func (f *Faults) Unmap(a Addr, size Size) error {
	if err := f.strike(CallUnmap, 0); err != nil {
		return err
	}
	return f.Forwarder.Unmap(a, size)
}

// NewEvent implements [Streams].
func (f *Faults) NewEvent() (Event, error) {
	if err := f.strike(CallNewEvent, 0); err != nil {
		return 0, err
	}
	return f.Forwarder.NewEvent()
}

// DestroyEvent implements [Streams].
func (f *Faults) DestroyEvent(e Event) error {
	if err := f.strike(CallDestroyEvent, 0); err != nil {
		return err
	}
	return f.Forwarder.DestroyEvent(e)
}

// Record implements [Streams].
func (f *Faults) Record(e Event, on Stream) error {
	if err := f.strike(CallRecord, 0); err != nil {
		return err
	}
	return f.Forwarder.Record(e, on)
}

// Done implements [Streams].
func (f *Faults) Done(e Event) (bool, error) {
	if err := f.strike(CallDone, 0); err != nil {
		return false, err
	}
	return f.Forwarder.Done(e)
}

// Wait implements [Streams].
func (f *Faults) Wait(on Stream, e Event) error {
	if err := f.strike(CallWait, 0); err != nil {
		return err
	}
	return f.Forwarder.Wait(on, e)
}

// SyncEvent implements [Streams].
func (f *Faults) SyncEvent(e Event) error {
	if err := f.strike(CallSyncEvent, 0); err != nil {
		return err
	}
	return f.Forwarder.SyncEvent(e)
}

// SyncStream implements [Streams].
func (f *Faults) SyncStream(on Stream) error {
	if err := f.strike(CallSyncStream, 0); err != nil {
		return err
	}
	return f.Forwarder.SyncStream(on)
}

// SyncDevice implements [Streams].
func (f *Faults) SyncDevice() error {
	if err := f.strike(CallSyncDevice, 0); err != nil {
		return err
	}
	return f.Forwarder.SyncDevice()
}

// NewPool implements [Pools].
func (f *Faults) NewPool(most Size) (Pool, error) {
	if err := f.strike(CallNewPool, 0); err != nil {
		return 0, err
	}
	return f.Forwarder.NewPool(most)
}

// DestroyPool implements [Pools].
func (f *Faults) DestroyPool(pool Pool) error {
	if err := f.strike(CallDestroyPool, 0); err != nil {
		return err
	}
	return f.Forwarder.DestroyPool(pool)
}

// AllocAsync implements [Pools].
func (f *Faults) AllocAsync(pool Pool, size Size, on Stream) (Region, error) {
	if err := f.strike(CallAllocAsync, size); err != nil {
		return Region{}, err
	}
	return f.Forwarder.AllocAsync(pool, size, on)
}

// FreeAsync implements [Pools].
func (f *Faults) FreeAsync(a Addr, on Stream) error {
	if err := f.strike(CallFreeAsync, 0); err != nil {
		return err
	}
	return f.Forwarder.FreeAsync(a, on)
}

// TrimPool implements [Pools].
func (f *Faults) TrimPool(pool Pool, keep Size) error {
	if err := f.strike(CallTrimPool, 0); err != nil {
		return err
	}
	return f.Forwarder.TrimPool(pool, keep)
}

// PoolAttribute implements [Pools].
func (f *Faults) PoolAttribute(pool Pool, a PoolAttribute) (Size, error) {
	if err := f.strike(CallPoolAttribute, 0); err != nil {
		return 0, err
	}
	return f.Forwarder.PoolAttribute(pool, a)
}

// SetPoolAttribute implements [Pools].
func (f *Faults) SetPoolAttribute(pool Pool, a PoolAttribute, v Size) error {
	if err := f.strike(CallSetPoolAttribute, 0); err != nil {
		return err
	}
	return f.Forwarder.SetPoolAttribute(pool, a, v)
}

// Fill implements [Contents].
func (f *Faults) Fill(a Addr, n Size, pattern uint32) error {
	if err := f.strike(CallFill, 0); err != nil {
		return err
	}
	return f.Forwarder.Fill(a, n, pattern)
}

// MemoryInfo implements [MemoryInfo].
func (f *Faults) MemoryInfo() (free, total Size, err error) {
	if err := f.strike(CallMemoryInfo, 0); err != nil {
		return 0, 0, err
	}
	return f.Forwarder.MemoryInfo()
}

// Compare implements [Contents].
func (f *Faults) Compare(a Addr, n Size, pattern uint32) (differs Addr, same bool, err error) {
	if err := f.strike(CallCompare, 0); err != nil {
		return 0, false, err
	}
	return f.Forwarder.Compare(a, n, pattern)
}
