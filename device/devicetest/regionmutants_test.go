package devicetest_test

import (
	"errors"

	"github.com/vramyard/vramyard/device"
)

var regionMutants = []broken{
	{"a region is aligned", "RegionsAreAlignedAndDisjoint", func(m mutant) device.Device { return &misaligned{m} }},
	{"regions are disjoint", "RegionsAreAlignedAndDisjoint", func(m mutant) device.Device { return &overlapping{m} }},
	{"a region is released once", "RegionsAreReleasedOnce", func(m mutant) device.Device { return &forgiving{m} }},
	{"a region is released by its start", "RegionsAreReleasedOnce", func(m mutant) device.Device {
		return &inner{mutant: m}
	}},
	{"an alignment is a power of two", "RegionsAreReleasedOnce", func(m mutant) device.Device { return &anyAlign{m} }},
	{"a refused call keeps no memory", "RunningOutChangesNothing", func(m mutant) device.Device {
		return &leaking{m}
	}},
	{"running out of memory is not a mistake", "RunningOutChangesNothing", func(m mutant) device.Device {
		return &blaming{m}
	}},
	{"peaks do not decrease", "RegionsAreAccounted", accounting(func(u *device.Usage) { u.PeakHeld = u.Held })},
	{"held bytes are reported", "RegionsAreAccounted", accounting(func(u *device.Usage) { u.Held /= 2 })},
	{"regions are counted", "RegionsAreAccounted", accounting(func(u *device.Usage) { u.Regions = min(u.Regions, 1) })},
	{"held bytes are charged", "RegionsAreAccounted",
		accounting(func(u *device.Usage) { u.Charged, u.PeakCharged = 0, 0 })},
	{"refused calls are counted", "RegionsAreReleasedOnce",
		accounting(func(u *device.Usage) { u.Calls[device.CallRelease].Failed = 0 })},
	{"a call counts as its kind", "HandlesAreNotMisused", accounting(func(u *device.Usage) {
		u.Calls[device.CallReserve].Done += u.Calls[device.CallCreateHandle].Done
	})},
	{"time ascends", "RegionsAreAccounted", accounting(func(u *device.Usage) { u.Time = 1000 - u.Calls.Total() })},
	{"the capacity is constant", "RegionsAreAccounted", accounting(func(u *device.Usage) { u.Capacity = device.MiB })},
	{"a capability has methods", "CapabilitiesAgreeWithMethods", func(m mutant) device.Device { return boasting{&m} }},
	{"free memory follows the held bytes", "MemoryInfoFollowsHeldBytes", func(m mutant) device.Device {
		return &fixedInfo{m}
	}},
}

// accounting returns a wrapper that changes the account.
func accounting(f func(*device.Usage)) func(mutant) device.Device {
	return func(m mutant) device.Device {
		m.account = f
		return &m
	}
}

type misaligned struct{ mutant }

func (m *misaligned) Reserve(size, align device.Size) (device.Region, error) {
	if device.IsPowerOfTwo(align) {
		align = 0
	}
	return m.mutant.Reserve(size, align)
}

type overlapping struct{ mutant }

func (m *overlapping) Reserve(size, align device.Size) (device.Region, error) {
	g, err := m.mutant.Reserve(size, align)
	g.Size += 8 * device.KiB
	return g, err
}

type forgiving struct{ mutant }

func (m *forgiving) Release(a device.Addr) error {
	return m.forgive(device.CallRelease, m.mutant.Release(a), device.ErrInvalid)
}

type inner struct {
	mutant
	held []device.Region
}

func (m *inner) Reserve(size, align device.Size) (device.Region, error) {
	g, err := m.mutant.Reserve(size, align)
	m.held = append(m.held, g)
	return g, err
}

func (m *inner) Release(a device.Addr) error {
	for i, g := range m.held {
		if g.Contains(a) {
			m.held = append(m.held[:i], m.held[i+1:]...)
			return m.mutant.Release(g.Addr)
		}
	}
	return m.mutant.Release(a)
}

type anyAlign struct{ mutant }

func (m *anyAlign) Reserve(size, align device.Size) (device.Region, error) {
	return m.mutant.Reserve(size, align&-align)
}

type leaking struct{ mutant }

func (m *leaking) Reserve(size, align device.Size) (device.Region, error) {
	g, err := m.mutant.Reserve(size, align)
	if errors.Is(err, device.ErrOutOfMemory) {
		if _, err := m.mutant.Reserve(1, 0); err == nil {
			m.made[device.CallReserve].Done--
		}
	}
	return g, err
}

type blaming struct{ mutant }

func (m *blaming) Reserve(size, align device.Size) (device.Region, error) {
	g, err := m.mutant.Reserve(size, align)
	if errors.Is(err, device.ErrOutOfMemory) {
		err = device.ErrInvalid
	}
	return g, err
}

type boasting struct{ device.Device }

func (boasting) Has(c device.Capability) bool { return c == device.CapPools || c == device.CapStreams }

type fixedInfo struct{ mutant }

func (m *fixedInfo) MemoryInfo() (free, total device.Size, err error) {
	_, total, err = m.mutant.MemoryInfo()
	return total / 2, total, err
}
