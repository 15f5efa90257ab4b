package clock_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/clock"
)

func TestNowNeverGoesBack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	last := clock.Now()
	for range 1000 {
		now := clock.Now()
		require.GreaterOrEqual(t, now, last)
		last = now
	}
}

func TestThreadTimeDoesNotCountSleep(t *testing.T) {
	if clock.Name() != clock.ThreadCPU {
		t.Skip("the clock here is the wall's")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := clock.Now()
	time.Sleep(200 * time.Millisecond)
	require.Less(t, clock.Now()-start, int64(100*time.Millisecond))
}
