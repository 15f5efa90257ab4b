package standin

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/streampool"
)

// Extent is a region or an address range of the device.
type Extent struct {
	Size    device.Size // in bytes
	IsRange bool        // of addresses alone
}

// Mapping is memory mapped in a range.
type Mapping struct {
	Size   device.Size   // multiple of the page size
	Handle device.Handle // physical memory
	Offset device.Size   // offset in the physical memory
	Access device.Access // access rights
	Alias  bool          // whether a mapping at a lower address has the same bytes
}

// physical is the record of a handle's memory.
type physical struct {
	size  device.Size
	named bool // the handle is not released
	maps  int  // number of mappings
}

// Counts are statistics of the calls of a program.
type Counts struct {
	Reserves     uint64      // regions and handles that the device granted
	Refused      uint64      // those that it refused
	Releases     uint64      // regions and handles that were released
	Held         int         // regions and ranges held
	PeakReserved device.Size // most bytes of regions and handles
}

// Memory records everything that a program holds of a device, and answers its calls. The record is
// complete, because every call passes through it. Calls must not run concurrently.
type Memory struct {
	// Released, if set, is called before the memory of a region is released, or after memory was
	// unmapped; doing says which.
	Released func(r device.Region, doing string)
	// Foreign, if set, is called when a CUDA runtime of NVIDIA's asks for tables of its driver.
	Foreign func()

	Extents  index.AddrList[Extent]  // by address
	Mappings index.AddrList[Mapping] // by address, of all ranges
	Counts   Counts                  // since NewMemory
	Regions  device.Size             // bytes of regions
	Behind   device.Size             // bytes of physical memory behind handles
	Mapped   device.Size             // mapped bytes of these, aliases counted once
	Outcome  Outcome                 // of the calls since the caller cleared it

	src     device.Source        // the real source
	vm      device.VirtualMemory // nil without the capability
	streams device.Streams       // nil: work counts as finished at once
	info    device.MemoryInfo    // nil without the capability

	handles index.AddrList[physical] // by handle
	events  []device.Event           // not destroyed
	pools   []*streampool.Pool       // by number; nil for a destroyed pool
}

// Outcome is what a device refused during some calls.
type Outcome struct {
	Refusal error       // last refusal of memory
	Asked   device.Size // bytes that it refused
	Fault   error       // injected fault of any kind of call
}

// NewMemory returns an empty record.
func NewMemory(src device.Source) *Memory {
	m := &Memory{src: src}
	m.vm, _ = device.VirtualMemoryOf(src)
	m.streams, _ = device.StreamsOf(src)
	m.info, _ = device.MemoryInfoOf(src)
	return m
}

// took counts memory obtained from the device, as a region or behind a handle, or the refusal.
func (m *Memory) took(kind *device.Size, size device.Size, err error) {
	if err != nil {
		m.Counts.Refused++
		m.Outcome.Refusal, m.Outcome.Asked = err, size
		return
	}
	m.Counts.Reserves++
	*kind += size
	m.Counts.PeakReserved = max(m.Counts.PeakReserved, m.Regions+m.Behind)
}

func (m *Memory) Reserve(size, align device.Size) (device.Region, error) {
	r, err := m.src.Reserve(size, align)
	if err != nil {
		m.took(&m.Regions, size, err)
		return r, err
	}
	m.took(&m.Regions, r.Size, nil)
	m.enter(r, false)
	return r, nil
}

// enter records a region or a range.
func (m *Memory) enter(r device.Region, isRange bool) {
	p, _ := m.Extents.Search(r.Addr)
	m.Extents.Insert(p, index.AddrEntry[Extent]{Addr: r.Addr, Value: Extent{r.Size, isRange}})
	m.Counts.Held++
}

func (m *Memory) Release(a device.Addr) error {
	p, found := m.Extents.Search(a)
	if !found || m.Extents.Entry(p).Value.IsRange {
		return device.ErrInvalid
	}
	if err := m.src.Release(a); err != nil {
		return err
	}
	m.Regions -= m.Extents.Entry(p).Value.Size
	m.Extents.Delete(p)
	m.Counts.Held--
	m.Counts.Releases++
	return nil
}

func (m *Memory) reserveRange(size, align device.Size, at device.Addr) (device.Region, error) {
	r, err := m.vm.ReserveRange(size, align, at)
	if err == nil {
		m.enter(r, true)
	}
	return r, err
}

func (m *Memory) releaseRange(a device.Addr) error {
	err := m.vm.ReleaseRange(a)
	if err == nil {
		p, _ := m.Extents.Search(a)
		m.Extents.Delete(p)
		m.Counts.Held--
	}
	return err
}

func (m *Memory) createHandle(size device.Size) (device.Handle, error) {
	h, err := m.vm.CreateHandle(size)
	m.took(&m.Behind, size, err)
	if err == nil {
		p, _ := m.handles.Search(device.Addr(h))
		m.handles.Insert(p, index.AddrEntry[physical]{Addr: device.Addr(h), Value: physical{size: size, named: true}})
	}
	return h, err
}

func (m *Memory) releaseHandle(h device.Handle) error {
	err := m.vm.ReleaseHandle(h)
	if err == nil {
		m.Counts.Releases++
		m.keep(h, func(f *physical) { f.named = false })
	}
	return err
}

