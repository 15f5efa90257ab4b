package replay

import (
	"slices"
	"time"
)

// The clocks that times may be of.
const (
	ThreadCPU = "thread-cpu" // CPU time of the thread that asks
	Wall      = "wall"       // time of the wall
)

// began is where the clock of the wall counts from.
var began = time.Now()

// ClockName returns which clock [ThreadTime] reads on this machine, [ThreadCPU] or [Wall].
func ClockName() string {
	if _, ok := threadTime(); ok {
		return ThreadCPU
	}
	return Wall
}

// ThreadTime returns the time of the clock that [ClockName] names, in nanoseconds from some moment.
//
// Precondition: the goroutine is locked to its thread from the first of two readings to the
// second, because the clock is the thread's.
func ThreadTime() int64 {
	if t, ok := threadTime(); ok {
		return t
	}
	return WallTime()
}

// WallTime returns the time of the wall clock, which is the quickest to read, in nanoseconds from some moment.
// Single calls are measured by it.
func WallTime() int64 { return int64(time.Since(began)) }

// ClockCost returns the nanoseconds that an empty measurement takes: the median of many.
func ClockCost() int64 {
	samples := make([]int64, 1001)
	for i := range samples {
		start := WallTime()
		samples[i] = WallTime() - start
	}
	slices.Sort(samples)
	return samples[len(samples)/2]
}
