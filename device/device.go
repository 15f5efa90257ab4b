package device

import "errors"

// Errors of a device. A device may wrap them with detail; test with errors.Is.
var (
	// ErrOutOfMemory says that the device has no room for the region.
	ErrOutOfMemory = errors.New("device: out of memory")
	// ErrInvalid says that a call is malformed: no bytes, an alignment that is not
	// a power of two, an address at which no region starts.
	ErrInvalid = errors.New("device: invalid call")
	// ErrInjected says that a [Faults] wrapper refused the call on its plan.
	ErrInjected = errors.New("device: injected fault")
)

// Region is a contiguous range of device memory from one reservation.
type Region struct {
	Addr Addr // first byte
	Size Size // bytes, at least what was asked for
}

// End returns the address just above the region.
func (r Region) End() Addr { return r.Addr.Add(r.Size) }

// Contains reports whether a lies inside the region.
func (r Region) Contains(a Addr) bool { return a >= r.Addr && a-r.Addr < Addr(r.Size) }

// Source hands out regions. It is all that a strategy needs of a device.
//
// A source is not safe for concurrent use unless it says so.
type Source interface {
	// Reserve returns a region of at least size bytes whose start is a multiple of
	// align, a power of two or zero for no wish.
	//
	// Postcondition: on error nothing is held that was not held before.
	Reserve(size, align Size) (Region, error)

	// Release gives back the region that starts at a.
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
	Capacity    Size  // 0 means unlimited
	Charged     Size  // counted against the capacity now
	PeakCharged Size  // most that was ever charged
	Held        Size  // sum of the sizes of the regions handed out and not released
	PeakHeld    Size  // most that was ever held
	Regions     int   // regions held now
	Calls       Calls // calls so far
}

// Free returns the bytes of capacity not charged, or the largest Size when the
// device is unlimited.
func (u Usage) Free() Size {
	if u.Capacity == 0 {
		return ^Size(0)
	}
	return u.Capacity - u.Charged
}

// Calls counts calls to a device by kind.
type Calls struct {
	Reserve  uint64 // reservations granted
	Refused  uint64 // reservations refused
	Release  uint64 // regions released
	Rejected uint64 // releases refused: nothing started at the address, or a fault was injected
}

// Total returns the number of all calls.
func (c Calls) Total() uint64 { return c.Reserve + c.Refused + c.Release + c.Rejected }
