package devicetest_test

import (
	"errors"

	"github.com/vramyard/vramyard/device"
)

var virtualMutants = []broken{
	{"a range starts at the requested address", "RangesStartAtRequestedAddress", func(m mutant) device.Device {
		return &anywhere{m}
	}},
	{"a mapped range is not released", "RangesAreNotMisused", func(m mutant) device.Device { return &coldRange{m} }},
	{"a range is not a region", "RangesAreNotRegions", func(m mutant) device.Device { return &confusing{m} }},
	{"ranges cost no memory", "RangesAreAlignedAndDisjoint", accounting(func(u *device.Usage) { u.Held += u.Space })},
	{"address space is reported", "RangesAreAlignedAndDisjoint", accounting(func(u *device.Usage) { u.Space = 0 })},
	{"mapped bytes are reported", "MappingJoinsRangeAndHandle",
		accounting(func(u *device.Usage) { u.Mapped = min(u.Mapped, u.Held) / 2 })},
	{"memory mapped twice is held once", "OneHandleHasManyAddresses",
		accounting(func(u *device.Usage) { u.Held = max(u.Held, u.Mapped) })},
	{"mapped memory is held without its handle", "MappedMemoryOutlivesItsHandle", accounting(func(u *device.Usage) {
		if u.Handles == 0 {
			u.Held -= min(u.Mapped, u.Held)
		}
	})},
	{"a released handle frees memory", "MappingJoinsRangeAndHandle", func(m mutant) device.Device { return &hoarding{m} }},
	{"a released handle is unknown", "HandlesAreNotMisused", func(m mutant) device.Device { return &forgivingHandle{m} }},
	{"a stale handle is rejected", "HandlesAreNotMisused", func(m mutant) device.Device {
		return &recycling{mutant: m}
	}},
	{"nothing is mapped over a mapping", "NothingIsMappedTwice", func(m mutant) device.Device { return &overMap{m} }},
	{"a map stays in its range", "NothingIsMappedTwice", func(m mutant) device.Device { return &wideMap{m} }},
	{"a map stays in its handle", "HandlesAreNotMisused", func(m mutant) device.Device { return &longMap{m} }},
	{"a handle is mapped from the offset", "HandlesAreMappedFromAnOffset", func(m mutant) device.Device {
		return &fromStart{m}
	}},
	{"a mapping is not cut", "MappingsAreNotCut", func(m mutant) device.Device { return &cutting{m} }},
	{"only mapped memory is unmapped", "MappingsAreNotCut", func(m mutant) device.Device { return &unmapping{m} }},
	{"an unmap is complete", "AdjacentMappingsTakeOneCall", func(m mutant) device.Device { return &halfUnmap{m} }},
	{"an access is enforced", "OneHandleHasManyAddresses", func(m mutant) device.Device { return &openAccess{m} }},
	{"a granularity error is specific", "GranularityIsEnforced", func(m mutant) device.Device { return &vague{m} }},
	{"a refused unmap changes nothing", "MappingsAreNotCut", func(m mutant) device.Device { return &hasty{m} }},
}

type anywhere struct{ mutant }

func (m *anywhere) ReserveRange(size, align device.Size, at device.Addr) (device.Region, error) {
	g, err := m.mutant.ReserveRange(size, align, at)
	if errors.Is(err, device.ErrOutOfMemory) && size < device.GiB {
		m.forgiven[device.CallReserveRange].Failed++
		if g, err = m.mutant.ReserveRange(size, align, 0); err == nil {
			m.made[device.CallReserveRange].Done--
			err = m.forgive(device.CallReserveRange, device.ErrOutOfMemory, device.ErrOutOfMemory)
		}
	}
	return g, err
}

type coldRange struct{ mutant }

func (m *coldRange) ReleaseRange(a device.Addr) error {
	return m.forgive(device.CallReleaseRange, m.mutant.ReleaseRange(a), device.ErrMapped)
}

type confusing struct{ mutant }

func (m *confusing) ReleaseRange(a device.Addr) error {
	err := m.mutant.ReleaseRange(a)
	if errors.Is(err, device.ErrInvalid) && m.mutant.Release(a) == nil {
		m.made[device.CallRelease].Done--
		m.made[device.CallReleaseRange].Done++
		return nil
	}
	return err
}

type hoarding struct{ mutant }

func (m *hoarding) ReleaseHandle(h device.Handle) error {
	if h != 0 {
		return m.skip(device.CallReleaseHandle)
	}
	return m.mutant.ReleaseHandle(h)
}

type forgivingHandle struct{ mutant }

func (m *forgivingHandle) ReleaseHandle(h device.Handle) error {
	return m.forgive(device.CallReleaseHandle, m.mutant.ReleaseHandle(h), device.ErrHandle)
}

