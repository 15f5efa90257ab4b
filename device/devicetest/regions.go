package devicetest

import "github.com/vramyard/vramyard/device"

// huge exceeds the memory and the address space of any device.
const huge device.Size = 1 << 60

// small is the maximum capacity of a device that is filled completely.
const small = 512 * device.MiB

var regionPromises = []promise{
	{name: "CapabilitiesAgreeWithMethods", run: capabilities},
	{name: "RegionsAreAlignedAndDisjoint", run: regionsDisjoint},
	{name: "RegionsAreAccounted", run: regionsAccounted},
	{name: "RegionsAreReleasedOnce", run: regionMisuse},
	{name: "RunningOutChangesNothing", run: regionsRunOut},
	{name: "MemoryInfoFollowsHeldBytes", needs: []device.Capability{device.CapMemoryInfo}, run: memoryInfoFollows},
}

// capabilities checks that every capability that Has reports has its methods.
func capabilities(r *rig) {
	has := map[device.Capability]bool{
		device.CapVirtualMemory: r.vm != nil, device.CapStreams: r.str != nil, device.CapPools: r.pool != nil,
		device.CapMemoryInfo: r.info != nil, device.CapContents: r.mem != nil, device.CapTimeline: r.time != nil,
	}
	for c := range device.Capabilities {
		if device.Has(r.d, c) && !device.Implements(r.d, c) {
			r.Errorf("the device reports the capability %v and lacks its methods", c)
		}
		if got, known := has[c]; !known || got != device.Has(r.d, c) {
			r.Errorf("%v: the device reports it: %v; it can be used: %v", c, device.Has(r.d, c), got)
		}
	}
	if r.pool != nil && r.str == nil {
		r.Errorf("the device has stream-ordered pools and no streams")
	}
	if r.time != nil && r.str == nil {
		r.Errorf("the device has a timeline and no streams")
	}
}

// regionsDisjoint checks that regions of odd sizes and alignments do not overlap.
func regionsDisjoint(r *rig) {
	var all []device.Region
	for i, size := range []device.Size{1, 255, 256, 4097, device.MiB + 1, 2 * device.MiB, 3 * device.MiB, 1} {
		for _, align := range []device.Size{0, 1, 256, device.MiB, 4 * device.MiB} {
			all = append(all, r.reserve(nil, size, align))
		}
		if i%2 == 1 { // leave holes for the next regions
			j := len(all) / 3
			r.release(nil, all[j].Addr)
			all = append(all[:j], all[j+1:]...)
		}
	}
	r.requireDisjoint(all)
	for _, g := range all {
		r.release(nil, g.Addr)
	}
}

// requireDisjoint fails the test if two of the regions overlap.
func (r *rig) requireDisjoint(all []device.Region) {
	r.Helper()
	for i, a := range all {
		for _, b := range all[:i] {
			if a.Addr < b.End() && b.Addr < a.End() {
				r.Fatalf("%v+%v and %v+%v overlap", a.Addr, a.Size, b.Addr, b.Size)
			}
		}
	}
}

// regionsAccounted checks the held bytes and their peak.
func regionsAccounted(r *rig) {
	was := r.d.Usage()
	a := r.reserve(nil, 3*device.MiB+1, 0)
	r.requireGrowth(was, device.Usage{Held: a.Size, Regions: 1})
	b := r.reserve(nil, 5*device.MiB, 0)
	r.requireGrowth(was, device.Usage{Held: a.Size + b.Size, Regions: 2})
	top := r.d.Usage()
	if top.Charged < was.Charged+top.Held-was.Held {
		r.Errorf("%v are held and only %v charged", top.Held-was.Held, top.Charged-was.Charged)
	}
	if top.PeakHeld != max(was.PeakHeld, top.Held) || top.PeakCharged != max(was.PeakCharged, top.Charged) {
		r.Errorf("the peaks must equal the current values: the device holds %s", holdings(top))
	}
	r.release(nil, a.Addr)
	r.requireGrowth(was, device.Usage{Held: b.Size, Regions: 1})
	r.release(nil, b.Addr)
	r.requireGrowth(was, device.Usage{})
	now := r.d.Usage()
	if now.PeakHeld != top.PeakHeld || now.PeakCharged != top.PeakCharged {
		r.Errorf("the peaks changed while regions were released: from %s to %s", holdings(top), holdings(now))
	}
	if now.Charged != was.Charged {
		r.Errorf("%v were charged before, and %v after everything was released", was.Charged, now.Charged)
	}
}

