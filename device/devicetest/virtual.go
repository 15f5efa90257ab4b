package devicetest

import (
	"errors"

	"github.com/vramyard/vramyard/device"
)

var needVM = []device.Capability{device.CapVirtualMemory}

var virtualPromises = []promise{
	{name: "RangesAreAlignedAndDisjoint", needs: needVM, run: rangesDisjoint},
	{name: "RangesStartAtRequestedAddress", needs: needVM, run: rangesAt},
	{name: "MappingJoinsRangeAndHandle", needs: needVM, run: mapAndUnmap},
	{name: "MappedMemoryOutlivesItsHandle", needs: needVM, run: releaseWhileMapped},
	{name: "MemoryIsMappedInEveryOrder", needs: needVM, run: everyOrder},
	{name: "OneHandleHasManyAddresses", needs: needVM, run: manyAddresses},
	{name: "HandlesAreMappedFromAnOffset", needs: needVM, run: offsets},
	{name: "AdjacentMappingsTakeOneCall", needs: needVM, run: adjacentMappings},
}

// page returns the granularity, or skips the check if a few pages take too much memory.
func (r *rig) page() device.Size {
	r.Helper()
	g := r.vm.Granularity()
	if !device.IsPowerOfTwo(g) {
		r.Fatalf("granularity %d: want a power of two", uint64(g))
	}
	if g > 4*device.MiB {
		r.Skipf("a granularity of %v takes too much memory", g)
	}
	return g
}

// rangesDisjoint checks that ranges overlap neither each other nor regions, and are charged
// nothing.
func rangesDisjoint(r *rig) {
	g := r.page()
	was := r.d.Usage()
	region := r.reserve(nil, 3*device.MiB, 0)
	all := []device.Region{region}
	space := device.Size(0)
	for i, align := range []device.Size{0, 1, g, 4 * g, 64 * g} {
		all = append(all, r.reserveRange(nil, device.Size(i+1)*g, align, 0))
		space += device.Size(i+1) * g
		if last := all[len(all)-1]; last.Size != device.Size(i+1)*g || !last.Addr.IsAligned(g) {
			r.Errorf("%v of address space were requested, %v+%v was granted", device.Size(i+1)*g, last.Addr, last.Size)
		}
	}
	r.requireGrowth(was, device.Usage{Held: region.Size, Regions: 1, Ranges: 5, Space: space})
	if now := r.d.Usage(); now.Charged-was.Charged > region.Size+2*device.MiB {
		r.Errorf("%v are charged for a region of %v and ranges, which take no memory", now.Charged-was.Charged, region.Size)
	}
	all = append(all, r.reserve(nil, device.MiB, 0))
	r.requireDisjoint(all)
	for i, a := range all {
		if i == 0 || i == len(all)-1 {
			r.release(nil, a.Addr)
		} else {
			r.releaseRange(nil, a.Addr)
		}
	}
	r.requireGrowth(was, device.Usage{})
}

// rangesAt requests ranges at free and at occupied addresses.
func rangesAt(r *rig) {
	g := r.page()
	a := r.reserveRange(nil, 8*g, 0, 0)
	r.reserveRange(device.ErrOutOfMemory, g, 0, a.Addr)
	r.reserveRange(device.ErrOutOfMemory, g, 0, a.Addr.Add(7*g))
	r.reserveRange(device.ErrOutOfMemory, 2*g, 0, a.Addr.Add(7*g))
	r.releaseRange(nil, a.Addr)
	b := r.reserveRange(nil, 2*g, 0, a.Addr.Add(2*g))
	r.reserveRange(device.ErrOutOfMemory, 3*g, 0, a.Addr) // its end is taken
	r.reserveRange(device.ErrOutOfMemory, huge, 0, 0)
	for _, at := range []device.Size{0, 4} {
		if x, ok := r.reserveAt(2*g, a.Addr.Add(at*g)); ok {
			r.releaseRange(nil, x.Addr)
		}
	}
	r.releaseRange(nil, b.Addr)
}

// reserveAt reserves a range at an address adjacent to another range. It returns false on a device
// that keeps a gap between ranges.
func (r *rig) reserveAt(size device.Size, at device.Addr) (g device.Region, ok bool) {
	r.Helper()
	err := r.try(oneOf{nil, device.ErrOutOfMemory}, device.CallReserveRange, func() (err error) {
		g, err = r.vm.ReserveRange(size, 0, at)
		return err
	}, size, at)
	if err != nil {
		r.Logf("the device keeps a gap between ranges: none at %v", at)
		return g, false
	}
	if g.Addr != at {
		r.Fatalf("a range was requested at %v and reserved at %v", at, g.Addr)
	}
	return g, true
}

// rangeAndHandle reserves a range of some pages and creates memory for half of them.
func (r *rig) rangeAndHandle(pages device.Size) (g device.Size, a device.Region, h device.Handle) {
	r.Helper()
	g = r.page()
	return g, r.reserveRange(nil, pages*g, 0, 0), r.createHandle(nil, pages/2*g)
}

