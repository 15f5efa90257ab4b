package devicetest

import "github.com/vramyard/vramyard/device"

// Each kind of call has a method. want is the expected error, nil for success.

func (r *rig) reserve(want error, size, align device.Size) (g device.Region) {
	r.Helper()
	r.call(want, device.CallReserve, func() (err error) { g, err = r.d.Reserve(size, align); return err }, size, align)
	r.requireFit(want, g, size, align)
	return g
}

func (r *rig) release(want error, a device.Addr) {
	r.Helper()
	r.call(want, device.CallRelease, func() error { return r.d.Release(a) }, a)
}

func (r *rig) reserveRange(want error, size, align device.Size, at device.Addr) (g device.Region) {
	r.Helper()
	r.call(want, device.CallReserveRange, func() (err error) { g, err = r.vm.ReserveRange(size, align, at); return err },
		size, align, at)
	r.requireFit(want, g, size, align)
	if want == nil && at != 0 && g.Addr != at {
		r.Fatalf("a range was requested at %v and reserved at %v", at, g.Addr)
	}
	return g
}

// requireFit fails the test unless the granted region has the requested size and alignment.
func (r *rig) requireFit(want error, g device.Region, size, align device.Size) {
	r.Helper()
	if want == nil && (g.Addr == 0 || g.Size < size || g.End() < g.Addr || align != 0 && !g.Addr.IsAligned(align)) {
		r.Fatalf("%d bytes at a multiple of %d were requested, %d bytes at %v were granted",
			uint64(size), uint64(align), uint64(g.Size), g.Addr)
	}
}

func (r *rig) releaseRange(want error, a device.Addr) {
	r.Helper()
	r.call(want, device.CallReleaseRange, func() error { return r.vm.ReleaseRange(a) }, a)
}

func (r *rig) createHandle(want error, size device.Size) (h device.Handle) {
	r.Helper()
	r.call(want, device.CallCreateHandle, func() (err error) { h, err = r.vm.CreateHandle(size); return err }, size)
	if want == nil && h == 0 {
		r.Fatalf("a new handle of %v is zero, which is invalid", size)
	}
	return h
}

func (r *rig) releaseHandle(want error, h device.Handle) {
	r.Helper()
	r.call(want, device.CallReleaseHandle, func() error { return r.vm.ReleaseHandle(h) }, h)
}

func (r *rig) mapAt(want error, a device.Addr, n device.Size, h device.Handle, offset device.Size) {
	r.Helper()
	r.call(want, device.CallMap, func() error { return r.vm.Map(a, n, h, offset) }, a, n, h, offset)
}

// tryMap maps memory where several answers are valid, and returns the answer.
func (r *rig) tryMap(want oneOf, a device.Addr, n device.Size, h device.Handle, offset device.Size) error {
	r.Helper()
	return r.try(want, device.CallMap, func() error { return r.vm.Map(a, n, h, offset) }, a, n, h, offset)
}

func (r *rig) setAccess(want error, a device.Addr, n device.Size, to device.Access) {
	r.Helper()
	r.call(want, device.CallSetAccess, func() error { return r.vm.SetAccess(a, n, to) }, a, n, to)
}

func (r *rig) unmap(want error, a device.Addr, n device.Size) {
	r.Helper()
	r.call(want, device.CallUnmap, func() error { return r.vm.Unmap(a, n) }, a, n)
}

func (r *rig) newEvent() (e device.Event) {
	r.Helper()
	r.call(nil, device.CallNewEvent, func() (err error) { e, err = r.str.NewEvent(); return err })
	if e == 0 {
		r.Fatalf("a new event is zero, which is invalid")
	}
	return e
}

func (r *rig) destroyEvent(want error, e device.Event) {
	r.Helper()
	r.call(want, device.CallDestroyEvent, func() error { return r.str.DestroyEvent(e) }, e)
}

func (r *rig) record(want error, e device.Event, s device.Stream) {
	r.Helper()
	r.call(want, device.CallRecord, func() error { return r.str.Record(e, s) }, e, s)
}

