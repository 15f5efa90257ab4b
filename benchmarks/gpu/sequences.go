package main

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/cuda"
)

// sizesTo returns the sizes to time, from one up to another.
func sizesTo(least, most device.Size) (all []device.Size) {
	for _, n := range []device.Size{
		512, 4 * device.KiB, 64 * device.KiB, device.MiB, 2 * device.MiB, 8 * device.MiB, 32 * device.MiB, 128 * device.MiB,
		512 * device.MiB, 2 * device.GiB, 8 * device.GiB,
	} {
		if n >= least && n <= most {
			all = append(all, n)
		}
	}
	return all
}

// mostCompared bounds the bytes copied to the host.
const mostCompared = 128 * device.MiB

func callSequences(d *cuda.Device, largest device.Size) (all []callSequence) {
	add := func(name string, size device.Size, begin func(*meter) (func() error, error)) {
		all = append(all, callSequence{name, size, begin})
	}
	add("memory information", 0, information)
	add("events and streams", 0, events)
	for _, n := range sizesTo(512, largest) {
		add("regions", n, func(m *meter) (func() error, error) { return func() error { return regions(m, n) }, nil })
		add("contents", n, func(m *meter) (func() error, error) { return contents(m, n) })
	}
	if g := d.Granularity(); g != 0 {
		for _, n := range sizesTo(g, largest) {
			add("virtual memory", n, func(m *meter) (func() error, error) {
				return func() error { return mapped(m, n, n) }, nil
			})
			for _, piece := range []device.Size{g, 16 * g} {
				if most := device.Size(64); piece < n && n/piece <= most {
					add("virtual memory in pieces", n, func(m *meter) (func() error, error) {
						return func() error { return mapped(m, n, piece) }, nil
					})
				}
			}
		}
	}
	if device.Has(d, device.CapPools) {
		add("pools", 0, func(m *meter) (func() error, error) { return func() error { return pools(m) }, nil })
		for _, n := range sizesTo(512, largest) {
			add("blocks of a warm pool", n, func(m *meter) (func() error, error) { return warm(m, n) })
			add("blocks of a cold pool", n, func(m *meter) (func() error, error) { return cold(m, n) })
		}
	}
	return all
}

func information(m *meter) (func() error, error) {
	return func() error {
		return m.time(device.CallMemoryInfo, 0, func() error {
			_, _, err := m.MemoryInfo()
			return err
		})
	}, nil
}

// events makes the calls of events and streams, on idle streams.
func events(m *meter) (func() error, error) {
	const recorded, waiting = 1, 2
	if err := m.SyncStream(recorded); err != nil { // which makes it
		return nil, err
	}
	if err := m.SyncStream(waiting); err != nil {
		return nil, err
	}
	return func() error {
		var e device.Event
		return steps(
			m.step(device.CallNewEvent, func() (err error) { e, err = m.NewEvent(); return err }),
			m.step(device.CallRecord, func() error { return m.Record(e, recorded) }),
			m.step(device.CallWait, func() error { return m.Wait(waiting, e) }),
			m.step(device.CallSyncEvent, func() error { return m.SyncEvent(e) }),
			m.step(device.CallDone, func() error { _, err := m.Done(e); return err }),
			m.step(device.CallSyncStream, func() error { return m.SyncStream(waiting) }),
			m.step(device.CallSyncDevice, m.SyncDevice),
			m.step(device.CallDestroyEvent, func() error { return m.DestroyEvent(e) }),
		)
	}, nil
}

// step is a deferred call without a size.
func (m *meter) step(c device.Call, f func() error) func() error {
	return func() error { return m.time(c, 0, f) }
}