// mapAndUnmap follows the account of one mapping.
func mapAndUnmap(r *rig) {
	was := r.d.Usage()
	g, a, h := r.rangeAndHandle(4)
	r.requireGrowth(was, device.Usage{Held: 2 * g, Handles: 1, Ranges: 1, Space: 4 * g})
	r.mapAt(nil, a.Addr.Add(g), 2*g, h, 0)
	r.requireGrowth(was, device.Usage{Held: 2 * g, Handles: 1, Ranges: 1, Space: 4 * g, Mapped: 2 * g})
	for _, to := range []device.Access{device.AccessReadWrite, device.AccessRead, device.AccessNone,
		device.AccessReadWrite} {
		r.setAccess(nil, a.Addr.Add(g), 2*g, to)
	}
	if now := r.d.Usage(); now.Charged < was.Charged+2*g || now.PeakHeld != max(was.PeakHeld, now.Held) {
		r.Errorf("a handle of %v is held and the account shows %s", 2*g, holdings(now))
	}
	r.unmap(nil, a.Addr.Add(g), 2*g)
	r.requireGrowth(was, device.Usage{Held: 2 * g, Handles: 1, Ranges: 1, Space: 4 * g})
	r.mapAt(nil, a.Addr.Add(2*g), 2*g, h, 0) // again, at another address
	r.unmap(nil, a.Addr.Add(2*g), 2*g)
	r.releaseHandle(nil, h)
	r.requireGrowth(was, device.Usage{Ranges: 1, Space: 4 * g})
	r.releaseRange(nil, a.Addr)
	r.requireGrowth(was, device.Usage{})
	if now := r.d.Usage(); now.Charged != was.Charged {
		r.Errorf("%v were charged before, and %v after everything was released", was.Charged, now.Charged)
	}
}

// releaseWhileMapped releases a handle and continues to use its memory.
func releaseWhileMapped(r *rig) {
	was := r.d.Usage()
	g, a, h := r.rangeAndHandle(4)
	r.mapAt(nil, a.Addr, 2*g, h, 0)
	r.setAccess(nil, a.Addr, 2*g, device.AccessReadWrite)
	if r.mem != nil {
		r.fill(nil, a.Addr, 2*g, 0x600df00d)
	}
	r.releaseHandle(nil, h)
	r.requireGrowth(was, device.Usage{Held: 2 * g, Ranges: 1, Space: 4 * g, Mapped: 2 * g})
	r.releaseHandle(device.ErrHandle, h)
	r.mapAt(device.ErrHandle, a.Addr.Add(2*g), 2*g, h, 0)
	other := r.createHandle(nil, g) // must get another number and other memory
	if other == h {
		r.Errorf("the handle %d was released and returned again while its memory is mapped", h)
	}
	r.mapAt(nil, a.Addr.Add(2*g), g, other, 0)
	r.setAccess(nil, a.Addr.Add(2*g), g, device.AccessReadWrite)
	if r.mem != nil {
		r.fill(nil, a.Addr.Add(2*g), g, 0x0dd)
		r.requireFilled(a.Addr, 2*g, 0x600df00d)
	}
	r.unmap(nil, a.Addr, 2*g)
	r.requireGrowth(was, device.Usage{Held: g, Handles: 1, Ranges: 1, Space: 4 * g, Mapped: g})
	r.unmap(nil, a.Addr.Add(2*g), g)
	r.releaseHandle(nil, other)
	r.releaseRange(nil, a.Addr)
	r.requireGrowth(was, device.Usage{})
}

// everyOrder acquires and releases a range and a handle in all legal orders.
func everyOrder(r *rig) {
	g := r.page()
	for order := range 8 {
		var a device.Region
		var h device.Handle
		if order&1 == 0 {
			a = r.reserveRange(nil, 2*g, 0, 0)
		}
		h = r.createHandle(nil, 2*g)
		if order&1 == 1 {
			a = r.reserveRange(nil, 2*g, 0, 0)
		}
		r.mapAt(nil, a.Addr, 2*g, h, 0)
		if order&2 == 0 {
			r.setAccess(nil, a.Addr, 2*g, device.AccessReadWrite)
		}
		if order&4 == 0 {
			r.releaseHandle(nil, h)
		}
		r.unmap(nil, a.Addr, 2*g)
		if order&2 == 0 {
			r.releaseRange(nil, a.Addr)
		}
		if order&4 != 0 {
			r.releaseHandle(nil, h)
		}
		if order&2 != 0 {
			r.releaseRange(nil, a.Addr)
		}
	}
}

