package async_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/async"
)

// TestManyStreamsTakeLittle passes one block from stream to stream, each of which waits for the one
// before. What that takes of the Go heap grows as the streams do, and goes when the device does.
func TestManyStreamsTakeLittle(t *testing.T) {
	used := func(streams int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		gpu, err := sim.New(sim.Config{})
		require.NoError(t, err)
		a, err := async.New(gpu, async.Config{})
		require.NoError(t, err)
		for s := range streams {
			b, err := a.Alloc(alloc.Request{Size: device.MiB, Stream: device.Stream(s)})
			require.NoError(t, err)
			require.NoError(t, a.Free(b.Addr))
			require.NotZero(t, a.LargestFree())
		}
		require.NoError(t, a.Close())
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := used(1_000), used(8_000)
	require.Less(t, many, 12*few, "eight times the streams")
}
