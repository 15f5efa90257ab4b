package bfc_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/inspect"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// The cases of this file are those of the test suites of TensorFlow and XLA, in our words.

// everyDevice runs a case over a device with plain regions and over one whose regions join.
func everyDevice(t *testing.T, c bfc.Config, run func(*testing.T, *rig)) {
	t.Run("plain", func(t *testing.T) { run(t, newRig(t, c, sim.Config{})) })
	t.Run("joining", func(t *testing.T) {
		c.CoalesceRegions = true
		run(t, newRig(t, c, sim.Config{}))
	})
}

func TestNoTwoBlocksOverlap(t *testing.T) {
	everyDevice(t, bfc.Config{Limit: gib, AllowGrowth: true}, func(t *testing.T, r *rig) {
		var blocks []alloc.Block
		for n := device.Size(1); n < 1024; n++ {
			blocks = append(blocks, r.alloc(n))
		}
		s := r.Stats()
		require.Equal(t, uint64(1023), s.Allocs)
		require.Equal(t, device.Size(654336), s.Allocated)
		require.Equal(t, device.Size(654336), s.PeakAllocated)
		require.Equal(t, device.Size(1024), s.LargestAlloc)
		requireDisjoint(t, blocks)
		r.free(blocks...)
		s = r.Stats()
		require.Zero(t, s.Allocated)
		require.Equal(t, device.Size(654336), s.PeakAllocated)
		require.Equal(t, device.Size(1024), s.LargestAlloc)
	})
}

func TestRefusalOfTooMuchLeavesTheAllocatorUsable(t *testing.T) {
	everyDevice(t, bfc.Config{Limit: gib, AllowGrowth: true}, func(t *testing.T, r *rig) {
		rng := rand.New(rand.NewPCG(*seed, 10))
		draw := func() (blocks []alloc.Block) {
			for range 255 {
				blocks = append(blocks, r.alloc(100+device.Size(rng.Uint64N(uint64(mib)-100))))
			}
			return blocks
		}
		gone, blocks := everySecond(draw())
		r.free(gone...)
		r.oom(alloc.Request{Size: gib + 1})
		blocks = append(blocks, draw()...)
		requireDisjoint(t, blocks)
		r.free(blocks...)
		require.Zero(t, r.Stats().Allocated)
	})
}

func TestFreedBlocksCoalesce(t *testing.T) {
	everyDevice(t, bfc.Config{Limit: gib}, func(t *testing.T, r *rig) {
		first := r.alloc(4096)
		r.free(first)
		s := r.Stats()
		require.Equal(t, [4]uint64{1, 0, 4096, 4096},
			[4]uint64{s.Allocs, uint64(s.Allocated), uint64(s.PeakAllocated), uint64(s.LargestAlloc)})
		sizes := []device.Size{4 * kib, 8 * mib, 16 * kib, 40 * mib}
		for range 1024 {
			var blocks []alloc.Block
			for _, n := range sizes {
				blocks = append(blocks, r.alloc(n))
			}
			r.free(blocks...)
		}
		s = r.Stats()
		require.Equal(t, [4]uint64{4097, 0, uint64(48*mib + 20*kib), uint64(40 * mib)},
			[4]uint64{s.Allocs, uint64(s.Allocated), uint64(s.PeakAllocated), uint64(s.LargestAlloc)})
		require.Equal(t, first.Addr, r.alloc(4096).Addr)
	})
}

func TestZeroBytesAreRefused(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: gib}, sim.Config{})
	_, err := r.Alloc(alloc.Request{})
	require.ErrorIs(t, err, alloc.ErrInvalidRequest)
	require.Equal(t, alloc.Stats{Limit: gib, NextRegion: gib}, r.Stats())
}

func TestRequestedAndGrantedSizesAreTracked(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: gib, AllowGrowth: true}, sim.Config{})
	require.Equal(t, device.Size(256), r.alloc(4).Size)
	c := r.chunks()[0]
	require.Equal(t, [2]device.Size{4, 256}, [2]device.Size{c.Requested, c.Size})
}

