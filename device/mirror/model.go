package mirror

import "github.com/vramyard/vramyard/device"

// plain in bytes is the alignment that a card gives any region by itself.
const plain device.Size = 512

// space in bytes is how much of ranges there is at once, and the most that one is aligned to. A card has addresses of
// 47 bits and shares them with the process; a simulated device has 56.
const space = 4 * device.TiB

// modelled is a simulated device with the capabilities of a card, on which an alignment of a region costs what it costs
// on the card: as many bytes beside the region, of those that the card has beyond the capacity.
type modelled struct {
	device.Forwarder
	card    device.Device
	room    device.Size // left for alignments
	costs   map[device.Addr]device.Size
	refused device.Calls
}

// newModelled returns a device like a card with so much room.
func newModelled(model, card device.Device, room device.Size) *modelled {
	return &modelled{Forwarder: device.Forward(model), card: card, room: room, costs: map[device.Addr]device.Size{}}
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

// ReserveRange implements [device.VirtualMemory]. What is wrong is for the simulated device to say.
func (m *modelled) ReserveRange(size, align device.Size, at device.Addr) (device.Region, error) {
	right := size != 0 && (align == 0 || device.IsPowerOfTwo(align) && at.IsAligned(align)) &&
		(size|device.Size(at))&(m.Granularity()-1) == 0
	if right && (size > space || align > space || m.Forwarder.Usage().Space > space-size) {
		m.refused[device.CallReserveRange].Failed++
		return device.Region{}, device.ErrOutOfMemory
	}
	return m.Forwarder.ReserveRange(size, align, at)
}

// Reserve implements [device.Source].
func (m *modelled) Reserve(size, align device.Size) (device.Region, error) {
	costs := device.Size(0)
	if align > plain && device.IsPowerOfTwo(align) {
		costs = align
	}
	if size != 0 && costs > m.room {
		m.refused[device.CallReserve].Failed++
		return device.Region{}, device.ErrOutOfMemory
	}
	r, err := m.Forwarder.Reserve(size, align)
	if err == nil && costs != 0 {
		m.room -= costs
		m.costs[r.Addr] = costs
	}
	return r, err
}

// Release implements [device.Source].
func (m *modelled) Release(a device.Addr) error {
	err := m.Forwarder.Release(a)
	if err == nil {
		m.room += m.costs[a]
		delete(m.costs, a)
	}
	return err
}
