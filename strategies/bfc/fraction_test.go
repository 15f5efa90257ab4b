package bfc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// TestMemoryFractionIsAShareOfTheDevice holds the limit of a fraction: the share of the device, cut
// to whole bytes, unless Limit is smaller, and Limit alone on a device without a capacity.
func TestMemoryFractionIsAShareOfTheDevice(t *testing.T) {
	for _, c := range []struct {
		fraction                    float64
		limit, capacity, want, held device.Size
	}{
		{0.75, 0, gib, 768 * mib, 768 * mib},
		{0.75, 512 * mib, gib, 512 * mib, 512 * mib},
		{1, 0, gib, gib, gib},
		{0.3, 0, gib, 322122547, 322122496},
		{0.5, gib, 0, gib, gib},
	} {
		r := newRig(t, bfc.Config{MemoryFraction: c.fraction, Limit: c.limit}, sim.Config{Capacity: c.capacity})
		require.Equal(t, c.want, r.Stats().Limit, "%+v", c)
		r.alloc(256)
		require.Equal(t, c.held, r.Stats().Reserved, "%+v", c)
		require.Equal(t, c.want, r.Config().ForCapacity(2*gib).Limit, "the device decides")
	}
}

func TestMemoryFractionIsFrom0To1(t *testing.T) {
	for _, f := range []float64{-0.1, 1.01, math.NaN(), math.Inf(1)} {
		_, err := bfc.Config{MemoryFraction: f}.WithDefaults()
		require.ErrorContains(t, err, "bfc: memory_fraction: ")
	}
}

// TestMemoryFractionNeedsTheMemoryOfTheDevice: as in the original, no allocator is built if the
// device does not return its memory.
func TestMemoryFractionNeedsTheMemoryOfTheDevice(t *testing.T) {
	gpu, err := sim.New(sim.Config{Capacity: gib})
	require.NoError(t, err)
	dev, err := device.NewFaults(gpu, device.FaultPlan{Calls: device.CallsOf(device.CallMemoryInfo), Probability: 1})
	require.NoError(t, err)
	_, err = bfc.New(dev, bfc.Config{MemoryFraction: 0.75})
	require.ErrorIs(t, err, device.ErrInjected)
	_, err = bfc.New(dev, bfc.Config{})
	require.NoError(t, err)
}
