package regions

// [Memory] manages address ranges and the pages mapped in them, for strategies that grow by
// mapping. It counts the bytes held in the strategy's statistics and loses no memory when a device
// call fails.
//
// A range has pages of one size. A page is one physical allocation, either mapped as a whole or
// idle: held but not mapped. Pages become idle when the device refuses to take them back or a
// mapping fails. Idle pages are used before new ones are created.
//
// Finding a range is a binary search; recording a page costs a search and a move of at most 64
// entries. A page takes 24 bytes and a range 40.

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Paged returns the virtual memory of a device whose pages are not larger than a strategy's. field
// is the setting with the bytes of its pages. It fails with [device.ErrUnsupported] if the device
// has no virtual memory, and if its pages do not divide the strategy's.
func Paged(src device.Source, strategy, field string, bytes device.Size) (device.VirtualMemory, error) {
	vm, ok := device.VirtualMemoryOf(src)
	if !ok {
		return nil, fmt.Errorf("%s: the device has no virtual memory: %w", strategy, device.ErrUnsupported)
	}
	if g := vm.Granularity(); g == 0 || bytes%g != 0 {
		return nil, fmt.Errorf("%s: %s %v: the device's pages have %v", strategy, field, bytes, g)
	}
	return vm, nil
}

// Span is an address range.
type Span struct {
	device.Region
	Page  device.Size // bytes of its pages
	First uint32      // first chunk, for the strategy
}

// Below returns the start of the page that contains an address of the range.
func (s *Span) Below(a device.Addr) device.Addr {
	return s.Addr.Add(a.Sub(s.Addr) / s.Page * s.Page)
}

// Above returns the lowest start of a page at or above an address of the range.
func (s *Span) Above(a device.Addr) device.Addr {
	return s.Addr.Add((a.Sub(s.Addr) + s.Page - 1) / s.Page * s.Page)
}

// page is a physical allocation.
type page struct {
	handle device.Handle
	size   device.Size
}

// pageBytes is the host memory of a page.
const pageBytes = 16

// Memory holds the ranges and pages of a strategy. Use [NewMemory].
//
// Invariant: the bytes held are the mapped and the idle pages.
type Memory struct {
	vm    device.VirtualMemory
	stats *alloc.Stats
	spans []Span               // by address
	pages index.AddrList[page] // mapped pages
	idle  []page               // idle pages; the last is used next
	held  device.Size
}

// NewMemory returns an empty memory over vm. In stats, mapped bytes count as Reserved, idle bytes
// as Forgotten, ranges as Regions, and created and released pages as Reserves and Releases.
func NewMemory(vm device.VirtualMemory, stats *alloc.Stats) Memory {
	return Memory{vm: vm, stats: stats}
}

// Len returns the number of ranges.
func (m *Memory) Len() int { return len(m.spans) }

// At returns the range with i ranges below it. It is valid until a range comes or goes.
func (m *Memory) At(i int) *Span { return &m.spans[i] }

// Under returns the range that contains an address. O(log ranges).
//
// Precondition: there is one.
func (m *Memory) Under(a device.Addr) *Span { return &m.spans[m.index(a)] }

