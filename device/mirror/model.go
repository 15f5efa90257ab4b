package mirror

import "github.com/vramyard/vramyard/device"

// sizeUnit is the alignment in bytes of every region of a card.
const sizeUnit device.Size = 512

// maxSpace is the limit in bytes on the ranges held at once and on their alignment. A card has
// 47-bit addresses, which it shares with the process; a simulated device has 56-bit addresses.
const maxSpace = 4 * device.TiB

// cardModel is a simulated device with the capabilities of a card. As on the card, a region with an
// alignment takes additional bytes, from the card's memory beyond the capacity.
type cardModel struct {
	device.Forwarder
	card    device.Device
	room    device.Size // bytes left for alignments
	costs   map[device.Addr]device.Size
	refused device.Calls
}

// newCardModel returns a device with the capabilities of card and the given room.
func newCardModel(model, card device.Device, room device.Size) *cardModel {
	m := &cardModel{card: card, room: room, costs: map[device.Addr]device.Size{}}
	m.Forwarder = device.Hooked(model, device.Hook{Before: m.before, After: m.after})
	return m
}

// Has implements [device.Has]: the capabilities of both devices, and the model's timeline.
func (m *cardModel) Has(c device.Capability) bool {
	return m.Forwarder.Has(c) && (c == device.CapTimeline || device.Has(m.card, c))
}

// Usage implements [device.Device]. It includes the calls that failed here.
func (m *cardModel) Usage() device.Usage {
	u := m.Forwarder.Usage()
	for c, n := range m.refused {
		u.Calls[c].Failed += n.Failed
	}
	return u
}

// before rejects ranges that exceed a card's address space, and alignments that exceed the room.
// Invalid calls are passed to the simulated device.
func (m *cardModel) before(v *device.Invocation) error {
	outOfMemory := false
	switch v.Call {
	case device.CallReserveRange:
		valid := v.Size != 0 && (v.Align == 0 || device.IsPowerOfTwo(v.Align) && v.Addr.IsAligned(v.Align)) &&
			(v.Size|device.Size(v.Addr))&(m.Granularity()-1) == 0
		outOfMemory = valid && (v.Size > maxSpace || v.Align > maxSpace || m.Forwarder.Usage().Space > maxSpace-v.Size)
	case device.CallReserve:
		outOfMemory = v.Size != 0 && cost(v.Align) > m.room
	}
	if outOfMemory {
		m.refused[v.Call].Failed++
		return device.ErrOutOfMemory
	}
	return nil
}

// cost returns the additional bytes of a region with an alignment.
func cost(align device.Size) device.Size {
	if align > sizeUnit && device.IsPowerOfTwo(align) {
		return align
	}
	return 0
}

// after charges the room that a region takes.
func (m *cardModel) after(v *device.Invocation) {
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
