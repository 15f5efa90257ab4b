package page

import (
	"cmp"
	"slices"
	"sort"

	"github.com/vramyard/vramyard/device"
)

// Range is a contiguous address range and its position on the axis.
type Range struct {
	device.Region
	Y float64 // bytes from the start of the axis
}

// Space is the address axis: all addresses ever reserved, without the gaps between them.
type Space struct {
	Ranges []Range // by address
	Bytes  float64 // total length
	most   int     // limit of Ranges; beyond it the smallest gaps are closed
}

// hold adds a reserved range. Ranges never touch.
func (s *Space) hold(a device.Addr, size device.Size) {
	if size == 0 {
		return
	}
	end := a.Add(size)
	// the first range that touches or follows the new one
	first := sort.Search(len(s.Ranges), func(i int) bool { return s.Ranges[i].End() >= a })
	if first < len(s.Ranges) && s.Ranges[first].Addr <= a && s.Ranges[first].End() >= end {
		return // the usual case
	}
	last := first
	for last < len(s.Ranges) && s.Ranges[last].Addr <= end {
		a, end = min(a, s.Ranges[last].Addr), max(end, s.Ranges[last].End())
		last++
	}
	s.Ranges = slices.Replace(s.Ranges, first, last, Range{Region: device.Region{Addr: a, Size: end.Sub(a)}})
	if len(s.Ranges) >= 2*s.most {
		s.close(s.most)
	}
}

// close closes the smallest gaps until no more ranges than most are left.
func (s *Space) close(most int) {
	n := len(s.Ranges) - most
	if n <= 0 {
		return
	}
	gaps := make([]int, len(s.Ranges)-1) // index of the range below each gap
	for i := range gaps {
		gaps[i] = i
	}
	width := func(i int) device.Size { return s.Ranges[i+1].Addr.Sub(s.Ranges[i].End()) }
	slices.SortStableFunc(gaps, func(i, j int) int { return cmp.Compare(width(i), width(j)) })
	closed := make([]bool, len(gaps))
	for _, i := range gaps[:n] {
		closed[i] = true
	}
	list := s.Ranges[:1]
	for i, r := range s.Ranges[1:] {
		if closed[i] {
			top := &list[len(list)-1]
			top.Size = r.End().Sub(top.Addr)
		} else {
			list = append(list, r)
		}
	}
	s.Ranges = list
}

// settle assigns each range its position.
func (s *Space) settle() {
	s.close(s.most)
	s.Bytes = 0
	for i := range s.Ranges {
		s.Ranges[i].Y = s.Bytes
		s.Bytes += float64(s.Ranges[i].Size)
	}
}

// Y returns the position of an address on the axis, in bytes.
func (s *Space) Y(a device.Addr) float64 {
	i := sort.Search(len(s.Ranges), func(i int) bool { return s.Ranges[i].Addr > a }) - 1
	if i < 0 {
		return 0
	}
	return s.Ranges[i].Y + float64(a.Sub(s.Ranges[i].Addr))
}
