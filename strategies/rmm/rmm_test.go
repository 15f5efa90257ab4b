package rmm_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/rmm"
)

func TestConfigErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"resource":"slab"}`:                             `rmm: resource "slab": want "pool", "arena" or "binning"`,
		`{"initial_bytes":100}`:                           `rmm: initial_bytes 100: want 0, 1 or a multiple of 256 up to 1EiB`,
		`{"resource":"arena","initial_bytes":1}`:          `rmm: initial_bytes 1: want at least 1MiB for an arena`,
		`{"limit":255}`:                                   `rmm: limit 255: want 0, or 256 up to 1EiB`,
		`{"min_bin_bytes":128}`:                           `rmm: min_bin_bytes 128: want a power of two from 256 to 1GiB`,
		`{"max_bin_bytes":131072}`:                        `rmm: max_bin_bytes 131072: want a power of two from min_bin_bytes 262144 to 1GiB`,
		`{"bin_blocks":-1}`:                               `rmm: bin_blocks -1: want 1 to 65536`,
		`{"min_bin_bytes":8388608}`:                       ``,
		`{"initial_bytes":1,"limit":1000}`:                ``,
		`{"resource":"arena","initial_bytes":1048576}`:    ``,
		`{"resource":"binning","max_bin_bytes":524288}`:   ``,
		`{"resource":"pool","initial_bytes":0,"limit":0}`: ``,
	} {
		var c rmm.Config
		require.NoError(t, json.Unmarshal([]byte(text), &c))
		_, err := c.WithDefaults()
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.EqualError(t, err, want, text)
	}
}

// open returns a resource over a simulated device, and a wrapper to inject faults with.
func open(t *testing.T, capacity device.Size, c rmm.Config) (*rmm.Allocator, *device.Faults) {
	t.Helper()
	gpu, err := sim.New(sim.Config{Capacity: capacity})
	require.NoError(t, err)
	faults, err := device.NewFaults(gpu, device.FaultPlan{})
	require.NoError(t, err)
	a, err := rmm.New(faults, c)
	require.NoError(t, err)
	return a, faults
}

// TestARefusedWaitPassesOver takes memory that another stream freed, while the device refuses the
// wait that makes it safe.
func TestARefusedWaitPassesOver(t *testing.T) {
	a, faults := open(t, 0, rmm.Config{InitialBytes: rmm.NoInitial})
	b, err := a.Alloc(alloc.Request{Size: device.MiB, Stream: 1})
	require.NoError(t, err)
	require.NoError(t, a.Free(b.Addr))
	second, err := a.Alloc(alloc.Request{Size: 256, Stream: 2})
	require.NoError(t, err)
	require.Equal(t, b.Addr, second.Addr)
	faults.FailNext(3) // the event of stream 3, the wait for the first chunk, and the wait for the merge
	third, err := a.Alloc(alloc.Request{Size: 256, Stream: 3})
	require.NoError(t, err)
	require.NotEqual(t, b.Addr.Add(256), third.Addr, "memory of stream 1 without a wait")
	require.NoError(t, a.Check())
	require.Equal(t, 2, a.Stats().Regions)
}

// TestARefusedFirstRegionIsTriedAgain is where the constructor of the original fails.
func TestARefusedFirstRegionIsTriedAgain(t *testing.T) {
	for _, c := range []rmm.Config{
		{}, {Resource: rmm.Arena}, {Resource: rmm.Binning, MinBinBytes: device.KiB, MaxBinBytes: 2 * device.KiB},
	} {
		a, faults := open(t, 64*device.MiB, c)
		faults.FailNext(4) // the free memory, then the region, or events
		_, err := a.Alloc(alloc.Request{Size: 1})
		require.ErrorIs(t, err, alloc.ErrOutOfMemory)
		require.Zero(t, a.Stats().Regions)
		b, err := a.Alloc(alloc.Request{Size: 1})
		for tries := 0; err != nil && tries < 4; tries++ {
			b, err = a.Alloc(alloc.Request{Size: 1})
		}
		require.NoError(t, err, c.Resource)
		require.NoError(t, a.Check())
		require.Equal(t, 32*device.MiB, a.Stats().Reserved, "half of the free memory")
		require.NoError(t, a.Free(b.Addr))
	}
}

// TestAnArenaNeedsASuperblock has less than two superblocks of memory.
func TestAnArenaNeedsASuperblock(t *testing.T) {
	a, _ := open(t, 2*device.MiB-256, rmm.Config{Resource: rmm.Arena})
	_, err := a.Alloc(alloc.Request{Size: 1})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	why, _ := power.LastRefusal(a)
	require.Equal(t, power.ReasonLimit, why.Reason)
	require.Zero(t, a.Stats().Regions)
}

// TestADeviceWithoutStreamsNeedsNoEvents counts the calls of a device that has reservations only.
func TestADeviceWithoutStreamsNeedsNoEvents(t *testing.T) {
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	a, err := rmm.New(struct{ device.Source }{gpu}, rmm.Config{InitialBytes: rmm.NoInitial})
	require.NoError(t, err)
	b, err := a.Alloc(alloc.Request{Size: device.MiB, Stream: 1})
	require.NoError(t, err)
	require.NoError(t, a.Free(b.Addr))
	again, err := a.Alloc(alloc.Request{Size: device.MiB, Stream: 2})
	require.NoError(t, err)
	require.Equal(t, b.Addr, again.Addr)
	require.Equal(t, uint64(1), gpu.Usage().Calls.Total())
}
