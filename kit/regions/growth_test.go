package regions_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/regions"
)

// open returns a pool over a device of the given capacity, in which regions may touch.
func growthOpen(t *testing.T, p regions.Policy, capacity device.Size) (*regions.Pool, *alloc.Stats, *sim.Device) {
	t.Helper()
	if p.Quantum == 0 {
		p.Quantum = 256
	}
	require.NoError(t, p.Check("x"))
	d, err := sim.New(sim.Config{Capacity: capacity, Align: 256})
	require.NoError(t, err)
	var stats alloc.Stats
	pool := regions.NewPool(d, &stats, p)
	return &pool, &stats, d
}

func TestSizesOfEachKind(t *testing.T) {
	const kib = device.KiB
	for kind, want := range map[string][]device.Size{ // for requests of 1000, 100 KiB, 1 byte, 1 byte
		regions.Fixed:        {64 * kib, 100 * kib, 64 * kib, 64 * kib},
		regions.Doubling:     {64 * kib, 128 * kib, 256 * kib, 512 * kib},
		regions.Request:      {64 * kib, 128 * kib, 64 * kib, 64 * kib},
		regions.Proportional: {64 * kib, 128 * kib, 64 * kib, 64 * kib},
	} {
		pool, stats, _ := growthOpen(t, regions.Policy{Kind: kind, Region: 64 * kib}, 0)
		var got []device.Size
		for i, n := range []device.Size{1000, 100 * kib, 1, 1} {
			r, err := pool.Grow(n, 256, int32(i))
			require.NoError(t, err)
			got = append(got, r.Size)
		}
		require.Equal(t, want, got, kind)
		require.Equal(t, stats.Reserved, pool.Empty())
	}
}

func TestProportionalFollowsWhatIsHeld(t *testing.T) {
	pool, stats, _ := growthOpen(t, regions.Policy{Kind: regions.Proportional, Region: 16 * device.KiB}, 0)
	for stats.Reserved < 16*device.GiB {
		held := stats.Reserved
		r, err := pool.Grow(1, 256, 0)
		require.NoError(t, err)
		require.LessOrEqual(t, r.Size, held/16+16*device.KiB)
	}
	require.Less(t, stats.Regions, 250)
}

func TestWholeTakesTheLimitOrAllFreeMemory(t *testing.T) {
	pool, stats, _ := growthOpen(t, regions.Policy{Kind: regions.Whole, Region: 256, Limit: 3 * device.MiB}, 0)
	r, err := pool.Grow(1, 256, 0)
	require.NoError(t, err)
	require.Equal(t, 3*device.MiB, r.Size)
	require.Equal(t, 3*device.MiB, stats.Limit)
	_, err = pool.Grow(1, 256, 0)
	require.ErrorIs(t, err, regions.ErrLimit)
	require.Zero(t, pool.Asked())

	pool, _, d := growthOpen(t, regions.Policy{Kind: regions.Whole, Region: 256, Limit: regions.WholeLimit}, device.GiB)
	r, err = pool.Grow(1, 256, 0)
	require.NoError(t, err)
	require.Greater(t, r.Size, device.GiB-2*device.MiB)
	calls := d.Usage().Calls.Total()
	require.LessOrEqual(t, calls, uint64(40))
	_, err = pool.Grow(1, 256, 0)
	require.ErrorIs(t, err, regions.ErrLimit, "there is one region")
	require.Equal(t, calls, d.Usage().Calls.Total(), "and the device is not asked again")
	require.NoError(t, pool.Drop(r.Addr))
	_, err = pool.Grow(2*device.GiB, 256, 0)
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	require.Equal(t, 2*device.GiB, pool.Asked())
	_, err = pool.Grow(1, 256, 0)
	require.NoError(t, err, "what was given back can be had again")
}