// keep updates the record of a handle's memory and drops it when neither a name nor a mapping is
// left. It returns the number of mappings.
func (m *Memory) keep(h device.Handle, change func(*physical)) int {
	p, _ := m.handles.Search(device.Addr(h))
	e := m.handles.Entry(p)
	change(&e.Value)
	if e.Value.named || e.Value.maps > 0 {
		m.handles.Set(p, e)
	} else {
		m.Behind -= e.Value.size
		m.handles.Delete(p)
	}
	return e.Value.maps
}

func (m *Memory) mapAt(a device.Addr, size device.Size, h device.Handle, offset device.Size) error {
	err := m.vm.Map(a, size, h, offset)
	if err != nil {
		return err
	}
	p, _ := m.Mappings.Search(a)
	m.Mappings.Insert(p, index.AddrEntry[Mapping]{Addr: a, Value: Mapping{Size: size, Handle: h, Offset: offset,
		Alias: true}})
	m.keep(h, func(f *physical) { f.maps++ })
	m.name(h)
	return nil
}

// name recomputes which mappings of a handle are aliases. O(mappings).
func (m *Memory) name(h device.Handle) {
	type span struct{ from, to device.Size }
	var seen []span
	for e := range m.Mappings.All {
		v := e.Value
		if v.Handle != h {
			continue
		}
		alias := slices.ContainsFunc(seen, func(s span) bool { return v.Offset < s.to && s.from < v.Offset+v.Size })
		seen = append(seen, span{v.Offset, v.Offset + v.Size})
		if alias == v.Alias {
			continue
		}
		if v.Alias = alias; alias {
			m.Mapped -= v.Size
		} else {
			m.Mapped += v.Size
		}
		p, _ := m.Mappings.Search(e.Addr)
		m.Mappings.Set(p, index.AddrEntry[Mapping]{Addr: e.Addr, Value: v})
	}
}

func (m *Memory) setAccess(a device.Addr, size device.Size, access device.Access) error {
	err := m.vm.SetAccess(a, size, access)
	for p, end := m.mappingAt(a), a.Add(size); err == nil && m.Mappings.Holds(p) &&
		m.Mappings.Entry(p).Addr < end; p = m.Mappings.Next(p) {
		e := m.Mappings.Entry(p)
		e.Value.Access = access
		m.Mappings.Set(p, e)
	}
	return err
}

func (m *Memory) unmap(a device.Addr, size device.Size) error {
	err := m.vm.Unmap(a, size)
	for p, end := m.mappingAt(a), a.Add(size); err == nil && m.Mappings.Holds(p) && m.Mappings.Entry(p).Addr < end; {
		v := m.Mappings.Entry(p).Value
		p = m.Mappings.Delete(p)
		if !v.Alias {
			m.Mapped -= v.Size
		}
		if m.keep(v.Handle, func(f *physical) { f.maps-- }) > 0 {
			m.name(v.Handle)
		}
	}
	return err
}

// mappingAt returns the position of the first mapping that starts at a or above.
func (m *Memory) mappingAt(a device.Addr) index.AddrPos {
	p, _ := m.Mappings.Search(a)
	return m.Mappings.Above(p)
}

func (m *Memory) newEvent() (device.Event, error) {
	e, err := m.streams.NewEvent()
	if err == nil {
		m.events = append(m.events, e)
	}
	return e, err
}

func (m *Memory) destroyEvent(e device.Event) error {
	err := m.streams.DestroyEvent(e)
	if i := slices.Index(m.events, e); err == nil && i >= 0 {
		m.events = slices.Delete(m.events, i, i+1)
	}
	return err
}

// Around returns the region or range that contains a.
func (m *Memory) Around(a device.Addr) (r device.Region, isRange, ok bool) {
	p, ok := m.Extents.Floor(a)
	if !ok {
		return r, false, false
	}
	e := m.Extents.Entry(p)
	r = device.Region{Addr: e.Addr, Size: e.Value.Size}
	return r, e.Value.IsRange, r.Contains(a)
}

// Usable reports whether n bytes at a lie in one region, or in adjacent readable and writable
// mappings of one range.
func (m *Memory) Usable(a device.Addr, n device.Size) bool {
	r, isRange, ok := m.Around(a)
	if !ok || n > r.End().Sub(a) {
		return false
	}
	if !isRange {
		return true
	}
	p, ok := m.Mappings.Floor(a)
	for end := a.Add(n); ok && a < end; p, ok = m.Mappings.Next(p), true {
		if !m.Mappings.Holds(p) {
			return false
		}
		e := m.Mappings.Entry(p)
		if e.Addr > a || a.Sub(e.Addr) >= e.Value.Size || e.Value.Access != device.AccessReadWrite {
			return false
		}
		a = e.Addr.Add(e.Value.Size)
	}
	return ok
}

// GiveBack releases everything to the device. Whatever the device refuses stays; the error is the
// first refusal.
func (m *Memory) GiveBack() (first error) {
	// Regions of pools are recorded here too. Memory is unmapped before its address range is released,
	// and a handle that stays mapped keeps its memory.
	m.pools = nil
	for i := m.Mappings.Len() - 1; i >= 0; i-- {
		e := m.Mappings.Entry(m.Mappings.Nth(i))
		first = cmp.Or(first, m.unmap(e.Addr, e.Value.Size))
	}
	for i := m.handles.Len() - 1; i >= 0; i-- {
		if e := m.handles.Entry(m.handles.Nth(i)); e.Value.named {
			first = cmp.Or(first, m.releaseHandle(device.Handle(e.Addr)))
		}
	}
	for i := m.Extents.Len() - 1; i >= 0; i-- {
		if e := m.Extents.Entry(m.Extents.Nth(i)); e.Value.IsRange {
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
