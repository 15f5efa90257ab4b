package follow

import (
	"github.com/vramyard/vramyard/device"
)

// Call is one call to the device.
type Call struct {
	Kind   device.Call // kind of the call
	Size   device.Size // bytes requested or mapped; 0 for other calls
	Before uint64      // nanoseconds of all calls before it
	Took   uint64      // nanoseconds of the call
	Failed bool        // the device refused it
}

// Tap is a device that records every call and the memory that it takes or returns.
type Tap struct {
	device.Forwarder
	memory
	calls  []Call      // since the last reset
	held   device.Size // bytes of memory
	peak   device.Size // their maximum since the last reset
	spent  uint64      // nanoseconds of all calls
	closed bool        // nothing is recorded any more
}

var (
	_ device.VirtualMemory = (*Tap)(nil)
	_ device.Pools         = (*Tap)(nil)
	_ device.Streams       = (*Tap)(nil)
	_ device.Timeline      = (*Tap)(nil)
	_ device.MemoryInfo    = (*Tap)(nil)
)

// NewTap returns a tap of dev, which was not used before.
func NewTap(dev device.Device) *Tap {
	t := &Tap{}
	t.Forwarder = device.Hooked(dev, device.Hook{After: t.record})
	return t
}

// Held returns the bytes of memory that are held from the device.
func (t *Tap) Held() device.Size { return t.held }

// MostHeld returns the peak of the held bytes since its last call. The peak may exceed the bytes
// held before and after an event, because memory that moves is held twice.
func (t *Tap) MostHeld() device.Size {
	most := max(t.peak, t.held)
	t.peak = t.held
	return most
}

// Spent returns the nanoseconds of all calls.
func (t *Tap) Spent() uint64 { return t.spent }

// NewCalls returns the device calls since its last call. They are valid until the next one.
func (t *Tap) NewCalls() []Call {
	calls := t.calls
	t.calls = t.calls[:0]
	return calls
}

// Close ends the recording: later calls return the strategy's memory and are not part of the run.
func (t *Tap) Close() { t.closed = true }

// sized are the calls whose Size is recorded.
var sized = device.CallsOf(
	device.CallReserve, device.CallReserveRange, device.CallCreateHandle, device.CallMap, device.CallSetAccess,
	device.CallUnmap,
	device.CallAllocAsync,
)

// record records a call that has returned, and its memory. Fill and Compare take or return none.
func (t *Tap) record(v *device.Invocation) {
	if t.closed || v.Call == device.CallFill || v.Call == device.CallCompare {
		return
	}
	u := t.Usage()
	c := Call{Kind: v.Call, Before: t.spent, Took: u.Time - t.spent, Failed: v.Err != nil}
	if sized.Has(v.Call) {
		c.Size = v.Size
	}
	t.calls = append(t.calls, c)
	t.held, t.spent = u.Held, u.Time
	t.peak = max(t.peak, t.held)
	if c.Failed {
		return
	}
	switch v.Call {
	case device.CallReserve, device.CallAllocAsync: // blocks of pools are shown, not their memory
		t.take(v.Region)
	case device.CallRelease, device.CallFreeAsync:
		t.giveBack(v.Addr)
	case device.CallReserveRange:
		t.reserved(v.Region)
	case device.CallReleaseRange:
		t.unreserved(v.Addr)
	case device.CallMap:
		t.mapped(v.Addr, v.Size, page{v.Handle, v.Offset})
	case device.CallUnmap:
		t.unmapped(v.Addr, v.Size)
	}
}