func TestLimitBoundsGrowth(t *testing.T) {
	for _, c := range []struct {
		variant    bfc.Variant
		limit, big device.Size
	}{{bfc.V2024, 2 * mib, 8 * mib}, {bfc.V2026, 2 * mib, 8 * mib}, {bfc.V2016, mib, 4 * mib}} {
		r := newRig(t, bfc.Config{Variant: c.variant, Limit: c.limit, AllowGrowth: true}, sim.Config{})
		r.alloc(256)
		r.oom(alloc.Request{Size: c.big})
		why, _ := r.LastRefusal()
		require.Equal(t, power.ReasonLimit, why.Reason)
		require.Equal(t, c.limit-256, why.LargestHole)
	}
}

func TestGrowthServesRandomSizes(t *testing.T) {
	everyDevice(t, bfc.Config{Limit: 2 * gib, AllowGrowth: true}, func(t *testing.T, r *rig) {
		rng := rand.New(rand.NewPCG(*seed, 11))
		draw := func(most device.Size) (blocks []alloc.Block) {
			for range 9 {
				blocks = append(blocks, r.alloc(1+device.Size(rng.Uint64N(uint64(most)))))
			}
			return blocks
		}
		gone, blocks := everySecond(draw(128 * mib))
		r.free(gone...)
		blocks = append(blocks, draw(64*mib)...)
		requireDisjoint(t, blocks)
		r.free(blocks...)
		require.Zero(t, r.Stats().Allocated)
	})
}

func TestHugeLimitSurvivesADeviceThatRefuses(t *testing.T) {
	for _, growth := range []bool{false, true} {
		r := newRig(t, bfc.Config{Limit: 1 << 60, AllowGrowth: growth}, sim.Config{Capacity: 16 * gib})
		for range 2 {
			r.alloc(gib)
		}
		r.oom(alloc.Request{Size: 1 << 59})
		require.LessOrEqual(t, r.Stats().Reserved, 16*gib)
	}
}

func TestBinSummariesCountLiveChunksUnderTheirSize(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: gib}, sim.Config{})
	var second []alloc.Block
	for b := range 5 {
		r.alloc(256 << b)
		second = append(second, r.alloc(256<<b))
	}
	m := r.MemoryMap()
	require.Len(t, m.Chunks, 11)
	require.Len(t, m.Bins, 21)
	for b, s := range m.Bins {
		size := device.Size(256 << b)
		want := inspect.BinSummary{Bin: int32(b), Size: size}
		switch {
		case b < 5:
			want.ChunksInUse, want.ChunksInBin = 2, 2
			want.BytesInUse, want.BytesInBin, want.RequestedInUse = 2*size, 2*size, 2*size
		case b == 20:
			want.ChunksInBin, want.BytesInBin = 1, gib-2*(256+512+1024+2048+4096)
		}
		require.Equal(t, want, s)
	}
	r.free(second...)
	for b, s := range r.MemoryMap().Bins[:5] {
		size := device.Size(256 << b)
		require.Equal(t, 1, s.ChunksInUse)
		require.Equal(t, size, s.RequestedInUse)
		require.GreaterOrEqual(t, s.BytesInBin, s.BytesInUse)
	}
}

func TestGrowthDecidesTheFirstRegion(t *testing.T) {
	for growth, want := range map[bool]device.Size{true: 2 * mib, false: 2 * gib} {
		r := newRig(t, bfc.Config{Limit: 2 * gib, AllowGrowth: growth}, sim.Config{})
		require.Equal(t, want, r.Stats().NextRegion)
		r.alloc(1)
		require.Equal(t, want, r.Stats().Reserved)
		require.Equal(t, !growth, bfc.Config{AllowGrowth: growth}.Preallocates())
	}
}

// fill127 allocates 128 blocks of 4 MiB and frees all but the last.
func fill127(r *rig) {
	var blocks []alloc.Block
	for range 128 {
		blocks = append(blocks, r.alloc(4*mib))
	}
	r.free(blocks[:127]...)
}

func TestJoinedRegionsServeOneLargeRequest(t *testing.T) {
	c := bfc.Config{Limit: 512 * mib, AllowGrowth: true, CoalesceRegions: true}
	r := newRig(t, c, sim.Config{})
	fill127(r)
	r.alloc(508 * mib)
}

func TestSeparateRegionsDoNot(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: 512 * mib, AllowGrowth: true}, sim.Config{})
	fill127(r)
	r.oom(alloc.Request{Size: 508 * mib})
}

