package page

import (
	"cmp"
	"slices"
	"sort"

	"github.com/vramyard/vramyard/device"
)

// Range is addresses without a gap, and where they begin on the axis.
type Range struct {
	device.Region
	Y float64 // bytes from the lower end of the axis
}

// Space is the axis of addresses: those that were ever held, without the gaps between them.
type Space struct {
	Ranges []Range // by address
	Bytes  float64 // all together
	most   int     // ranges; where there are more, the smallest gaps count as held
}

// hold takes a range that is held at some time. Ranges lie side by side no more.
func (s *Space) hold(a device.Addr, size device.Size) {
	if size == 0 {
		return
	}
	end := a.Add(size)
	// first is the first range that ends at or above a: it touches the new one, or lies above.
	first := sort.Search(len(s.Ranges), func(i int) bool { return s.Ranges[i].End() >= a })
	if first < len(s.Ranges) && s.Ranges[first].Addr <= a && s.Ranges[first].End() >= end {
		return // nearly always
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

// close closes the smallest gaps until there are at most so many ranges.
func (s *Space) close(most int) {
	n := len(s.Ranges) - most
	if n <= 0 {
		return
	}
	gaps := make([]int, len(s.Ranges)-1) // by the range below
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

// settle gives each range its place on the axis.
func (s *Space) settle() {
	s.close(s.most)
	s.Bytes = 0
	for i := range s.Ranges {
		s.Ranges[i].Y = s.Bytes
		s.Bytes += float64(s.Ranges[i].Size)
	}
}

// Y returns the place of an address that was held, in bytes from the lower end of the axis.
func (s *Space) Y(a device.Addr) float64 {
	i := sort.Search(len(s.Ranges), func(i int) bool { return s.Ranges[i].Addr > a }) - 1
	if i < 0 {
		return 0
	}
	return s.Ranges[i].Y + float64(a.Sub(s.Ranges[i].Addr))
}