// TestProportionIsRelativeToThePool holds a large region of a single block beside the pool.
func TestProportionIsRelativeToThePool(t *testing.T) {
	pool, _, _ := growthOpen(t, regions.Policy{Kind: regions.Proportional, Region: device.MiB}, 0)
	_, err := pool.Reserve(device.GiB, 256, -1)
	require.NoError(t, err)
	var last device.Region
	for i := range int32(18) {
		last, err = pool.Grow(1, 256, i)
		require.NoError(t, err)
	}
	require.Equal(t, 2*device.MiB, last.Size, "a sixteenth of 17 MiB, in whole regions")
	require.NoError(t, pool.Drop(last.Addr))
	again, err := pool.Grow(1, 256, 18)
	require.NoError(t, err)
	require.Equal(t, last.Size, again.Size, "what went back no longer counts")
}

func TestWholeOfAnyDeviceTakesFewCalls(t *testing.T) {
	for capacity := 4 * device.MiB; capacity < 1<<44; capacity = capacity*3 + 12345*256 {
		for _, limit := range []device.Size{1 << 60, regions.WholeLimit} {
			pool, stats, d := growthOpen(t, regions.Policy{Kind: regions.Whole, Region: 256, Limit: limit}, capacity)
			_, err := pool.Grow(1, 256, 0)
			require.NoError(t, err)
			require.Greater(t, stats.Reserved+2*device.MiB, min(capacity, limit), "device of %v", capacity)
			require.LessOrEqual(t, d.Usage().Calls.Total(), uint64(64))
		}
	}
}

func TestRefusedReservationsAreRetriedSmaller(t *testing.T) {
	pool, stats, d := growthOpen(t, regions.Policy{Kind: regions.Fixed, Region: device.MiB}, 1300*device.KiB)
	_, err := pool.Grow(1, 256, 0)
	require.NoError(t, err)
	r, err := pool.Grow(200*device.KiB, 256, 1)
	require.NoError(t, err)
	require.GreaterOrEqual(t, r.Size, 200*device.KiB)
	require.LessOrEqual(t, stats.Reserved, 1300*device.KiB)
	refused := d.Usage().Calls.Refused()
	require.NotZero(t, refused)
	_, err = pool.Grow(200*device.KiB, 256, 2)
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	require.Equal(t, 200*device.KiB, pool.Asked())
	require.Equal(t, d.Usage().Calls.Refused(), stats.ReserveFailures)
}

func TestGrowthStopsAtTheLimit(t *testing.T) {
	pool, stats, _ := growthOpen(t, regions.Policy{Kind: regions.Doubling, Region: device.MiB, Limit: 2500 * device.KiB},
		0)
	for i := range int32(2) {
		_, err := pool.Grow(1, 256, i)
		require.NoError(t, err)
	}
	require.Equal(t, 2500*device.KiB, stats.Reserved, "the second region is cut to what the limit leaves")
	_, err := pool.Grow(1, 256, 2)
	require.ErrorIs(t, err, regions.ErrLimit)
}

// TestDeviceThatRoundsUpKeepsTheLimit has a device whose regions are whole pages.
func TestDeviceThatRoundsUpKeepsTheLimit(t *testing.T) {
	d, err := sim.New(sim.Config{Round: 64 * device.KiB})
	require.NoError(t, err)
	var stats alloc.Stats
	pool := regions.NewPool(d, &stats, regions.Policy{Kind: regions.Whole, Region: 256, Limit: 100 * device.KiB,
		Quantum: 256})
	_, err = pool.Grow(1, 256, 0)
	require.ErrorIs(t, err, regions.ErrLimit)
	require.Zero(t, stats.Reserved)
	require.Zero(t, d.Usage().Regions)

	f, err := device.NewFaults(d, device.FaultPlan{Nth: 2})
	require.NoError(t, err)
	pool = regions.NewPool(f, &stats, regions.Policy{Kind: regions.Whole, Region: 256, Limit: 100 * device.KiB,
		Quantum: 256})
	r, err := pool.Grow(1, 256, 0)
	require.NoError(t, err, "a region that cannot go back is used")
	require.Equal(t, r.Size, pool.Empty())
	require.Equal(t, 1, d.Usage().Regions)
}

