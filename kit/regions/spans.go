package regions

// [Memory] keeps ranges of address space and the pages mapped in them, for strategies that grow by
// mapping. It counts the bytes held in the statistics of the strategy, and loses nothing when the
// device refuses.
//
// A range has pages of one size. A page is physical memory of its own, mapped as a whole or idle:
// held, but mapped nowhere. Idle pages are those that the device refused to take back, and those
// created for a mapping that failed; they are used before new ones are created.
//
// Finding a range is a binary search; noting a page costs a search and a move of at most 64
// entries. A page takes 24 bytes and a range 40.

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Span is a range of addresses.
type Span struct {
	device.Region
	Page  device.Size // bytes of its pages
	First uint32      // the strategy's: its first chunk
}

// Below returns the start of the page that an address of the range lies in.
func (s *Span) Below(a device.Addr) device.Addr {
	return s.Addr.Add(a.Sub(s.Addr) / s.Page * s.Page)
}

// Above returns the lowest start of a page at or above an address of the range.
func (s *Span) Above(a device.Addr) device.Addr {
	return s.Addr.Add((a.Sub(s.Addr) + s.Page - 1) / s.Page * s.Page)
}

// page is physical memory.
type page struct {
	handle device.Handle
	size   device.Size
}

// pageBytes is the host memory of a page.
const pageBytes = 16

// Memory is the ranges and pages of a strategy. Use [NewMemory].
//
// Invariant: what is held is the pages that are mapped and the idle ones.
type Memory struct {
	vm    device.VirtualMemory
	stats *alloc.Stats
	spans []Span               // by address
	pages index.AddrList[page] // those that are mapped
	idle  []page               // mapped nowhere; the last is used next
	held  device.Size
}

// NewMemory returns an empty memory over vm that books in stats: mapped bytes as Reserved, idle
// ones as Forgotten, ranges as Regions, pages made and given back as Reserves and Releases.
func NewMemory(vm device.VirtualMemory, stats *alloc.Stats) Memory {
	return Memory{vm: vm, stats: stats}
}

// Len returns the number of ranges.
func (m *Memory) Len() int { return len(m.spans) }

// At returns the range with i ranges below it. It is valid until a range comes or goes.
func (m *Memory) At(i int) *Span { return &m.spans[i] }

// Under returns the range that an address lies in. O(log ranges).
//
// Precondition: it lies in one.
func (m *Memory) Under(a device.Addr) *Span { return &m.spans[m.index(a)] }

// index returns the place of the range that an address lies in, if it lies in one.
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

// Held returns the bytes held of the device.
func (m *Memory) Held() device.Size { return m.held }

// Mapped returns the number of pages that are mapped.
func (m *Memory) Mapped() int { return m.pages.Len() }

// Idle returns the number of pages of a size that are mapped nowhere. O(idle pages).
func (m *Memory) Idle(size device.Size) (n int) {
	for _, p := range m.idle {
		if p.size == size {
			n++
		}
	}
	return n
}

// Pages yields where pages are mapped, by address.
func (m *Memory) Pages(yield func(a device.Addr, size device.Size) bool) {
	for e := range m.pages.All {
		if !yield(e.Addr, e.Value.size) {
			return
		}
	}
}

// Bytes returns the host memory of what is noted, unused capacity included. O(pages / 32).
func (m *Memory) Bytes() device.Size {
	return m.pages.Bytes(pageBytes) + index.BytesOf(m.idle) + index.BytesOf(m.spans)
}

// Open reserves a range of size bytes for pages of a size, and enters it with its first chunk. The
// error is the device's; then nothing has changed.
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

// Adopt enters a range that the device has already, with its first chunk. Its memory is given by
// parts of whole pages, disjoint; the handle of a page is its address.
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
	m.stats.PeakReserved = max(m.stats.PeakReserved, m.held)
}

// Close gives the range back that an address lies in, and in which nothing is mapped. The error is
// the device's; then the range stays. O(ranges).
//
// Precondition: it lies in one.
func (m *Memory) Close(a device.Addr) error {
	i := m.index(a)
	if err := m.vm.ReleaseRange(m.spans[i].Addr); err != nil {
		return err
	}
	m.spans = slices.Delete(m.spans, i, i+1)
	m.stats.Regions--
	return nil
}

// acquire makes the last n idle pages ones of a size, and makes those that are missing. On error
// what was made stays, idle.
func (m *Memory) acquire(n int, size device.Size) error {
	have := 0
	for i := range m.idle {
		// Those that serve come last.
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
		// It is idle until it is mapped, so that a failure in between loses nothing.
		m.stats.Reserves++
		m.idle = append(m.idle, page{h, size})
		m.held += size
		m.stats.PeakReserved = max(m.stats.PeakReserved, m.held)
		m.stats.Forgotten += size
	}
	return nil
}

// Fill maps memory at the pages from low to high of a range and opens it; all of it is made before
// any is mapped. On error it has put memory at the pages below mapped, which it could
// neither open nor take away; mostly there are none. What was made and is not mapped is idle.
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
	// Memory that nobody may use must not look as if it could be granted. If it cannot be taken
	// away again either, the caller sets it aside.
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

// Clear takes the memory away from the pages from low to high, which become idle. The error is the
// device's; then nothing has changed.
func (m *Memory) Clear(low, high device.Addr) error {
	if err := m.vm.Unmap(low, high.Sub(low)); err != nil {
		return err
	}
	// One call for all of them, which the device grants or refuses as a whole.
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

// DropIdle gives the idle pages back. What the device refuses to take stays; the error is its
// first.
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
