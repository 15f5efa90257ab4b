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

// TestComputeCapabilityLeavesMemoryToLibraries has the reserve of TensorFlow by size and
// capability. A device that the reserve would take whole is not reduced, and MemoryFraction
// replaces it.
func TestComputeCapabilityLeavesMemoryToLibraries(t *testing.T) {
	for _, c := range []struct {
		capability     int
		capacity, want device.Size
	}{
		{0, 16 * gib, device.TiB}, {6, 16 * gib, 16*gib - 500*mib}, {7, 16 * gib, 16*gib - 1050*mib},
		{8, 16 * gib, 16*gib - 1536*mib}, {9, 16 * gib, 16*gib - 1800*mib}, {12, 16 * gib, 16*gib - 1800*mib},
		{8, 2 * gib, 512 * mib}, {8, 2*gib - 1, 2*gib - 1 - 225*mib}, {8, 225 * mib, 225 * mib}, {8, 0, device.TiB},
	} {
		r := newRig(t, bfc.Config{ComputeCapability: c.capability, AllowGrowth: true}, sim.Config{Capacity: c.capacity})
		require.Equal(t, c.want, r.Stats().Limit, "%+v", c)
	}
	r := newRig(t, bfc.Config{ComputeCapability: 8, MemoryFraction: 0.5}, sim.Config{Capacity: 16 * gib})
	require.Equal(t, 8*gib, r.Stats().Limit)
	for _, capability := range []int{-1, 75} {
		_, err := bfc.Config{ComputeCapability: capability}.WithDefaults()
		require.ErrorContains(t, err, "bfc: compute_capability: ")
	}
}
