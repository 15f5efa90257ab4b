package devicetest

import (
	"math/rand/v2"

	"github.com/vramyard/vramyard/device"
)

var randomPromises = []promise{
	{name: "VirtualMemoryAgreesWithPages", needs: needVM, run: virtualAgrees},
	{name: "StreamsAgreeWithMarks", needs: needTime, run: streamsAgree},
	{name: "PoolsAgreeWithBlocks", needs: []device.Capability{device.CapPools, device.CapTimeline}, run: poolsAgree},
}

// physical is the memory of one handle.
type physical struct {
	handle   device.Handle
	pages    int
	released bool
	mapped   int      // pages of mappings of it
	patterns []uint32 // of each page
	known    []bool   // whether the page was ever filled
}

// mapping is one mapping of a model.
type mapping struct {
	memory *physical
	addr   device.Addr
	pages  int
	offset int
	access device.Access
}

// pageModel is virtual memory as a map of pages.
type pageModel struct {
	*rig
	rng     *rand.Rand
	page    device.Size
	was     device.Usage
	ranges  []device.Region
	former  []device.Region // released ranges
	handles []*physical     // including released ones
	foreign device.Handle
	pages   map[device.Addr]*mapping
}

// virtualAgrees makes random calls, legal and illegal, and compares the device with the model.
func virtualAgrees(r *rig) {
	g := r.page()
	o := r.other()
	m := &pageModel{
		rig: r, rng: r.rng(2), page: g, was: r.d.Usage(), foreign: o.createHandle(nil, g), pages: map[device.Addr]*mapping{},
	}
	calls := 3000
	if r.time == nil {
		calls = 600 // calls of a real card take long
	}
	for range calls {
		m.step()
		m.checkAccount()
	}
	m.releaseAll()
	o.releaseHandle(nil, m.foreign)
}

// expected returns the error of a call with these mistakes, any of them.
func expected(mistakes []error) error {
	if len(mistakes) == 0 {
		return nil
	}
	return oneOf(mistakes)
}

func (m *pageModel) step() {
	switch k := m.rng.IntN(20); {
	case k < 2:
		m.stepReserve()
	case k < 3:
		m.stepReleaseRange()
	case k < 5:
		m.stepCreate()
	case k < 6:
		m.stepReleaseHandle()
	case k < 11:
		m.stepMap()
	case k < 14:
		m.stepUnmap()
	case k < 17:
		m.stepAccess()
	default:
		m.stepContents()
	}
}

// checkAccount compares the account with the model.
func (m *pageModel) checkAccount() {
	m.Helper()
	var more device.Usage
	for _, g := range m.ranges {
		more.Ranges++
		more.Space += g.Size
	}
	for _, h := range m.handles {
		if !h.released {
			more.Handles++
		}
		if !h.released || h.mapped > 0 {
			more.Held += device.Size(h.pages) * m.page
		}
		more.Mapped += device.Size(h.mapped) * m.page
	}
	m.requireGrowth(m.was, more)
}

// releaseAll unmaps and releases everything that the model still holds.
func (m *pageModel) releaseAll() {
	for _, g := range m.ranges {
		for a := g.Addr; a < g.End(); a = a.Add(m.page) {
			if x := m.pages[a]; x != nil && x.addr == a {
				m.unmap(nil, a, device.Size(x.pages)*m.page)
			}
		}
		m.releaseRange(nil, g.Addr)
	}
	for _, h := range m.handles {
		if !h.released {
			m.releaseHandle(nil, h.handle)
		}
	}
}

// rangeAt returns the range that an address lies in, and false if none does.
func (m *pageModel) rangeAt(a device.Addr) (device.Region, bool) {
	for _, g := range m.ranges {
		if g.Contains(a) {
			return g, true
		}
	}
	return device.Region{}, false
}

// someAddr draws the address of a page in a range, in a released range, or just above one.
func (m *pageModel) someAddr() device.Addr {
	all := m.ranges
	if m.rng.IntN(12) == 0 {
		all = m.former
	}
	if len(all) == 0 {
		return device.Addr(m.page)
	}
	g := all[m.rng.IntN(len(all))]
	return g.Addr.Add(device.Size(m.rng.IntN(int(g.Size/m.page)+1)) * m.page)
}

// somePages draws a number of bytes, and returns its mistakes.
func (m *pageModel) somePages(most int) (n device.Size, mistakes []error) {
	n = device.Size(1+m.rng.IntN(most)) * m.page
	switch m.rng.IntN(40) {
	case 0:
		return 0, []error{device.ErrInvalid}
	case 1:
		if m.page > 1 {
			return n - 1, []error{device.ErrGranularity}
		}
	}
	return n, nil
}

