package device

import (
	"errors"
	"fmt"
)

// Errors of a device. A device may wrap them with detail; test with errors.Is.
var (
	// ErrOutOfMemory: the device has no room for the request.
	ErrOutOfMemory = errors.New("device: out of memory")
	// ErrInvalid: the call is malformed, for instance no bytes, an alignment that is not a power of
	// two, or an address at which no region starts. The errors below wrap it.
	ErrInvalid = errors.New("device: invalid call")
	// ErrGranularity: a size, address or offset is not a multiple of the granularity.
	ErrGranularity = fmt.Errorf("%w: not a multiple of the granularity", ErrInvalid)
	// ErrMapped: memory is mapped in a range that must be free of mappings.
	ErrMapped = fmt.Errorf("%w: memory is mapped there", ErrInvalid)
	// ErrUnmapped: no memory is mapped at an address that requires it.
	ErrUnmapped = fmt.Errorf("%w: no memory is mapped there", ErrInvalid)
	// ErrAccess: the mapping does not permit the access.
	ErrAccess = fmt.Errorf("%w: the mapping does not permit the access", ErrInvalid)
	// ErrHandle: the handle was released, or never made by this device.
	ErrHandle = fmt.Errorf("%w: no such handle", ErrInvalid)
	// ErrEvent: the event was destroyed, or never made by this device.
	ErrEvent = fmt.Errorf("%w: no such event", ErrInvalid)
	// ErrPool: the pool was destroyed, or never made by this device.
	ErrPool = fmt.Errorf("%w: no such pool", ErrInvalid)
	// ErrBusy: the object is still in use, such as a pool with blocks.
	ErrBusy = fmt.Errorf("%w: still in use", ErrInvalid)
	// ErrInjected: a [Faults] wrapper failed the call.
	ErrInjected = errors.New("device: injected fault")
)

// Region is a contiguous range of device memory or address space from one reservation.
type Region struct {
	Addr Addr // first byte
	Size Size // bytes, at least the requested size
}

// End returns the address just above the region.
func (r Region) End() Addr { return r.Addr.Add(r.Size) }

// Contains reports whether a lies inside the region.
func (r Region) Contains(a Addr) bool { return a >= r.Addr && a-r.Addr < Addr(r.Size) }

// Source hands out regions. Most strategies need nothing else of a device; see [Capability] for
// more.
//
// A source is not safe for concurrent use unless its documentation says so.
type Source interface {
	// Reserve returns a region of at least size bytes whose start is a multiple of align, a power of
	// two or zero for any.
	//
	// Postcondition: on error the set of held regions is unchanged.
	Reserve(size, align Size) (Region, error)

	// Release frees the region that starts at a. On a device with streams it waits until all work has
	// finished.
	//
	// Postcondition: on error the region is still held.
	Release(a Addr) error
}

// Device is a source with an account.
type Device interface {
	Source
	// Usage returns the account. O(1).
	Usage() Usage
}

// Usage is the account of a [Device]. Sizes are bytes.
type Usage struct {
	Capacity    Size   // 0 means unlimited
	Charged     Size   // bytes charged against the capacity
	PeakCharged Size   // maximum of Charged
	Held        Size   // memory handed out: regions, handles that are not released or still mapped, and pools
	PeakHeld    Size   // maximum of Held
	Regions     int    // number of regions held
	Handles     int    // number of handles not released
	Ranges      int    // number of address ranges reserved
	Space       Size   // bytes of the ranges
	Mapped      Size   // mapped bytes of the ranges
	Events      int    // number of events not destroyed
	Calls       Calls  // calls so far
	Time        uint64 // nanoseconds of all calls: modelled, or measured on a real device
	Times       Times  // Time by kind of call
}

// Free returns the uncharged bytes of the capacity, or the maximum Size for an unlimited device.
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
