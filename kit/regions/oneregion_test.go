package regions_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/regions"
)

// moody returns a device of 1 MiB that can be told to refuse.
func moody(t *testing.T) *device.Faults {
	t.Helper()
	inner, err := sim.New(sim.Config{Capacity: device.MiB})
	require.NoError(t, err)
	dev, err := device.NewFaults(inner, device.FaultPlan{})
	require.NoError(t, err)
	return dev
}

func TestOneRegionIsBookedAndGivenBack(t *testing.T) {
	dev := moody(t)
	o, err := regions.ReserveOne(dev, 64*device.KiB, 4096)
	require.NoError(t, err)
	require.Equal(t, 64*device.KiB, o.Region.Size)
	require.True(t, o.Region.Addr.IsAligned(4096))
	require.False(t, o.Closed())
	require.Equal(t, 1, dev.Usage().Regions)
	booked := alloc.Stats{
		Limit: 64 * device.KiB, Regions: 1, Reserves: 1, Reserved: 64 * device.KiB, PeakReserved: 64 * device.KiB,
	}
	require.Equal(t, booked, o.Stats())

	o.Counters.Granted(100, 256)
	o.Counters.OOMs++
	require.Equal(t, device.Size(256), o.Stats().Active)

	require.NoError(t, o.Close())
	require.True(t, o.Closed())
	require.Zero(t, o.Region)
	require.Zero(t, dev.Usage().Regions)
	require.Equal(t, alloc.Stats{
		Allocs: 1, OOMs: 1, PeakRequested: 100, PeakAllocated: 256, PeakActive: 256, LargestAlloc: 256,
		Limit: 64 * device.KiB, Reserves: 1, Releases: 1, PeakReserved: 64 * device.KiB,
	}, o.Stats(), "what was live went with the region")

	after, calls := o.Stats(), dev.Usage().Calls
	require.NoError(t, o.Close())
	require.True(t, o.Closed())
	require.Equal(t, after, o.Stats())
	require.Equal(t, calls, dev.Usage().Calls, "closing again asks nothing of the device")
}

func TestOneRegionRefusedReserve(t *testing.T) {
	dev := moody(t)
	for name, size := range map[string]device.Size{"too large": 2 * device.MiB, "nothing": 0} {
		o, err := regions.ReserveOne(dev, size, 256)
		require.Error(t, err, name)
		require.Zero(t, o, name)
	}
	dev.FailNext(1)
	o, err := regions.ReserveOne(dev, device.KiB, 256)
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	require.ErrorIs(t, err, device.ErrInjected)
	require.Zero(t, o)
	require.Zero(t, dev.Usage().Regions)
	require.NoError(t, o.Close(), "there is nothing to close")
	require.True(t, o.Closed())
}

func TestOneRegionRefusedReleaseIsTriedAgain(t *testing.T) {
	dev := moody(t)
	o, err := regions.ReserveOne(dev, device.KiB, 256)
	require.NoError(t, err)
	o.Counters.Granted(1, 256)
	region, before := o.Region, o.Stats()

	dev.FailNext(2)
	for range 2 {
		require.ErrorIs(t, o.Close(), device.ErrInjected)
		require.True(t, o.Closed())
		require.Equal(t, region, o.Region)
		require.Equal(t, before, o.Stats())
		require.Equal(t, 1, dev.Usage().Regions)
	}

	require.NoError(t, o.Close())
	require.Zero(t, o.Region)
	require.Zero(t, dev.Usage().Regions)
	require.Zero(t, o.Stats().Live)
	require.Equal(t, uint64(1), o.Stats().Releases)
}
