package sim

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/internal/mapped"
	"github.com/vramyard/vramyard/kit/index"
)

// mostCharged is the limit in bytes on the handles of an unlimited device. Handles take no
// addresses, so nothing else bounds the account.
const mostCharged device.Size = 1 << 63

// Mapping is memory mapped into a range. Sizes are bytes.
type Mapping struct {
	Addr   device.Addr   // start address
	Size   device.Size   // number of bytes mapped
	Handle device.Handle // handle of the memory, which may be released
	Offset device.Size   // in the memory
	Access device.Access // permitted access
}

// Mappings yields the mappings, by address. The device must not be called during the iteration.
func (d *Device) Mappings(yield func(Mapping) bool) {
	for e := range d.mappings.All {
		m := e.Value
		if !yield(Mapping{e.Addr, m.Size, device.Handle(d.memories.Number(m.Slot)), m.Offset, m.Access}) {
			return
		}
	}
}

// AddressSpace returns the fragmentation of the addresses from [Base] to the highest one ever used.
// Regions and ranges count as used. O(regions and ranges).
func (d *Device) AddressSpace() Space {
	var s Space
	floor := Base
	for e := range d.regions.All {
		s.add(e.Addr.Sub(floor))
		s.Used += e.Value.size()
		floor = e.Addr.Add(e.Value.size())
	}
	s.add(d.next.Sub(floor))
	return s
}

func (d *Device) Granularity() device.Size { return d.cfg.Granularity }

// whole reports whether n is a multiple of the granularity.
func (d *Device) whole(n device.Size) bool { return mapped.Whole(n, d.cfg.Granularity) }

// ReserveRange implements [device.VirtualMemory]. It places ranges like regions, at the same cost.
func (d *Device) ReserveRange(size, align device.Size, at device.Addr) (device.Region, error) {
	r, err := d.reserveRange(size, align, at)
	return r, d.count(device.CallReserveRange, size, err)
}

func (d *Device) reserveRange(size, align device.Size, at device.Addr) (device.Region, error) {
	if size == 0 || align != 0 && !device.IsPowerOfTwo(align) || align != 0 && !at.IsAligned(align) {
		return device.Region{}, device.ErrInvalid
	}
	if !d.whole(size) || !d.whole(device.Size(at)) {
		return device.Region{}, device.ErrGranularity
	}
	if size > device.Size(End-Base) || align > device.Size(End-Base) {
		return device.Region{}, device.ErrOutOfMemory
	}
	r := device.Region{Addr: at, Size: size}
	var p index.AddrPos
	var ok bool
	if at == 0 {
		r, p, ok = d.choose(size, max(align, d.cfg.Align, d.cfg.Granularity))
	} else {
		p, ok = d.vacant(r)
	}
	if !ok {
		return device.Region{}, device.ErrOutOfMemory
	}
	d.insert(p, r, rangeBit)
	d.usage.Ranges++
	d.usage.Space += size
	return r, nil
}

// vacant returns the position of the addresses r, and false unless all of them are free.
func (d *Device) vacant(r device.Region) (p index.AddrPos, ok bool) {
	end := End
	if d.cfg.Policy == TopDown {
		end = topDownEnd
	}
	p, ok = d.regions.Search(r.Addr)
	if ok || r.Addr < d.floor(p) || r.Addr >= end || r.Size > end.Sub(r.Addr) {
		return p, false
	}
	if above := d.regions.Above(p); d.regions.Holds(above) {
		return p, r.End().Add(d.gap) <= d.regions.Entry(above).Addr
	}
	return p, true
}

// ReleaseRange implements [device.VirtualMemory]. O(log ranges).
func (d *Device) ReleaseRange(a device.Addr) error {
	p, found := d.regions.Search(a)
	if !found || !d.regions.Entry(p).Value.isRange() {
		return d.count(device.CallReleaseRange, 0, device.ErrInvalid)
	}
	size := d.regions.Entry(p).Value.size()
	if m, _ := d.mappings.Search(a); d.mappings.Below(m, a.Add(size)) {
		return d.count(device.CallReleaseRange, size, device.ErrMapped)
	}
	d.remove(p)
	d.usage.Ranges--
	d.usage.Space -= size
	return d.count(device.CallReleaseRange, size, nil)
}

