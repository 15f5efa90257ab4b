package alloc

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/device"
)

// Stats are the counters of a strategy. Sizes are bytes. Every figure equals what Walk
// shows; the property suite holds each strategy to that.
//
// requested <= allocated <= active <= reserved, always.
type Stats struct {
	Allocs uint64 // blocks granted since New or ClearStats
	Frees  uint64 // blocks freed since New or ClearStats
	OOMs   uint64 // requests that ended in ErrOutOfMemory since New or ClearStats

	Live      int         // live blocks
	Requested device.Size // asked for by live blocks
	Allocated device.Size // granted to live blocks
	Active    device.Size // Allocated plus what is pending on a stream
	Reserved  device.Size // held from the device, as Walk shows it
	Forgotten device.Size // bytes held outside of regions, which a faithful copy of an original loses track of

	PeakRequested device.Size // most of Requested since New or ClearStats
	PeakAllocated device.Size // most of Allocated since New or ClearStats
	PeakActive    device.Size // most of Active since New or ClearStats
	PeakReserved  device.Size // most of Reserved since New
	LargestAlloc  device.Size // largest block granted since New or ClearStats

	Limit      device.Size // bound the strategy sets itself; 0 where it has none
	NextRegion device.Size // size the next region is meant to have; 0 where that is not fixed in advance

	Regions         int    // regions held
	Reserves        uint64 // reservations the device granted
	ReserveFailures uint64 // reservations the device refused
	Releases        uint64 // regions given back; a region grown from several reservations counts once
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

// Granted books a block that was granted: requested bytes in a block of size bytes.
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

// Freed books a block that was freed and is free at once.
func (s *Stats) Freed(requested, size device.Size) {
	s.Frees++
	s.Live--
	s.Requested -= requested
	s.Allocated -= size
	s.Active -= size
}

// Emptied books that every live block is gone with the memory it lay in, as when a
// strategy is closed. That is no free of the caller's.
func (s *Stats) Emptied() {
	s.Live, s.Requested, s.Allocated, s.Active = 0, 0, 0, 0
}

// RegionAdded books a reservation of size bytes.
func (s *Stats) RegionAdded(size device.Size) {
	s.Regions++
	s.Reserves++
	s.Reserved += size
	s.PeakReserved = max(s.PeakReserved, s.Reserved)
}

// RegionReleased books a region of size bytes that was given back.
func (s *Stats) RegionReleased(size device.Size) {
	s.Regions--
	s.Releases++
	s.Reserved -= size
}

// Clear resets the counters and sets the peaks to the present values, as TensorFlow's ClearStats
// does. The peak of reserved bytes stays.
func (s *Stats) Clear() {
	s.Allocs, s.Frees, s.OOMs = 0, 0, 0
	s.PeakRequested, s.PeakAllocated, s.PeakActive = s.Requested, s.Allocated, s.Active
	s.LargestAlloc = 0
}
