package sim_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// TestLongStreamChainsTakeLittleMemory has each of 20,000 streams wait for the one before. A list
// of marks for each stream would take 4.8 GB.
func TestLongStreamChainsTakeLittleMemory(t *testing.T) {
	const streams = 20_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d := newDevice(t, sim.Config{})
	e, err := d.NewEvent()
	require.NoError(t, err)
	for s := range device.Stream(streams) {
		if s > 0 {
			require.NoError(t, d.Wait(s, e))
		}
		require.NoError(t, d.Record(e, s))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "bytes of the Go heap")

	ordered, err := d.Ordered(e, 0)
	require.NoError(t, err)
	require.False(t, ordered)
	done, err := d.Done(e)
	require.NoError(t, err)
	require.False(t, done)
	for s := range device.Stream(streams) { // which looks at each mark once, not at each of every set
		require.NoError(t, d.Drain(s))
	}
	done, err = d.Done(e)
	require.NoError(t, err)
	require.True(t, done)
}
