package packing

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// Buffer is a size to place at one offset for a span of time.
type Buffer struct {
	ID    uint64      // allocation ID in the trace; may repeat
	Lower int64       // first moment at which it is live
	Upper int64       // first later moment at which it is not
	Size  device.Size // bytes
	Align device.Size // power of two that divides the offset; 0 and 1: any
}

// Problem is a set of buffers to place. It is immutable and safe for concurrent use.
type Problem struct {
	buffers []Buffer
	spans   []Span // sections of each buffer
	peaks   []device.Size
	total   device.Size // peak of the live bytes
}

// Span is the sections [first, last) in which a buffer is live.
//
// A section is a maximal set of buffers live at the same moment: one at the last birth before each
// death. Two buffers overlap in time exactly if they share a section, so sections replace times.
type Span struct {
	First int32 // section of the birth
	Last  int32 // section after the last one
}

// Overlaps reports whether two buffers are live at the same time.
func (s Span) Overlaps(o Span) bool { return s.First < o.Last && o.First < s.Last }

// New returns the problem of placing buffers. It fails if a life does not end after its start, an
// alignment is not a power of two, or the sum of sizes and padding exceeds 2^63 - 1, so that no sum
// overflows. O(n log n). It keeps the slice.
func New(buffers []Buffer) (*Problem, error) {
	if len(buffers) > math.MaxInt32/2 {
		return nil, fmt.Errorf("%d buffers: want at most %d", len(buffers), math.MaxInt32/2)
	}
	p := &Problem{buffers: buffers}
	var sum device.Size
	for i := range buffers {
		b := &buffers[i]
		switch {
		case b.Upper <= b.Lower:
			return nil, fmt.Errorf("buffer %d (id %d): life [%d, %d): want an end after the start", i, b.ID, b.Lower, b.Upper)
		case b.Align&(b.Align-1) != 0:
			return nil, fmt.Errorf("buffer %d (id %d): alignment %d: want a power of two", i, b.ID, uint64(b.Align))
		}
		for _, n := range [...]device.Size{b.Size, b.Align} {
			if n > math.MaxInt64-sum {
				return nil, fmt.Errorf("buffer %d (id %d): the sum of sizes exceeds %d", i, b.ID, math.MaxInt64)
			}
			sum += n
		}
	}
	p.section()
	return p, nil
}

func (p *Problem) section() {
	byBirth, byDeath := make([]int32, len(p.buffers)), make([]int32, len(p.buffers))
	for i := range byBirth {
		byBirth[i], byDeath[i] = int32(i), int32(i)
	}
	slices.SortFunc(byBirth, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.buffers[a].Lower, p.buffers[b].Lower), cmp.Compare(a, b))
	})
	slices.SortFunc(byDeath, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.buffers[a].Upper, p.buffers[b].Upper), cmp.Compare(a, b))
	})
	p.spans = make([]Span, len(p.buffers))
	var live device.Size
	born, fresh := 0, false
	for _, dead := range byDeath {
		for ; born < len(byBirth) && p.buffers[byBirth[born]].Lower < p.buffers[dead].Upper; born++ {
			b := byBirth[born]
			p.spans[b].First = int32(len(p.peaks))
			live += p.buffers[b].Size
			fresh = true
		}
		if fresh {
			p.peaks = append(p.peaks, live)
			p.total = max(p.total, live)
			fresh = false
		}
		p.spans[dead].Last = int32(len(p.peaks))
		live -= p.buffers[dead].Size
	}
}

// Buffers returns the buffers, which must not be changed.
func (p *Problem) Buffers() []Buffer { return p.buffers }

// Spans returns the sections of each buffer. They must not be changed.
func (p *Problem) Spans() []Span { return p.spans }

// Peaks returns the live bytes of each section. They must not be changed.
func (p *Problem) Peaks() []device.Size { return p.peaks }

// LowerBound returns the peak of the live bytes: no placement is lower.
func (p *Problem) LowerBound() device.Size { return p.total }
