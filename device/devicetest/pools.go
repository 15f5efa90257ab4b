package devicetest

import "github.com/vramyard/vramyard/device"

var needPools = []device.Capability{device.CapPools, device.CapStreams}

var poolPromises = []promise{
	{name: "PoolBlocksAreDisjoint", needs: needPools, run: poolBlocks},
	{name: "PoolsKeepTheirThreshold", needs: needPools, run: poolThreshold},
	{name: "PoolsAreTrimmed", needs: needPools, run: poolTrim},
	{name: "PoolsReportTheirFigures", needs: needPools, run: poolFigures},
	{name: "PoolsAreBounded", needs: needPools, run: poolBound},
	{name: "PoolsAreNotMisused", needs: needPools, run: poolMisuse},
	{name: "PoolBlocksAreNotMisused", needs: needPools, run: poolBlockMisuse},
	{name: "PoolsReuseInStreamOrder", needs: []device.Capability{device.CapPools, device.CapTimeline}, run: poolOrder},
}

// poolBlocks allocates on several streams from two pools, the default one and another.
func poolBlocks(r *rig) {
	was := r.d.Usage()
	p := r.newPool(0)
	region := r.reserve(nil, device.MiB, 0)
	all := []device.Region{region}
	for i, size := range []device.Size{1, 511, 512, 513, device.MiB, 3*device.MiB + 1, 1, 100_000} {
		all = append(all, r.allocAsync(nil, 0, size, device.Stream(i%3)), r.allocAsync(nil, p, size, device.Stream(i%2)))
	}
	r.requireDisjoint(all)
	if now := r.d.Usage(); now.Held-was.Held < region.Size+2*(4*device.MiB) {
		r.Errorf("blocks of more than 8 MiB were allocated and only %v more are held", now.Held-was.Held-region.Size)
	}
	if r.mem != nil {
		for i, b := range all {
			r.fill(nil, b.Addr, b.Size, uint32(i))
		}
		for i, b := range all {
			r.requireFilled(b.Addr, b.Size, uint32(i))
		}
	}
	for i, b := range all[1:] {
		r.freeAsync(nil, b.Addr, device.Stream(i%4))
	}
	r.release(nil, region.Addr)
	r.syncDevice(nil)
	r.trimPool(nil, 0, 0)
	r.destroyPool(nil, p)
	r.requireGrowth(was, device.Usage{})
}

// poolThreshold synchronizes with a threshold of zero, and with one that keeps everything.
func poolThreshold(r *rig) {
	for i, sync := range []func(){func() { r.syncStream(nil, 1) }, func() { r.syncDevice(nil) }} {
		name := []string{"stream", "device"}[i]
		p := r.newPool(0)
		if v := r.attribute(nil, p, device.ReleaseThreshold); v != 0 {
			r.Errorf("a new pool has a release threshold of %v, want 0", v)
		}
		r.freeAsync(nil, r.allocAsync(nil, p, 4*device.MiB, 1).Addr, 1)
		sync()
		if v := r.attribute(nil, p, device.ReservedNow); v != 0 {
			r.Errorf("the %s was synchronized and the pool keeps %v above its threshold", name, v)
		}
		r.setAttribute(nil, p, device.ReleaseThreshold, ^device.Size(0))
		held := r.d.Usage()
		r.freeAsync(nil, r.allocAsync(nil, p, 4*device.MiB, 1).Addr, 1)
		sync()
		kept := r.attribute(nil, p, device.ReservedNow)
		if kept < 4*device.MiB {
			r.Errorf("the %s was synchronized and a pool that keeps everything has %v", name, kept)
		}
		if now := r.d.Usage(); now.Held-held.Held != kept {
			r.Errorf("a pool keeps %v and the device holds %v for it", kept, now.Held-held.Held)
		}
		r.destroyPool(nil, p) // including its cached memory
		r.requireReturned(held)
	}
}

// requireReturned fails the test unless the held and charged bytes are the same as before.
func (r *rig) requireReturned(was device.Usage) {
	r.Helper()
	if now := r.d.Usage(); now.Held != was.Held || now.Charged != was.Charged {
		r.Errorf("before %v were held, %v charged; now %v and %v", was.Held, was.Charged, now.Held, now.Charged)
	}
}