// manyAddresses maps one handle in two ranges: a write through one address is visible through the
// other, and each mapping has its own access rights.
func manyAddresses(r *rig) {
	was := r.d.Usage()
	g, a, h := r.rangeAndHandle(4)
	b := r.reserveRange(nil, 2*g, 0, 0)
	at := []device.Addr{a.Addr, b.Addr, a.Addr.Add(2 * g)}
	for _, x := range at {
		r.mapAt(nil, x, 2*g, h, 0)
	}
	r.requireGrowth(was, device.Usage{Held: 2 * g, Handles: 1, Ranges: 2, Space: 6 * g, Mapped: 6 * g})
	r.setAccess(nil, at[0], 2*g, device.AccessReadWrite)
	r.setAccess(nil, at[1], 2*g, device.AccessRead)
	if r.mem != nil {
		r.fill(nil, at[0], 2*g, 0x11111111)
		r.fill(nil, at[0].Add(g-3), 10, 0x22222222)
		r.requireFilled(at[1], g-3, 0x11111111)
		r.requireFilled(at[1].Add(g-3), 10, 0x22222222)
		r.requireFilled(at[1].Add(g+7), g-7, 0x11111111)
		r.fill(device.ErrAccess, at[1], g, 1)
		r.fill(device.ErrAccess, at[2], g, 1)
		r.compare(device.ErrAccess, at[2], g, 1)
	}
	r.unmap(nil, at[0], 2*g)
	r.requireGrowth(was, device.Usage{Held: 2 * g, Handles: 1, Ranges: 2, Space: 6 * g, Mapped: 4 * g})
	if r.mem != nil {
		r.compare(device.ErrUnmapped, at[0], 1, 1)
		r.requireFilled(at[1], g-3, 0x11111111)
	}
	r.releaseHandle(nil, h)
	r.unmap(nil, at[1], 2*g)
	r.requireGrowth(was, device.Usage{Held: 2 * g, Ranges: 2, Space: 6 * g, Mapped: 2 * g})
	r.unmap(nil, at[2], 2*g)
	r.requireGrowth(was, device.Usage{Ranges: 2, Space: 6 * g})
	r.releaseRange(nil, b.Addr)
	r.releaseRange(nil, a.Addr)
}

// offsets maps parts of a handle, in another order than they have in memory.
func offsets(r *rig) {
	g, a, h := r.rangeAndHandle(8)
	r.mapAt(nil, a.Addr.Add(3*g), g, h, 0)
	if err := r.tryMap(oneOf{nil, device.ErrUnsupported}, a.Addr, g, h, 2*g); errors.Is(err, device.ErrUnsupported) {
		r.unmap(nil, a.Addr.Add(3*g), g)
		r.releaseHandle(nil, h)
		r.releaseRange(nil, a.Addr)
		r.Skip("the device maps handles from their start only")
	}
	r.mapAt(nil, a.Addr.Add(4*g), 4*g, h, 0) // all of it
	r.setAccess(nil, a.Addr, g, device.AccessReadWrite)
	r.setAccess(nil, a.Addr.Add(3*g), 5*g, device.AccessReadWrite)
	if r.mem != nil {
		r.fill(nil, a.Addr.Add(4*g), 4*g, 0x40)
		r.fill(nil, a.Addr, g, 0x22)
		r.fill(nil, a.Addr.Add(3*g), g, 0x10)
		r.requireFilled(a.Addr.Add(4*g), g, 0x10)
		r.requireFilled(a.Addr.Add(5*g), g, 0x40)
		r.requireFilled(a.Addr.Add(6*g), g, 0x22)
		r.requireFilled(a.Addr.Add(7*g), g, 0x40)
	}
	r.mapAt(device.ErrInvalid, a.Addr.Add(g), 2*g, h, 3*g) // beyond its end
	r.mapAt(device.ErrInvalid, a.Addr.Add(g), g, h, 4*g)
	r.mapAt(device.ErrInvalid, a.Addr.Add(g), g, h, device.AlignDown(^device.Size(0), g))
	r.unmap(nil, a.Addr, g)
	r.unmap(nil, a.Addr.Add(3*g), g)
	r.unmap(nil, a.Addr.Add(4*g), 4*g)
	r.releaseHandle(nil, h)
	r.releaseRange(nil, a.Addr)
}

// adjacentMappings sets the access of several mappings by one call, and unmaps several by one call.
func adjacentMappings(r *rig) {
	g := r.page()
	was := r.d.Usage()
	a := r.reserveRange(nil, 4*g, 0, 0)
	var hs []device.Handle
	for i := range device.Size(4) {
		hs = append(hs, r.createHandle(nil, g))
		r.mapAt(nil, a.Addr.Add((3-i)*g), g, hs[i], 0)
	}
	r.setAccess(nil, a.Addr, 4*g, device.AccessReadWrite)
	if r.mem != nil {
		r.fill(nil, a.Addr.Add(1), 4*g-2, 0xabcdef01) // across the boundaries
		r.requireFilled(a.Addr.Add(g-5), 3*g, 0xabcdef01)
	}
	r.unmap(nil, a.Addr.Add(g), 2*g)
	r.requireGrowth(was, device.Usage{Held: 4 * g, Handles: 4, Ranges: 1, Space: 4 * g, Mapped: 2 * g})
	if r.mem != nil {
		r.fill(device.ErrUnmapped, a.Addr, 4*g, 1)      // a hole in the middle
		r.requireFilled(a.Addr.Add(1), g-1, 0xabcdef01) // nothing was written before it
	}
	r.unmap(nil, a.Addr, g)
	r.unmap(nil, a.Addr.Add(3*g), g)
	for _, h := range hs {
		r.releaseHandle(nil, h)
	}
	r.releaseRange(nil, a.Addr)
	r.requireGrowth(was, device.Usage{})
}
