package bfc_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// aligned returns a request with an alignment.
func aligned(n, align device.Size) alloc.Request { return alloc.Request{Size: n, Align: align} }

// high returns a request with an alignment for the upper end.
func high(n, align device.Size) alloc.Request {
	return alloc.Request{Size: n, Align: align, Hint: alloc.HintHigh}
}

func TestAlignmentIsHonouredIn2026(t *testing.T) {
	for align := device.Size(32); align <= 4096; align *= 2 {
		r := newRig(t, bfc.Config{Variant: bfc.V2026, Limit: mib}, sim.Config{})
		r.alloc(256)
		for range 8 {
			b := r.request(aligned(256, align))
			require.True(t, b.Addr.IsAligned(align), "%v for %d", b.Addr, align)
		}
	}
}

func TestAlignedStress(t *testing.T) {
	var all []alloc.Request
	for _, align := range []device.Size{64, 256, 512, 1024, 4096} {
		for _, n := range []device.Size{1, 128, 256, 700, 1024, 4096, 8192} {
			for range 10 {
				all = append(all, aligned(n, align))
			}
		}
	}
	rng := rand.New(rand.NewPCG(*seed, 20))
	r := newRig(t, bfc.Config{Variant: bfc.V2026, Limit: 16 * mib}, sim.Config{})
	for range 20 {
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var blocks []alloc.Block
		for _, q := range all {
			b := r.request(q)
			require.True(t, b.Addr.IsAligned(q.Align))
			blocks = append(blocks, b)
		}
		requireDisjoint(t, blocks)
		rng.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
		r.free(blocks...)
	}
	require.Len(t, r.chunks(), 1)
}

// offBy256 is a device that grants addresses aligned to 256 bytes only, whatever is asked.
type offBy256 struct{ device.Source }

func (d offBy256) Reserve(size, _ device.Size) (device.Region, error) {
	r, err := d.Source.Reserve(size+256, 0)
	return device.Region{Addr: r.Addr.Add(256), Size: size}, err
}

func (d offBy256) Release(a device.Addr) error { return d.Source.Release(a - 256) }

func TestAlignmentOverADeviceThatIgnoresIt(t *testing.T) {
	d, err := sim.New(sim.Config{})
	require.NoError(t, err)
	a, err := bfc.New(offBy256{d}, bfc.Config{Variant: bfc.V2026, Limit: mib})
	require.NoError(t, err)
	for align := device.Size(256); align <= 4096; align *= 2 {
		b, err := a.Alloc(aligned(256, align))
		require.NoError(t, err)
		require.True(t, b.Addr.IsAligned(align))
	}
	require.NoError(t, a.Check())

	// A region of just the size has no aligned place; it stays.
	a, err = bfc.New(offBy256{d}, bfc.Config{Variant: bfc.V2026, Limit: 4096})
	require.NoError(t, err)
	_, err = a.Alloc(aligned(4096, 4096))
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	why, ok := a.LastRefusal()
	require.True(t, ok)
	require.Equal(t, power.ReasonUnusable, why.Reason)
	require.Equal(t, device.Size(4096), a.Stats().Reserved)
}

func TestAlignmentAbove256IsRefusedBefore2026(t *testing.T) {
	for _, v := range []bfc.Variant{bfc.V2016, bfc.V2024} {
		r := newRig(t, bfc.Config{Variant: v, Limit: mib}, sim.Config{})
		r.request(aligned(1, 256))
		for _, align := range []device.Size{3, 257, 512, 1 << 63} {
			_, err := r.Alloc(aligned(1, align))
			require.ErrorIs(t, err, alloc.ErrInvalidRequest, "%d", align)
			why, _ := r.LastRefusal()
			require.Equal(t, power.ReasonAlignment, why.Reason)
		}
	}
}

func TestHugeAlignmentFindsNoMemory(t *testing.T) {
	r := newRig(t, bfc.Config{Variant: bfc.V2026, Limit: mib, AllowGrowth: true}, sim.Config{})
	r.alloc(1)
	r.oom(aligned(256, 1<<63))
	r.oom(aligned(1<<62, 1<<63))
}

// newArena returns a two-ended arena.
func newArena(t *testing.T, limit device.Size) *rig {
	t.Helper()
	return newRig(t, bfc.Config{Variant: bfc.V2026, Limit: limit, Spatial: true}, sim.Config{Policy: sim.Bump})
}

func TestEndsAllocateTowardsEachOther(t *testing.T) {
	r := newArena(t, 4096)
	require.Zero(t, at(r.alloc(256)))
	require.Equal(t, device.Size(3840), at(r.upper(256)))
	owners := []uint8{}
	for c := range r.Walk {
		owners = append(owners, c.Owner)
		if c.Owner == bfc.OwnerGap {
			require.Equal(t, alloc.NoClass, c.Class)
		}
	}
	require.Equal(t, []uint8{bfc.OwnerLower, bfc.OwnerGap, bfc.OwnerUpper}, owners)
	require.Equal(t, device.Size(3584), r.LargestFree(), "the gap counts")
}

func TestLowerTrafficDoesNotMoveUpperBlocks(t *testing.T) {
	for _, traffic := range []int{0, 1, 5} {
		r := newArena(t, 8192)
		for range traffic {
			r.alloc(256)
		}
		require.Equal(t, device.Size(8192-512), at(r.upper(512)))
	}
}

