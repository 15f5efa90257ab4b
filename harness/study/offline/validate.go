package offline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Solution is a placement of the buffers of a problem.
type Solution struct {
	// Offsets are the starts of the buffers, in the order of the problem.
	Offsets []device.Size
	// Height is the end of the highest buffer, in bytes.
	Height device.Size
	// Bound is a proven lower bound of the height, in bytes: the problem's lower bound, or more if a
	// search refuted the heights between.
	Bound device.Size
	// Method is the algorithm.
	Method string
	// Optimal reports that no placement is lower.
	Optimal bool
	// Steps is the work done: buffers and ranges examined.
	Steps uint64
	// Nodes is the number of partial placements expanded.
	Nodes uint64
	// Stopped is why the search gave up; "" if it finished.
	Stopped string
}

// Validate checks a solution against the buffers alone: offsets are aligned, the height is correct,
// and no two buffers that are live at the same time overlap. The error names the first two that do.
// It does not use sections. O(n log n).
func (p *Problem) Validate(s *Solution) error {
	if len(s.Offsets) != len(p.buffers) {
		return fmt.Errorf("%d offsets for %d buffers", len(s.Offsets), len(p.buffers))
	}
	var height device.Size
	for i := range p.buffers {
		b, at := &p.buffers[i], s.Offsets[i]
		if at+b.Size < at {
			return fmt.Errorf("%s: offset %d: end overflows", p.name(i), uint64(at))
		}
		if b.Align > 1 && at%b.Align != 0 {
			return fmt.Errorf("%s: offset %d: alignment %d does not divide it", p.name(i), uint64(at), uint64(b.Align))
		}
		height = max(height, at+b.Size)
	}
	if s.Height != height {
		return fmt.Errorf("height %d: the highest buffer ends at %d", uint64(s.Height), uint64(height))
	}
	return p.disjoint(s.Offsets)
}

func (p *Problem) name(i int) string {
	b := &p.buffers[i]
	return fmt.Sprintf("buffer %d (id %d, [%d, %d), %d bytes)", i, b.ID, b.Lower, b.Upper, uint64(b.Size))
}

// disjoint sweeps over time with the live buffers sorted by offset. A new buffer can only overlap
// its two neighbours, since the others are disjoint.
func (p *Problem) disjoint(offsets []device.Size) error {
	type end struct {
		at   int64
		i    int32
		born bool
	}
	ends := make([]end, 0, 2*len(offsets))
	for i := range p.buffers {
		if b := &p.buffers[i]; b.Size > 0 {
			ends = append(ends, end{b.Lower, int32(i), true}, end{b.Upper, int32(i), false})
		}
	}
	slices.SortFunc(ends, func(a, b end) int {
		if a.at == b.at && a.born != b.born {
			if b.born {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.i, b.i))
	})
	var live index.AddrList[int32]
	for _, e := range ends {
		at := device.Addr(offsets[e.i])
		place, _ := live.Search(at)
		if !e.born {
			live.Delete(place)
			continue
		}
		if below, ok := live.Below(place); ok && offsets[below.Value]+p.buffers[below.Value].Size > offsets[e.i] {
			return p.clash(offsets, below.Value, e.i)
		}
		if next := live.Above(place); live.Holds(next) {
			if above := live.Entry(next).Value; offsets[e.i]+p.buffers[e.i].Size > offsets[above] {
				return p.clash(offsets, e.i, above)
			}
		}
		live.Insert(place, index.AddrEntry[int32]{Addr: at, Value: e.i})
	}
	return nil
}

func (p *Problem) clash(offsets []device.Size, a, b int32) error {
	return fmt.Errorf("%s at %d and %s at %d share bytes while both are live",
		p.name(int(a)), uint64(offsets[a]), p.name(int(b)), uint64(offsets[b]))
}
