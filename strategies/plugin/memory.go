package plugin

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/streampool"
)

// extent is a region or an address range from the device.
type extent struct {
	size    device.Size
	isRange bool
}

// mapping is memory mapped in a range.
type mapping struct {
	size   device.Size   // multiple of the page size
	handle device.Handle // physical memory
	offset device.Size   // offset in the physical memory
	access device.Access // access rights
	alias  bool          // whether a mapping at a lower address has the same bytes
}

// physical is the record of a handle's memory.
type physical struct {
	size  device.Size
	named bool // the handle is not released
	maps  int  // number of mappings
}

// memory records everything that a plug-in holds from the device. It is complete because every
// device call passes through it.
type memory struct {
	src     device.Source        // the real source
	vm      device.VirtualMemory // nil without the capability
	streams device.Streams       // nil: work counts as finished at once
	info    device.MemoryInfo    // nil without the capability

	extents  index.AddrList[extent]   // by address
	mappings index.AddrList[mapping]  // by address, of all ranges
	handles  index.AddrList[physical] // by handle
	events   []device.Event           // not destroyed
	pools    []*streampool.Pool       // by number; nil for a destroyed pool
	stats    *alloc.Stats             // statistics of the strategy; this type counts the device's part
	regions  device.Size              // bytes of regions
	behind   device.Size              // bytes of physical memory behind handles
	mapped   device.Size              // mapped bytes of these, aliases counted once
	refusal  error                    // error of the device in the present call
	asked    device.Size              // bytes that the device refused
	failure  error                    // injected fault of any kind of call in the present call
}

// newMemory returns an empty record.
func newMemory(src device.Source, stats *alloc.Stats) *memory {
	m := &memory{src: src, stats: stats}
	m.vm, _ = device.VirtualMemoryOf(src)
	m.streams, _ = device.StreamsOf(src)
	m.info, _ = device.MemoryInfoOf(src)
	return m
}

// took counts memory obtained from the device, as a region or behind a handle, or the refusal.
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

// enter records a region or a range.
func (m *memory) enter(r device.Region, isRange bool) {
	p, _ := m.extents.Search(r.Addr)
	m.extents.Insert(p, index.AddrEntry[extent]{Addr: r.Addr, Value: extent{r.Size, isRange}})
	m.stats.Regions++
}

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

func (m *memory) reserveRange(size, align device.Size, at device.Addr) (device.Region, error) {
	r, err := m.vm.ReserveRange(size, align, at)
	if err == nil {
		m.enter(r, true)
	}
	return r, err
}

func (m *memory) releaseRange(a device.Addr) error {
	err := m.vm.ReleaseRange(a)
	if err == nil {
		p, _ := m.extents.Search(a)
		m.extents.Delete(p)
		m.stats.Regions--
	}
	return err
}

func (m *memory) createHandle(size device.Size) (device.Handle, error) {
	h, err := m.vm.CreateHandle(size)
	m.took(&m.behind, size, err)
	if err == nil {
		p, _ := m.handles.Search(device.Addr(h))
		m.handles.Insert(p, index.AddrEntry[physical]{Addr: device.Addr(h), Value: physical{size: size, named: true}})
	}
	return h, err
}

func (m *memory) releaseHandle(h device.Handle) error {
	err := m.vm.ReleaseHandle(h)
	if err == nil {
		m.stats.Releases++
		m.keep(h, func(f *physical) { f.named = false })
	}
	return err
}

// keep updates the record of a handle's memory and drops it when neither a name nor a mapping is
// left. It returns the number of mappings.
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

// name recomputes which mappings of a handle are aliases. O(mappings).
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

// mappingAt returns the position of the first mapping that starts at a or above.
func (m *memory) mappingAt(a device.Addr) index.AddrPos {
	p, _ := m.mappings.Search(a)
	return m.mappings.Above(p)
}

func (m *memory) newEvent() (device.Event, error) {
	e, err := m.streams.NewEvent()
	if err == nil {
		m.events = append(m.events, e)
	}
	return e, err
}

func (m *memory) destroyEvent(e device.Event) error {
	err := m.streams.DestroyEvent(e)
	if i := slices.Index(m.events, e); err == nil && i >= 0 {
		m.events = slices.Delete(m.events, i, i+1)
	}
	return err
}

// around returns the region or range that contains a.
func (m *memory) around(a device.Addr) (r device.Region, isRange, ok bool) {
	p, ok := m.extents.Floor(a)
	if !ok {
		return r, false, false
	}
	e := m.extents.Entry(p)
	r = device.Region{Addr: e.Addr, Size: e.Value.size}
	return r, e.Value.isRange, r.Contains(a)
}

// usable reports whether n bytes at a lie in one region, or in adjacent readable and writable
// mappings of one range.
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

// giveBack releases everything to the device. Whatever the device refuses stays; the error is the
// first refusal.
func (m *memory) giveBack() (first error) {
	// Regions of pools are recorded here too. Memory is unmapped before its address range is released,
	// and a handle that stays mapped keeps its memory.
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
