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
	calls []Call      // since somebody asked
	held  device.Size // bytes of memory
	most  device.Size // the most of them since somebody asked
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
func NewTap(dev device.Device) *Tap { return &Tap{Forwarder: device.Forward(dev)} }

// Held returns the bytes of memory that are held from the device.
func (t *Tap) Held() device.Size { return t.held }

// MostHeld returns the most bytes that were held since it was asked last, which may be more than before
// and after an event: memory that moves is held twice.
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

// note notes a call that has returned, and reports whether it was granted and moves are noted.
func (t *Tap) note(kind device.Call, size device.Size, err error) bool {
	if t.off {
		return false
	}
	u := t.Usage()
	t.calls = append(t.calls, Call{
		Kind: kind, Size: size, Before: t.spent, Took: u.Time - t.spent, Failed: err != nil,
	})
	t.held, t.spent = u.Held, u.Time
	t.most = max(t.most, t.held)
	return err == nil
}

// Reserve implements [device.Source].
func (t *Tap) Reserve(size, align device.Size) (device.Region, error) {
	r, err := t.Forwarder.Reserve(size, align)
	if t.note(device.CallReserve, size, err) {
		t.take(r)
	}
	return r, err
}

// Release implements [device.Source].
func (t *Tap) Release(a device.Addr) error {
	err := t.Forwarder.Release(a)
	if t.note(device.CallRelease, 0, err) {
		t.giveBack(a)
	}
	return err
}

// ReserveRange implements [device.VirtualMemory].
func (t *Tap) ReserveRange(size, align device.Size, at device.Addr) (device.Region, error) {
	r, err := t.Forwarder.ReserveRange(size, align, at)
	if t.note(device.CallReserveRange, size, err) {
		t.reserved(r)
	}
	return r, err
}

// ReleaseRange implements [device.VirtualMemory].
func (t *Tap) ReleaseRange(a device.Addr) error {
	err := t.Forwarder.ReleaseRange(a)
	if t.note(device.CallReleaseRange, 0, err) {
		t.unreserved(a)
	}
	return err
}

// CreateHandle implements [device.VirtualMemory].
func (t *Tap) CreateHandle(size device.Size) (device.Handle, error) {
	h, err := t.Forwarder.CreateHandle(size)
	t.note(device.CallCreateHandle, size, err)
	return h, err
}

// ReleaseHandle implements [device.VirtualMemory].
func (t *Tap) ReleaseHandle(h device.Handle) error {
	err := t.Forwarder.ReleaseHandle(h)
	t.note(device.CallReleaseHandle, 0, err)
	return err
}

// Map implements [device.VirtualMemory].
func (t *Tap) Map(a device.Addr, size device.Size, h device.Handle, offset device.Size) error {
	err := t.Forwarder.Map(a, size, h, offset)
	if t.note(device.CallMap, size, err) {
		t.mapped(a, size, page{h, offset})
	}
	return err
}

// SetAccess implements [device.VirtualMemory].
func (t *Tap) SetAccess(a device.Addr, size device.Size, access device.Access) error {
	err := t.Forwarder.SetAccess(a, size, access)
	t.note(device.CallSetAccess, size, err)
	return err
}

// Unmap implements [device.VirtualMemory].
func (t *Tap) Unmap(a device.Addr, size device.Size) error {
	err := t.Forwarder.Unmap(a, size)
	if t.note(device.CallUnmap, size, err) {
		t.unmapped(a, size)
	}
	return err
}

// AllocAsync implements [device.Pools]. What a pool gives out is shown, not what it holds.
func (t *Tap) AllocAsync(p device.Pool, size device.Size, s device.Stream) (device.Region, error) {
	r, err := t.Forwarder.AllocAsync(p, size, s)
	if t.note(device.CallAllocAsync, size, err) {
		t.take(r)
	}
	return r, err
}

// FreeAsync implements [device.Pools].
func (t *Tap) FreeAsync(a device.Addr, s device.Stream) error {
	err := t.Forwarder.FreeAsync(a, s)
	if t.note(device.CallFreeAsync, 0, err) {
		t.giveBack(a)
	}
	return err
}

// NewPool implements [device.Pools].
func (t *Tap) NewPool(most device.Size) (device.Pool, error) {
	p, err := t.Forwarder.NewPool(most)
	t.note(device.CallNewPool, 0, err)
	return p, err
}

// DestroyPool implements [device.Pools].
func (t *Tap) DestroyPool(p device.Pool) error {
	err := t.Forwarder.DestroyPool(p)
	t.note(device.CallDestroyPool, 0, err)
	return err
}

// TrimPool implements [device.Pools].
func (t *Tap) TrimPool(p device.Pool, keep device.Size) error {
	err := t.Forwarder.TrimPool(p, keep)
	t.note(device.CallTrimPool, 0, err)
	return err
}

// PoolAttribute implements [device.Pools].
func (t *Tap) PoolAttribute(p device.Pool, a device.PoolAttribute) (device.Size, error) {
	v, err := t.Forwarder.PoolAttribute(p, a)
	t.note(device.CallPoolAttribute, 0, err)
	return v, err
}

// SetPoolAttribute implements [device.Pools].
func (t *Tap) SetPoolAttribute(p device.Pool, a device.PoolAttribute, v device.Size) error {
	err := t.Forwarder.SetPoolAttribute(p, a, v)
	t.note(device.CallSetPoolAttribute, 0, err)
	return err
}

// NewEvent implements [device.Streams].
func (t *Tap) NewEvent() (device.Event, error) {
	e, err := t.Forwarder.NewEvent()
	t.note(device.CallNewEvent, 0, err)
	return e, err
}

// DestroyEvent implements [device.Streams].
func (t *Tap) DestroyEvent(e device.Event) error {
	err := t.Forwarder.DestroyEvent(e)
	t.note(device.CallDestroyEvent, 0, err)
	return err
}

// Record implements [device.Streams].
func (t *Tap) Record(e device.Event, on device.Stream) error {
	err := t.Forwarder.Record(e, on)
	t.note(device.CallRecord, 0, err)
	return err
}

// Done implements [device.Streams].
func (t *Tap) Done(e device.Event) (bool, error) {
	done, err := t.Forwarder.Done(e)
	t.note(device.CallDone, 0, err)
	return done, err
}

// Wait implements [device.Streams].
func (t *Tap) Wait(on device.Stream, e device.Event) error {
	err := t.Forwarder.Wait(on, e)
	t.note(device.CallWait, 0, err)
	return err
}

// SyncEvent implements [device.Streams].
func (t *Tap) SyncEvent(e device.Event) error {
	err := t.Forwarder.SyncEvent(e)
	t.note(device.CallSyncEvent, 0, err)
	return err
}

// SyncStream implements [device.Streams].
func (t *Tap) SyncStream(on device.Stream) error {
	err := t.Forwarder.SyncStream(on)
	t.note(device.CallSyncStream, 0, err)
	return err
}

// SyncDevice implements [device.Streams].
func (t *Tap) SyncDevice() error {
	err := t.Forwarder.SyncDevice()
	t.note(device.CallSyncDevice, 0, err)
	return err
}

// MemoryInfo implements [device.MemoryInfo].
func (t *Tap) MemoryInfo() (free, total device.Size, err error) {
	free, total, err = t.Forwarder.MemoryInfo()
	t.note(device.CallMemoryInfo, 0, err)
	return free, total, err
}
