package device

import (
	"errors"
	"fmt"
)

// Errors of a device. A device may wrap them with detail; test with errors.Is.
var (
	// ErrOutOfMemory says that the device has no room for what is asked.
	ErrOutOfMemory = errors.New("device: out of memory")
	// ErrInvalid says that a call is malformed: no bytes, an alignment that is not a power of
	// two, an address at which no region starts. The errors below are of this kind.
	ErrInvalid = errors.New("device: invalid call")
	// ErrGranularity says that a size, an address or an offset is no multiple of the granularity.
	ErrGranularity = fmt.Errorf("%w: no multiple of the granularity", ErrInvalid)
	// ErrMapped says that memory is mapped where there should be none.
	ErrMapped = fmt.Errorf("%w: memory is mapped there", ErrInvalid)
	// ErrUnmapped says that no memory is mapped where there should be some.
	ErrUnmapped = fmt.Errorf("%w: no memory is mapped there", ErrInvalid)
	// ErrAccess says that memory is mapped but may not be used so.
	ErrAccess = fmt.Errorf("%w: the memory may not be accessed so", ErrInvalid)
	// ErrHandle says that a handle was released, or never made by this device.
	ErrHandle = fmt.Errorf("%w: no such handle", ErrInvalid)
	// ErrEvent says that an event was destroyed, or never made by this device.
	ErrEvent = fmt.Errorf("%w: no such event", ErrInvalid)
	// ErrPool says that a pool was destroyed, or never made by this device.
	ErrPool = fmt.Errorf("%w: no such pool", ErrInvalid)
	// ErrBusy says that what should go back is still in use: a pool with blocks.
	ErrBusy = fmt.Errorf("%w: still in use", ErrInvalid)
	// ErrInjected says that a [Faults] wrapper refused the call on its plan.
	ErrInjected = errors.New("device: injected fault")
)

// Region is a contiguous range of device memory or address space from one reservation.
type Region struct {
	Addr Addr // first byte
	Size Size // bytes, at least what was asked for
}

// End returns the address just above the region.
func (r Region) End() Addr { return r.Addr.Add(r.Size) }

// Contains reports whether a lies inside the region.
func (r Region) Contains(a Addr) bool { return a >= r.Addr && a-r.Addr < Addr(r.Size) }

// Source hands out regions. It is all that most strategies need of a device; for what
// others need, see [Capability].
//
// A source is not safe for concurrent use unless it says so.
type Source interface {
	// Reserve returns a region of at least size bytes whose start is a multiple of
	// align, a power of two or zero for no wish.
	//
	// Postcondition: on error nothing is held that was not held before.
	Reserve(size, align Size) (Region, error)

	// Release gives back the region that starts at a. On a device with streams it waits until
	// all work has finished.
	//
	// Postcondition: on error the region is still held.
	Release(a Addr) error
}

// Device is a source that keeps account of itself.
type Device interface {
	Source
	// Usage returns what is held now, what was held at most, and the calls so far. O(1).
	Usage() Usage
}

// Usage is the account of a [Device]. Sizes are bytes.
type Usage struct {
	Capacity    Size   // 0 means unlimited
	Charged     Size   // counted against the capacity now
	PeakCharged Size   // most that was ever charged
	Held        Size   // memory handed out: of regions, of handles that are not released or still mapped, and of pools
	PeakHeld    Size   // most that was ever held
	Regions     int    // regions held now
	Handles     int    // handles not released now
	Ranges      int    // ranges of address space reserved now
	Space       Size   // their bytes
	Mapped      Size   // bytes of them that memory is mapped at
	Events      int    // events not destroyed now
	Calls       Calls  // calls so far
	Time        uint64 // nanoseconds that all calls took together: modelled, or measured on a real device
	Times       Times  // that time by kind of call
}

// Free returns the bytes of capacity not charged, or the largest Size when the
// device is unlimited.
func (u Usage) Free() Size {
	if u.Capacity == 0 {
		return ^Size(0)
	}
	return u.Capacity - u.Charged
}

// Empty reports whether nothing is held.
func (u Usage) Empty() bool {
	return u.Held == 0 && u.Regions == 0 && u.Handles == 0 && u.Ranges == 0 && u.Events == 0
}