// index returns the index of the range that contains an address, if there is one.
func (m *Memory) index(a device.Addr) int {
	low := 0
	for high := len(m.spans); high-low > 1; {
		if mid := (low + high) / 2; m.spans[mid].Addr <= a {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// Held returns the bytes held from the device.
func (m *Memory) Held() device.Size { return m.held }

// Mapped returns the number of pages that are mapped.
func (m *Memory) Mapped() int { return m.pages.Len() }

// Idle returns the number of idle pages of a size. O(idle pages).
func (m *Memory) Idle(size device.Size) (n int) {
	for _, p := range m.idle {
		if p.size == size {
			n++
		}
	}
	return n
}

// Pages yields the mapped pages by address.
func (m *Memory) Pages(yield func(a device.Addr, size device.Size) bool) {
	for e := range m.pages.All {
		if !yield(e.Addr, e.Value.size) {
			return
		}
	}
}

// Bytes returns the host memory of the records, unused capacity included. O(pages / 32).
func (m *Memory) Bytes() device.Size {
	return m.pages.Bytes(pageBytes) + index.BytesOf(m.idle) + index.BytesOf(m.spans)
}

// Open reserves a range of size bytes for pages of a size, and enters it with its first chunk. On
// error, the device's, nothing has changed.
func (m *Memory) Open(size, page device.Size, first uint32) (device.Region, error) {
	r, err := m.vm.ReserveRange(size, 0, 0)
	if err != nil {
		return r, err
	}
	m.enter(r, page, first)
	return r, nil
}

func (m *Memory) enter(r device.Region, page device.Size, first uint32) {
	i, _ := slices.BinarySearchFunc(m.spans, r.Addr, func(s Span, a device.Addr) int {
		if s.Addr < a {
			return -1
		}
		return 1
	})
	m.spans = slices.Insert(m.spans, i, Span{Region: r, Page: page, First: first})
	m.stats.Regions++
}

// Adopt enters an existing range with its first chunk. parts are the mapped parts: disjoint, in
// whole pages. The handle of a page is its address.
func (m *Memory) Adopt(r device.Region, pageSize device.Size, first uint32, parts []device.Region) {
	m.enter(r, pageSize, first)
	for _, part := range parts {
		for a := part.Addr; a < part.End(); a = a.Add(pageSize) {
			p, _ := m.pages.Search(a)
			m.pages.Insert(p, index.AddrEntry[page]{Addr: a, Value: page{device.Handle(a), pageSize}})
			m.held += pageSize
			m.stats.Reserved += pageSize
		}
	}
	m.raise()
}

// raise raises the peak of the bytes held. The statistics may have memory outside of ranges too.
func (m *Memory) raise() {
	m.stats.PeakReserved = max(m.stats.PeakReserved, m.stats.Reserved+m.stats.Forgotten)
}

// Close releases the range that contains an address and has no mapped page. On error, the device's,
// the range stays. O(ranges).
//
// Precondition: there is one.
func (m *Memory) Close(a device.Addr) error {
	i := m.index(a)
	if err := m.vm.ReleaseRange(m.spans[i].Addr); err != nil {
		return err
	}
	m.spans = slices.Delete(m.spans, i, i+1)
	m.stats.Regions--
	return nil
}

// acquire makes sure that the last n idle pages have a size, and creates the missing ones. Pages
// created before an error stay, idle.
func (m *Memory) acquire(n int, size device.Size) error {
	have := 0
	for i := range m.idle {
		// Move pages of the right size to the end.
		if p := m.idle[i]; p.size == size {
			have++
		} else if have > 0 {
			m.idle[i-have], m.idle[i] = p, m.idle[i-have]
		}
	}
	for ; have < n; have++ {
		h, err := m.vm.CreateHandle(size)
		if err != nil {
			m.stats.ReserveFailures++
			return err
		}
		// The page counts as idle until it is mapped, so an error loses nothing.
		m.stats.Reserves++
		m.idle = append(m.idle, page{h, size})
		m.held += size
		m.stats.Forgotten += size
		m.raise()
	}
	return nil
}

// Fill maps memory at the pages from low to high of a range and sets its access. All pages are
// created before the first is mapped. After an error, the pages below mapped could neither be made
// accessible nor unmapped, which is rare; other pages created are idle.
func (m *Memory) Fill(low, high device.Addr) (mapped device.Addr, err error) {
	size := m.Under(low).Page
	mapped = low
	err = m.acquire(int(high.Sub(low)/size), size)
	for mapped < high && err == nil {
		if err = m.mapIdle(mapped); err == nil {
			mapped = mapped.Add(size)
		}
	}
	if err == nil {
		err = m.vm.SetAccess(low, high.Sub(low), device.AccessReadWrite)
	}
	if err == nil {
		return mapped, nil
	}
	// Mapped memory without access must not be granted: unmap it. If that fails, the caller must not
	// use the pages below mapped.
	if mapped > low && m.Clear(low, mapped) == nil {
		mapped = low
	}
	return mapped, err
}

func (m *Memory) mapIdle(a device.Addr) error {
	last := len(m.idle) - 1
	p := m.idle[last]
	if err := m.vm.Map(a, p.size, p.handle, 0); err != nil {
		return err
	}
	m.idle = m.idle[:last]
	at, _ := m.pages.Search(a)
	m.pages.Insert(at, index.AddrEntry[page]{Addr: a, Value: p})
	m.stats.Reserved += p.size
	m.stats.Forgotten -= p.size
	return nil
}

// Clear unmaps the pages from low to high, which become idle. On error, the device's, nothing has
// changed.
func (m *Memory) Clear(low, high device.Addr) error {
	if err := m.vm.Unmap(low, high.Sub(low)); err != nil {
		return err
	}
	// One call for all pages: the device grants or refuses it as a whole.
	p, _ := m.pages.Search(low)
	for a := low; a < high; {
		p = m.pages.Above(p)
		e := m.pages.Entry(p).Value
		m.idle = append(m.idle, e)
		a = a.Add(e.size)
		p = m.pages.Delete(p)
	}
	m.stats.Reserved -= high.Sub(low)
	m.stats.Forgotten += high.Sub(low)
	return nil
}

// DropIdle releases the idle pages. Pages that the device refuses stay; the error is the first
// refusal.
func (m *Memory) DropIdle() (first error) {
	kept := m.idle[:0]
	for _, p := range m.idle {
		if err := m.vm.ReleaseHandle(p.handle); err != nil {
			kept = append(kept, p)
			first = cmp.Or(first, err)
			continue
		}
		m.stats.Releases++
		m.held -= p.size
		m.stats.Forgotten -= p.size
	}
	m.idle = kept
	return first
}
