package replay

import (
	"slices"
	"sync"
	"time"
)

// The clocks.
const (
	ThreadCPU = "thread-cpu" // CPU time of the calling thread
	Wall      = "wall"       // wall-clock time
)

// began is the origin of the wall clock.
var began = time.Now()

// ClockName returns the clock that [ThreadTime] reads on this machine, [ThreadCPU] or [Wall].
func ClockName() string {
	if _, ok := threadTime(); ok {
		return ThreadCPU
	}
	return Wall
}

// ThreadTime returns the time of the clock that [ClockName] names, in nanoseconds since an
// arbitrary origin.
//
// Precondition: the goroutine is locked to its thread from the first of two readings to the
// second, because the clock is the thread's.
func ThreadTime() int64 {
	if t, ok := threadTime(); ok {
		return t
	}
	return WallTime()
}

// WallTime returns the wall-clock time in nanoseconds since an arbitrary origin. It is the quickest
// clock to read, so it measures single calls.
func WallTime() int64 { return int64(time.Since(began)) }

// stopwatch measures the thread's time, except while it is stopped. Stops nest.
type stopwatch struct {
	elapsed int64 // nanoseconds of the finished intervals
	since   int64 // when the current interval began
	runs    int64 // number of intervals
	stops   int   // nesting depth of stops; the stopwatch runs at 0
}

// newStopwatch returns a stopped stopwatch.
func newStopwatch() *stopwatch { return &stopwatch{stops: 1} }

// start undoes one stop. When all are undone, a new interval begins.
func (w *stopwatch) start() {
	if w.stops--; w.stops == 0 {
		w.runs++
		w.since = ThreadTime()
	}
}

// stop ends the interval. The stopwatch runs again after as many calls of start.
func (w *stopwatch) stop() {
	if w.stops++; w.stops == 1 {
		w.elapsed += ThreadTime() - w.since
	}
}

// total returns the nanoseconds, without the cost of reading the clock in each of many intervals.
func (w *stopwatch) total() int64 {
	return max(w.elapsed-w.runs*threadTimeCost(), 0)
}

// threadTimeCost returns the nanoseconds that an empty measurement by [ThreadTime] takes.
var threadTimeCost = sync.OnceValue(func() int64 { return medianCost(ThreadTime) })

// ClockCost returns the nanoseconds that an empty measurement takes: the median of many.
func ClockCost() int64 { return medianCost(WallTime) }

// medianCost returns the median of empty measurements by a clock.
func medianCost(now func() int64) int64 {
	samples := make([]int64, 1001)
	for i := range samples {
		start := now()
		samples[i] = now() - start
	}
	slices.Sort(samples)
	return samples[len(samples)/2]
}
