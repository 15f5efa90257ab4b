package direct_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/direct"
)

// TestARefusedReleaseIsTriedAgain frees a block on a device without room for another, which
// refuses to take the region back.
func TestARefusedReleaseIsTriedAgain(t *testing.T) {
	gpu, err := sim.New(sim.Config{Capacity: device.MiB})
	require.NoError(t, err)
	faults, err := device.NewFaults(gpu, device.FaultPlan{})
	require.NoError(t, err)
	a, err := direct.New(faults, direct.Config{})
	require.NoError(t, err)
	b, err := a.Alloc(alloc.Request{Size: device.MiB})
	require.NoError(t, err)
	faults.FailNext(1)
	require.NoError(t, a.Free(b.Addr))
	require.ErrorIs(t, a.Free(b.Addr), alloc.ErrInvalidFree)
	require.Equal(t, device.MiB, a.Stats().Reserved)

	b, err = a.Alloc(alloc.Request{Size: device.MiB})
	require.NoError(t, err, "the stale region went back")
	faults.FailNext(1)
	require.NoError(t, a.Free(b.Addr))
	n, err := a.Trim()
	require.NoError(t, err)
	require.Equal(t, device.MiB, n)
}

// TestAFreeWaitsForAllStreams frees a block that work on another stream still uses.
func TestAFreeWaitsForAllStreams(t *testing.T) {
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	a, err := direct.New(gpu, direct.Config{})
	require.NoError(t, err)
	b, err := a.Alloc(alloc.Request{Size: device.MiB, Stream: 1})
	require.NoError(t, err)
	require.NoError(t, gpu.Work(2, 1e9))
	require.NoError(t, a.Free(b.Addr))
	require.GreaterOrEqual(t, gpu.Now(), uint64(1e9))
}
