package alloc

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/device"
)

// Stats are the counters of a strategy. Sizes are bytes. The property suite checks that they match
// the chunks that Walk yields, and that always Requested <= Allocated <= Active <= Reserved.
type Stats struct {
	Allocs uint64 // blocks granted since New or ClearStats
	Frees  uint64 // blocks freed since New or ClearStats
	OOMs   uint64 // requests that ended in ErrOutOfMemory since New or ClearStats

	Live      int         // live blocks
	Requested device.Size // requested by live blocks
	Allocated device.Size // granted to live blocks
	Active    device.Size // Allocated plus pending bytes
	Reserved  device.Size // held from the device and shown by Walk
	Forgotten device.Size // held and not shown by Walk, because an original's rules lose track of them

	PeakRequested device.Size // maximum of Requested since New or ClearStats
	PeakAllocated device.Size // maximum of Allocated since New or ClearStats
	PeakActive    device.Size // maximum of Active since New or ClearStats
	PeakReserved  device.Size // maximum of Reserved plus Forgotten since New
	LargestAlloc  device.Size // largest block granted since New or ClearStats

	Limit      device.Size // the strategy's own limit of Reserved; 0 for none
	NextRegion device.Size // planned size of the next region; 0 if it is not known in advance

	Regions         int    // regions held
	Reserves        uint64 // reservations that the device granted
	ReserveFailures uint64 // reservations that the device refused
	Releases        uint64 // regions released; a region of several reservations counts once
}

// String returns the counters as lines of a name and a value.
func (s Stats) String() string {
	var text strings.Builder
	size := func(name string, n, peak device.Size) {
		fmt.Fprintf(&text, "%-10s %v (%d bytes), at most %v\n", name, n, uint64(n), peak)
	}
	size("requested", s.Requested, s.PeakRequested)
	size("allocated", s.Allocated, s.PeakAllocated)
	size("active", s.Active, s.PeakActive)
	size("reserved", s.Reserved, s.PeakReserved)
	limit := "none"
	if s.Limit != 0 {
		limit = s.Limit.String()
	}
	fmt.Fprintf(&text, "%-10s %s; next region %v\n", "limit", limit, s.NextRegion)
	fmt.Fprintf(&text, "%-10s %d live, %d granted, %d freed, %d refused; the largest %v\n", "blocks", s.Live, s.Allocs,
		s.Frees, s.OOMs, s.LargestAlloc)
	fmt.Fprintf(&text, "%-10s %d held, %d reserved, %d refused, %d released\n", "regions", s.Regions, s.Reserves,
		s.ReserveFailures, s.Releases)
	return text.String()
}

// Granted counts a granted block: requested bytes in a block of size bytes.
func (s *Stats) Granted(requested, size device.Size) {
	s.Allocs++
	s.Live++
	s.Requested += requested
	s.Allocated += size
	s.Active += size
	s.PeakRequested = max(s.PeakRequested, s.Requested)
	s.PeakAllocated = max(s.PeakAllocated, s.Allocated)
	s.PeakActive = max(s.PeakActive, s.Active)
	s.LargestAlloc = max(s.LargestAlloc, size)
}

// Freed counts a freed block that is free at once.
func (s *Stats) Freed(requested, size device.Size) {
	s.Frees++
	s.Live--
	s.Requested -= requested
	s.Allocated -= size
	s.Active -= size
}

// Emptied removes every live block from the counters, as when a strategy is closed. It does not
// count them as freed.
func (s *Stats) Emptied() {
	s.Live, s.Requested, s.Allocated, s.Active = 0, 0, 0, 0
}

// RegionAdded counts a reservation of size bytes.
func (s *Stats) RegionAdded(size device.Size) {
	s.Regions++
	s.Reserves++
	s.Reserved += size
	s.PeakReserved = max(s.PeakReserved, s.Reserved+s.Forgotten)
}

// RegionReleased counts a released region of size bytes.
func (s *Stats) RegionReleased(size device.Size) {
	s.Regions--
	s.Releases++
	s.Reserved -= size
}

// Clear resets the counters and sets the peaks to the current values, as TensorFlow's ClearStats
// does. The peak of reserved bytes stays.
func (s *Stats) Clear() {
	s.Allocs, s.Frees, s.OOMs = 0, 0, 0
	s.PeakRequested, s.PeakAllocated, s.PeakActive = s.Requested, s.Allocated, s.Active
	s.LargestAlloc = 0
}