// recycling reuses the numbers of released handles.
type recycling struct {
	mutant
	slots []device.Handle
}

const recycled = 1 << 63

func (m *recycling) CreateHandle(size device.Size) (device.Handle, error) {
	h, err := m.mutant.CreateHandle(size)
	if err != nil {
		return 0, err
	}
	for i, old := range m.slots {
		if old == 0 {
			m.slots[i] = h
			return recycled + device.Handle(i), nil
		}
	}
	m.slots = append(m.slots, h)
	return recycled + device.Handle(len(m.slots)-1), nil
}

func (m *recycling) inner(h device.Handle) device.Handle {
	if i := h - recycled; h >= recycled && i < device.Handle(len(m.slots)) {
		return m.slots[i]
	}
	return 0
}

func (m *recycling) ReleaseHandle(h device.Handle) error {
	err := m.mutant.ReleaseHandle(m.inner(h))
	if err == nil {
		m.slots[h-recycled] = 0
	}
	return err
}

func (m *recycling) Map(a device.Addr, n device.Size, h device.Handle, offset device.Size) error {
	return m.mutant.Map(a, n, m.inner(h), offset)
}

type overMap struct{ mutant }

func (m *overMap) Map(a device.Addr, n device.Size, h device.Handle, offset device.Size) error {
	return m.forgive(device.CallMap, m.mutant.Map(a, n, h, offset), device.ErrMapped)
}

type wideMap struct{ mutant }

func (m *wideMap) Map(a device.Addr, n device.Size, h device.Handle, offset device.Size) error {
	err := m.mutant.Map(a, n, h, offset)
	if n > m.Granularity() && errors.Is(err, device.ErrInvalid) && !errors.Is(err, device.ErrHandle) {
		return m.forgive(device.CallMap, err, device.ErrInvalid)
	}
	return err
}

type longMap struct{ mutant }

func (m *longMap) Map(a device.Addr, n device.Size, h device.Handle, offset device.Size) error {
	err := m.mutant.Map(a, n, h, offset)
	if err != nil && n > 2*m.Granularity() && m.mutant.Map(a, 2*m.Granularity(), h, offset) == nil {
		m.forgiven[device.CallMap].Done++
		m.made[device.CallMap].Done--
		return nil
	}
	return err
}

type fromStart struct{ mutant }

func (m *fromStart) Map(a device.Addr, n device.Size, h device.Handle, offset device.Size) error {
	if offset%m.Granularity() == 0 && offset <= 3*m.Granularity() {
		offset = 0
	}
	return m.mutant.Map(a, n, h, offset)
}

type cutting struct{ mutant }

func (m *cutting) Unmap(a device.Addr, n device.Size) error {
	err := m.mutant.Unmap(a, n)
	if n == m.Granularity() && err != nil && !errors.Is(err, device.ErrUnmapped) &&
		!errors.Is(err, device.ErrGranularity) {
		return m.forgive(device.CallUnmap, err, device.ErrInvalid)
	}
	return err
}

type unmapping struct{ mutant }

func (m *unmapping) Unmap(a device.Addr, n device.Size) error {
	return m.forgive(device.CallUnmap, m.mutant.Unmap(a, n), device.ErrUnmapped)
}

type halfUnmap struct{ mutant }

func (m *halfUnmap) Unmap(a device.Addr, n device.Size) error {
	if g := m.Granularity(); n == 2*g && m.mutant.Unmap(a, g) == nil {
		return nil
	} else if n == 2*g {
		m.made[device.CallUnmap].Failed--
	}
	return m.mutant.Unmap(a, n)
}

type openAccess struct{ mutant }

func (m *openAccess) SetAccess(a device.Addr, n device.Size, access device.Access) error {
	if access == device.AccessRead {
		access = device.AccessReadWrite
	}
	return m.mutant.SetAccess(a, n, access)
}

type vague struct{ mutant }

func (m *vague) CreateHandle(size device.Size) (device.Handle, error) {
	h, err := m.mutant.CreateHandle(size)
	if errors.Is(err, device.ErrGranularity) {
		err = device.ErrInvalid
	}
	return h, err
}

// hasty unmaps page by page until a page fails.
type hasty struct{ mutant }

func (m *hasty) Unmap(a device.Addr, n device.Size) error {
	err := m.mutant.Unmap(a, n)
	if g := m.Granularity(); errors.Is(err, device.ErrUnmapped) && m.mutant.Unmap(a, 3*g) == nil {
		m.made[device.CallUnmap].Done--
	} else if errors.Is(err, device.ErrUnmapped) {
		m.forgiven[device.CallUnmap].Failed++
	}
	return err
}