func (m *pageModel) stepReserve() {
	n, mistakes := m.somePages(10)
	at := device.Addr(0)
	if m.rng.IntN(3) == 0 {
		at = m.someAddr()
	}
	if at != 0 {
		taken := oneOf{nil, device.ErrOutOfMemory} // a region may be there
		for _, g := range m.ranges {
			if at < g.End() && g.Addr < at.Add(n) {
				taken = oneOf{device.ErrOutOfMemory}
			}
		}
		if len(mistakes) > 0 {
			taken = oneOf{mistakes[0], taken[len(taken)-1]}
		}
		var g device.Region
		err := m.try(taken, device.CallReserveRange, func() (err error) {
			g, err = m.vm.ReserveRange(n, 0, at)
			return err
		}, n, at)
		if err == nil {
			m.ranges = append(m.ranges, g)
		}
	} else if len(m.ranges) < 6 || len(mistakes) > 0 {
		if g := m.reserveRange(expected(mistakes), n, 0, 0); len(mistakes) == 0 {
			m.ranges = append(m.ranges, g)
		}
	}
	m.requireDisjoint(m.ranges)
}

func (m *pageModel) stepReleaseRange() {
	a := m.someAddr()
	i := -1
	for j, g := range m.ranges {
		if g.Addr == a {
			i = j
		}
	}
	if i < 0 {
		m.releaseRange(device.ErrInvalid, a)
		return
	}
	g := m.ranges[i]
	for p := g.Addr; p < g.End(); p = p.Add(m.page) {
		if m.pages[p] != nil {
			m.releaseRange(device.ErrMapped, a)
			return
		}
	}
	m.releaseRange(nil, a)
	m.former = append(m.former, g)
	m.ranges = append(m.ranges[:i], m.ranges[i+1:]...)
}

func (m *pageModel) stepCreate() {
	held := 0 // pages
	for _, h := range m.handles {
		if !h.released || h.mapped > 0 {
			held += h.pages
		}
	}
	n, mistakes := m.somePages(4)
	if held > 16 && len(mistakes) == 0 {
		return
	}
	if h := m.createHandle(expected(mistakes), n); len(mistakes) == 0 {
		pages := int(n / m.page)
		m.handles = append(m.handles, &physical{handle: h, pages: pages, patterns: make([]uint32, pages),
			known: make([]bool, pages)})
	}
}

// someHandle draws the memory of a current or former handle; nil means a foreign one.
func (m *pageModel) someHandle() (*physical, device.Handle) {
	if len(m.handles) == 0 || m.rng.IntN(30) == 0 {
		return nil, m.foreign
	}
	n := min(len(m.handles), 12) // prefer recent handles
	h := m.handles[len(m.handles)-1-m.rng.IntN(n)]
	return h, h.handle
}

func (m *pageModel) stepReleaseHandle() {
	h, number := m.someHandle()
	if h == nil || h.released {
		m.releaseHandle(device.ErrHandle, number)
		return
	}
	m.releaseHandle(nil, number)
	h.released = true
}

func (m *pageModel) stepMap() {
	h, number := m.someHandle()
	a := m.someAddr()
	n, mistakes := m.somePages(4)
	offset := 0
	if m.rng.IntN(2) == 0 {
		offset = m.rng.IntN(4)
	}
	if h == nil || h.released {
		mistakes = append(mistakes, device.ErrHandle)
	} else if device.Size(offset)*m.page+n > device.Size(h.pages)*m.page {
		mistakes = append(mistakes, device.ErrInvalid)
	}
	if g, ok := m.rangeAt(a); !ok || a.Add(n) > g.End() {
		mistakes = append(mistakes, device.ErrInvalid)
	}
	for p := a; p < a.Add(n); p = p.Add(m.page) {
		if m.pages[p] != nil {
			mistakes = append(mistakes, device.ErrMapped)
			break
		}
	}
	want := oneOf{expected(mistakes)}
	if offset > 0 {
		want = append(want, device.ErrUnsupported)
	}
	if err := m.tryMap(want, a, n, number, device.Size(offset)*m.page); err != nil {
		return
	}
	x := &mapping{memory: h, addr: a, pages: int(n / m.page), offset: offset}
	h.mapped += x.pages
	for p := a; p < a.Add(n); p = p.Add(m.page) {
		m.pages[p] = x
	}
}
