package plugin

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/streampool"
)

// extent is a region, or a range of addresses, that the device gave out.
type extent struct {
	size    device.Size
	isRange bool
}

// mapping is memory in a range.
type mapping struct {
	size   device.Size   // whole pages of the device
	handle device.Handle // whose memory it is
	offset device.Size   // in that
	access device.Access // what may be done with it
	alias  bool          // of the same bytes as a mapping at a lower address
}

// physical is the memory of a handle.
type physical struct {
	size  device.Size
	named bool // the handle is not released
	maps  int  // mappings of it
}

// memory is what a plug-in has from the device. It knows all of it, because every call comes
// through here.
type memory struct {
	src     device.Source        // behind everything
	vm      device.VirtualMemory // nil: the device has none
	streams device.Streams       // nil: all is done at once
	info    device.MemoryInfo    // nil: the device does not tell

	extents  index.AddrList[extent]   // by address
	mappings index.AddrList[mapping]  // by address, of all ranges
	handles  index.AddrList[physical] // by number
	events   []device.Event           // not destroyed
	pools    []*streampool.Pool       // by number; nil is one that is gone
	stats    *alloc.Stats             // of the strategy; what is about the device is counted here
	regions  device.Size              // bytes of regions
	behind   device.Size              // bytes behind handles
	mapped   device.Size              // of those, what is mapped, each byte once
	refusal  error                    // of the device, in the present call
	asked    device.Size              // bytes that it refused
	failure  error                    // a refusal on a plan, of any kind of call, in the present call
}

// newMemory returns the memory of a plug-in that has none yet.
func newMemory(src device.Source, stats *alloc.Stats) *memory {
	m := &memory{src: src, stats: stats}
	m.vm, _ = device.VirtualMemoryOf(src)
	m.streams, _ = device.StreamsOf(src)
	m.info, _ = device.MemoryInfoOf(src)
	return m
}

// took books that memory came from the device, behind a handle or in a region, or did not.
func (m *memory) took(kind *device.Size, size device.Size, err error) {
	if err != nil {
		m.stats.ReserveFailures++
		m.refusal, m.asked = err, size
		return
	}
	m.stats.Reserves++
	*kind += size
	m.stats.PeakReserved = max(m.stats.PeakReserved, m.regions+m.behind)
}

// Reserve implements [device.Source].
func (m *memory) Reserve(size, align device.Size) (device.Region, error) {
	r, err := m.src.Reserve(size, align)
	if err != nil {
		m.took(&m.regions, size, err)
		return r, err
	}
	m.took(&m.regions, r.Size, nil)
	m.enter(r, false)
	return r, nil
}

// enter notes a region or a range.
func (m *memory) enter(r device.Region, isRange bool) {
	p, _ := m.extents.Search(r.Addr)
	m.extents.Insert(p, index.AddrEntry[extent]{Addr: r.Addr, Value: extent{r.Size, isRange}})
	m.stats.Regions++
}

// Release implements [device.Source].
func (m *memory) Release(a device.Addr) error {
	p, found := m.extents.Search(a)
	if !found || m.extents.Entry(p).Value.isRange {
		return device.ErrInvalid
	}
	if err := m.src.Release(a); err != nil {
		return err
	}
	m.regions -= m.extents.Entry(p).Value.size
	m.extents.Delete(p)
	m.stats.Regions--
	m.stats.Releases++
	return nil
}

// reserveRange reserves address space.
func (m *memory) reserveRange(size, align device.Size, at device.Addr) (device.Region, error) {
	r, err := m.vm.ReserveRange(size, align, at)
	if err == nil {
		m.enter(r, true)
	}
	return r, err
}

// releaseRange gives address space back.
func (m *memory) releaseRange(a device.Addr) error {
	err := m.vm.ReleaseRange(a)
	if err == nil {
		p, _ := m.extents.Search(a)
		m.extents.Delete(p)
		m.stats.Regions--
	}
	return err
}

// createHandle makes physical memory.
func (m *memory) createHandle(size device.Size) (device.Handle, error) {
	h, err := m.vm.CreateHandle(size)
	m.took(&m.behind, size, err)
	if err == nil {
		p, _ := m.handles.Search(device.Addr(h))
		m.handles.Insert(p, index.AddrEntry[physical]{Addr: device.Addr(h), Value: physical{size: size, named: true}})
	}
	return h, err
}

// releaseHandle gives a handle back.
func (m *memory) releaseHandle(h device.Handle) error {
	err := m.vm.ReleaseHandle(h)
	if err == nil {
		m.stats.Releases++
		m.keep(h, func(f *physical) { f.named = false })
	}
	return err
}

// keep changes what is known of physical memory, which is gone if nothing names it any more. It
// returns how often it is mapped.
func (m *memory) keep(h device.Handle, change func(*physical)) int {
	p, _ := m.handles.Search(device.Addr(h))
	e := m.handles.Entry(p)
	change(&e.Value)
	if e.Value.named || e.Value.maps > 0 {
		m.handles.Set(p, e)
	} else {
		m.behind -= e.Value.size
		m.handles.Delete(p)
	}
	return e.Value.maps
}

