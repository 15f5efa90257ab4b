package bench

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// The search for the smallest arena stops at a precision of a thousandth, no
// finer than what device memory is handed out in.
//
//  1. Between the live bytes, below which nothing completes, and a capacity that is known to
//     serve, the interval is halved until it is narrow enough.
//  2. Completing is not monotone: a larger device can make a strategy cut its memory elsewhere.
//     So points spread between the live bytes and the result are tried from below. If one
//     completes, the search goes on between it and the point under it. An island of successes is
//     missed only if it is narrower than their distance.
const (
	arenaParts             = 1000
	arenaGrid  device.Size = 256
	arenaTries             = 16
)

// arena returns the smallest capacity that the search finds on which the strategy, bounded to
// it, runs over the workload without a refusal, to within 0.1 %.
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

// narrow returns the upper end of the interval from low, which fails, to high, which completes,
// when it is narrow enough.
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

// completes reports whether the strategy, bounded to n bytes, runs over the workload on a device
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
