package mirror

import "github.com/vramyard/vramyard/device"

// plain is the alignment in bytes of every region of a card.
const plain device.Size = 512

// space is the limit in bytes on the ranges held at once and on their alignment. A card has 47-bit
// addresses, which it shares with the process; a simulated device has 56-bit addresses.
const space = 4 * device.TiB

// modelled is a simulated device with the capabilities of a card. As on the card, a region with an
// alignment takes additional bytes, from the card's memory beyond the capacity.
type modelled struct {
	device.Forwarder
	card    device.Device
	room    device.Size // bytes left for alignments
	costs   map[device.Addr]device.Size
	refused device.Calls
}

// newModelled returns a device with the capabilities of card and the given room.
func newModelled(model, card device.Device, room device.Size) *modelled {
	m := &modelled{card: card, room: room, costs: map[device.Addr]device.Size{}}
	m.Forwarder = device.Hooked(model, device.Hook{Before: m.before, After: m.after})
	return m
}

// Has implements [device.Has]: the capabilities of both devices, and the model's timeline.
func (m *modelled) Has(c device.Capability) bool {
	return m.Forwarder.Has(c) && (c == device.CapTimeline || device.Has(m.card, c))
}

// Usage implements [device.Device]. It includes the calls that failed here.
func (m *modelled) Usage() device.Usage {
	u := m.Forwarder.Usage()
	for c, n := range m.refused {
		u.Calls[c].Failed += n.Failed
	}
	return u
}

// before rejects ranges that exceed a card's address space, and alignments that exceed the room.
// Invalid calls are passed to the simulated device.
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

// cost returns the additional bytes of a region with an alignment.
func cost(align device.Size) device.Size {
	if align > plain && device.IsPowerOfTwo(align) {
		return align
	}
	return 0
}

// after charges the room that a region takes.
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