// mapAt maps memory.
func (m *memory) mapAt(a device.Addr, size device.Size, h device.Handle, offset device.Size) error {
	err := m.vm.Map(a, size, h, offset)
	if err != nil {
		return err
	}
	p, _ := m.mappings.Search(a)
	m.mappings.Insert(p, index.AddrEntry[mapping]{Addr: a, Value: mapping{size: size, handle: h, offset: offset,
		alias: true}})
	m.keep(h, func(f *physical) { f.maps++ })
	m.name(h)
	return nil
}

// name finds out again which mappings of a handle are aliases. It costs a step for each mapping
// there is.
func (m *memory) name(h device.Handle) {
	type span struct{ from, to device.Size }
	var seen []span
	for e := range m.mappings.All {
		v := e.Value
		if v.handle != h {
			continue
		}
		alias := slices.ContainsFunc(seen, func(s span) bool { return v.offset < s.to && s.from < v.offset+v.size })
		seen = append(seen, span{v.offset, v.offset + v.size})
		if alias == v.alias {
			continue
		}
		if v.alias = alias; alias {
			m.mapped -= v.size
		} else {
			m.mapped += v.size
		}
		p, _ := m.mappings.Search(e.Addr)
		m.mappings.Set(p, index.AddrEntry[mapping]{Addr: e.Addr, Value: v})
	}
}

// setAccess says what may be done with mapped memory.
func (m *memory) setAccess(a device.Addr, size device.Size, access device.Access) error {
	err := m.vm.SetAccess(a, size, access)
	for p, end := m.mappingAt(a), a.Add(size); err == nil && m.mappings.Holds(p) &&
		m.mappings.Entry(p).Addr < end; p = m.mappings.Next(p) {
		e := m.mappings.Entry(p)
		e.Value.access = access
		m.mappings.Set(p, e)
	}
	return err
}

// unmap takes memory away.
func (m *memory) unmap(a device.Addr, size device.Size) error {
	err := m.vm.Unmap(a, size)
	for p, end := m.mappingAt(a), a.Add(size); err == nil && m.mappings.Holds(p) && m.mappings.Entry(p).Addr < end; {
		v := m.mappings.Entry(p).Value
		p = m.mappings.Delete(p)
		if !v.alias {
			m.mapped -= v.size
		}
		if m.keep(v.handle, func(f *physical) { f.maps-- }) > 0 {
			m.name(v.handle)
		}
	}
	return err
}

// mappingAt returns the place of the first mapping that starts at a or above.
func (m *memory) mappingAt(a device.Addr) index.AddrPos {
	p, _ := m.mappings.Search(a)
	return m.mappings.Above(p)
}

// newEvent makes an event.
func (m *memory) newEvent() (device.Event, error) {
	e, err := m.streams.NewEvent()
	if err == nil {
		m.events = append(m.events, e)
	}
	return e, err
}

// destroyEvent gives an event back.
func (m *memory) destroyEvent(e device.Event) error {
	err := m.streams.DestroyEvent(e)
	if i := slices.Index(m.events, e); err == nil && i >= 0 {
		m.events = slices.Delete(m.events, i, i+1)
	}
	return err
}

// around returns the region or range that a lies in.
func (m *memory) around(a device.Addr) (r device.Region, isRange, ok bool) {
	p, ok := m.extents.Floor(a)
	if !ok {
		return r, false, false
	}
	e := m.extents.Entry(p)
	r = device.Region{Addr: e.Addr, Size: e.Value.size}
	return r, e.Value.isRange, r.Contains(a)
}

// usable reports whether n bytes at a lie in one region, or where memory that may be read and
// written is mapped in one range.
func (m *memory) usable(a device.Addr, n device.Size) bool {
	r, isRange, ok := m.around(a)
	if !ok || n > r.End().Sub(a) {
		return false
	}
	if !isRange {
		return true
	}
	p, ok := m.mappings.Floor(a)
	for end := a.Add(n); ok && a < end; p, ok = m.mappings.Next(p), true {
		if !m.mappings.Holds(p) {
			return false
		}
		e := m.mappings.Entry(p)
		if e.Addr > a || a.Sub(e.Addr) >= e.Value.size || e.Value.access != device.AccessReadWrite {
			return false
		}
		a = e.Addr.Add(e.Value.size)
	}
	return ok
}

// giveBack gives everything back to the device. What it refuses to take stays; the error is its
// first.
func (m *memory) giveBack() (first error) {
	// What pools had is known here too. Memory goes before the addresses that it is mapped at, and a
	// handle that stays mapped keeps its memory, so that everything can go that the device takes.
	m.pools = nil
	for i := m.mappings.Len() - 1; i >= 0; i-- {
		e := m.mappings.Entry(m.mappings.Nth(i))
		first = cmp.Or(first, m.unmap(e.Addr, e.Value.size))
	}
	for i := m.handles.Len() - 1; i >= 0; i-- {
		if e := m.handles.Entry(m.handles.Nth(i)); e.Value.named {
			first = cmp.Or(first, m.releaseHandle(device.Handle(e.Addr)))
		}
	}
	for i := m.extents.Len() - 1; i >= 0; i-- {
		if e := m.extents.Entry(m.extents.Nth(i)); e.Value.isRange {
			first = cmp.Or(first, m.releaseRange(e.Addr))
		} else {
			first = cmp.Or(first, m.Release(e.Addr))
		}
	}
	for _, e := range slices.Clone(m.events) {
		first = cmp.Or(first, m.destroyEvent(e))
	}
	return first
}
