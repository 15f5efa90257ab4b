package follow

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// page is a part of a handle that is mapped as a whole.
type page struct {
	handle device.Handle
	offset device.Size
}

// mapping is a page at an address.
type mapping struct {
	size  device.Size
	page  page
	shown bool // the page is shown here and not at its other mappings
	users int  // blocks that use the page here
}

// memory is the state of device memory derived from device calls, in the terms of a history: each
// byte is shown at one address.
type memory struct {
	report   []power.Action // actions since the last call
	regions  map[device.Addr]device.Size
	ranges   index.AddrList[device.Size] // reserved address ranges, in which memory is mapped
	mappings index.AddrList[mapping]
	mappedAt map[page][]device.Addr // addresses of a page, in the order of its mappings
	hidden   int                    // mappings that are not shown
}

// Region returns the start of the address range that a lies in, or a if no range holds it. Memory
// that the device hands out as a whole is a region of its own.
func (m *memory) Region(a device.Addr) device.Addr {
	p, ok := m.ranges.Floor(a)
	if !ok {
		return a
	}
	if e := m.ranges.Entry(p); a < e.Addr.Add(e.Value) {
		return e.Addr
	}
	return a
}

func (m *memory) reserved(r device.Region) {
	p, _ := m.ranges.Search(r.Addr)
	m.ranges.Insert(p, index.AddrEntry[device.Size]{Addr: r.Addr, Value: r.Size})
}

func (m *memory) unreserved(a device.Addr) {
	if p, ok := m.ranges.Search(a); ok {
		m.ranges.Delete(p)
	}
}

// reportChange appends an action. Memory is mapped page by page, so adjacent actions of the same
// kind in one range are merged.
func (m *memory) reportChange(kind power.ActionKind, a device.Addr, size device.Size) {
	if n := len(m.report); n > 0 && (kind == power.SegmentMap || kind == power.SegmentUnmap) {
		last := &m.report[n-1]
		if last.Kind == kind && last.Addr.Add(last.Size) == a && m.Region(last.Addr) == m.Region(a) {
			last.Size += size
			return
		}
	}
	m.report = append(m.report, power.Action{Kind: kind, Addr: a, Size: size})
}

func (m *memory) take(r device.Region) {
	if m.regions == nil {
		m.regions = map[device.Addr]device.Size{}
	}
	m.regions[r.Addr] = r.Size
	m.reportChange(power.SegmentAlloc, r.Addr, r.Size)
}

func (m *memory) giveBack(a device.Addr) {
	m.reportChange(power.SegmentFree, a, m.regions[a])
	delete(m.regions, a)
}

// mapped records a mapping. A page that was mapped before is still shown there.
func (m *memory) mapped(a device.Addr, size device.Size, of page) {
	if m.mappedAt == nil {
		m.mappedAt = map[page][]device.Addr{}
	}
	p, _ := m.mappings.Search(a)
	v := mapping{size: size, page: of, shown: len(m.mappedAt[of]) == 0}
	m.mappings.Insert(p, index.AddrEntry[mapping]{Addr: a, Value: v})
	m.mappedAt[of] = append(m.mappedAt[of], a)
	if v.shown {
		m.reportChange(power.SegmentMap, a, size)
	} else {
		m.hidden++
	}
}

// unmapped records that whole mappings are gone. A page that was shown there is shown at the first
// of its remaining mappings.
func (m *memory) unmapped(a device.Addr, size device.Size) {
	var moved []device.Addr
	for end := a.Add(size); a < end; {
		p, _ := m.mappings.Search(a)
		v := m.mappings.Entry(p).Value
		m.mappings.Delete(p)
		left := slices.DeleteFunc(m.mappedAt[v.page], func(at device.Addr) bool { return at == a })
		m.mappedAt[v.page] = left
		if len(left) == 0 {
			delete(m.mappedAt, v.page)
		}
		switch {
		case !v.shown:
			m.hidden--
		default:
			m.reportChange(power.SegmentUnmap, a, v.size)
			if len(left) > 0 {
				moved = append(moved, left[0])
			}
		}
		a = a.Add(v.size)
	}
	m.show(moved)
}

// within returns the places of the mappings that a range lies in.
func (m *memory) within(a device.Addr, size device.Size) (starts []device.Addr) {
	p, ok := m.mappings.Floor(a)
	if !ok {
		p, _ = m.mappings.Search(a)
	}
	for p = m.mappings.Above(p); m.mappings.Holds(p); p = m.mappings.Next(p) {
		e := m.mappings.Entry(p)
		if e.Addr >= a.Add(size) {
			break
		}
		if e.Addr.Add(e.Value.size) > a {
			starts = append(starts, e.Addr)
		}
	}
	return starts
}

// used shows the pages of a block where the block is.
func (m *memory) used(b alloc.Block) {
	starts := m.within(b.Addr, b.Size)
	for _, a := range starts {
		m.count(a, 1)
	}
	m.show(starts)
}

// unused shows the pages of a reclaimed block where they were mapped first, unless another block
// uses them.
func (m *memory) unused(a device.Addr, size device.Size) {
	var starts []device.Addr
	for _, at := range m.within(a, size) {
		if v := m.count(at, -1); v.users == 0 && m.hidden > 0 {
			starts = append(starts, m.mappedAt[v.page][0])
		}
	}
	m.show(starts)
}

// count adds to the blocks that use the mapping at an address, and returns it.
func (m *memory) count(a device.Addr, n int) mapping {
	p, _ := m.mappings.Search(a)
	e := m.mappings.Entry(p)
	e.Value.users += n
	m.mappings.Set(p, e)
	return e.Value
}

// show shows the pages that are mapped at some addresses there, and nowhere else.
func (m *memory) show(starts []device.Addr) {
	var from, to []device.Addr
	for _, a := range starts {
		p, found := m.mappings.Search(a)
		if !found || m.mappings.Entry(p).Value.shown {
			continue // not found if one call removed two mappings of a page
		}
		e := m.mappings.Entry(p)
		e.Value.shown = true
		m.mappings.Set(p, e)
		to = append(to, a)
		m.hidden--
		for _, other := range m.mappedAt[e.Value.page] {
			q, _ := m.mappings.Search(other)
			if o := m.mappings.Entry(q); other != a && o.Value.shown {
				o.Value.shown = false
				m.mappings.Set(q, o)
				from = append(from, other)
				m.hidden++
			}
		}
	}
	m.reportAll(power.SegmentUnmap, from)
	m.reportAll(power.SegmentMap, to)
}

// reportAll reports mappings by address, so that adjacent ones are merged.
func (m *memory) reportAll(kind power.ActionKind, starts []device.Addr) {
	slices.SortFunc(starts, cmp.Compare[device.Addr])
	for _, a := range starts {
		p, _ := m.mappings.Search(a)
		m.reportChange(kind, a, m.mappings.Entry(p).Value.size)
	}
}
