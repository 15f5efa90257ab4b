package follow

import (
	"github.com/vramyard/vramyard/device"
)

// Call is one call to the device.
type Call struct {
	Kind   device.Call // which
	Size   device.Size // bytes that it is about; 0 if it says none
	Before uint64      // nanoseconds that all calls before it took
	Took   uint64      // nanoseconds that it took
	Failed bool        // it was refused
}

// Tap is a device that notes every call and what memory it moves.
type Tap struct {
	device.Forwarder
	memory
	calls []Call      // since the last reset
	held  device.Size // bytes of memory
	most  device.Size // their maximum since the last reset
	spent uint64      // nanoseconds that all calls took
	off   bool        // nothing is noted any more
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
	t.Forwarder = device.Hooked(dev, device.Hook{After: t.note})
	return t
}

// Held returns the bytes of memory that are held from the device.
func (t *Tap) Held() device.Size { return t.held }

// MostHeld returns the most bytes that were held since it was asked last, which may be more than
// before and after an event: memory that moves is held twice.
func (t *Tap) MostHeld() device.Size {
	most := max(t.most, t.held)
	t.most = t.held
	return most
}

// Spent returns the nanoseconds that all calls took together.
func (t *Tap) Spent() uint64 { return t.spent }

// NewCalls returns the calls since it was asked last. They are valid until the next call.
func (t *Tap) NewCalls() []Call {
	calls := t.calls
	t.calls = t.calls[:0]
	return calls
}

// Close ends the notes: what follows gives back what the strategy holds, and is no part of the run.
func (t *Tap) Close() { t.off = true }

// sized are the calls that are about a number of bytes.
var sized = device.CallsOf(
	device.CallReserve, device.CallReserveRange, device.CallCreateHandle, device.CallMap, device.CallSetAccess,
	device.CallUnmap,
	device.CallAllocAsync,
)

// note notes a call that has returned, and the memory that it moved. Fill and Compare move none.
func (t *Tap) note(v *device.Invocation) {
	if t.off || v.Call == device.CallFill || v.Call == device.CallCompare {
		return
	}
	u := t.Usage()
	c := Call{Kind: v.Call, Before: t.spent, Took: u.Time - t.spent, Failed: v.Err != nil}
	if sized.Has(v.Call) {
		c.Size = v.Size
	}
	t.calls = append(t.calls, c)
	t.held, t.spent = u.Held, u.Time
	t.most = max(t.most, t.held)
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