func TestAnEndSkipsTheHolesOfTheOther(t *testing.T) {
	r := newArena(t, 1024)
	outer := r.alloc(256)
	r.alloc(256)
	r.upper(512)
	r.free(outer)
	r.oom(high(256, 0))

	r = newArena(t, 1024)
	outer = r.upper(256)
	r.upper(256)
	r.alloc(512)
	r.free(outer)
	r.oom(alloc.Request{Size: 256})
}

func TestLowerReclaimsTheGap(t *testing.T) {
	r := newArena(t, 2048)
	r.free(r.upper(1024))
	require.Zero(t, at(r.alloc(2048)))
}

func TestBothEndsReclaimTheGap(t *testing.T) {
	r := newArena(t, 4096)
	r.alloc(1024)
	up := r.upper(512)
	require.Equal(t, device.Size(3584), at(up))
	r.free(up)
	require.Equal(t, device.Size(1024), at(r.alloc(512)))
	again := r.upper(512)
	require.Equal(t, at(up), at(again))
	r.free(again)
	require.Equal(t, device.Size(1536), at(r.alloc(2560)))
	r.oom(high(256, 0))
}

func TestUpperAlignmentLeavesASuffixToTheUpperEnd(t *testing.T) {
	r := newArena(t, 4096)
	require.Equal(t, device.Size(3072), at(r.request(high(256, 1024))))
	require.Zero(t, at(r.alloc(3072)))
	r.oom(alloc.Request{Size: 768})
	require.Equal(t, device.Size(3328), at(r.upper(768)))
}

func TestLowerAlignmentLeavesAPrefixToTheLowerEnd(t *testing.T) {
	r := newArena(t, 4096)
	require.Zero(t, at(r.alloc(256)))
	require.Equal(t, device.Size(1024), at(r.request(aligned(256, 1024))))
	require.Equal(t, device.Size(1280), at(r.upper(2816)))
	r.oom(high(768, 0))
	require.Equal(t, device.Size(256), at(r.alloc(768)))
}

func TestAnEndReclaimsWhatTheOtherFilled(t *testing.T) {
	r := newArena(t, gib)
	fill := func(hint alloc.Hint) {
		var blocks []alloc.Block
		for range 32 {
			blocks = append(blocks, r.request(alloc.Request{Size: 32 * mib, Hint: hint}))
		}
		r.free(blocks...)
		require.Len(t, r.chunks(), 1)
	}
	fill(alloc.HintLow)
	up := r.upper(18 * mib)
	require.Equal(t, gib-18*mib, at(up))
	r.free(up)
	fill(alloc.HintHigh)
	require.Zero(t, at(r.alloc(18*mib)))
}

func TestEndsReuseTheirOwnHoles(t *testing.T) {
	r := newArena(t, 8192)
	var low, up [3]alloc.Block
	for i := range 3 {
		low[i], up[i] = r.alloc(256), r.upper(256)
	}
	r.free(low[1], up[1])
	require.Equal(t, up[1], r.upper(256))
	require.Equal(t, low[1], r.alloc(256))
}

func TestOffsetsOfAnEndDoNotDependOnTheOther(t *testing.T) {
	for _, mirror := range []bool{false, true} {
		want := endOffsets(t, mirror, 0)
		for s := uint64(1); s < 32; s++ {
			require.Equal(t, want, endOffsets(t, mirror, s), "seed %d", s)
		}
	}
}

// endOffsets allocates eight fixed sizes at one end, the oldest freed when more than two
// live, under a random load at the other end, and returns where they lie.
func endOffsets(t *testing.T, mirror bool, load uint64) (offsets []device.Size) {
	const limit = 512 * mib
	fixed, other := alloc.HintHigh, alloc.HintLow
	if mirror {
		fixed, other = other, fixed
	}
	rng := rand.New(rand.NewPCG(*seed, load))
	r := newArena(t, limit)
	var mine, theirs []alloc.Block
	var sum device.Size
	for _, n := range []device.Size{4, 16, 1, 18, 2, 8, 4, 32} {
		for range 4 * min(load, 1) {
			if size := 1 + device.Size(rng.Uint64N(uint64(16*mib))); sum+size < limit/2 {
				theirs = append(theirs, r.request(alloc.Request{Size: size, Hint: other, Align: 2 * mib}))
				sum += 2 * size // what a block may take in the worst case
			}
			if len(theirs) > 0 && rng.IntN(2) == 0 {
				i := rng.IntN(len(theirs))
				r.free(theirs[i])
				theirs = append(theirs[:i], theirs[i+1:]...)
			}
		}
		mine = append(mine, r.request(alloc.Request{Size: n * mib, Hint: fixed, Align: 2 * mib}))
		offsets = append(offsets, at(mine[len(mine)-1]))
		if len(mine) > 2 {
			r.free(mine[0])
			mine = mine[1:]
		}
	}
	return offsets
}

// TestEveryRegionHasItsOwnGap takes a second region into a two-ended arena, at which the
// original aborts.
func TestEveryRegionHasItsOwnGap(t *testing.T) {
	r := newRig(t, bfc.Config{Variant: bfc.V2026, Limit: 8 * mib, Spatial: true}, sim.Config{FailAbove: 4 * mib})
	low, up := r.alloc(mib), r.upper(mib)
	big := r.upper(3 * mib)
	require.Equal(t, 2, r.Stats().Regions)
	r.free(up, low, big)
	for c := range r.Walk {
		require.Equal(t, bfc.OwnerGap, c.Owner)
	}
	require.Len(t, r.chunks(), 2)
	require.NoError(t, r.Check())
}

func TestHintIsIgnoredWithoutEnds(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: mib}, sim.Config{})
	require.Zero(t, at(r.upper(256)))
}
