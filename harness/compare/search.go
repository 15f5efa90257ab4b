package compare

import (
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
)

// The search for the minimum capacity works on multiples of grid.
//
//  1. From the ample capacity upwards, doubling at most doublings times, the first
//     capacity at which the trace completes is the upper end. Below the lower bound of
//     the trace nothing completes; that is the lower end.
//  2. The interval is cut by fan points at once. The lowest of them that completes becomes
//     the upper end, the highest failing one below it the lower end, until they are
//     neighbours.
//  3. Because completing is not monotone, belowProbes points spread between the lower
//     bound and the minimum are tried. If one completes, the search goes on below it. An
//     island of successes is missed only if it is narrower than their distance; with 8
//     points three of fourteen minima of BFC on the recorded traces were missed, by 2 %.
//  4. Capacities 1, 2, 4, 8, … grid steps above the minimum are tried up to the upper end;
//     the largest that fails is reported.
const (
	grid        = 2 * device.MiB
	doublings   = 6
	fan         = 3
	belowProbes = 64
	quickProbes = 8
)

// found is the outcome of a search.
type found struct {
	minimum    *device.Size
	failsAbove *device.Size
}

// search looks for the minimum capacity, from the lower bound to the given capacity and
// some doublings above.
func (c *contest) search(upper device.Size) (found, error) {
	floor := device.AlignUp(max(c.bound, 1), grid)
	upper = max(upper, floor)
	high, ok, err := c.upperEnd(upper)
	if err != nil || !ok {
		return found{}, err
	}
	top, probes := high, device.Size(belowProbes)
	if c.o.Quick {
		probes = quickProbes
	}
	for {
		if high, err = c.narrow(floor, high); err != nil {
			return found{}, err
		}
		below := spread(floor, high, probes)
		i, results, err := c.probe(below)
		if err != nil {
			return found{}, err
		}
		if i == len(results) {
			break
		}
		high = below[i]
	}
	f := found{minimum: &high}
	f.failsAbove, err = c.above(high, top)
	return f, err
}

// upperEnd returns the first capacity among n, 2n, 4n, … that completes.
func (c *contest) upperEnd(n device.Size) (device.Size, bool, error) {
	for range doublings + 1 {
		i, _, err := c.probe([]device.Size{n})
		if err != nil || i == 0 {
			return n, i == 0, err
		}
		n *= 2
	}
	return 0, false, nil
}

// narrow returns the upper end of a shrinking interval whose lower end fails, or whose
// lower end is floor, and whose upper end completes.
//
// Precondition: high completes.
func (c *contest) narrow(floor, high device.Size) (device.Size, error) {
	low := floor - grid // fails, or is below what can complete
	for high-low > grid {
		points := spread(low+grid, high, fan)
		i, results, err := c.probe(points)
		if err != nil {
			return 0, err
		}
		if i < len(results) {
			high = points[i]
		}
		if i > 0 {
			low = points[i-1]
		}
	}
	return high, nil
}

// above tries capacities above the minimum and returns the largest that fails.
func (c *contest) above(minimum, top device.Size) (*device.Size, error) {
	var points []device.Size
	for step := grid; minimum+step <= top; step *= 2 {
		points = append(points, minimum+step)
	}
	_, results, err := c.probe(points)
	if err != nil {
		return nil, err
	}
	for i := len(points) - 1; i >= 0; i-- {
		if !results[i] {
			return &points[i], nil
		}
	}
	return nil, nil
}

// probe tries all points at once and returns whether each completes, and the index of
// the first that does, or their number if none does.
func (c *contest) probe(points []device.Size) (first int, results []bool, err error) {
	results = make([]bool, len(points))
	errs := make([]error, len(points))
	c.pool.each(len(points), func(i int) {
		res, err := c.replay(points[i], replay.Options{StopAtOOM: true})
		results[i], errs[i] = err == nil && res != nil && res.OOMs == 0, err
	})
	c.probes += len(points)
	for i := range points {
		c.highest = max(c.highest, points[i])
		if errs[i] != nil {
			return 0, nil, errs[i]
		}
	}
	if first = slices.Index(results, true); first < 0 {
		first = len(points)
	}
	return first, results, nil
}

// spread returns at most n multiples of grid, ascending, that divide [low, high) into
// parts as equal as the grid allows. low is among them when the interval is short.
func spread(low, high device.Size, n device.Size) []device.Size {
	steps := (high - low) / grid
	var points []device.Size
	for i := range n {
		p := low + (i+1)*steps/(n+1)*grid
		if p < high && (len(points) == 0 || p > points[len(points)-1]) {
			points = append(points, p)
		}
	}
	return points
}
