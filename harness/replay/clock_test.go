package replay_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/replay"
)

func TestNowNeverGoesBack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	last := replay.ThreadTime()
	for range 1000 {
		now := replay.ThreadTime()
		require.GreaterOrEqual(t, now, last)
		last = now
	}
}

func TestThreadTimeDoesNotCountSleep(t *testing.T) {
	if replay.ClockName() != replay.ThreadCPU {
		t.Skip("the clock here is the wall's")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := replay.ThreadTime()
	time.Sleep(200 * time.Millisecond)
	require.Less(t, replay.ThreadTime()-start, int64(100*time.Millisecond))
}
