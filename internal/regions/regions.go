// Package regions keeps the regions that a strategy holds from its device, ordered by
// address, and books every reservation and release in the strategy's counters.
//
// A strategy asks it for a region and gives the region a label of its own: the number
// under which it keeps the region's metadata, or the part of a composed strategy that
// owns it. Reservations and releases cost a binary search and a move of what lies above;
// both are rare beside the device call.
package regions

import (
	"cmp"
	"errors"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/planted"
)

// ErrTooMany is what a strategy fails with instead of growing when its tables would take
// more host memory than they may.
var ErrTooMany = errors.New("tables would take too much host memory")

// ErrLimit is what a strategy fails with instead of growing when its own limit leaves no room.
var ErrLimit = errors.New("the limit leaves no room")

// Explain tells in r why a strategy could not grow by a region of asked bytes: its own
// bound, if err is [ErrTooMany] or [ErrLimit], or else the device, whose error err is.
func Explain(r *alloc.Refusal, asked device.Size, err error) {
	if errors.Is(err, ErrTooMany) || errors.Is(err, ErrLimit) {
		r.Reason = alloc.ReasonLimit
		return
	}
	r.Reason, r.Asked, r.Device = alloc.ReasonDevice, asked, err
}

// heldBytes is the host memory of one Held.
const heldBytes = 32

// maxAlign is the alignment of the pages that GPU drivers back large regions with.
// Asking for more would cost address space, or be refused.
const maxAlign = 2 * device.MiB

// Align returns the alignment that a strategy asks for its regions of n bytes: the
// largest power of two that divides n, at most 2 MiB. Blocks at multiples of a power of
// two up to that are then aligned absolutely, and a driver gives it for nothing.
//
// Precondition: n is not zero.
func Align(n device.Size) device.Size { return min(n&-n, maxAlign) }

// Held is a region that is held.
type Held struct {
	device.Region
	Label int32  // given by the strategy
	age   uint64 // regions reserved before it
}

// Set is the regions held by one strategy. Use [New].
type Set struct {
	src   device.Source
	stats *alloc.Stats
	held  []Held // by address
	age   uint64
}

// New returns an empty set over src that books in stats.
func New(src device.Source, stats *alloc.Stats) Set { return Set{src: src, stats: stats} }

// Len returns the number of regions held.
func (s *Set) Len() int { return len(s.held) }

// At returns the region with i regions below it.
func (s *Set) At(i int) Held { return s.held[i] }

// Bytes returns the host memory of the set, unused capacity included.
func (s *Set) Bytes() device.Size { return device.Size(cap(s.held)) * heldBytes }

// Reserve asks the device for a region and enters it under a label. The error is the
// device's; then nothing has changed but the count of refusals. A region at address zero,
// which is no address, is a refusal too, so that a null
// from below never becomes a block.
func (s *Set) Reserve(size, align device.Size, label int32) (device.Region, error) {
	r, err := s.src.Reserve(size, align)
	if err == nil && r.Addr == 0 {
		err = device.ErrOutOfMemory
	}
	if err != nil {
		s.stats.ReserveFailures++
		if planted.Enabled && planted.Is("regions/refusal-uncounted") {
			s.stats.ReserveFailures--
		}
		return device.Region{}, err
	}
	i, _ := s.search(r.Addr)
	if planted.Enabled && planted.Is("regions/insert-unsorted") {
		i = len(s.held)
	}
	s.held = slices.Insert(s.held, i, Held{Region: r, Label: label, age: s.age})
	s.age++
	s.stats.RegionAdded(r.Size)
	return r, nil
}

// Release gives back the region that starts at a. It fails with [device.ErrInvalid] if
// none does, or with the device's error; then the region stays.
func (s *Set) Release(a device.Addr) error {
	i, ok := s.search(a)
	if !ok {
		return device.ErrInvalid
	}
	if err := s.src.Release(a); err != nil {
		if planted.Enabled && planted.Is("regions/forgotten-on-fault") {
			s.held = slices.Delete(s.held, i, i+1)
		}
		return err
	}
	s.stats.RegionReleased(s.held[i].Size)
	s.held = slices.Delete(s.held, i, i+1)
	return nil
}

// ReleaseAll gives back every region, oldest first. Regions that the device refuses to
// take stay; the error is the device's first.
func (s *Set) ReleaseAll() (first error) {
	oldest := slices.SortedFunc(slices.Values(s.held), func(a, b Held) int { return cmp.Compare(a.age, b.age) })
	if planted.Enabled && planted.Is("regions/close-keeps-newest") {
		oldest = oldest[:max(len(oldest), 1)-1]
	}
	for _, h := range oldest {
		if err := s.Release(h.Addr); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Find returns the region that starts at a, and whether one does. O(log regions).
func (s *Set) Find(a device.Addr) (Held, bool) {
	if i, ok := s.search(a); ok {
		return s.held[i], true
	}
	return Held{}, false
}

// Under returns the region that a lies in, and whether there is one. O(log regions).
func (s *Set) Under(a device.Addr) (Held, bool) {
	i, ok := s.search(a)
	if !ok {
		i-- // the one that starts below a
	}
	if i < 0 || !s.held[i].Contains(a) {
		return Held{}, false
	}
	return s.held[i], true
}

// WalkSlack yields each region as one chunk that can never be granted, by address. It is
// the walk of a strategy that was closed and holds what the device refused to take back.
func (s *Set) WalkSlack(yield func(alloc.Chunk) bool) {
	for _, h := range s.held {
		if !yield(alloc.Chunk{Region: h.Addr, Addr: h.Addr, Size: h.Size, State: alloc.Slack, Class: alloc.NoClass}) {
			return
		}
	}
}

// search returns how many regions start below a, and whether one starts at a.
func (s *Set) search(a device.Addr) (int, bool) {
	return slices.BinarySearchFunc(s.held, a, func(h Held, a device.Addr) int { return cmp.Compare(h.Addr, a) })
}

// Excess yields the part of a region above the first used bytes as one chunk that can
// never be granted, if the device gave more than was asked for. It reports whether the
// walk goes on.
func Excess(r device.Region, used device.Size, yield func(alloc.Chunk) bool) bool {
	return r.Size == used || yield(alloc.Chunk{
		Region: r.Addr, Addr: r.Addr.Add(used), Size: r.Size - used, State: alloc.Slack, Class: alloc.NoClass,
	})
}
