package async_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/async"
)

// build returns a pool with regions of 16 KiB, and its device.
func build(t *testing.T, c async.Config, capacity device.Size) (*async.Allocator, *sim.Device) {
	t.Helper()
	gpu, err := sim.New(sim.Config{Capacity: capacity, Align: 512})
	require.NoError(t, err)
	c.RegionBytes = 16 * device.KiB
	a, err := async.New(gpu, c)
	require.NoError(t, err)
	return a, gpu
}

// get allocates for a stream and returns the address.
func get(t *testing.T, a *async.Allocator, n device.Size, s device.Stream) device.Addr {
	t.Helper()
	b, err := a.Alloc(alloc.Request{Size: n, Stream: s})
	require.NoError(t, err)
	require.NoError(t, a.Check())
	return b.Addr
}

// first returns the first chunk of the walk.
func first(a *async.Allocator) (c alloc.Chunk) {
	for c = range a.Walk {
		break
	}
	return c
}

func TestWalkTellsWhoMayHaveAChunk(t *testing.T) {
	a, gpu := build(t, async.Config{}, 0)
	at := get(t, a, 16*device.KiB, 3)
	require.NoError(t, a.RecordStream(at, 4))
	require.NoError(t, a.Free(at))
	c := first(a)
	require.Equal(t, []any{alloc.Pending, device.Stream(3), device.Size(16384)}, []any{c.State, c.Stream, c.Requested})
	require.Equal(t, 16*device.KiB, a.Stats().Active)
	require.Zero(t, a.LargestFree())

	require.NoError(t, gpu.Drain(4))
	bytes, err := a.Poll()
	require.NoError(t, err)
	require.Equal(t, 16*device.KiB, bytes)
	c = first(a)
	require.Equal(t, []any{alloc.Free, device.Stream(3), async.OwnerStream}, []any{c.State, c.Stream, c.Owner})
	require.Zero(t, a.Stats().Active)

	require.NoError(t, gpu.Drain(3))
	_, err = a.Poll()
	require.NoError(t, err)
	require.Zero(t, a.Stats().Regions, "the threshold is zero")
}

func TestKeepKeepsUntilARequestFails(t *testing.T) {
	a, gpu := build(t, async.Config{ReleaseThreshold: ^device.Size(0)}, 32*device.KiB)
	x, y := get(t, a, 16*device.KiB, 1), get(t, a, 16*device.KiB, 2)
	require.NoError(t, a.Free(x))
	require.NoError(t, a.Free(y))
	require.NoError(t, gpu.SyncDevice())
	_, err := a.Poll()
	require.NoError(t, err)
	require.Equal(t, 32*device.KiB, a.Stats().Reserved)
	c := first(a)
	require.Equal(t, []any{alloc.Free, device.Stream(0), async.OwnerNone}, []any{c.State, c.Stream, c.Owner})
	get(t, a, 32*device.KiB, 3)
	require.Equal(t, 1, a.Stats().Regions)
	_, err = a.Alloc(alloc.Request{Size: 1})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	why, _ := a.LastRefusal()
	require.Equal(t, power.ReasonDevice, why.Reason)
	require.Equal(t, 16*device.KiB, why.Asked)
}

func TestTheLimitIsTold(t *testing.T) {
	a, _ := build(t, async.Config{Limit: 16 * device.KiB}, 0)
	get(t, a, 16*device.KiB, 0)
	_, err := a.Alloc(alloc.Request{Size: 1})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	why, _ := a.LastRefusal()
	require.Equal(t, power.ReasonLimit, why.Reason)
}

func TestTrimTakesWhatStreamsMayStillUse(t *testing.T) {
	a, gpu := build(t, async.Config{ReleaseThreshold: device.GiB}, 0)
	for _, n := range []device.Size{16 * device.KiB, 8 * device.KiB} {
		at := get(t, a, n, 1)
		if n == 16*device.KiB {
			require.NoError(t, a.RecordStream(at, 2))
		} else {
			get(t, a, n, 2)
		}
		require.NoError(t, a.Free(at))
	}
	at := get(t, a, 16*device.KiB, 1)
	require.NoError(t, a.Free(at))
	bytes, err := a.Trim()
	require.NoError(t, err)
	require.Equal(t, 32*device.KiB, bytes, "the device waited, after which nothing was pending")
	require.Equal(t, 16*device.KiB, gpu.Usage().Held, "a block is live there")
}

func TestConfigurationIsJudged(t *testing.T) {
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	for field, c := range map[string]async.Config{
		"follow_events": {FollowEvents: "yes"}, "reuse_finished": {ReuseFinished: "1"}, "insert_waits": {InsertWaits: "no"},
		"region_bytes": {RegionBytes: 100}, "limit": {Limit: 511},
	} {
		_, err := async.New(gpu, c)
		require.ErrorContains(t, err, "async: "+field)
	}
	c, err := async.Config{}.WithDefaults()
	require.NoError(t, err)
	require.Equal(t, async.Config{FollowEvents: "on", ReuseFinished: "on", InsertWaits: "on",
		RegionBytes: 32 * device.MiB}, c)
	require.Equal(t, device.Size(512), c.ForCapacity(1).Limit)
}
