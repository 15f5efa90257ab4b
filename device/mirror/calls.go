package mirror

import (
	"errors"

	"github.com/vramyard/vramyard/device"
)

// Reserve implements [device.Source]. What the model has no room to align is not asked of the card.
func (d *Device) Reserve(size, align device.Size) (device.Region, error) {
	r, err := d.Forwarder.Reserve(size, align)
	if d.alike() && !(align > plain && errors.Is(err, device.ErrOutOfMemory)) {
		c, card := d.card.Reserve(size, align)
		d.took(region, r, err, c, card, align, "reserve %d", uint64(size))
	}
	return r, err
}

// Release implements [device.Source].
func (d *Device) Release(a device.Addr) error {
	err := d.Forwarder.Release(a)
	if d.alike() && d.same(err, d.card.Release(d.at(a)), "release %v", a) {
		d.left(a)
	}
	return err
}

// ReserveRange implements [device.VirtualMemory].
func (d *Device) ReserveRange(size, align device.Size, at device.Addr) (device.Region, error) {
	r, err := d.Forwarder.ReserveRange(size, align, at)
	if d.vm == nil || !d.alike() || errors.Is(err, device.ErrOutOfMemory) {
		return r, err // the model is short of its own addresses
	}
	wish := at // of a mistake
	if err == nil {
		wish = d.behind(at, align)
	}
	c, card := d.vm.ReserveRange(size, align, wish)
	if err == nil && wish != 0 && errors.Is(card, device.ErrOutOfMemory) {
		c, card = d.vm.ReserveRange(size, align, 0) // somebody is there on the card
	} else if card == nil && wish != 0 && c.Addr != wish {
		d.note("reserve-range %d at %v: the card gives %v", uint64(size), wish, c.Addr)
	}
	d.took(addresses, r, err, c, card, align, "reserve-range %d", uint64(size))
	return r, err
}

// behind returns where a range goes on the card that follows another one on the model, 0 for anywhere.
func (d *Device) behind(at device.Addr, align device.Size) device.Addr {
	if at == 0 {
		return 0
	}
	e, ok := d.around(at - 1)
	if !ok || e.Value.kind != addresses {
		return 0
	}
	if end := e.Value.card.Add(e.Value.size); align == 0 || end.IsAligned(align) {
		return end
	}
	return 0
}

// ReleaseRange implements [device.VirtualMemory].
func (d *Device) ReleaseRange(a device.Addr) error {
	err := d.Forwarder.ReleaseRange(a)
	if d.vm != nil && d.alike() && d.same(err, d.vm.ReleaseRange(d.inRange(a)), "release-range %v", a) {
		d.left(a)
	}
	return err
}

// CreateHandle implements [device.VirtualMemory].
func (d *Device) CreateHandle(size device.Size) (device.Handle, error) {
	h, err := d.Forwarder.CreateHandle(size)
	if d.vm != nil && d.alike() {
		c, card := d.vm.CreateHandle(size)
		if d.same(err, card, "create-handle %d", uint64(size)) {
			d.handles[h] = c
		}
	}
	return h, err
}

// ReleaseHandle implements [device.VirtualMemory].
func (d *Device) ReleaseHandle(h device.Handle) error {
	err := d.Forwarder.ReleaseHandle(h)
	if d.vm != nil && d.alike() && d.same(err, d.vm.ReleaseHandle(d.handles[h]), "release-handle %#x", uint64(h)) {
		delete(d.handles, h)
	}
	return err
}

// Map implements [device.VirtualMemory].
func (d *Device) Map(a device.Addr, size device.Size, h device.Handle, offset device.Size) error {
	err := d.Forwarder.Map(a, size, h, offset)
	if d.vm != nil && d.alike() {
		card := d.vm.Map(d.inRange(a), size, d.handles[h], offset)
		d.same(err, card, "map %v+%d to %#x+%d", a, uint64(size), uint64(h), uint64(offset))
	}
	return err
}

