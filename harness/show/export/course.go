package export

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// The curves of a course.
const (
	curveRequested = iota
	curveAllocated
	curveActive
	curveReserved
	numCurves
)

var curveNames = [numCurves]string{"requested", "allocated", "active", "reserved"}

// mostPoints is the most points of a curve, as many as a viewer still draws at once.
const mostPoints = 1 << 16

// point is the highest values of some events side by side.
type point struct {
	at   int64 // when the first of them happened
	most [numCurves]device.Size
}

// course is the course of the sums over a run whose number of events is known beforehand.
type course struct {
	shift  int // event i belongs to point i >> shift
	events int // so far
	points []point
}

// newCourse returns a course for so many events, with the smallest stride that is a power of two
// and needs no more than mostPoints.
func newCourse(events int) course { return course{shift: bits.Len(uint(events) / mostPoints)} }

// add takes the values after the next event.
func (c *course) add(at int64, v [numCurves]device.Size) {
	if c.events>>c.shift == len(c.points) {
		c.points = append(c.points, point{at: at})
	}
	p := &c.points[len(c.points)-1]
	for k := range v {
		p.most[k] = max(p.most[k], v[k])
	}
	c.events++
}