// poolTrim checks that a trim releases the memory without blocks, and no other.
func poolTrim(r *rig) {
	was := r.d.Usage()
	p := r.newPool(0)
	r.setAttribute(nil, p, device.ReleaseThreshold, ^device.Size(0))
	keep := r.allocAsync(nil, p, device.MiB, 1)
	big := r.allocAsync(nil, p, 40*device.MiB, 1)
	r.freeAsync(nil, big.Addr, 1)
	r.syncDevice(nil)
	before := r.attribute(nil, p, device.ReservedNow)
	r.trimPool(nil, p, ^device.Size(0))
	if now := r.attribute(nil, p, device.ReservedNow); now != before {
		r.Errorf("a trim that keeps everything took the pool from %v to %v", before, now)
	}
	r.trimPool(nil, p, 0)
	now := r.attribute(nil, p, device.ReservedNow)
	if now >= before || now < keep.Size {
		r.Errorf("a trim to nothing took the pool, in which a block of %v lives, from %v to %v", keep.Size, before, now)
	}
	if r.mem != nil {
		r.fill(nil, keep.Addr, keep.Size, 1)
	}
	r.freeAsync(nil, keep.Addr, 1)
	r.syncDevice(nil)
	r.trimPool(nil, p, 0)
	if now := r.attribute(nil, p, device.ReservedNow); now != 0 {
		r.Errorf("an empty pool was trimmed to nothing and has %v", now)
	}
	r.destroyPool(nil, p)
	r.requireReturned(was)
}

// poolFigures checks the reserved and used bytes of a pool and their peaks, and resets the peaks.
func poolFigures(r *rig) {
	p := r.newPool(0)
	figures := func() (reserved, reservedHigh, used, usedHigh device.Size) {
		r.Helper()
		return r.attribute(nil, p, device.ReservedNow), r.attribute(nil, p, device.ReservedHigh),
			r.attribute(nil, p, device.UsedNow), r.attribute(nil, p, device.UsedHigh)
	}
	a, b := r.allocAsync(nil, p, device.MiB, 1), r.allocAsync(nil, p, 2*device.MiB, 1)
	reserved, reservedHigh, used, usedHigh := figures()
	if used != a.Size+b.Size || usedHigh != used || reserved < used || reservedHigh < reserved {
		r.Errorf("blocks of %v: used %v, at most %v; reserved %v, at most %v", a.Size+b.Size, used, usedHigh, reserved,
			reservedHigh)
	}
	r.freeAsync(nil, b.Addr, 1)
	r.syncDevice(nil)
	_, _, used, usedHigh = figures()
	if used != a.Size || usedHigh != a.Size+b.Size {
		r.Errorf("a block of %v after two of %v: used %v, at most %v", a.Size, a.Size+b.Size, used, usedHigh)
	}
	r.setAttribute(nil, p, device.UsedHigh, 0)
	r.setAttribute(nil, p, device.ReservedHigh, 0)
	reserved, reservedHigh, used, usedHigh = figures()
	if usedHigh != used || reservedHigh != reserved {
		r.Errorf("the peaks were reset: used %v, at most %v; reserved %v, at most %v", used, usedHigh, reserved, reservedHigh)
	}
	for _, flag := range []device.PoolAttribute{device.FollowEvents, device.ReuseFinished, device.InsertWaits} {
		if v := r.attribute(nil, p, flag); v != 1 {
			r.Errorf("flag %d of a new pool is %d, want 1", flag, v)
		}
		for _, v := range []device.Size{0, 1} {
			r.setAttribute(nil, p, flag, v)
			if got := r.attribute(nil, p, flag); got != v {
				r.Errorf("flag %d was set to %d and is %d", flag, v, got)
			}
		}
		r.setAttribute(device.ErrInvalid, p, flag, 2)
	}
	for _, figure := range []device.PoolAttribute{device.ReservedNow, device.UsedNow} {
		r.setAttribute(device.ErrInvalid, p, figure, 0)
	}
	r.setAttribute(device.ErrInvalid, p, device.UsedHigh, 5)
	r.setAttribute(device.ErrInvalid, p, device.ReservedHigh, 5)
	r.setAttribute(device.ErrInvalid, p, device.NumPoolAttributes, 0)
	r.attribute(device.ErrInvalid, p, device.NumPoolAttributes)
	r.freeAsync(nil, a.Addr, 1)
	r.destroyPool(nil, p)
}

