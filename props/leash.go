package props

import (
	"errors"

	"github.com/vramyard/vramyard/device"
)

// mostCalls is how many device calls one call to a strategy may make before it is taken
// for one that never ends. A backpedal from an exbibyte in steps of a tenth takes 400.
const mostCalls = 1 << 16

// errRunaway is what the leash panics with.
var errRunaway = errors.New("one call made more than 65536 device calls")

// leash stops a strategy that asks its device for ever. It counts the calls that a fault plan
// counts, and tells the model of streams what was queued and what has finished.
type leash struct {
	device.Forwarder
	calls int    // in the present call
	total uint64 // so far
	order order

	sizes    map[device.Addr]device.Size // of the regions
	returned []device.Region             // memory that went back in the present call, where it was
}

// newLeash returns a leash around a device.
func newLeash(d device.Device) *leash {
	return &leash{Forwarder: device.Forward(d), sizes: map[device.Addr]device.Size{}}
}

// tell calls note if a call succeeded, and returns the answer of the call.
func tell(err error, note func()) error {
	if err == nil {
		note()
	}
	return err
}

// begin tells that a call to the strategy begins.
func (l *leash) begin() { l.calls, l.returned = 0, l.returned[:0] }

func (l *leash) pull() {
	l.total++
	if l.calls++; l.calls > mostCalls {
		panic(errRunaway)
	}
}

// Reserve implements [device.Source].
func (l *leash) Reserve(size, align device.Size) (device.Region, error) {
	l.pull()
	r, err := l.Forwarder.Reserve(size, align)
	return r, tell(err, func() { l.sizes[r.Addr] = r.Size })
}

// Release implements [device.Source].
func (l *leash) Release(a device.Addr) error {
	l.pull()
	return tell(l.Forwarder.Release(a), func() {
		l.order.finishAll()
		l.returned = append(l.returned, device.Region{Addr: a, Size: l.sizes[a]})
	})
}

// ReserveRange implements [device.VirtualMemory].
func (l *leash) ReserveRange(size, align device.Size, at device.Addr) (device.Region, error) {
	l.pull()
	return l.Forwarder.ReserveRange(size, align, at)
}

// ReleaseRange implements [device.VirtualMemory].
func (l *leash) ReleaseRange(a device.Addr) error {
	l.pull()
	return l.Forwarder.ReleaseRange(a)
}

// CreateHandle implements [device.VirtualMemory].
func (l *leash) CreateHandle(size device.Size) (device.Handle, error) {
	l.pull()
	return l.Forwarder.CreateHandle(size)
}

// ReleaseHandle implements [device.VirtualMemory].
func (l *leash) ReleaseHandle(h device.Handle) error {
	l.pull()
	return l.Forwarder.ReleaseHandle(h)
}

// Map implements [device.VirtualMemory].
func (l *leash) Map(a device.Addr, size device.Size, h device.Handle, offset device.Size) error {
	l.pull()
	return l.Forwarder.Map(a, size, h, offset)
}

// SetAccess implements [device.VirtualMemory].
func (l *leash) SetAccess(a device.Addr, size device.Size, access device.Access) error {
	l.pull()
	return l.Forwarder.SetAccess(a, size, access)
}

// Unmap implements [device.VirtualMemory].
func (l *leash) Unmap(a device.Addr, size device.Size) error {
	l.pull()
	return tell(l.Forwarder.Unmap(a, size), func() {
		l.returned = append(l.returned, device.Region{Addr: a, Size: size})
	})
}

// NewEvent implements [device.Streams].
func (l *leash) NewEvent() (device.Event, error) {
	l.pull()
	return l.Forwarder.NewEvent()
}

// DestroyEvent implements [device.Streams].
func (l *leash) DestroyEvent(e device.Event) error {
	l.pull()
	return tell(l.Forwarder.DestroyEvent(e), func() { delete(l.order.events, e) })
}

// Record implements [device.Streams].
func (l *leash) Record(e device.Event, s device.Stream) error {
	l.pull()
	return tell(l.Forwarder.Record(e, s), func() { l.order.record(e, s) })
}

// Done implements [device.Streams].
func (l *leash) Done(e device.Event) (bool, error) {
	l.pull()
	return l.Forwarder.Done(e)
}

// Wait implements [device.Streams].
func (l *leash) Wait(s device.Stream, e device.Event) error {
	l.pull()
	return tell(l.Forwarder.Wait(s, e), func() { l.order.wait(s, e) })
}

// SyncEvent implements [device.Streams].
func (l *leash) SyncEvent(e device.Event) error {
	l.pull()
	return tell(l.Forwarder.SyncEvent(e), func() { l.order.finishEvent(e) })
}

// SyncStream implements [device.Streams].
func (l *leash) SyncStream(s device.Stream) error {
	l.pull()
	return tell(l.Forwarder.SyncStream(s), func() { l.order.finishStream(s) })
}

// SyncDevice implements [device.Streams].
func (l *leash) SyncDevice() error {
	l.pull()
	return tell(l.Forwarder.SyncDevice(), func() { l.order.finishAll() })
}

// NewPool implements [device.Pools].
func (l *leash) NewPool(most device.Size) (device.Pool, error) {
	l.pull()
	return l.Forwarder.NewPool(most)
}

// DestroyPool implements [device.Pools].
func (l *leash) DestroyPool(p device.Pool) error {
	l.pull()
	return l.Forwarder.DestroyPool(p)
}

// AllocAsync implements [device.Pools].
func (l *leash) AllocAsync(p device.Pool, size device.Size, s device.Stream) (device.Region, error) {
	l.pull()
	return l.Forwarder.AllocAsync(p, size, s)
}

// FreeAsync implements [device.Pools].
func (l *leash) FreeAsync(a device.Addr, s device.Stream) error {
	l.pull()
	return l.Forwarder.FreeAsync(a, s)
}

// TrimPool implements [device.Pools].
func (l *leash) TrimPool(p device.Pool, keep device.Size) error {
	l.pull()
	return l.Forwarder.TrimPool(p, keep)
}

// PoolAttribute implements [device.Pools].
func (l *leash) PoolAttribute(p device.Pool, a device.PoolAttribute) (device.Size, error) {
	l.pull()
	return l.Forwarder.PoolAttribute(p, a)
}

// SetPoolAttribute implements [device.Pools].
func (l *leash) SetPoolAttribute(p device.Pool, a device.PoolAttribute, v device.Size) error {
	l.pull()
	return l.Forwarder.SetPoolAttribute(p, a, v)
}

// MemoryInfo implements [device.MemoryInfo].
func (l *leash) MemoryInfo() (free, total device.Size, err error) {
	l.pull()
	return l.Forwarder.MemoryInfo()
}

// Fill implements [device.Contents].
func (l *leash) Fill(a device.Addr, n device.Size, pattern uint32) error {
	l.pull()
	return l.Forwarder.Fill(a, n, pattern)
}

// Compare implements [device.Contents].
func (l *leash) Compare(a device.Addr, n device.Size, pattern uint32) (differs device.Addr, same bool, err error) {
	l.pull()
	return l.Forwarder.Compare(a, n, pattern)
}

// Drain implements [device.Timeline]. The suite calls it, so it is not counted.
func (l *leash) Drain(s device.Stream) error {
	return tell(l.Forwarder.Drain(s), func() { l.order.finishStream(s) })
}
