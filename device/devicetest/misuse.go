package devicetest

import "github.com/vramyard/vramyard/device"

var misusePromises = []promise{
	{name: "RangesAreNotMisused", needs: needVM, run: rangeMisuse},
	{name: "HandlesAreNotMisused", needs: needVM, run: handleMisuse},
	{name: "NothingIsMappedTwice", needs: needVM, run: mapMisuse},
	{name: "MappingsAreNotCut", needs: needVM, run: cutMisuse},
	{name: "GranularityIsEnforced", needs: needVM, run: granularityMisuse},
	{name: "RangesAreNotRegions", needs: needVM, run: rangesAreNoRegions},
}

// rangeMisuse makes every mistake with ranges.
func rangeMisuse(r *rig) {
	g, a, h := r.rangeAndHandle(4)
	r.reserveRange(device.ErrInvalid, 0, 0, 0)
	r.reserveRange(device.ErrInvalid, g, 3, 0)
	r.reserveRange(device.ErrInvalid, g, g+g/2, 0)
	for _, wrong := range []device.Addr{0, a.Addr + 1, a.Addr.Add(g), a.End(), ^device.Addr(0)} {
		r.releaseRange(device.ErrInvalid, wrong)
	}
	for _, page := range []device.Size{0, 2} { // a mapping at its start, and at its end
		r.mapAt(nil, a.Addr.Add(page*g), 2*g, h, 0)
		r.releaseRange(device.ErrMapped, a.Addr)
		r.setAccess(nil, a.Addr.Add(page*g), 2*g, device.AccessReadWrite)
		r.releaseRange(device.ErrMapped, a.Addr)
		r.unmap(nil, a.Addr.Add(page*g), 2*g)
	}
	r.releaseRange(nil, a.Addr)
	r.releaseRange(device.ErrInvalid, a.Addr)
	r.mapAt(device.ErrInvalid, a.Addr, 2*g, h, 0)
	r.releaseHandle(nil, h)
}

// handleMisuse makes every mistake with handles: zero, unknown, of another device, and
// released.
func handleMisuse(r *rig) {
	g, a, h := r.rangeAndHandle(4)
	r.createHandle(device.ErrInvalid, 0)
	r.createHandle(device.ErrOutOfMemory, huge)
	o := r.other()
	foreign := o.createHandle(nil, 2*g)
	stale := r.createHandle(nil, 2*g)
	r.releaseHandle(nil, stale)
	for _, wrong := range []device.Handle{0, ^device.Handle(0), foreign, stale} {
		r.releaseHandle(device.ErrHandle, wrong)
		r.mapAt(device.ErrHandle, a.Addr, 2*g, wrong, 0)
	}
	for range 8 { // a number that comes back would let the stale one pass
		again := r.createHandle(nil, 2*g)
		r.mapAt(device.ErrHandle, a.Addr, 2*g, stale, 0)
		r.releaseHandle(device.ErrHandle, stale)
		r.releaseHandle(nil, again)
	}
	o.releaseHandle(device.ErrHandle, h)
	o.releaseHandle(nil, foreign)
	r.mapAt(device.ErrInvalid, a.Addr, 3*g, h, 0) // larger than the handle
	r.mapAt(nil, a.Addr, 2*g, h, 0)
	r.unmap(nil, a.Addr, 2*g)
	r.releaseHandle(nil, h)
	r.releaseHandle(device.ErrHandle, h)
	r.releaseRange(nil, a.Addr)
}

// mapMisuse maps at addresses that are mapped already or lie outside of one range.
func mapMisuse(r *rig) {
	g, a, h := r.rangeAndHandle(4)
	r.mapAt(nil, a.Addr.Add(g), 2*g, h, 0)
	r.setAccess(nil, a.Addr.Add(g), 2*g, device.AccessReadWrite)
	if r.mem != nil {
		r.fill(nil, a.Addr.Add(g), 2*g, 0x5afe)
	}
	other := r.createHandle(nil, 4*g)
	r.mapAt(device.ErrMapped, a.Addr.Add(g), 2*g, other, 0) // exactly the mapping
	r.mapAt(device.ErrMapped, a.Addr, 2*g, other, 0)        // over its start
	r.mapAt(device.ErrMapped, a.Addr.Add(2*g), g, other, 0) // its last page
	r.mapAt(device.ErrMapped, a.Addr, 4*g, other, 0)        // around it
	r.mapAt(device.ErrMapped, a.Addr.Add(g), 2*g, h, 0)     // the same again
	r.mapAt(device.ErrInvalid, a.Addr.Add(3*g), 2*g, other, 0)
	r.mapAt(device.ErrInvalid, a.Addr.Add(4*g), g, other, 0)
	r.mapAt(device.ErrInvalid, device.Addr(g), g, other, 0)
	r.mapAt(device.ErrInvalid, 0, g, other, 0)
	r.mapAt(device.ErrInvalid, a.Addr, 0, other, 0)
	r.across(g, other)
	r.mapAt(nil, a.Addr, g, other, 0)
	if r.mem != nil {
		r.requireFilled(a.Addr.Add(g), 2*g, 0x5afe)
	}
	r.unmap(nil, a.Addr, g)
	r.unmap(nil, a.Addr.Add(g), 2*g)
	r.releaseHandle(nil, h)
	r.releaseHandle(nil, other)
	r.releaseRange(nil, a.Addr)
}