// poolBound requests more than a pool's limit, and more than the device's capacity.
func poolBound(r *rig) {
	const most = 64 * device.MiB // the device may round sizes up
	p := r.newPool(most)
	r.allocAsync(device.ErrOutOfMemory, p, most+1, 1)
	r.allocAsync(device.ErrOutOfMemory, p, huge, 1)
	a := r.allocAsync(nil, p, 8*device.MiB, 1)
	r.allocAsync(device.ErrOutOfMemory, p, most-4*device.MiB, 1)
	if v := r.attribute(nil, p, device.ReservedNow); v > most {
		r.Errorf("a pool with the limit %v has %v", most, v)
	}
	r.freeAsync(nil, a.Addr, 1)
	r.allocAsync(device.ErrOutOfMemory, 0, huge, 1)
	r.syncDevice(nil)
	r.destroyPool(nil, p)
}

// poolMisuse uses unknown pools, and destroys pools that must not be destroyed.
func poolMisuse(r *rig) {
	o := r.other()
	foreign, stale, mine := o.newPool(0), r.newPool(0), r.newPool(0)
	if mine == stale {
		r.Fatalf("pool %d was made twice", mine)
	}
	r.destroyPool(nil, stale)
	for _, wrong := range []device.Pool{^device.Pool(0), foreign, stale} {
		r.allocAsync(device.ErrPool, wrong, device.MiB, 1)
		r.trimPool(device.ErrPool, wrong, 0)
		r.attribute(device.ErrPool, wrong, device.UsedNow)
		r.setAttribute(device.ErrPool, wrong, device.ReleaseThreshold, 1)
		r.destroyPool(device.ErrPool, wrong)
	}
	r.destroyPool(device.ErrInvalid, 0)
	r.allocAsync(device.ErrInvalid, 0, 0, 1)
	r.allocAsync(device.ErrInvalid, mine, 0, 1)
	a := r.allocAsync(nil, mine, device.MiB, 1)
	r.destroyPool(device.ErrBusy, mine)
	if r.mem != nil {
		r.fill(nil, a.Addr, a.Size, 3)
		r.requireFilled(a.Addr, a.Size, 3)
	}
	r.freeAsync(nil, a.Addr, 2)
	r.destroyPool(nil, mine)
	r.destroyPool(device.ErrPool, mine)
	o.destroyPool(nil, foreign)
	r.freeAsync(nil, r.allocAsync(nil, 0, device.MiB, 1).Addr, 1) // pool zero still works
}

// poolBlockMisuse frees addresses without a block, and releases a block as a region.
func poolBlockMisuse(r *rig) {
	region := r.reserve(nil, device.MiB, 0)
	a, b := r.allocAsync(nil, 0, device.MiB, 1), r.allocAsync(nil, 0, device.MiB, 1)
	for _, wrong := range []device.Addr{0, 1, a.Addr + 1, a.Addr.Add(a.Size / 2), a.End() - 1, region.Addr,
		^device.Addr(0)} {
		r.freeAsync(device.ErrInvalid, wrong, 1)
	}
	r.release(device.ErrInvalid, a.Addr)
	r.release(device.ErrInvalid, b.Addr)
	r.freeAsync(nil, a.Addr, 1)
	r.freeAsync(device.ErrInvalid, a.Addr, 1)
	r.freeAsync(device.ErrInvalid, a.Addr, 2)
	r.release(nil, region.Addr)
	r.syncDevice(nil)
	r.freeAsync(device.ErrInvalid, a.Addr, 1)
	r.freeAsync(nil, b.Addr, 1)
}

// poolOrder checks reuse across streams: memory freed on a stream serves that stream at once, and
// another stream only after it is ordered after the free. The choice of memory is the pool's;
// blocks that may be in use at the same time must not overlap.
func poolOrder(r *rig) {
	p := r.newPool(0)
	r.setAttribute(nil, p, device.InsertWaits, 0)
	a := r.allocAsync(nil, p, 4*device.MiB, 1)
	r.work(1, long)
	r.freeAsync(nil, a.Addr, 1)
	b := r.allocAsync(nil, p, 4*device.MiB, 2) // nothing orders stream 2 after the free
	r.requireDisjoint([]device.Region{a, b})
	r.freeAsync(nil, b.Addr, 2)
	r.setAttribute(nil, p, device.InsertWaits, 1)
	c := r.allocAsync(nil, p, 4*device.MiB, 3) // may make stream 3 wait for 1 or 2
	e := r.newEvent()
	r.work(3, 1)
	r.record(nil, e, 3)
	if a.Addr < c.End() && c.Addr < a.End() {
		r.drain(3)
		r.requireDone(true, e, "its stream was drained")
		r.requireOrder(true, e, 1, "it is done")
	}
	r.freeAsync(nil, c.Addr, 3)
	r.syncDevice(nil)
	r.destroyEvent(nil, e)
	r.destroyPool(nil, p)
}
