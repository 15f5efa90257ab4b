package replay

import "github.com/vramyard/vramyard/device"

// MaxPoints is the most points a [Series] has, whatever the length of the trace.
const MaxPoints = 2048

// series collects a [Series]. When it is full, neighbours are merged in pairs and the
// stride doubles; a merge keeps the higher value, so peaks and failures survive.
type series struct {
	stride int
	left   int // events until the open point is complete
	open   Point
	points []Point
}

func newSeries() *series {
	return &series{stride: 1, left: 1, points: make([]Point, 0, MaxPoints)}
}

// observe takes the state after one event.
func (s *series) observe(event int, requested, allocated, reserved device.Size, oom bool) {
	p := &s.open
	p.Event = event
	p.Requested = max(p.Requested, requested)
	p.Allocated = max(p.Allocated, allocated)
	p.Reserved = max(p.Reserved, reserved)
	if oom {
		p.OOMs++
	}
	if s.left--; s.left == 0 {
		s.flush()
	}
}

// flush closes the open point, and halves the points if that fills the series.
func (s *series) flush() {
	s.points = append(s.points, s.open)
	s.open = Point{}
	if len(s.points) == MaxPoints {
		for i := range MaxPoints / 2 {
			s.points[i] = merge(s.points[2*i], s.points[2*i+1])
		}
		s.points = s.points[:MaxPoints/2]
		s.stride *= 2
	}
	s.left = s.stride
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
		s.points = append(s.points, s.open)
	}
	return &Series{Stride: s.stride, Points: s.points}
}