// steps makes calls until one fails.
func steps(all ...func() error) error {
	for _, f := range all {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func regions(m *meter, n device.Size) error {
	var r device.Region
	err := m.time(device.CallReserve, n, func() (err error) { r, err = m.Reserve(n, 0); return err })
	if err != nil {
		return err
	}
	return m.time(device.CallRelease, n, func() error { return m.Release(r.Addr) })
}

// contents fills a region, and copies it to the host if it is not too large.
func contents(m *meter, n device.Size) (func() error, error) {
	const pattern = 0x5eedf00d
	r, err := m.Reserve(n, 0)
	return func() error {
		if err := m.time(device.CallFill, n, func() error { return m.Fill(r.Addr, n, pattern) }); err != nil ||
			n > mostCompared {
			return err
		}
		return m.time(device.CallCompare, n, func() error { _, _, err := m.Compare(r.Addr, n, pattern); return err })
	}, err
}

// mapped maps memory of n bytes in pieces, and releases it. With several pieces
// only the calls for the whole range are timed, because a piece is timed by itself at its size.
func mapped(m *meter, n, piece device.Size) error {
	whole, of := n == piece, piece
	if whole {
		of = 0
	}
	maybe := func(c device.Call, f func() error) error {
		if whole {
			return m.time(c, n, f)
		}
		return f()
	}
	var r device.Region
	if err := maybe(device.CallReserveRange, func() (err error) {
		r, err = m.ReserveRange(n, 0, 0)
		return err
	}); err != nil {
		return err
	}
	handles := make([]device.Handle, 0, n/piece)
	for at := device.Size(0); at < n; at += piece {
		var h device.Handle
		if err := maybe(device.CallCreateHandle, func() (err error) {
			h, err = m.CreateHandle(piece)
			return err
		}); err != nil {
			return err
		}
		handles = append(handles, h)
		if err := maybe(device.CallMap, func() error { return m.Map(r.Addr.Add(at), piece, h, 0) }); err != nil {
			return err
		}
	}
	err := m.timed(key{call: device.CallSetAccess, size: n, of: of}, func() error {
		return m.SetAccess(r.Addr, n, device.AccessReadWrite)
	})
	if err == nil {
		err = m.timed(key{call: device.CallUnmap, size: n, of: of}, func() error { return m.Unmap(r.Addr, n) })
	}
	for _, h := range handles {
		if err == nil {
			err = maybe(device.CallReleaseHandle, func() error { return m.ReleaseHandle(h) })
		}
	}
	if err != nil {
		return err
	}
	return maybe(device.CallReleaseRange, func() error { return m.ReleaseRange(r.Addr) })
}

func pools(m *meter) error {
	var p device.Pool
	return steps(
		m.step(device.CallNewPool, func() (err error) { p, err = m.NewPool(0); return err }),
		m.step(device.CallPoolAttribute, func() error { _, err := m.PoolAttribute(p, device.UsedNow); return err }),
		m.step(device.CallSetPoolAttribute, func() error { return m.SetPoolAttribute(p, device.ReleaseThreshold, 0) }),
		m.step(device.CallDestroyPool, func() error { return m.DestroyPool(p) }),
	)
}

// keeping returns a pool that caches freed memory.
func keeping(m *meter) (device.Pool, error) {
	p, err := m.NewPool(0)
	if err == nil {
		err = m.SetPoolAttribute(p, device.ReleaseThreshold, 1<<62)
	}
	return p, err
}

// warm allocates blocks from a pool with cached memory.
func warm(m *meter, n device.Size) (func() error, error) {
	p, err := keeping(m)
	return func() error {
		var r device.Region
		return steps(
			func() error {
				return m.timed(key{device.CallAllocAsync, n, 0, "warm"}, func() (err error) {
					r, err = m.AllocAsync(p, n, 0)
					return err
				})
			},
			func() error { return m.time(device.CallFreeAsync, n, func() error { return m.FreeAsync(r.Addr, 0) }) },
			func() error { return m.SyncStream(0) },
		)
	}, err
}

// cold allocates blocks from a pool that must get the memory from the driver, and releases it.
func cold(m *meter, n device.Size) (func() error, error) {
	p, err := keeping(m)
	return func() error {
		var r device.Region
		return steps(
			func() error {
				return m.timed(key{device.CallAllocAsync, n, 0, "cold"}, func() (err error) {
					r, err = m.AllocAsync(p, n, 0)
					return err
				})
			},
			func() error { return m.FreeAsync(r.Addr, 0) },
			func() error { return m.SyncStream(0) },
			func() error { return m.time(device.CallTrimPool, n, func() error { return m.TrimPool(p, 0) }) },
		)
	}, err
}
