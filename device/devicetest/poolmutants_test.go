package devicetest_test

import (
	"errors"

	"github.com/vramyard/vramyard/device"
)

var poolMutants = []broken{
	{"blocks of pools are disjoint", "PoolBlocksAreDisjoint", func(m mutant) device.Device { return &wideBlocks{m} }},
	{"an empty pool shrinks to its threshold", "PoolsKeepTheirThreshold",
		func(m mutant) device.Device {
			return &keeping{m}
		}},
	{"a pool keeps its threshold", "PoolsKeepTheirThreshold", func(m mutant) device.Device { return &generous{m} }},
	{"a trim releases memory", "PoolsAreTrimmed", func(m mutant) device.Device { return &untrimmed{m} }},
	{"a pool reports used bytes", "PoolsReportTheirFigures", func(m mutant) device.Device { return &stuck{mutant: m} }},
	{"a peak is reset", "PoolsReportTheirFigures", func(m mutant) device.Device { return &noReset{m} }},
	{"a flag is 0 or 1", "PoolsReportTheirFigures", func(m mutant) device.Device { return &anyFlag{m} }},
	{"a pool has a limit", "PoolsAreBounded", func(m mutant) device.Device { return &unbounded{m} }},
	{"a pool with blocks is not destroyed", "PoolsAreNotMisused", func(m mutant) device.Device { return &rash{m} }},
	{"a destroyed pool is unknown", "PoolsAreNotMisused", func(m mutant) device.Device { return &ghost{m} }},
	{"the default pool is not destroyed", "PoolsAreNotMisused", func(m mutant) device.Device { return &ground{m} }},
	{"a block of a pool is freed once", "PoolBlocksAreNotMisused", func(m mutant) device.Device { return &freeTwice{m} }},
	{"a block of a pool is not a region", "PoolBlocksAreNotMisused", func(m mutant) device.Device { return &released{m} }},
	{"a pool distinguishes streams", "PoolsAgreeWithBlocks", func(m mutant) device.Device { return &streamless{m} }},
	{"another stream does not get memory in use", "PoolsReuseInStreamOrder", func(m mutant) device.Device {
		return &eager{m}
	}},
}

type streamless struct{ mutant }

func (m *streamless) AllocAsync(p device.Pool, size device.Size, _ device.Stream) (device.Region, error) {
	return m.mutant.AllocAsync(p, size, 0)
}

func (m *streamless) FreeAsync(a device.Addr, _ device.Stream) error { return m.mutant.FreeAsync(a, 0) }

type wideBlocks struct{ mutant }

func (m *wideBlocks) AllocAsync(p device.Pool, size device.Size, s device.Stream) (device.Region, error) {
	g, err := m.mutant.AllocAsync(p, size, s)
	g.Size += 4 * device.MiB
	return g, err
}

type keeping struct{ mutant }

func (m *keeping) NewPool(most device.Size) (device.Pool, error) {
	p, err := m.mutant.NewPool(most)
	if err == nil && m.mutant.SetPoolAttribute(p, device.ReleaseThreshold, device.GiB) == nil {
		m.made[device.CallSetPoolAttribute].Done--
	}
	return p, err
}

func (m *keeping) PoolAttribute(p device.Pool, a device.PoolAttribute) (device.Size, error) {
	v, err := m.mutant.PoolAttribute(p, a)
	if v == device.GiB {
		v = 0
	}
	return v, err
}

type generous struct{ mutant }

func (m *generous) SetPoolAttribute(p device.Pool, a device.PoolAttribute, v device.Size) error {
	if a == device.ReleaseThreshold {
		v = 0
	}
	return m.mutant.SetPoolAttribute(p, a, v)
}

type untrimmed struct{ mutant }

func (m *untrimmed) TrimPool(p device.Pool, keep device.Size) error {
	if p != 0 && keep == 0 {
		keep = device.GiB
	}
	return m.mutant.TrimPool(p, keep)
}

// stuck reports the peak of a pool's used bytes as its used bytes.
type stuck struct{ mutant }

func (m *stuck) PoolAttribute(p device.Pool, a device.PoolAttribute) (device.Size, error) {
	if a == device.UsedNow {
		a = device.UsedHigh
	}
	return m.mutant.PoolAttribute(p, a)
}

type noReset struct{ mutant }

func (m *noReset) SetPoolAttribute(p device.Pool, a device.PoolAttribute, v device.Size) error {
	if a == device.UsedHigh && v == 0 {
		return m.skip(device.CallSetPoolAttribute)
	}
	return m.mutant.SetPoolAttribute(p, a, v)
}

type anyFlag struct{ mutant }

func (m *anyFlag) SetPoolAttribute(p device.Pool, a device.PoolAttribute, v device.Size) error {
	return m.mutant.SetPoolAttribute(p, a, min(v, max(1, v&^3)))
}

type unbounded struct{ mutant }

func (m *unbounded) NewPool(device.Size) (device.Pool, error) { return m.mutant.NewPool(0) }

type rash struct{ mutant }

func (m *rash) DestroyPool(p device.Pool) error {
	return m.forgive(device.CallDestroyPool, m.mutant.DestroyPool(p), device.ErrBusy)
}

type ghost struct{ mutant }

func (m *ghost) TrimPool(p device.Pool, keep device.Size) error {
	return m.forgive(device.CallTrimPool, m.mutant.TrimPool(p, keep), device.ErrPool)
}

type ground struct{ mutant }

func (m *ground) DestroyPool(p device.Pool) error {
	err := m.mutant.DestroyPool(p)
	if p == 0 {
		return m.forgive(device.CallDestroyPool, err, device.ErrInvalid)
	}
	return err
}

type freeTwice struct{ mutant }

func (m *freeTwice) FreeAsync(a device.Addr, s device.Stream) error {
	return m.forgive(device.CallFreeAsync, m.mutant.FreeAsync(a, s), device.ErrInvalid)
}

type released struct{ mutant }

func (m *released) Release(a device.Addr) error {
	err := m.mutant.Release(a)
	if errors.Is(err, device.ErrInvalid) && m.mutant.FreeAsync(a, 0) == nil {
		m.made[device.CallFreeAsync].Done--
		m.forgiven[device.CallRelease].Done++
		return nil
	} else if err != nil {
		m.made[device.CallFreeAsync].Failed--
	}
	return err
}

// eager treats the work of all streams as finished at every allocation.
type eager struct{ mutant }

func (m *eager) AllocAsync(p device.Pool, size device.Size, s device.Stream) (device.Region, error) {
	for stream := range device.Stream(4) {
		if err := m.mutant.Drain(stream); err != nil {
			return device.Region{}, err
		}
	}
	return m.mutant.AllocAsync(p, size, s)
}
