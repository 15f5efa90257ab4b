package bench

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// The search for the smallest arena has a precision of a thousandth, and never less than 256 bytes.
//
//  1. The interval between the live bytes, below which no run completes, and a capacity that is
//     known to suffice is halved until it is narrow enough.
//  2. Completing is not monotone: a larger device can make a strategy split its memory differently.
//     So points spread between the live bytes and the result are tried in ascending order. If a
//     point completes, the search continues between it and the point below. It misses a range of
//     completing capacities only if the range is narrower than the distance of the points.
const (
	arenaParts             = 1000
	arenaGrid  device.Size = 256
	arenaTries             = 16
)

// arena returns the smallest capacity found, to within 0.1 %, on which the strategy, limited to
// that capacity, completes the workload without a refusal.
//
// Precondition: fit builds the strategy on a device of the given size, as its limit; it completes
// on high.
func (c *Workload) arena(fit func(device.Size) Candidate, high device.Size) (device.Size, error) {
	floor := device.AlignDown(c.PeakLive-1, arenaGrid)
	low := floor
	for {
		var err error
		if high, err = c.narrow(fit, low, high); err != nil {
			return 0, err
		}
		end, step := high, max((high-floor)/(arenaTries+1), arenaGrid)
		for low = floor; low+step < end; low += step {
			at := device.AlignUp(low+step, arenaGrid)
			ok, err := c.completes(fit, at)
			if err != nil {
				return 0, err
			}
			if ok {
				high = at
				break
			}
		}
		if high == end || end-high <= end/arenaParts {
			return high, nil
		}
	}
}

// narrow halves the interval from low, which fails, to high, which completes, until it is narrow
// enough, and returns its upper end.
func (c *Workload) narrow(fit func(device.Size) Candidate, low, high device.Size) (device.Size, error) {
	for high-low > max(high/arenaParts, arenaGrid) {
		middle := device.AlignUp(low+(high-low)/2, arenaGrid)
		ok, err := c.completes(fit, middle)
		if err != nil {
			return 0, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	return high, nil
}

// completes reports whether the strategy, limited to n bytes, runs over the workload on a device
// of n bytes.
func (c *Workload) completes(fit func(device.Size) Candidate, n device.Size) (bool, error) {
	p, err := c.begin(fit(n))
	if errors.Is(err, device.ErrOutOfMemory) {
		return false, nil // it preallocates more than the capacity
	}
	if err != nil {
		return false, fmt.Errorf("device of %v: %w", n, err)
	}
	if err = p.run(c.untimed, 0); err == nil {
		err = p.run(c.churn, len(c.untimed))
	}
	if errors.Is(err, alloc.ErrOutOfMemory) || errors.Is(err, alloc.ErrInvalidRequest) {
		return false, p.Close() // a request may exceed the strategy's own bound
	}
	if err = errors.Join(err, p.Close()); err != nil {
		return false, fmt.Errorf("device of %v: %w", n, err)
	}
	return true, nil
}
