package slabbuddy_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
)

// tight is a slab-buddy whose regions and whose slabs of the largest slots have 4 KiB.
var tight = slabbuddy.Config{
	BlockBytes: 256, RegionBytes: 4 * device.KiB, Growth: "fixed", SlabMaxBytes: device.KiB, SlabSlots: 4, Classes: "pow2",
	DirectBytes: 16 * device.KiB, DirectCacheBytes: 1 << 60,
}

// layers returns an allocator over a device of n bytes.
func layers(t testing.TB, n device.Size, c slabbuddy.Config) (*slabbuddy.Allocator, *sim.Device) {
	t.Helper()
	d, err := sim.New(sim.Config{Capacity: n, Align: 256})
	require.NoError(t, err)
	a, err := slabbuddy.New(d, c)
	require.NoError(t, err)
	return a, d
}

// fill allocates blocks of a size until n are live, and returns them.
func fill(t testing.TB, a alloc.Strategy, n int, size device.Size) (all []alloc.Block) {
	t.Helper()
	for range n {
		all = append(all, get(t, a, size))
	}
	return all
}

// drop frees blocks.
func drop(t testing.TB, a alloc.Strategy, all []alloc.Block) {
	t.Helper()
	for _, b := range all {
		require.NoError(t, a.Free(b.Addr))
		require.NoError(t, a.Check())
	}
}

// sum returns the bytes of the chunks that keep says.
func sum(a alloc.Strategy, keep func(alloc.Chunk) bool) (n device.Size) {
	for c := range a.Walk {
		if keep(c) {
			n += c.Size
		}
	}
	return n
}

// count returns how many chunks there are that keep says.
func count(a alloc.Strategy, keep func(alloc.Chunk) bool) (n int) {
	for c := range a.Walk {
		if keep(c) {
			n++
		}
	}
	return n
}

func isCached(c alloc.Chunk) bool { return c.State == alloc.Cached }

// isEmptySlab reports whether a chunk is a slab without a used slot.
func isEmptySlab(c alloc.Chunk) bool {
	return c.State == alloc.Free && c.Owner == slabbuddy.OwnerSlab && c.Class == alloc.NoClass
}

func TestMagazinesAreGivenUpFirst(t *testing.T) {
	c := tight
	c.MagazineRounds, c.EmptySlabs = 4, 1
	a, d := layers(t, 8*device.KiB, c)
	drop(t, a, fill(t, a, 8, device.KiB)) // two slabs, all of whose slots are in magazines
	require.Equal(t, 8*device.KiB, sum(a, isCached))
	get(t, a, 512)
	require.Zero(t, sum(a, isCached))
	require.Equal(t, 4*device.KiB, sum(a, isEmptySlab), "the slab that is kept was not needed")
	require.Zero(t, d.Usage().Calls.Returned())
}

func TestEmptySlabsAreGivenUpNext(t *testing.T) {
	c := tight
	c.EmptySlabs = 1
	a, d := layers(t, 8*device.KiB, c)
	drop(t, a, fill(t, a, 1, device.KiB))
	kept := get(t, a, 4*device.KiB)
	require.NoError(t, a.Free(kept.Addr))
	get(t, a, 4*device.KiB)
	require.Equal(t, 4*device.KiB, sum(a, isEmptySlab))
	get(t, a, 4*device.KiB)
	require.Zero(t, sum(a, isEmptySlab))
	require.Zero(t, d.Usage().Calls.Returned())
}

func TestEmptyRegionsAreGivenUpThenAndTheDeviceIsAskedAgain(t *testing.T) {
	a, d := layers(t, 8*device.KiB, tight)
	drop(t, a, fill(t, a, 2, 4*device.KiB))
	b := get(t, a, 8*device.KiB)
	require.Equal(t, 8*device.KiB, b.Size)
	require.Equal(t, uint64(2), d.Usage().Calls.Returned())
}

func TestKeptDirectBlocksAreGivenUpWithThem(t *testing.T) {
	a, d := layers(t, 24*device.KiB, tight)
	drop(t, a, fill(t, a, 1, 20*device.KiB))
	require.Equal(t, 20*device.KiB, a.Stats().Reserved, "it is kept")
	get(t, a, 20*device.KiB-1)
	require.Equal(t, uint64(1), a.Stats().Reserves, "and reused")
	require.Equal(t, slabbuddy.OwnerDirect, slices.Collect(a.Walk)[0].Owner)
	drop(t, a, []alloc.Block{{Addr: slices.Collect(a.Walk)[0].Addr}})
	get(t, a, 8*device.KiB)
	require.Equal(t, uint64(1), d.Usage().Calls.Returned())
}

func TestSmallRequestIsServedAloneWhereNoSlabFits(t *testing.T) {
	c := tight
	c.SlabSlots = 8
	a, _ := layers(t, 4*device.KiB, c)
	get(t, a, 2*device.KiB)
	b := get(t, a, 512) // whose slabs have 4 KiB
	require.Equal(t, slabbuddy.OwnerBuddy, ownerOfSlabBuddy(a, b.Addr))
}

