package replay

import "github.com/vramyard/vramyard/device"

// MaxPoints is the most points a [Series] has, whatever the length of the trace.
const MaxPoints = 2048

// series collects a [Series]. When it is full, neighbours are merged in pairs and the
// stride doubles; a merge keeps the higher value, so peaks and failures survive.
type series struct {
	stride int
	left   int // events until the open point is complete
	next   int // the first event of the open point
	open   Point
	points []Point
}

func newSeries() *series {
	return &series{stride: 1, left: 1, points: make([]Point, 0, MaxPoints)}
}

// observe takes the state after the next event.
func (s *series) observe(requested, allocated, reserved device.Size, oom bool) {
	p := &s.open
	p.Requested = max(p.Requested, requested)
	p.Allocated = max(p.Allocated, allocated)
	p.Reserved = max(p.Reserved, reserved)
	if oom {
		p.OOMs++
	}
	if s.left--; s.left == 0 {
		s.flush()
		s.left = s.stride
	}
}

// flush closes the open point.
func (s *series) flush() {
	s.next += s.stride - s.left
	s.open.Event = s.next - 1
	s.points = append(s.points, s.open)
	s.open = Point{}
	if s.left == 0 && len(s.points) == MaxPoints {
		s.halve()
	}
}

// halve merges the points in pairs.
func (s *series) halve() {
	for i := range MaxPoints / 2 {
		s.points[i] = merge(s.points[2*i], s.points[2*i+1])
	}
	s.points = s.points[:MaxPoints/2]
	s.stride *= 2
}

// merge joins two neighbouring points.
func merge(a, b Point) Point {
	return Point{
		Event:     b.Event,
		Requested: max(a.Requested, b.Requested),
		Allocated: max(a.Allocated, b.Allocated),
		Reserved:  max(a.Reserved, b.Reserved),
		OOMs:      a.OOMs + b.OOMs,
	}
}

// finish returns the series, the last incomplete point included.
func (s *series) finish() *Series {
	if s.left != s.stride {
		s.flush()
	}
	return &Series{Stride: s.stride, Points: s.points}
}
