package replay

import "golang.org/x/sys/unix"

// threadTime returns the CPU time of this thread in nanoseconds, and false if it is unknown.
func threadTime() (int64, bool) {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0, false
	}
	return t.Nano(), true
}
