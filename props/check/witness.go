package check

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// witness is a device that notes what it is asked, as far as it tells of memory and of the order
// of work.
type witness struct {
	device.Forwarder
	page *page
}

// newWitness returns a witness of what the suite hands a strategy, which is a device.
func newWitness(src device.Source, p *page) *witness {
	return &witness{device.Forward(src.(device.Device)), p}
}

// note writes a call with its answer.
func (w *witness) note(err error, answer, format string, args ...any) {
	if err != nil {
		answer = err.Error()
	}
	step := w.page.step()
	step.Device = append(step.Device, fmt.Sprintf(format, args...)+": "+answer)
}

// regionText returns a region as address+size.
func regionText(r device.Region) string { return fmt.Sprintf("%v+%d", r.Addr, uint64(r.Size)) }

// Reserve implements [device.Source].
func (w *witness) Reserve(size, align device.Size) (device.Region, error) {
	r, err := w.Forwarder.Reserve(size, align)
	w.note(err, regionText(r), "reserve %d", uint64(size))
	return r, err
}

// ReserveRange implements [device.VirtualMemory].
func (w *witness) ReserveRange(size, align device.Size, at device.Addr) (device.Region, error) {
	r, err := w.Forwarder.ReserveRange(size, align, at)
	w.note(err, regionText(r), "reserve-range %d", uint64(size))
	return r, err
}

// CreateHandle implements [device.VirtualMemory].
func (w *witness) CreateHandle(size device.Size) (device.Handle, error) {
	h, err := w.Forwarder.CreateHandle(size)
	w.note(err, fmt.Sprintf("handle %#x", uint64(h)), "create-handle %d", uint64(size))
	return h, err
}

// Done implements [device.Streams].
func (w *witness) Done(e device.Event) (bool, error) {
	done, err := w.Forwarder.Done(e)
	w.note(err, fmt.Sprint(done), "done %#x", uint64(e))
	return done, err
}

// Release implements [device.Source].
func (w *witness) Release(a device.Addr) error {
	err := w.Forwarder.Release(a)
	w.note(err, "done", "release %v", a)
	return err
}

// ReleaseRange implements [device.VirtualMemory].
func (w *witness) ReleaseRange(a device.Addr) error {
	err := w.Forwarder.ReleaseRange(a)
	w.note(err, "done", "release-range %v", a)
	return err
}

// ReleaseHandle implements [device.VirtualMemory].
func (w *witness) ReleaseHandle(h device.Handle) error {
	err := w.Forwarder.ReleaseHandle(h)
	w.note(err, "done", "release-handle %#x", uint64(h))
	return err
}

// Map implements [device.VirtualMemory].
func (w *witness) Map(a device.Addr, size device.Size, h device.Handle, offset device.Size) error {
	err := w.Forwarder.Map(a, size, h, offset)
	w.note(err, "done", "map %v+%d to %#x+%d", a, uint64(size), uint64(h), uint64(offset))
	return err
}

// SetAccess implements [device.VirtualMemory].
func (w *witness) SetAccess(a device.Addr, size device.Size, access device.Access) error {
	err := w.Forwarder.SetAccess(a, size, access)
	w.note(err, "done", "set-access %v+%d %v", a, uint64(size), access)
	return err
}

// Unmap implements [device.VirtualMemory].
func (w *witness) Unmap(a device.Addr, size device.Size) error {
	err := w.Forwarder.Unmap(a, size)
	w.note(err, "done", "unmap %v+%d", a, uint64(size))
	return err
}

// Record implements [device.Streams].
func (w *witness) Record(e device.Event, s device.Stream) error {
	err := w.Forwarder.Record(e, s)
	w.note(err, "done", "record %#x on stream %d", uint64(e), uint64(s))
	return err
}

// Wait implements [device.Streams].
func (w *witness) Wait(s device.Stream, e device.Event) error {
	err := w.Forwarder.Wait(s, e)
	w.note(err, "done", "wait on stream %d for %#x", uint64(s), uint64(e))
	return err
}

// SyncEvent implements [device.Streams].
func (w *witness) SyncEvent(e device.Event) error {
	err := w.Forwarder.SyncEvent(e)
	w.note(err, "done", "sync-event %#x", uint64(e))
	return err
}

// SyncStream implements [device.Streams].
func (w *witness) SyncStream(s device.Stream) error {
	err := w.Forwarder.SyncStream(s)
	w.note(err, "done", "sync-stream %d", uint64(s))
	return err
}

// SyncDevice implements [device.Streams].
func (w *witness) SyncDevice() error {
	err := w.Forwarder.SyncDevice()
	w.note(err, "done", "sync-device")
	return err
}