func TestTrimGivesFreeRegionsBack(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: 2 * gib, AllowGrowth: true}, sim.Config{})
	fill127(r)
	require.Equal(t, 8, r.Stats().Regions)
	n, err := r.Trim()
	require.NoError(t, err)
	require.Equal(t, 1, r.Stats().Regions)
	require.Equal(t, 256*mib, r.Stats().Reserved, "the region of the last block")
	require.Equal(t, 256*mib, n, "4, 4, 8, 16, ... 128 MiB")
	free := 0
	for range r.WalkFree {
		free++
	}
	require.Equal(t, 1, free)
	require.NoError(t, r.Check())
}

func TestTrimKeepsAJoinedRegionWithALiveBlock(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: 2 * gib, AllowGrowth: true, CoalesceRegions: true}, sim.Config{})
	fill127(r)
	require.Equal(t, 1, r.Stats().Regions)
	n, err := r.Trim()
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, 1, r.Stats().Regions)
}

func TestSmallPreallocatedPool(t *testing.T) {
	r := newRig(t, bfc.Config{Variant: bfc.V2026, Limit: mib}, sim.Config{Policy: sim.Bump})
	r.request(alloc.Request{Size: 512, Align: 64})
	r.request(alloc.Request{Size: 1, Align: 64})
}

func TestReportShowsTheLiveBlock(t *testing.T) {
	r := newRig(t, bfc.Config{Variant: bfc.V2026, Limit: 1024}, sim.Config{Policy: sim.Bump})
	b := r.alloc(512)
	r.oom(alloc.Request{Size: 2048})
	report := string(r.AppendReport(nil, alloc.Request{Size: 2048}))
	require.Contains(t, report, "In use "+b.Addr.String()+" of 512 bytes")
}

func TestBackpedalEndsWhenTheDeviceAlwaysRefuses(t *testing.T) {
	for _, v := range []bfc.Variant{bfc.V2016, bfc.V2024, bfc.V2026} {
		r := newRig(t, bfc.Config{Variant: v, Limit: 2048}, sim.Config{})
		r.dev.FailNext(1000)
		r.oom(alloc.Request{Size: 100})
		why, _ := r.LastRefusal()
		require.Equal(t, power.ReasonDevice, why.Reason)
		require.ErrorIs(t, why.Device, device.ErrInjected)
		if v != bfc.V2016 {
			require.Equal(t, uint64(8), r.Stats().ReserveFailures)
			require.Equal(t, device.Size(256), why.Asked)
		}
	}
}

func TestStatsClear(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: 256 * mib}, sim.Config{})
	three := func() [3]device.Size {
		s := r.Stats()
		return [3]device.Size{s.Allocated, s.PeakAllocated, s.LargestAlloc}
	}
	r.alloc(1024)
	require.Equal(t, [3]device.Size{1024, 1024, 1024}, three())
	b := r.alloc(2048)
	require.Equal(t, [3]device.Size{3072, 3072, 2048}, three())
	r.free(b)
	require.Equal(t, [3]device.Size{1024, 3072, 2048}, three())
	r.ClearStats()
	require.Equal(t, [3]device.Size{1024, 1024, 0}, three())
	require.Zero(t, r.Stats().Allocs)
	require.Equal(t, 256*mib, r.Stats().PeakReserved)
}

// TestRegionsOf2016LoseNothingAtTheFixedPoint: nine tenths of 2304, rounded up, are 2304
// again, so the step after a success takes nothing off.
func TestRegionsOf2016LoseNothingAtTheFixedPoint(t *testing.T) {
	r := newRig(t, bfc.Config{Variant: bfc.V2016, Limit: 2560}, sim.Config{FailAbove: 2304})
	r.alloc(1)
	require.Equal(t, [2]device.Size{2304, 0}, [2]device.Size{r.Stats().Reserved, r.Stats().Forgotten})
	r = newRig(t, bfc.Config{Variant: bfc.V2016, Limit: 8192}, sim.Config{FailAbove: 7424})
	r.alloc(1)
	require.Equal(t, [2]device.Size{6912, 512}, [2]device.Size{r.Stats().Reserved, r.Stats().Forgotten})
}

func TestStatisticsOf2016CannotBeReset(t *testing.T) {
	r := newRig(t, bfc.Config{Variant: bfc.V2016, Limit: mib}, sim.Config{})
	r.alloc(1000)
	require.ErrorIs(t, power.ClearStats(r), alloc.ErrUnsupported)
	require.Equal(t, uint64(1), r.Stats().Allocs)
	require.True(t, power.Has(r, power.PowerFrontier))
}