func TestEmptyRegionsAboveTheWatermarkGoBack(t *testing.T) {
	pool, stats, d := growthOpen(t, regions.Policy{Kind: regions.Fixed, Region: device.MiB, Release: true,
		Keep: device.MiB}, 0)
	var held []device.Region
	for i := range int32(3) {
		r, err := pool.Grow(1, 256, i)
		require.NoError(t, err)
		pool.Occupied(r.Size)
		held = append(held, r)
	}
	require.Zero(t, pool.Empty())
	require.False(t, pool.Vacated(held[0].Size), "as much as is kept")
	require.True(t, pool.Vacated(held[1].Size))
	require.NoError(t, pool.Drop(held[1].Addr))
	require.Equal(t, device.MiB, pool.Empty())
	require.Equal(t, 2, stats.Regions)
	require.Equal(t, 2*device.MiB, d.Usage().Held)

	f, err := device.NewFaults(d, device.FaultPlan{})
	require.NoError(t, err)
	pool2 := regions.NewPool(f, stats, regions.Policy{Kind: regions.Fixed, Region: device.MiB, Quantum: 256})
	r, err := pool2.Grow(1, 256, 0)
	require.NoError(t, err)
	f.FailNext(1)
	require.ErrorIs(t, pool2.Drop(r.Addr), device.ErrInjected)
	require.Equal(t, device.MiB, pool2.Empty(), "what the device does not take back stays")
}

// TestDirectRegionLeavesTheGrowthAlone checks the regions of single blocks.
func TestDirectRegionLeavesTheGrowthAlone(t *testing.T) {
	const kib = device.KiB
	pool, stats, _ := growthOpen(t, regions.Policy{Kind: regions.Doubling, Region: 4 * kib, Limit: 64 * kib}, 0)
	_, err := pool.Grow(1, 256, 0)
	require.NoError(t, err)
	r, err := pool.GrowDirect(40*kib, 256, 1)
	require.NoError(t, err)
	require.Equal(t, 40*kib, r.Size)
	require.Equal(t, 4*kib, pool.Empty(), "the direct region is occupied")
	require.Equal(t, 8*kib, stats.NextRegion)
	_, err = pool.GrowDirect(21*kib, 256, 2)
	require.ErrorIs(t, err, regions.ErrLimit)
	require.NoError(t, pool.DropDirect(r.Addr))
	require.Equal(t, 8*kib, stats.NextRegion, "it does not halve the next region either")
	require.Equal(t, 4*kib, stats.Reserved)
}

func TestDoublingComesDownAgain(t *testing.T) {
	pool, _, _ := growthOpen(t, regions.Policy{Kind: regions.Doubling, Region: device.MiB}, 0)
	for range 100 {
		r, err := pool.Grow(1, 256, 0)
		require.NoError(t, err)
		require.Equal(t, device.MiB, r.Size)
		require.NoError(t, pool.Drop(r.Addr))
	}
}

func TestCheckNamesTheField(t *testing.T) {
	good := regions.Policy{Kind: regions.Fixed, Region: device.MiB, Quantum: 256}
	for want, spoil := range map[string]func(*regions.Policy){
		`x: growth "often": want`:                     func(p *regions.Policy) { p.Kind = "often" },
		"x: region_bytes 0: want a multiple of 256":   func(p *regions.Policy) { p.Region = 0 },
		"x: region_bytes 100: want a multiple of 256": func(p *regions.Policy) { p.Region = 100 },
		"x: region_bytes 2305843009213693952: want":   func(p *regions.Policy) { p.Region = 1 << 61 },
		"x: limit 10: want at least 256":              func(p *regions.Policy) { p.Limit = 10 },
		"x: limit 2305843009213693952: want":          func(p *regions.Policy) { p.Limit = 1 << 61 },
		"x: keep_bytes 1: needs":                      func(p *regions.Policy) { p.Keep = 1 },
		`x: release: not used with growth "wh`:        func(p *regions.Policy) { p.Kind, p.Release = regions.Whole, true },
	} {
		p := good
		spoil(&p)
		require.ErrorContains(t, p.Check("x"), want)
	}
	require.NoError(t, good.Check("x"))
}
