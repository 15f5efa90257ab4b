package props

import (
	"slices"
	"sort"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Grant is a live block in the model.
type Grant struct {
	ID      uint64        // number of the allocation, from 1
	Request alloc.Request // the request
	Block   alloc.Block   // its answer
	Number  uint64        // allocation ID that the strategy gave it; 0 for none

	Pool alloc.PoolID    // that the request was redirected to
	Uses []device.Stream // other streams that were recorded for it, each once

	// Captured are the Uses that were recorded during a capture. Work of a
	// captured graph has not begun, so it need not be waited for.
	Captured []device.Stream
}

// End returns the address just above the block.
func (g Grant) End() device.Addr { return g.Block.Addr.Add(g.Block.Size) }

// Model is the reference for every answer: the live blocks, and sums
// over them. It is meant to be obviously right, not fast.
type Model struct {
	byAddr []Grant // live blocks by address
	freed  []Grant // blocks freed before, oldest first, the last few of them

	counts alloc.Stats // Allocs, Frees, OOMs, the peaks and LargestAlloc

	largest alloc.Request // the largest that was granted
	frees   uint64        // frees so far; clearing the statistics keeps it
	stamps  stamps

	numbered uint64 // largest allocation ID so far

	remnants []remnant // what streams may still use of freed blocks
	pools    redirections
}

// Live returns the live blocks by address. The caller must not change them.
func (m *Model) Live() []Grant { return m.byAddr }

// find returns the index of the first live block that starts at a or above, and whether
// it starts at a.
func (m *Model) find(a device.Addr) (int, bool) {
	i := sort.Search(len(m.byAddr), func(i int) bool { return m.byAddr[i].Block.Addr >= a }) // copies no Grant
	return i, i < len(m.byAddr) && m.byAddr[i].Block.Addr == a
}

// At returns the live block that starts at a.
func (m *Model) At(a device.Addr) (Grant, bool) {
	i, ok := m.find(a)
	if !ok {
		return Grant{}, false
	}
	return m.byAddr[i], true
}

// Overlapping returns a live block that shares a byte with b.
func (m *Model) Overlapping(b alloc.Block) (Grant, bool) {
	for _, g := range m.byAddr {
		if g.Block.Addr < b.Addr.Add(b.Size) && b.Addr < g.End() {
			return g, true
		}
	}
	return Grant{}, false
}

// Freed returns a block that was freed before and where no block starts now, the nth,
// counted around from the most recent.
func (m *Model) Freed(n uint64) (Grant, bool) {
	for i := range len(m.freed) {
		g := m.freed[len(m.freed)-1-(int(n%uint64(len(m.freed)))+i)%len(m.freed)]
		if _, live := m.find(g.Block.Addr); !live {
			return g, true
		}
	}
	return Grant{}, false
}

// grant adds a block.
//
// Precondition: no live block starts at its address.
func (m *Model) grant(g Grant) {
	i, _ := m.find(g.Block.Addr)
	m.byAddr = slices.Insert(m.byAddr, i, g)
	if g.Request.Size > m.largest.Size {
		m.largest = g.Request
		m.largest.Before = 0
	}
	m.counts.Allocs++
	m.counts.LargestAlloc = max(m.counts.LargestAlloc, g.Block.Size)
	m.raisePeaks()
}

// release removes the block at a.
//
// Precondition: a live block starts there.
func (m *Model) release(a device.Addr) {
	i, _ := m.find(a)
	if len(m.freed) == freedKept {
		m.freed = slices.Delete(m.freed, 0, 1)
	}
	m.freed = append(m.freed, m.byAddr[i])
	m.byAddr = slices.Delete(m.byAddr, i, i+1)
	m.counts.Frees++
	m.frees++
}

// Sums returns the bytes asked for and granted of the live blocks.
func (m *Model) Sums() (requested, allocated device.Size) {
	for _, g := range m.byAddr {
		requested += g.Request.Size
		allocated += g.Block.Size
	}
	return requested, allocated
}

func (m *Model) raisePeaks() {
	requested, allocated := m.Sums()
	m.counts.PeakRequested = max(m.counts.PeakRequested, requested)
	m.counts.PeakAllocated = max(m.counts.PeakAllocated, allocated)
}

// clear resets the statistics: counters become zero, peaks fall to the current values.
func (m *Model) clear() {
	m.counts = alloc.Stats{}
	m.raisePeaks()
}

// Expected returns the counters and sums that the strategy should show. Figures that the model
// cannot predict are zero: active and reserved bytes, regions and the calls of the device.
func (m *Model) Expected() alloc.Stats {
	s := m.counts
	s.Live = len(m.byAddr)
	s.Requested, s.Allocated = m.Sums()
	return s
}

// reset empties the model for another sequence and keeps its memory.
func (m *Model) reset() {
	m.byAddr, m.freed, m.remnants = m.byAddr[:0], m.freed[:0], m.remnants[:0]
	m.counts, m.frees, m.stamps, m.numbered = alloc.Stats{}, 0, stamps{}, 0
	m.largest = alloc.Request{}
	m.pools.reset()
}
