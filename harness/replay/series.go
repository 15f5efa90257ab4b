package replay

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// MaxPoints is the maximum number of points of a [Series] without [Options].EachEvent.
const MaxPoints = 2048

// series collects a [Series] of a replay whose number of events is known beforehand.
type series struct {
	shift  int // event i belongs to point i >> shift
	points []Point
}

// newSeries returns a series for a number of events: with a point for each, or with the smallest
// power of two as stride that needs at most MaxPoints.
func newSeries(events int, each bool) *series {
	shift := 0
	if !each {
		shift = bits.Len(uint(events) / MaxPoints)
	}
	return &series{shift: shift, points: make([]Point, events>>shift+1)}
}

func (s *series) at(event int) *Point { return &s.points[event>>s.shift] }

// raise takes the state after an event of the point.
func (p *Point) raise(requested, allocated, reserved device.Size) {
	p.Requested = max(p.Requested, requested)
	p.Allocated = max(p.Allocated, allocated)
	p.Reserved = max(p.Reserved, reserved)
}

// finish returns the series of the events replayed.
func (s *series) finish(events int) *Series {
	stride := 1 << s.shift
	points := s.points[:(events+stride-1)>>s.shift]
	for i := range points {
		points[i].Event = min((i+1)<<s.shift, events) - 1
	}
	return &Series{Stride: stride, Points: points}
}