func regionMisuse(r *rig) {
	r.reserve(device.ErrInvalid, 0, 0)
	for _, align := range []device.Size{3, 768, device.MiB + 1, ^device.Size(0)} {
		r.reserve(device.ErrInvalid, device.MiB, align)
	}
	a, b := r.reserve(nil, 2*device.MiB, 0), r.reserve(nil, 2*device.MiB, 0)
	for _, wrong := range []device.Addr{0, 1, a.Addr + 1, a.Addr.Add(device.MiB), a.End() - 1, ^device.Addr(0)} {
		r.release(device.ErrInvalid, wrong)
	}
	foreign := r.other().d
	if g, err := foreign.Reserve(8*device.MiB, 0); err == nil {
		for g.Addr == a.Addr || g.Addr == b.Addr { // the devices may have separate address spaces, so draw another address
			h, err := foreign.Reserve(8*device.MiB, 0)
			if err != nil {
				r.Fatalf("the other device has no 24 MiB: %v", err)
			}
			defer r.giveBack(foreign, g.Addr)
			g = h
		}
		r.release(device.ErrInvalid, g.Addr)
		r.giveBack(foreign, g.Addr)
	}
	r.release(nil, a.Addr)
	r.release(device.ErrInvalid, a.Addr)
	r.release(nil, b.Addr)
	r.release(device.ErrInvalid, b.Addr)
	r.release(nil, r.reserve(nil, 2*device.MiB, 0).Addr)
}

// giveBack releases a region of the other device.
func (r *rig) giveBack(d device.Device, a device.Addr) {
	r.Helper()
	if err := d.Release(a); err != nil {
		r.Errorf("the other device does not release %v: %v", a, err)
	}
}

// regionsRunOut requests more than the capacity, and on a small device all of it.
func regionsRunOut(r *rig) {
	r.reserve(device.ErrOutOfMemory, huge, 0)
	r.reserve(device.ErrOutOfMemory, ^device.Size(0), 0)
	capacity := r.d.Usage().Capacity
	if capacity != 0 {
		r.reserve(device.ErrOutOfMemory, capacity+1, 0)
	}
	a := r.reserve(nil, device.MiB, 0)
	if capacity == 0 || capacity > small {
		r.release(nil, a.Addr)
		return
	}
	step := max(capacity/16, 1)
	all := []device.Region{a}
	for free := r.d.Usage().Free(); free >= step; free = r.d.Usage().Free() {
		if g, err := r.d.Reserve(step, 0); err == nil {
			all = append(all, g)
			continue
		}
		break // charges are rounded up
	}
	r.reserve(device.ErrOutOfMemory, step, 0)
	r.requireDisjoint(all)
	last := all[len(all)-1]
	r.release(nil, last.Addr)
	all[len(all)-1] = r.reserve(nil, last.Size, 0)
	for _, g := range all {
		r.release(nil, g.Addr)
	}
}

// memoryInfoFollows checks that free memory falls and rises with the bytes held. It retries,
// because other programs may use a real card at the same time.
func memoryInfoFollows(r *rig) {
	const amount, tries = 32 * device.MiB, 5
	for try := 1; ; try++ {
		before, total := r.memoryInfo()
		g := r.reserve(nil, amount, 0)
		during, _ := r.memoryInfo()
		r.release(nil, g.Addr)
		after, again := r.memoryInfo()
		switch {
		case total != again:
			r.Fatalf("the device had %v and has %v", total, again)
		case total == 0 && before == 0 && during == 0 && after == 0:
			if c := r.d.Usage().Capacity; c != 0 {
				r.Fatalf("the device has a capacity of %v and reports no memory", c)
			}
			return
		case before <= total && during+amount <= before && after >= during+amount && after <= total:
			if r.time != nil && before != after {
				r.Fatalf("%v were free before, and %v after everything was released", before, after)
			}
			return
		case try == tries || r.time != nil:
			r.Fatalf("of %v, %v were free, %v with %v held, then %v", total, before, during, amount, after)
		}
	}
}
