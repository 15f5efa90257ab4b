package pluggable

import (
	"github.com/vramyard/vramyard/device"
)

// bound is a device of which no more than a number of bytes may be held. It also tells which memory
// goes back, and whether one piece of memory was put at two addresses.
type bound struct {
	device.Forwarder
	inner   device.Device
	most    device.Size // 0 for no bound
	sizes   map[device.Addr]device.Size
	mapped  map[device.Handle]bool
	aliased bool
	gone    func(a device.Addr, n device.Size) // memory is about to go back
}

// newBound returns a device without a bound.
func newBound(d device.Device) *bound {
	return &bound{
		Forwarder: device.Forward(d), inner: d, sizes: map[device.Addr]device.Size{}, mapped: map[device.Handle]bool{},
		gone: func(device.Addr, device.Size) {},
	}
}

// room reports whether so many bytes may be held besides.
func (b *bound) room(n device.Size) bool {
	held := b.inner.Usage().Held
	return b.most == 0 || held <= b.most && n <= b.most-held
}

// Reserve implements [device.Source].
func (b *bound) Reserve(size, align device.Size) (device.Region, error) {
	if !b.room(size) {
		return device.Region{}, device.ErrOutOfMemory
	}
	r, err := b.Forwarder.Reserve(size, align)
	if err == nil {
		b.sizes[r.Addr] = r.Size
	}
	return r, err
}

// Release implements [device.Source].
func (b *bound) Release(a device.Addr) error {
	b.gone(a, b.sizes[a])
	err := b.Forwarder.Release(a)
	if err == nil {
		delete(b.sizes, a)
	}
	return err
}

// CreateHandle implements [device.VirtualMemory].
func (b *bound) CreateHandle(size device.Size) (device.Handle, error) {
	if !b.room(size) {
		return 0, device.ErrOutOfMemory
	}
	return b.Forwarder.CreateHandle(size)
}

// ReleaseHandle implements [device.VirtualMemory].
func (b *bound) ReleaseHandle(h device.Handle) error {
	delete(b.mapped, h)
	return b.Forwarder.ReleaseHandle(h)
}

// Map implements [device.VirtualMemory].
func (b *bound) Map(a device.Addr, size device.Size, h device.Handle, offset device.Size) error {
	err := b.Forwarder.Map(a, size, h, offset)
	if err == nil {
		b.aliased = b.aliased || b.mapped[h]
		b.mapped[h] = true
	}
	return err
}

// Unmap implements [device.VirtualMemory].
func (b *bound) Unmap(a device.Addr, size device.Size) error {
	b.gone(a, size)
	return b.Forwarder.Unmap(a, size)
}