// SetAccess implements [device.VirtualMemory].
func (d *Device) SetAccess(a device.Addr, size device.Size, access device.Access) error {
	err := d.Forwarder.SetAccess(a, size, access)
	if d.vm != nil {
		set := func(at device.Addr, n device.Size) error { return d.vm.SetAccess(at, n, access) }
		d.both(err, a, size, set, "set-access %v+%d %v", a, uint64(size), access)
	}
	return err
}

// Unmap implements [device.VirtualMemory].
func (d *Device) Unmap(a device.Addr, size device.Size) error {
	err := d.Forwarder.Unmap(a, size)
	if d.vm != nil {
		d.both(err, a, size, d.vm.Unmap, "unmap %v+%d", a, uint64(size))
	}
	return err
}

// NewEvent implements [device.Streams].
func (d *Device) NewEvent() (device.Event, error) {
	e, err := d.Forwarder.NewEvent()
	if d.streams != nil && d.alike() {
		c, card := d.streams.NewEvent()
		if d.same(err, card, "new-event") {
			d.events[e] = c
		}
	}
	return e, err
}

// DestroyEvent implements [device.Streams].
func (d *Device) DestroyEvent(e device.Event) error {
	err := d.Forwarder.DestroyEvent(e)
	if d.streams != nil && d.alike() && d.same(err, d.streams.DestroyEvent(d.events[e]), "destroy-event %#x", uint64(e)) {
		delete(d.events, e)
	}
	return err
}

// Record implements [device.Streams].
func (d *Device) Record(e device.Event, s device.Stream) error {
	err := d.Forwarder.Record(e, s)
	if d.streams != nil && d.alike() {
		d.same(err, d.streams.Record(d.events[e], s), "record %#x on stream %d", uint64(e), uint64(s))
	}
	return err
}

// Done implements [device.Streams]. What is done on the model has to be on the card, once the host has waited for it:
// there the work that was queued is none, but its marks are passed when the card comes to it.
func (d *Device) Done(e device.Event) (bool, error) {
	done, err := d.Forwarder.Done(e)
	if d.streams == nil || !d.alike() {
		return done, err
	}
	there, card := d.streams.Done(d.events[e])
	if done && card == nil && !there {
		if card = d.streams.SyncEvent(d.events[e]); card == nil {
			there, card = d.streams.Done(d.events[e])
		}
	}
	if d.same(err, card, "done %#x", uint64(e)) && done && !there {
		d.note("done %#x: the model's event is done, the card's is not after the host has waited for it", uint64(e))
	}
	return done, err
}

// Wait implements [device.Streams].
func (d *Device) Wait(s device.Stream, e device.Event) error {
	err := d.Forwarder.Wait(s, e)
	if d.streams != nil && d.alike() {
		d.same(err, d.streams.Wait(s, d.events[e]), "wait on stream %d for %#x", uint64(s), uint64(e))
	}
	return err
}

// SyncEvent implements [device.Streams].
func (d *Device) SyncEvent(e device.Event) error {
	err := d.Forwarder.SyncEvent(e)
	if d.streams != nil && d.alike() {
		d.same(err, d.streams.SyncEvent(d.events[e]), "sync-event %#x", uint64(e))
	}
	return err
}

// SyncStream implements [device.Streams].
func (d *Device) SyncStream(s device.Stream) error {
	err := d.Forwarder.SyncStream(s)
	if d.streams != nil && d.alike() {
		d.same(err, d.streams.SyncStream(s), "sync-stream %d", uint64(s))
	}
	return err
}

// SyncDevice implements [device.Streams].
func (d *Device) SyncDevice() error {
	err := d.Forwarder.SyncDevice()
	if d.streams != nil && d.alike() {
		d.same(err, d.streams.SyncDevice(), "sync-device")
	}
	return err
}

// Drain implements [device.Timeline] on the model. On the card the host waits for the stream.
func (d *Device) Drain(s device.Stream) error {
	err := d.Forwarder.Drain(s)
	if err == nil && d.streams != nil && d.alike() {
		d.same(nil, d.streams.SyncStream(s), "drain stream %d", uint64(s))
	}
	return err
}
