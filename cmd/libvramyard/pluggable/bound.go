package pluggable

import (
	"github.com/vramyard/vramyard/device"
)

// bound is a device with a limit on the bytes held. It also reports memory that is about to be
// released, and whether physical memory was mapped at two addresses.
type bound struct {
	device.Forwarder
	inner   device.Device
	most    device.Size // limit; 0 for none
	sizes   map[device.Addr]device.Size
	mapped  map[device.Handle]bool
	aliased bool
	gone    func(a device.Addr, n device.Size) // called before memory is released
}

func newBound(d device.Device) *bound {
	b := &bound{
		inner: d, sizes: map[device.Addr]device.Size{}, mapped: map[device.Handle]bool{},
		gone: func(device.Addr, device.Size) {},
	}
	b.Forwarder = device.Hooked(d, device.Hook{Before: b.before, After: b.after})
	return b
}

func (b *bound) room(n device.Size) bool {
	held := b.inner.Usage().Held
	return b.most == 0 || held <= b.most && n <= b.most-held
}

// before refuses memory above the limit, and calls gone before memory is released.
func (b *bound) before(v *device.Invocation) error {
	switch v.Call {
	case device.CallReserve, device.CallCreateHandle:
		if !b.room(v.Size) {
			return device.ErrOutOfMemory
		}
	case device.CallRelease:
		b.gone(v.Addr, b.sizes[v.Addr])
	case device.CallUnmap:
		b.gone(v.Addr, v.Size)
	case device.CallReleaseHandle:
		delete(b.mapped, v.Handle)
	}
	return nil
}

// after records the sizes of regions and the mapped handles.
func (b *bound) after(v *device.Invocation) {
	switch {
	case v.Err != nil:
	case v.Call == device.CallReserve:
		b.sizes[v.Region.Addr] = v.Region.Size
	case v.Call == device.CallRelease:
		delete(b.sizes, v.Addr)
	case v.Call == device.CallMap:
		b.aliased = b.aliased || b.mapped[v.Handle]
		b.mapped[v.Handle] = true
	}
}
