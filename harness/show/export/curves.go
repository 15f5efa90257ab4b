package export

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// The sampled curves.
const (
	curveRequested = iota
	curveAllocated
	curveActive
	curveReserved
	numCurves
)

var curveNames = [numCurves]string{"requested", "allocated", "active", "reserved"}

// mostPoints bounds the points of a curve: as many as a viewer draws instantly.
const mostPoints = 1 << 16

// point is the maxima over consecutive events.
type point struct {
	at   int64 // time of the first of them
	most [numCurves]device.Size
}

// curveSampler samples the sums over a run of known length.
type curveSampler struct {
	shift  int // event i belongs to point i >> shift
	events int // so far
	points []point
}

// newCurveSampler returns a sampler with the smallest power-of-two stride that needs at most
// mostPoints.
func newCurveSampler(events int) curveSampler {
	return curveSampler{shift: bits.Len(uint(events) / mostPoints)}
}

// add records the values after the next event.
func (c *curveSampler) add(at int64, v [numCurves]device.Size) {
	if c.events>>c.shift == len(c.points) {
		c.points = append(c.points, point{at: at})
	}
	p := &c.points[len(c.points)-1]
	for k := range v {
		p.most[k] = max(p.most[k], v[k])
	}
	c.events++
}