func (r *rig) done(want error, e device.Event) (done bool) {
	r.Helper()
	r.call(want, device.CallDone, func() (err error) { done, err = r.str.Done(e); return err }, e)
	return done
}

func (r *rig) wait(want error, s device.Stream, e device.Event) {
	r.Helper()
	r.call(want, device.CallWait, func() error { return r.str.Wait(s, e) }, s, e)
}

func (r *rig) syncEvent(want error, e device.Event) {
	r.Helper()
	r.call(want, device.CallSyncEvent, func() error { return r.str.SyncEvent(e) }, e)
}

func (r *rig) syncStream(want error, s device.Stream) {
	r.Helper()
	r.call(want, device.CallSyncStream, func() error { return r.str.SyncStream(s) }, s)
}

func (r *rig) syncDevice(want error) {
	r.Helper()
	r.call(want, device.CallSyncDevice, r.str.SyncDevice)
}

func (r *rig) newPool(most device.Size) (p device.Pool) {
	r.Helper()
	r.call(nil, device.CallNewPool, func() (err error) { p, err = r.pool.NewPool(most); return err }, most)
	if p == 0 {
		r.Fatalf("a new pool is zero, which is the default pool")
	}
	return p
}

func (r *rig) destroyPool(want error, p device.Pool) {
	r.Helper()
	r.call(want, device.CallDestroyPool, func() error { return r.pool.DestroyPool(p) }, p)
}

func (r *rig) allocAsync(want error, p device.Pool, size device.Size, s device.Stream) (g device.Region) {
	r.Helper()
	r.call(want, device.CallAllocAsync, func() (err error) { g, err = r.pool.AllocAsync(p, size, s); return err },
		p, size, s)
	r.requireFit(want, g, size, 0)
	return g
}

func (r *rig) freeAsync(want error, a device.Addr, s device.Stream) {
	r.Helper()
	r.call(want, device.CallFreeAsync, func() error { return r.pool.FreeAsync(a, s) }, a, s)
}

func (r *rig) trimPool(want error, p device.Pool, keep device.Size) {
	r.Helper()
	r.call(want, device.CallTrimPool, func() error { return r.pool.TrimPool(p, keep) }, p, keep)
}

func (r *rig) attribute(want error, p device.Pool, a device.PoolAttribute) (v device.Size) {
	r.Helper()
	r.call(want, device.CallPoolAttribute, func() (err error) { v, err = r.pool.PoolAttribute(p, a); return err }, p, a)
	return v
}

func (r *rig) setAttribute(want error, p device.Pool, a device.PoolAttribute, v device.Size) {
	r.Helper()
	r.call(want, device.CallSetPoolAttribute, func() error { return r.pool.SetPoolAttribute(p, a, v) }, p, a, v)
}

func (r *rig) memoryInfo() (free, total device.Size) {
	r.Helper()
	r.call(nil, device.CallMemoryInfo, func() (err error) { free, total, err = r.info.MemoryInfo(); return err })
	return free, total
}

func (r *rig) fill(want error, a device.Addr, n device.Size, pattern uint32) {
	r.Helper()
	r.call(want, device.CallFill, func() error { return r.mem.Fill(a, n, pattern) }, a, n, pattern)
}

func (r *rig) compare(want error, a device.Addr, n device.Size, pattern uint32) (differs device.Addr, same bool) {
	r.Helper()
	r.call(want, device.CallCompare, func() (err error) { differs, same, err = r.mem.Compare(a, n, pattern); return err },
		a, n, pattern)
	return differs, same
}

// requireFilled fails the test unless n bytes at a equal the result of a fill with the pattern.
func (r *rig) requireFilled(a device.Addr, n device.Size, pattern uint32) {
	r.Helper()
	if at, same := r.compare(nil, a, n, pattern); !same {
		r.Fatalf("%d bytes at %v were filled with %#x and differ at %v", uint64(n), a, pattern, at)
	}
}
