package mirror

import "github.com/vramyard/vramyard/device"

// plain in bytes is the alignment that a card gives any region by itself.
const plain device.Size = 512

// space in bytes is how much of ranges there is at once, and the most that one is aligned to. A
// card has addresses of 47 bits and shares them with the process; a simulated device has 56.
const space = 4 * device.TiB

// modelled is a simulated device with the capabilities of a card, on which an alignment of a region
// costs what it costs on the card: as many bytes beside the region, of those that the card has
// beyond the capacity.
type modelled struct {
	device.Forwarder
	card    device.Device
	room    device.Size // left for alignments
	costs   map[device.Addr]device.Size
	refused device.Calls
}

// newModelled returns a device like a card with so much room.
func newModelled(model, card device.Device, room device.Size) *modelled {
	m := &modelled{card: card, room: room, costs: map[device.Addr]device.Size{}}
	m.Forwarder = device.Hooked(model, device.Hook{Before: m.before, After: m.after})
	return m
}

// Has tells [device.Has] what both devices can, and of a timeline what the simulated one can.
func (m *modelled) Has(c device.Capability) bool {
	return m.Forwarder.Has(c) && (c == device.CapTimeline || device.Has(m.card, c))
}

// Usage implements [device.Device]; what was refused here is counted.
func (m *modelled) Usage() device.Usage {
	u := m.Forwarder.Usage()
	for c, n := range m.refused {
		u.Calls[c].Failed += n.Failed
	}
	return u
}

// before refuses ranges that no card has room for, and alignments that cost more than the room.
// Mistakes are left to the simulated device.
func (m *modelled) before(v *device.Invocation) error {
	short := false
	switch v.Call {
	case device.CallReserveRange:
		right := v.Size != 0 && (v.Align == 0 || device.IsPowerOfTwo(v.Align) && v.Addr.IsAligned(v.Align)) &&
			(v.Size|device.Size(v.Addr))&(m.Granularity()-1) == 0
		short = right && (v.Size > space || v.Align > space || m.Forwarder.Usage().Space > space-v.Size)
	case device.CallReserve:
		short = v.Size != 0 && cost(v.Align) > m.room
	}
	if short {
		m.refused[v.Call].Failed++
		return device.ErrOutOfMemory
	}
	return nil
}

// cost returns the bytes that a region of an alignment costs beside its own.
func cost(align device.Size) device.Size {
	if align > plain && device.IsPowerOfTwo(align) {
		return align
	}
	return 0
}

// after books the room that a region takes.
func (m *modelled) after(v *device.Invocation) {
	switch {
	case v.Err != nil:
	case v.Call == device.CallReserve && cost(v.Align) != 0:
		m.room -= cost(v.Align)
		m.costs[v.Region.Addr] = cost(v.Align)
	case v.Call == device.CallRelease:
		m.room += m.costs[v.Addr]
		delete(m.costs, v.Addr)
	}
}
