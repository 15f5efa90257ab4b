package textbook

import (
	"slices"
	"sort"

	"github.com/vramyard/vramyard/device"
)

// allocationRegion is a range of device memory with its array of handles.
type allocationRegion struct {
	device.Region
	handles []*handlesPage // one entry for every 256 bytes, in pages that are made on first use
}

// handlesPage is the part of an array of handles for 2 MiB of device memory.
type handlesPage [2 * device.MiB / minAllocationSize]chunkHandle

// handleAt returns the entry for the 256 bytes at p.
func (r *allocationRegion) handleAt(p device.Addr) *chunkHandle {
	i := int(p.Sub(r.Addr) / minAllocationSize)
	page := &r.handles[i/len(handlesPage{})]
	if *page == nil {
		*page = new(handlesPage)
	}
	return &(*page)[i%len(handlesPage{})]
}

// regionManager finds the region of an address, and the chunk that starts there.
type regionManager struct {
	regions []allocationRegion // sorted by end address
}

// addAllocationRegion adds a region that has no chunks yet.
func (m *regionManager) addAllocationRegion(r device.Region) {
	pages := make([]*handlesPage, (r.Size-1)/(2*device.MiB)+1)
	m.regions = slices.Insert(m.regions, m.upperBound(r.Addr), allocationRegion{r, pages})
}

// upperBound returns the index of the first region that ends above p.
func (m *regionManager) upperBound(p device.Addr) int {
	return sort.Search(len(m.regions), func(i int) bool { return m.regions[i].End() > p })
}

// regionFor returns the region that contains p, or nil.
func (m *regionManager) regionFor(p device.Addr) *allocationRegion {
	if i := m.upperBound(p); i < len(m.regions) && m.regions[i].Contains(p) {
		return &m.regions[i]
	}
	return nil
}

// getHandle returns the handle of the chunk that starts in the 256 bytes at p, or
// invalidChunkHandle.
func (m *regionManager) getHandle(p device.Addr) chunkHandle {
	if r := m.regionFor(p); r != nil {
		return *r.handleAt(p)
	}
	return invalidChunkHandle
}

// setHandle enters the chunk that starts at p, which is inside a region.
func (m *regionManager) setHandle(p device.Addr, h chunkHandle) { *m.regionFor(p).handleAt(p) = h }