func TestMediumRequestIsServedAloneWhereNoBlockFits(t *testing.T) {
	a, _ := layers(t, 5*device.KiB+256, tight)
	b := get(t, a, 5*device.KiB) // a block of 8 KiB
	require.Equal(t, slabbuddy.OwnerDirect, ownerOfSlabBuddy(a, b.Addr))
	require.Equal(t, 5*device.KiB, b.Size)
}

func TestLargeRequestIsServedByThePoolWhereNoRegionFits(t *testing.T) {
	c := tight
	c.RegionBytes = 32 * device.KiB
	a, _ := layers(t, 33*device.KiB, c)
	get(t, a, 2*device.KiB)
	b := get(t, a, 15*device.KiB+1)
	require.Equal(t, slabbuddy.OwnerBuddy, ownerOfSlabBuddy(a, b.Addr))
	drop(t, a, []alloc.Block{b})
	_, err := a.Alloc(alloc.Request{Size: 16*device.KiB + 1})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory, "half of the region is not enough")
}

func TestRefusalTellsWhatWasTried(t *testing.T) {
	a, _ := layers(t, 8*device.KiB, tight)
	get(t, a, 2*device.KiB)
	_, err := a.Alloc(alloc.Request{Size: 6 * device.KiB, Tag: 3})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	got, ok := a.LastRefusal()
	require.True(t, ok)
	require.Equal(t, power.Refusal{
		Reason: power.ReasonDevice, Request: alloc.Request{Size: 6 * device.KiB, Tag: 3}, Asked: 6 * device.KiB,
		Device: device.ErrOutOfMemory, LargestHole: 2 * device.KiB, Free: 2 * device.KiB,
	}, got)
	require.Equal(t, uint64(1), a.Stats().OOMs)
}

// ownerOfSlabBuddy returns whose the live block at p is.
func ownerOfSlabBuddy(a *slabbuddy.Allocator, p device.Addr) uint8 {
	for c := range a.Walk {
		if c.Addr == p && c.State == alloc.Live {
			return c.Owner
		}
	}
	return 0
}

// TestNoRungIsTakenBeforeTheOneAboveIsExhausted looks after each of some thousand calls at
// what was given up. Nothing goes back of itself in this configuration: not regions, and
// slabs only beyond the one that each class keeps.
func TestNoRungIsTakenBeforeTheOneAboveIsExhausted(t *testing.T) {
	c := tight
	c.MagazineRounds, c.EmptySlabs = 3, 1
	var drained, shed, released, refused int
	for seed := range uint64(20) {
		if seed == 10 {
			c.MagazineRounds = 0 // which keep most slabs from being empty
		}
		a, _ := layers(t, 48*device.KiB, c)
		rng := rand.New(rand.NewPCG(seed, 0))
		var live []device.Addr
		for range 500 {
			if n := len(live); n > 0 && rng.IntN(5) < 2 {
				i := rng.IntN(n)
				require.NoError(t, a.Free(live[i]))
				live = slices.Delete(live, i, i+1)
				continue
			}
			before, cached, empty := a.Stats(), count(a, isCached), count(a, isEmptySlab)
			b, err := a.Alloc(alloc.Request{Size: device.Size(1 + rng.Uint64N(64<<rng.IntN(10)))})
			if err == nil {
				live = append(live, b.Addr)
			}
			after := a.Stats()
			if cached > 1 && count(a, isCached) == 0 { // a request takes one
				drained++
			}
			if empty > 1 && count(a, isEmptySlab) == 0 {
				shed++
				require.Zero(t, sum(a, isCached), "slabs were given up, magazines have slots")
			}
			if after.Releases != before.Releases || err != nil {
				require.Zero(t, sum(a, isCached), "regions were given up, magazines have slots")
				require.Zero(t, sum(a, isEmptySlab), "regions were given up, empty slabs are held")
			}
			if after.Releases != before.Releases {
				released++
			}
			if err != nil {
				refused++
				requireNoEmptyRegion(t, a)
			}
			require.NoError(t, a.Check())
		}
	}
	t.Logf("%d times magazines, %d empty slabs, %d regions were given up, %d refused", drained, shed, released, refused)
	for _, n := range []int{drained, shed, released, refused} {
		require.NotZero(t, n)
	}
}

// requireNoEmptyRegion checks that each region has a live block.
func requireNoEmptyRegion(t *testing.T, a alloc.Strategy) {
	t.Helper()
	used := map[device.Addr]bool{}
	for c := range a.Walk {
		used[c.Region] = used[c.Region] || c.State == alloc.Live
	}
	for region, ok := range used {
		require.True(t, ok, "region %v is empty", region)
	}
}

// get allocates.
func get(t testing.TB, a alloc.Strategy, size device.Size) alloc.Block {
	t.Helper()
	b, err := a.Alloc(alloc.Request{Size: size})
	require.NoError(t, err)
	require.NoError(t, a.Check())
	return b
}