// across maps across the boundary of two adjacent ranges, and across the end of a range.
func (r *rig) across(g device.Size, h device.Handle) {
	r.Helper()
	both := r.reserveRange(nil, 4*g, 0, 0) // for the addresses
	r.releaseRange(nil, both.Addr)
	low := r.reserveRange(nil, 2*g, 0, both.Addr)
	r.mapAt(device.ErrInvalid, low.Addr.Add(g), 2*g, h, 0)
	if high, ok := r.reserveAt(2*g, low.End()); ok {
		r.mapAt(device.ErrInvalid, low.Addr.Add(g), 2*g, h, 0)
		r.mapAt(nil, low.Addr.Add(g), g, h, 0)
		r.mapAt(nil, high.Addr, g, h, 0)
		r.releaseRange(device.ErrMapped, high.Addr)
		r.unmap(nil, low.Addr.Add(g), g)
		r.releaseRange(device.ErrMapped, high.Addr)
		r.unmap(nil, high.Addr, g)
		r.releaseRange(nil, high.Addr)
	}
	r.releaseRange(nil, low.Addr)
}

// cutMisuse unmaps parts of mappings, and sets the access of parts.
func cutMisuse(r *rig) {
	g, a, h := r.rangeAndHandle(6)
	one := r.createHandle(nil, g)
	r.mapAt(nil, a.Addr, 3*g, h, 0)
	r.mapAt(nil, a.Addr.Add(4*g), g, one, 0)
	r.setAccess(nil, a.Addr, 3*g, device.AccessReadWrite)
	for _, cut := range []struct {
		at, n device.Size
		want  error
	}{
		{0, 1, device.ErrInvalid}, // the first page, the second, the end
		{1, 1, device.ErrInvalid},
		{1, 2, device.ErrInvalid},
		{3, 1, device.ErrUnmapped}, // the hole, alone and with its mappings
		{0, 4, device.ErrUnmapped},
		{0, 5, device.ErrUnmapped},
		{4, 2, device.ErrUnmapped},
		{5, 1, device.ErrUnmapped},
		{0, 0, device.ErrInvalid},
		{4, 9, oneOf{device.ErrUnmapped, device.ErrInvalid}}, // beyond the range
	} {
		r.unmap(cut.want, a.Addr.Add(cut.at*g), cut.n*g)
		r.setAccess(cut.want, a.Addr.Add(cut.at*g), cut.n*g, device.AccessNone)
	}
	r.setAccess(device.ErrInvalid, a.Addr, 3*g, 99)
	if r.mem != nil { // the access has not changed
		r.fill(nil, a.Addr, 3*g, 7)
		r.requireFilled(a.Addr, 3*g, 7)
		r.fill(device.ErrAccess, a.Addr.Add(4*g), g, 7)
	}
	r.unmap(nil, a.Addr, 3*g)
	r.unmap(device.ErrUnmapped, a.Addr, 3*g)
	r.setAccess(device.ErrUnmapped, a.Addr, 3*g, device.AccessReadWrite)
	r.unmap(nil, a.Addr.Add(4*g), g)
	nowhere := device.AlignDown(^device.Addr(0), g)
	r.unmap(device.ErrUnmapped, device.Addr(g), g)
	r.unmap(oneOf{device.ErrUnmapped, device.ErrInvalid}, nowhere, g)
	r.unmap(oneOf{device.ErrUnmapped, device.ErrInvalid}, nowhere, 2*g)
	r.releaseHandle(nil, h)
	r.releaseHandle(nil, one)
	r.releaseRange(nil, a.Addr)
}

// granularityMisuse passes, for each argument in turn, a value that is not a multiple of the
// granularity.
func granularityMisuse(r *rig) {
	g, a, h := r.rangeAndHandle(4)
	if g == 1 {
		r.Skip("every number is a multiple of the granularity")
	}
	odd := []device.Size{1, g / 2, g - 1, g + 1}
	for _, n := range odd {
		r.createHandle(device.ErrGranularity, n)
		r.reserveRange(device.ErrGranularity, n, 0, 0)
		r.mapAt(device.ErrGranularity, a.Addr, n, h, 0)
		r.mapAt(device.ErrGranularity, a.Addr.Add(n), g, h, 0)
		r.mapAt(oneOf{device.ErrGranularity, device.ErrUnsupported}, a.Addr, g, h, n)
	}
	r.mapAt(nil, a.Addr, 2*g, h, 0)
	for _, n := range odd {
		r.setAccess(device.ErrGranularity, a.Addr, n, device.AccessRead)
		r.setAccess(device.ErrGranularity, a.Addr.Add(n), g, device.AccessRead)
		r.unmap(device.ErrGranularity, a.Addr, n)
		r.unmap(device.ErrGranularity, a.Addr.Add(n), g)
	}
	r.unmap(nil, a.Addr, 2*g)
	r.releaseHandle(nil, h)
	r.releaseRange(nil, a.Addr)
	for _, n := range odd { // the addresses are free now
		r.reserveRange(device.ErrGranularity, g, 0, a.Addr.Add(n))
	}
}

// rangesAreNoRegions releases a range as a region, and a region as a range.
func rangesAreNoRegions(r *rig) {
	g, a, h := r.rangeAndHandle(2)
	region := r.reserve(nil, g, 0)
	r.release(device.ErrInvalid, a.Addr)
	r.releaseRange(device.ErrInvalid, region.Addr)
	r.mapAt(nil, a.Addr, g, h, 0)
	r.setAccess(nil, a.Addr, g, device.AccessReadWrite)
	r.release(device.ErrInvalid, a.Addr)
	if region.Addr.IsAligned(g) {
		r.mapAt(oneOf{device.ErrInvalid, device.ErrMapped}, region.Addr, g, h, 0)
		r.unmap(oneOf{device.ErrInvalid, device.ErrUnmapped}, region.Addr, g)
		r.reserveRange(device.ErrOutOfMemory, g, 0, region.Addr)
	}
	r.release(nil, region.Addr)
	r.unmap(nil, a.Addr, g)
	r.releaseHandle(nil, h)
	r.releaseRange(nil, a.Addr)
}
