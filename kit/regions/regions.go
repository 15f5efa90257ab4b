package regions

// [Set] holds the regions of a strategy by address, and counts every reservation and release in the
// statistics of the strategy. Each region has a label of the strategy: the number of its metadata,
// or the part of a composed strategy that owns it. A call costs a binary search and a move of at
// most 64 entries.

import (
	"cmp"
	"errors"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// ErrTooMany is the error of growth that would make the strategy's tables exceed their bound.
var ErrTooMany = errors.New("tables would take too much host memory")

// ErrLimit is the error of growth beyond the strategy's own limit.
var ErrLimit = errors.New("the limit leaves no room")

// recordBytes is the host memory of a record.
const recordBytes = 24

// maxAlign is the page size with which GPU drivers back large regions. A larger alignment would
// cost address space or be refused.
const maxAlign = 2 * device.MiB

// Align returns the alignment for regions of n bytes: the largest power of two that divides n, at
// most 2 MiB. Blocks at multiples of a smaller power of two in the region are then aligned
// absolutely, and a driver grants this alignment at no cost.
//
// Precondition: n is not zero.
func Align(n device.Size) device.Size { return min(n&-n, maxAlign) }

// Held is a region that is held.
type Held struct {
	device.Region
	Label int32 // given by the strategy
}

// record is a region without its address.
type record struct {
	size  device.Size
	age   uint64 // number of regions reserved before
	label int32
}

func heldAt(e index.AddrEntry[record]) Held {
	return Held{device.Region{Addr: e.Addr, Size: e.Value.size}, e.Value.label}
}

// Set is the regions held by one strategy. Use [NewSet].
type Set struct {
	src   device.Source
	stats *alloc.Stats
	held  index.AddrList[record]
	age   uint64
	stale []device.Addr // regions that the device refused to take back
}

// NewSet returns an empty set over src that counts in stats.
func NewSet(src device.Source, stats *alloc.Stats) Set { return Set{src: src, stats: stats} }

// Len returns the number of regions held.
func (s *Set) Len() int { return s.held.Len() }

// At returns the region with i regions below it. Ascending calls cost O(1).
func (s *Set) At(i int) Held { return heldAt(s.held.Entry(s.held.Nth(i))) }

// Bytes returns the host memory of the set, unused capacity included. O(regions / 32).
func (s *Set) Bytes() device.Size {
	return s.held.Bytes(recordBytes) + index.BytesOf(s.stale)
}

// Reserve requests a region and enters it under a label. If the device refuses, it releases stale
// regions and tries once more. The error is the device's; then only counts of calls and stale
// regions have changed. A region at address zero counts as a refusal, so a null address never
// becomes a block.
func (s *Set) Reserve(size, align device.Size, label int32) (device.Region, error) {
	r, err := s.reserve(size, align)
	if err != nil && len(s.stale) > 0 {
		stale := len(s.stale)
		if _ = s.Retry(); len(s.stale) < stale {
			r, err = s.reserve(size, align)
		}
	}
	if err == nil {
		s.Adopt(r, label)
	}
	return r, err
}

// reserve requests a region and counts a refusal.
func (s *Set) reserve(size, align device.Size) (device.Region, error) {
	r, err := s.src.Reserve(size, align)
	if err == nil && r.Addr == 0 {
		err = device.ErrOutOfMemory
	}
	if err != nil {
		s.stats.ReserveFailures++
		return device.Region{}, err
	}
	return r, nil
}

// Adopt enters a region that is already held.
func (s *Set) Adopt(r device.Region, label int32) {
	p, _ := s.held.Search(r.Addr)
	s.held.Insert(p, index.AddrEntry[record]{Addr: r.Addr, Value: record{size: r.Size, age: s.age, label: label}})
	s.age++
	s.stats.RegionAdded(r.Size)
}

// Release releases the region at a. It fails with [device.ErrInvalid] if there is none, or with the
// device's error; then the region stays.
func (s *Set) Release(a device.Addr) error {
	p, ok := s.held.Search(a)
	if !ok {
		return device.ErrInvalid
	}
	if err := s.src.Release(a); err != nil {
		return err
	}
	s.stats.RegionReleased(s.held.Entry(p).Value.size)
	s.held.Delete(p)
	return nil
}

// Discard releases the region at a, which the strategy no longer uses. If the device refuses, the
// region becomes stale, and [Set.Retry] tries again.
//
// Precondition: the set holds the region, and it is not stale.
func (s *Set) Discard(a device.Addr) {
	if s.Release(a) != nil {
		s.stale = append(s.stale, a)
	}
}

// Stale returns the number of stale regions.
func (s *Set) Stale() int { return len(s.stale) }

// Retry releases the stale regions, oldest first. Regions that the device refuses again stay stale;
// the error is the first refusal.
func (s *Set) Retry() (first error) {
	left := s.stale[:0]
	for _, a := range s.stale {
		if err := s.Release(a); err != nil {
			left = append(left, a)
			first = cmp.Or(first, err)
		}
	}
	s.stale = left
	return first
}

// ReleaseAll releases every region, oldest first. Regions that the device refuses stay; the error
// is the first refusal.
func (s *Set) ReleaseAll() (first error) {
	s.stale = nil
	oldest := slices.SortedFunc(s.held.All, func(a, b index.AddrEntry[record]) int {
		return cmp.Compare(a.Value.age, b.Value.age)
	})
	for _, e := range oldest {
		first = cmp.Or(first, s.Release(e.Addr))
	}
	return first
}

// Find returns the region that starts at a, if any. O(log regions).
func (s *Set) Find(a device.Addr) (Held, bool) {
	if p, ok := s.held.Search(a); ok {
		return heldAt(s.held.Entry(p)), true
	}
	return Held{}, false
}

// Under returns the region that contains a, if any. O(log regions).
func (s *Set) Under(a device.Addr) (Held, bool) {
	p, ok := s.held.Search(a)
	if ok {
		return heldAt(s.held.Entry(p)), true
	}
	e, ok := s.held.Below(p)
	if h := heldAt(e); ok && h.Contains(a) {
		return h, true
	}
	return Held{}, false
}

// WalkSlack yields each region as one slack chunk, by address. It is the walk of a closed strategy
// whose regions the device refused to take back.
func (s *Set) WalkSlack(yield func(alloc.Chunk) bool) {
	for e := range s.held.All {
		if !yield(alloc.Chunk{
			Region: e.Addr, Addr: e.Addr, Size: e.Value.size, State: alloc.Slack, Class: alloc.NoClass,
		}) {
			return
		}
	}
}

// Excess yields the part of a region beyond the first used bytes as a slack chunk, if the device
// granted more than requested. It reports whether the walk continues.
func Excess(r device.Region, used device.Size, yield func(alloc.Chunk) bool) bool {
	return r.Size == used || yield(alloc.Chunk{
		Region: r.Addr, Addr: r.Addr.Add(used), Size: r.Size - used, State: alloc.Slack, Class: alloc.NoClass,
	})
}
