//go:build !linux

package bench

import "time"

// threadTime says that this system does not tell the CPU time of a thread.
func threadTime() (int64, bool) { return 0, false }

// now returns the time of the clock that [ClockName] names, in nanoseconds from some moment.
func now() int64 { return int64(time.Since(began)) }