// CreateHandle implements [device.VirtualMemory]. O(1), or O(pieces) if memory is placed.
func (d *Device) CreateHandle(size device.Size) (device.Handle, error) {
	h, err := d.createHandle(size)
	return h, d.count(device.CallCreateHandle, size, err)
}

func (d *Device) createHandle(size device.Size) (device.Handle, error) {
	switch {
	case size == 0:
		return 0, device.ErrInvalid
	case !d.whole(size):
		return 0, device.ErrGranularity
	case size > device.Size(End-Base), d.cfg.FailAbove != 0 && size > d.cfg.FailAbove, !d.hasRoom(size),
		d.usage.Charged > mostCharged-size:
		return 0, device.ErrOutOfMemory
	}
	number, m, ok := d.newMemory(size, size)
	if !ok {
		return 0, device.ErrOutOfMemory
	}
	m.named = true
	d.usage.Handles++
	d.charge(size, size)
	return device.Handle(number), nil
}

func (d *Device) handle(h device.Handle) (slot int32, m *memory, ok bool) {
	if slot, ok = d.memories.Find(uint64(h)); !ok {
		return 0, nil, false
	}
	m = d.memories.At(slot)
	return slot, m, m.named
}

// ReleaseHandle implements [device.VirtualMemory]. O(1), or O(pieces) if memory is placed.
func (d *Device) ReleaseHandle(h device.Handle) error {
	slot, m, ok := d.handle(h)
	if !ok {
		return d.count(device.CallReleaseHandle, 0, device.ErrHandle)
	}
	size := m.size
	m.named = false
	d.usage.Handles--
	d.dropUnused(slot)
	return d.count(device.CallReleaseHandle, size, nil)
}

// dropUnused frees the memory of a handle if the handle is released and has no mappings.
func (d *Device) dropUnused(slot int32) {
	if m := d.memories.At(slot); !m.named && m.maps == 0 {
		d.uncharge(m.size, m.size)
		d.dropMemory(slot)
	}
}

// Map implements [device.VirtualMemory]. O(log mappings).
func (d *Device) Map(a device.Addr, size device.Size, h device.Handle, offset device.Size) error {
	return d.count(device.CallMap, size, d.mapAt(a, size, h, offset))
}

func (d *Device) mapAt(a device.Addr, size device.Size, h device.Handle, offset device.Size) error {
	if size == 0 {
		return device.ErrInvalid
	}
	if !d.whole(device.Size(a) | size | offset) {
		return device.ErrGranularity
	}
	slot, m, ok := d.handle(h)
	if !ok {
		return device.ErrHandle
	}
	if size > m.size || offset > m.size-size || !d.inOneRange(a, size) {
		return device.ErrInvalid
	}
	p, err := d.mappings.Room(a, size)
	if err != nil {
		return err
	}
	d.mappings.Insert(p, index.AddrEntry[mapped.Mapping]{Addr: a, Value: mapped.Mapping{Size: size, Slot: slot,
		Offset: offset}})
	m.maps++
	d.usage.Mapped += size
	return nil
}

// inOneRange reports whether size bytes at a lie in one range.
func (d *Device) inOneRange(a device.Addr, size device.Size) bool {
	p, ok := d.regions.Floor(a)
	if !ok {
		return false
	}
	e := d.regions.Entry(p)
	return e.Value.isRange() && mapped.Within(device.Region{Addr: e.Addr, Size: e.Value.size()}, a, size)
}

// SetAccess implements [device.VirtualMemory]. O(mappings).
func (d *Device) SetAccess(a device.Addr, size device.Size, access device.Access) error {
	p, err := d.mappings.Fill(a, size, d.cfg.Granularity)
	if access > device.AccessReadWrite {
		err = device.ErrInvalid
	}
	if err == nil {
		d.mappings.Allow(p, a.Add(size), access)
	}
	return d.count(device.CallSetAccess, size, err)
}

// Unmap implements [device.VirtualMemory]. O(log mappings + mappings removed).
func (d *Device) Unmap(a device.Addr, size device.Size) error {
	p, err := d.mappings.Fill(a, size, d.cfg.Granularity)
	if err == nil {
		for end := a.Add(size); d.mappings.Below(p, end); {
			m := d.mappings.Entry(p).Value
			p = d.mappings.Delete(p)
			d.memories.At(m.Slot).maps--
			d.dropUnused(m.Slot)
		}
		d.usage.Mapped -= size
	}
	return d.count(device.CallUnmap, size, err)
}
