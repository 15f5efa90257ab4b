package devicetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/vramyard/vramyard/device"
)

// rig is a device with its capabilities and the checks of each call.
type rig struct {
	testing.TB
	open Maker
	d    device.Device
	vm   device.VirtualMemory // nil without the capability, like those below
	str  device.Streams
	pool device.Pools
	info device.MemoryInfo
	mem  device.Contents
	time device.Timeline

	injected func() uint64  // number of injected faults so far; nil without faults
	refused  device.CallSet // kinds of the calls that a fault refused
	called   device.CallSet // kinds of the calls so far
}

func newRig(t testing.TB, d device.Device) *rig {
	r := &rig{TB: t, d: d}
	r.vm, _ = device.VirtualMemoryOf(d)
	r.str, _ = device.StreamsOf(d)
	r.pool, _ = device.PoolsOf(d)
	r.info, _ = device.MemoryInfoOf(d)
	r.mem, _ = device.ContentsOf(d)
	r.time, _ = device.TimelineOf(d)
	return r
}

// other returns a rig around the device with the other ordinal.
func (r *rig) other() *rig { return newRig(r.TB, r.open(r.TB, 1)) }

// finish fails the test unless everything was released, after trimming the pools.
func (r *rig) finish() {
	r.Helper()
	if r.str != nil {
		r.syncDevice(nil)
	}
	if r.pool != nil {
		r.trimPool(nil, 0, 0)
	}
	if u := r.d.Usage(); !u.Empty() || u.Space != 0 || u.Mapped != 0 {
		r.Errorf("everything was released and the device still holds %s", holdings(u))
	}
}

// specificErrors are the sentinel errors that exclude each other: an error matches at most one.
var specificErrors = []error{
	device.ErrOutOfMemory, device.ErrGranularity, device.ErrMapped, device.ErrUnmapped, device.ErrAccess,
	device.ErrHandle, device.ErrEvent, device.ErrPool, device.ErrBusy, device.ErrUnsupported, device.ErrInjected,
}

// oneOf matches any of several errors, for a call with more than one mistake.
type oneOf []error

// Error lists the errors.
func (o oneOf) Error() string { return "any of " + errors.Join(o...).Error() }

// answers reports whether an error is the expected one.
func answers(err, want error) bool {
	if all, ok := errors.AsType[oneOf](want); ok {
		return slices.ContainsFunc(all, func(w error) bool { return answers(err, w) })
	}
	if want == nil || err == nil {
		return want == nil && err == nil
	}
	if !errors.Is(err, want) {
		return false
	}
	// Where ErrInvalid is expected, a device may return a more specific error.
	general := errors.Is(want, device.ErrInvalid) && !slices.ContainsFunc(specificErrors, func(k error) bool {
		return errors.Is(want, k)
	})
	return !slices.ContainsFunc(specificErrors, func(k error) bool {
		return errors.Is(err, k) && !errors.Is(want, k) && !(general && errors.Is(k, device.ErrInvalid))
	})
}

// call makes a call of a kind, and fails the test unless it returns the expected error and the
// account agrees. args are for messages.
func (r *rig) call(want error, c device.Call, f func() error, args ...any) {
	r.Helper()
	_ = r.try(want, c, f, args...) // it has checked the error
}

// try is call for a caller that accepts several errors: it returns the error.
//
// A call that an injected fault refused is checked to have changed nothing, and repeated.
func (r *rig) try(want error, c device.Call, f func() error, args ...any) error {
	r.Helper()
	was := r.d.Usage()
	var before uint64
	if r.injected != nil {
		before = r.injected()
	}
	r.called |= device.CallsOf(c)
	err := f()
	if r.injected != nil && r.injected() != before {
		r.checkInjected(err, c, was, args)
		r.refused |= device.CallsOf(c)
		return r.try(want, c, f, args...)
	}
	if !answers(err, want) {
		r.Fatalf("%v%v returned %q, want %q", c, args, text(err), text(want))
	}
	r.account(err, c, was, args)
	return err
}

func text(err error) string {
	if err == nil {
		return "success"
	}
	return err.Error()
}

// account checks the account after a call that returned err.
func (r *rig) account(err error, c device.Call, was device.Usage, args []any) {
	r.Helper()
	now := r.d.Usage()
	want := was.Calls
	if err == nil {
		want[c].Done++
	} else {
		want[c].Failed++
	}
	if now.Calls != want {
		r.Errorf("%v%v returned %q and the calls went from %s to %s, want %s", c, args, text(err),
			callCounts(was.Calls), callCounts(now.Calls), callCounts(want))
	}
	if now.Time < was.Time {
		r.Errorf("%v%v took the time of all calls from %d ns to %d ns", c, args, was.Time, now.Time)
	}
	if now.PeakHeld < max(was.PeakHeld, now.Held) || now.PeakCharged < max(was.PeakCharged, now.Charged) {
		r.Errorf("after %v%v the device holds %s, before it held %s: a peak has decreased or is below the current value",
			c, args, holdings(now), holdings(was))
	}
	if now.Capacity != was.Capacity || now.Capacity != 0 && now.Charged > now.Capacity {
		r.Errorf("after %v%v %v of a capacity of %v are charged; it was %v", c, args, now.Charged, now.Capacity, was.Capacity)
	}
	if err == nil {
		return
	}
	// The search for memory may release the cached memory of pools.
	if c == device.CallAllocAsync && errors.Is(err, device.ErrOutOfMemory) && now.Held < was.Held {
		was.Held, was.Charged, was.Regions = now.Held, now.Charged, now.Regions
		was.PeakHeld, was.PeakCharged = now.PeakHeld, now.PeakCharged
	}
	r.unchanged(was, "%v%v returned %q", c, args, text(err))
}

// unchanged fails the test unless the account equals was, except for calls and times.
func (r *rig) unchanged(was device.Usage, format string, args ...any) {
	r.Helper()
	now := r.d.Usage()
	now.Calls, now.Time, now.Times = was.Calls, was.Time, was.Times
	if now != was {
		args = append(args, holdings(was), holdings(now))
		r.Errorf(format+" and the device held %s, now holds %s", args...)
	}
}
