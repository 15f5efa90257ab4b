package vmm

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/addrlist"
	"github.com/vramyard/vramyard/internal/planted"
)

// span is a range of addresses.
type span struct {
	device.Region
	first handle // its first chunk
}

// memory is the ranges and pages of the device, and what is booked of them.
//
// Invariant: held is the pages mapped and the idle ones.
type memory struct {
	vm    device.VirtualMemory
	stats *alloc.Stats
	page  device.Size
	spans []span                       // by address
	pages addrlist.List[device.Handle] // those that are mapped
	idle  []device.Handle              // pages that are mapped nowhere; the last is used next
	held  device.Size                  // bytes of pages held of the device
}

// spanOf returns the range that an address lies in.
//
// Precondition: it lies in one.
func (m *memory) spanOf(a device.Addr) *span {
	low := 0
	for high := len(m.spans); high-low > 1; {
		if mid := (low + high) / 2; m.spans[mid].Addr <= a {
			low = mid
		} else {
			high = mid
		}
	}
	return &m.spans[low]
}

// below returns the start of the page that an address of the range lies in.
func (m *memory) below(s *span, a device.Addr) device.Addr {
	return s.Addr.Add(a.Sub(s.Addr) / m.page * m.page)
}

// above returns the lowest start of a page of the range at or above an address.
func (m *memory) above(s *span, a device.Addr) device.Addr {
	return s.Addr.Add((a.Sub(s.Addr) + m.page - 1) / m.page * m.page)
}

// open reserves a range and enters it; its only chunk is first. On error nothing has changed.
func (m *memory) open(size device.Size, first handle) (device.Region, error) {
	r, err := m.vm.ReserveRange(size, 0, 0)
	if err != nil {
		return r, err
	}
	i, _ := slices.BinarySearchFunc(m.spans, r.Addr, func(s span, a device.Addr) int {
		if s.Addr < a {
			return -1
		}
		return 1
	})
	m.spans = slices.Insert(m.spans, i, span{Region: r, first: first})
	m.stats.Regions++
	return r, nil
}

// close gives the i-th range back, in which nothing is mapped. On error it stays.
func (m *memory) close(i int) error {
	if err := m.vm.ReleaseRange(m.spans[i].Addr); err != nil {
		return err
	}
	m.spans = slices.Delete(m.spans, i, i+1)
	m.stats.Regions--
	return nil
}

// acquire makes sure that there is an idle page.
func (m *memory) acquire() error {
	if len(m.idle) > 0 {
		return nil
	}
	h, err := m.vm.CreateHandle(m.page)
	if err != nil {
		m.stats.ReserveFailures++
		return err
	}
	// It is idle until it is mapped, so that a failure in between loses nothing.
	m.stats.Reserves++
	m.idle = append(m.idle, h)
	m.held += m.page
	m.stats.PeakReserved = max(m.stats.PeakReserved, m.held)
	m.stats.Forgotten += m.page
	return nil
}

// fill maps memory at the pages from low to high and opens it. On error it has put
// memory at the pages below mapped, which it could neither open nor take away; mostly there
// are none.
func (m *memory) fill(low, high device.Addr) (mapped device.Addr, err error) {
	mapped = low
	for mapped < high && err == nil {
		if err = m.acquire(); err == nil {
			err = m.mapIdle(mapped)
		}
		if err == nil {
			mapped = mapped.Add(m.page)
		}
	}
	if err == nil {
		opened := high
		if planted.Enabled && planted.Is("vmm/opens-first-page") {
			opened = low.Add(m.page)
		}
		if err = m.vm.SetAccess(low, opened.Sub(low), device.AccessReadWrite); err == nil {
			return mapped, nil
		}
	}
	// Memory that nobody may use must not look as if it could be granted. If it cannot be taken
	// away again either, the caller sets it aside.
	if mapped > low && m.clear(low, mapped) == nil {
		mapped = low
	}
	return mapped, err
}

// mapIdle maps an idle page.
func (m *memory) mapIdle(a device.Addr) error {
	last := len(m.idle) - 1
	h := m.idle[last]
	mapped := h
	if planted.Enabled && planted.Is("vmm/page-mapped-twice") && m.pages.Len() > 0 {
		mapped = m.pages.Entry(m.pages.Nth(0)).Value
	}
	if err := m.vm.Map(a, m.page, mapped, 0); err != nil {
		return err
	}
	m.idle = m.idle[:last]
	p, _ := m.pages.Search(a)
	m.pages.Insert(p, addrlist.Entry[device.Handle]{Addr: a, Value: h})
	m.stats.Reserved += m.page
	m.stats.Forgotten -= m.page
	return nil
}

// clear takes the memory away from the pages from low to high, which become idle. On error nothing
// has changed.
func (m *memory) clear(low, high device.Addr) error {
	if err := m.vm.Unmap(low, high.Sub(low)); err != nil {
		return err
	}
	// One call for all of them, which the device grants or refuses as a whole.
	p, _ := m.pages.Search(low)
	for range int(high.Sub(low) / m.page) {
		p = m.pages.Above(p)
		m.idle = append(m.idle, m.pages.Entry(p).Value)
		if planted.Enabled && planted.Is("vmm/page-noted-on") {
			p = m.pages.Next(p)
			continue
		}
		p = m.pages.Delete(p)
	}
	m.stats.Reserved -= high.Sub(low)
	m.stats.Forgotten += high.Sub(low)
	return nil
}

// dropIdle gives the idle pages back. What the device refuses to take stays; the error is its
// first.
func (m *memory) dropIdle() (first error) {
	kept := m.idle[:0]
	for _, h := range m.idle {
		if err := m.vm.ReleaseHandle(h); err != nil {
			if !(planted.Enabled && planted.Is("vmm/page-lost-on-fault")) {
				kept = append(kept, h)
			}
			if first == nil {
				first = err
			}
			continue
		}
		m.stats.Releases++
		m.held -= m.page
		m.stats.Forgotten -= m.page
	}
	m.idle = kept
	return first
}
