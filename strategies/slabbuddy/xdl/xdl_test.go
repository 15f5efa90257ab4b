package xdl_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/internal/oracle"
	buddy "github.com/vramyard/vramyard/strategies/buddy/xdl"
	slab "github.com/vramyard/vramyard/strategies/slab/xdl"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
	"github.com/vramyard/vramyard/strategies/slabbuddy/xdl"
)

// The geometry of most tests: 64 KiB regions, 1 KiB blocks, 256-byte units.
const (
	region = 64 * device.KiB
	block  = device.KiB
)

var small = xdl.Config{RegionBytes: region, BlockBytes: block, Segments: 2}

// open returns an allocator over a simulated device with the given capacity, and a
// wrapper to inject faults with.
func open(t testing.TB, capacity device.Size, c xdl.Config) (*xdl.Allocator, *device.Faults) {
	t.Helper()
	d, err := sim.New(sim.Config{Capacity: capacity, Charge: 2 * device.MiB})
	require.NoError(t, err)
	f, err := device.NewFaults(d, device.FaultPlan{})
	require.NoError(t, err)
	a, err := xdl.New(f, c)
	require.NoError(t, err)
	return a, f
}

// get allocates.
func get(t testing.TB, a alloc.Strategy, size device.Size) alloc.Block {
	t.Helper()
	b, err := a.Alloc(alloc.Request{Size: size})
	require.NoError(t, err)
	require.NoError(t, a.Check())
	return b
}

// ownerOf returns whose the live block at p is.
func ownerOf(a *xdl.Allocator, p device.Addr) uint8 {
	for c := range a.Walk {
		if c.Addr == p && c.State == alloc.Live {
			return c.Owner
		}
	}
	return 0
}

// granted returns the bytes of the block for a request, in the small geometry.
func granted(n device.Size) device.Size {
	switch {
	case n < block:
		return (n + 255) / 256 * 256
	case n < region:
		size := block
		for size < n {
			size *= 2
		}
		return size
	}
	return n
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		json, want string
	}{
		{`{"compat":"x"}`, `slabbuddy: compat "x": want "xdl"`},
		{`{"compat":"xdl","region_bytes":3}`, `slabbuddy: region_bytes 3: want a power of two`},
		{`{"compat":"xdl","block_bytes":3}`, `slabbuddy: block_bytes 3: want a power of two from 4`},
		{`{"compat":"xdl","block_bytes":2}`, `slabbuddy: block_bytes 2: want a power of two from 4`},
		{`{"compat":"xdl","region_bytes":4096}`, `slabbuddy: block_bytes 16384: want less than region_bytes 4096`},
		{`{"compat":"xdl","segments":-1}`, `slabbuddy: segments -1: want at least 1`},
		{`{"compat":"xdl","segments":3}`,
			`slabbuddy: segments 3: want 16*segments*block_bytes to divide region_bytes 1073741824`},
		{`{"compat":"xdl","segments":8192}`,
			`slabbuddy: segments 8192: want 16*segments*block_bytes to divide region_bytes 1073741824`},
		{`{"compat":"xdl","segments":9223372036854775807}`,
			`slabbuddy: segments 9223372036854775807: want 16*segments*block_bytes to divide region_bytes 1073741824`},
		{`{"compat":"xdl","region_bytes":9223372036854775808,"block_bytes":4611686018427387904}`,
			`slabbuddy: segments 32: want 16*segments*block_bytes to divide region_bytes 9223372036854775808`},
		{`{"compat":"xdl","region_bytes":8589934592,"block_bytes":4}`,
			`slabbuddy: slab: unit_bytes 1: want at most 64*2^24 units in region_bytes 8589934592`},
		{`{"compat":"xdl","segments":4096}`, ``},
		{`{"compat":"xdl"}`, ``},
	} {
		var cfg xdl.Config
		require.NoError(t, json.Unmarshal([]byte(c.json), &cfg))
		_, err := xdl.New(nil, cfg)
		if c.want == "" {
			require.NoError(t, err, c.json)
		} else {
			require.EqualError(t, err, c.want, c.json)
		}
	}
}

func TestRouting(t *testing.T) {
	for _, c := range []struct {
		size, granted device.Size
		owner         uint8
	}{
		{1, 256, slabbuddy.OwnerSlab},
		{256, 256, slabbuddy.OwnerSlab},
		{257, 512, slabbuddy.OwnerSlab},
		{block - 1, block, slabbuddy.OwnerSlab},
		{block, block, slabbuddy.OwnerBuddy},
		{block + 1, 2 * block, slabbuddy.OwnerBuddy},
		{region/2 + 1, region, slabbuddy.OwnerBuddy},
		{region - 1, region, slabbuddy.OwnerBuddy},
		{region, region, slabbuddy.OwnerDirect},
		{region + 1, region + 1, slabbuddy.OwnerDirect},
		{5*region + 77, 5*region + 77, slabbuddy.OwnerDirect},
	} {
		a, f := open(t, 0, small)
		b := get(t, a, c.size)
		require.Equal(t, c.granted, b.Size, "%d", c.size)
		require.Equal(t, c.owner, ownerOf(a, b.Addr), "%d", c.size)
		require.NoError(t, a.Free(b.Addr))
		require.NoError(t, a.Check())
		held := 1
		if c.owner == slabbuddy.OwnerDirect {
			held = 0
		}
		require.Equal(t, held, f.Usage().Regions, "%d: only direct blocks go back", c.size)
	}
}

func TestPartsNeverShare(t *testing.T) {
	a, f := open(t, 0, small)
	get(t, a, 1)
	get(t, a, block)
	require.Equal(t, 2, f.Usage().Regions)
}

func TestDirectBlockIsExactAndTheRestIsSlack(t *testing.T) {
	a, _ := open(t, 0, small)
	b, err := a.Alloc(alloc.Request{Size: region + 1, Align: 8 * device.MiB, Tag: 7, Stream: 3})
	require.NoError(t, err)
	require.True(t, b.Addr.IsAligned(8*device.MiB), "the device aligns")
	require.Equal(t, []alloc.Chunk{
		{Region: b.Addr, Addr: b.Addr, Size: region + 1, Requested: region + 1, State: alloc.Live,
			Class: alloc.NoClass, Owner: slabbuddy.OwnerDirect, Tag: 7, Stream: 3},
		{Region: b.Addr, Addr: b.Addr.Add(region + 1), Size: 255, State: alloc.Slack,
			Class: alloc.NoClass, Owner: slabbuddy.OwnerDirect},
	}, slices.Collect(a.Walk))
	require.NoError(t, a.Check())
}

func TestAlignment(t *testing.T) {
	a, _ := open(t, 0, small)
	for _, c := range []struct {
		size, align device.Size
		ok          bool
	}{
		{1, 256, true}, {1, 512, false}, {1, 3, false},
		{block, block, true}, {block, 2 * block, false}, {2 * block, 2 * block, true},
		{region, device.MiB, true}, {region, 3, false},
	} {
		b, err := a.Alloc(alloc.Request{Size: c.size, Align: c.align})
		if !c.ok {
			require.ErrorIs(t, err, alloc.ErrInvalidRequest)
			r, _ := a.LastRefusal()
			require.Equal(t, power.ReasonAlignment, r.Reason)
			continue
		}
		require.NoError(t, err, "%d aligned to %d", c.size, c.align)
		require.True(t, b.Addr.IsAligned(c.align))
	}
}

func TestRefusals(t *testing.T) {
	a, f := open(t, 4*device.MiB, small)
	get(t, a, 1)
	get(t, a, block)
	before, walk := a.Stats(), slices.Collect(a.Walk)
	free := 2*region - 256 - block
	_, err := a.Alloc(alloc.Request{})
	require.ErrorIs(t, err, alloc.ErrInvalidRequest)
	got, _ := a.LastRefusal()
	require.Equal(t, power.Refusal{Reason: power.ReasonZero, LargestHole: region / 2, Free: free}, got)
	require.Equal(t, before, a.Stats())
	for n, size := range []device.Size{region - 1, region, 1 << 40, ^device.Size(0)} {
		_, err = a.Alloc(alloc.Request{Size: size})
		require.ErrorIs(t, err, alloc.ErrOutOfMemory)
		got, _ = a.LastRefusal()
		require.Equal(t, power.Refusal{
			Reason: power.ReasonDevice, Request: alloc.Request{Size: size}, Asked: max(size, region),
			Device:      device.ErrOutOfMemory,
			LargestHole: region / 2, Free: free,
		}, got)
		require.Equal(t, uint64(n+1), a.Stats().OOMs)
		require.NoError(t, a.Check())
	}
	require.Equal(t, walk, slices.Collect(a.Walk))
	require.Equal(t, 2, f.Usage().Regions)
	require.Equal(t, ^device.Size(0), a.MaxRequest())
}

func TestIllegalFrees(t *testing.T) {
	for _, size := range []device.Size{1000, 2000, 100000} {
		a, _ := open(t, 0, small)
		gone, kept := get(t, a, size), get(t, a, size)
		require.NoError(t, a.Free(gone.Addr))
		before, walk := a.Stats(), slices.Collect(a.Walk)
		for name, p := range map[string]device.Addr{
			"null": 0, "double": gone.Addr, "interior": kept.Addr + 256, "unaligned": kept.Addr + 1,
			"foreign": sim.Base - 256, "far above": sim.Base.Add(device.TiB), "last": ^device.Addr(0),
		} {
			require.ErrorIs(t, a.Free(p), alloc.ErrInvalidFree, "%s, size %d", name, size)
		}
		require.Equal(t, before, a.Stats())
		require.Equal(t, walk, slices.Collect(a.Walk))
		require.NoError(t, a.Check())
	}
}

func TestRefusedReleaseFreesTheBlock(t *testing.T) {
	a, f := open(t, 0, small)
	b := get(t, a, region)
	f.FailNext(1)
	require.NoError(t, a.Free(b.Addr))
	require.ErrorIs(t, a.Free(b.Addr), alloc.ErrInvalidFree)
	require.NoError(t, a.Check())
	require.Zero(t, a.Stats().Live)
	require.Equal(t, []alloc.State{alloc.Slack}, states(a))
	f.FailNext(1)
	get(t, a, region+1)
	require.Equal(t, 1, f.Usage().Regions, "the refused reservation released the region and was tried again")
}

// states returns the state of each chunk.
func states(a *xdl.Allocator) (all []alloc.State) {
	for c := range a.Walk {
		all = append(all, c.State)
	}
	return all
}

// TestEveryDeviceCallMayFail refuses one device call of a run in turn, until one has none.
func TestEveryDeviceCallMayFail(t *testing.T) {
	sizes := []device.Size{1, block, region, 1, region + 1, region - 1}
	for nth := uint64(1); ; nth++ {
		d, err := sim.New(sim.Config{})
		require.NoError(t, err)
		f, err := device.NewFaults(d, device.FaultPlan{Nth: nth})
		require.NoError(t, err)
		a, err := xdl.New(f, small)
		require.NoError(t, err)
		for _, size := range sizes {
			if _, err := a.Alloc(alloc.Request{Size: size}); err != nil {
				require.ErrorIs(t, err, alloc.ErrOutOfMemory)
				get(t, a, size) // the next time it works
			}
			require.NoError(t, a.Check())
		}
		if err := a.Close(); err != nil {
			require.ErrorIs(t, err, device.ErrInjected)
			require.NoError(t, a.Check())
			kept := slices.Collect(a.Walk)
			require.Len(t, kept, 1, "what was refused stays on the books")
			require.Equal(t, alloc.Slack, kept[0].State)
			require.NoError(t, a.Close(), "the next time it works")
		}
		require.Zero(t, d.Usage().Regions)
		require.NoError(t, a.Check())
		if f.Injected() == 0 {
			require.Equal(t, uint64(11), nth, "five regions taken and given back")
			return
		}
	}
}

func TestClosedRefuses(t *testing.T) {
	a, _ := open(t, 0, small)
	get(t, a, 1)
	require.NoError(t, a.Close())
	_, err := a.Alloc(alloc.Request{Size: 1})
	require.ErrorIs(t, err, alloc.ErrClosed)
	require.ErrorIs(t, a.Free(sim.Base), alloc.ErrClosed)
	require.Empty(t, slices.Collect(a.Walk))
	require.Empty(t, slices.Collect(a.WalkFree))
	require.Zero(t, a.LargestFree())
	n, err := power.MetadataBytes(a)
	require.NoError(t, err)
	require.Less(t, n, 4*device.KiB)
}

// TestPartsBehaveAsAlone splits a sequence of calls: each part grants the same offset in
// the same of its regions as it does alone over a device of its own.
func TestPartsBehaveAsAlone(t *testing.T) {
	whole, _ := open(t, 0, small)
	alone := map[uint8]alloc.Strategy{}
	d1, err := sim.New(sim.Config{})
	require.NoError(t, err)
	alone[slabbuddy.OwnerSlab], err = slab.New(d1, slab.Config{
		RegionBytes: region, Segments: 2, UnitBytes: block / 4,
	})
	require.NoError(t, err)
	d2, err := sim.New(sim.Config{})
	require.NoError(t, err)
	alone[slabbuddy.OwnerBuddy], err = buddy.New(d2, buddy.Config{
		RegionBytes: region, BlockBytes: block,
	})
	require.NoError(t, err)
	// of regions alone, in the whole
	bases := map[uint8]map[device.Addr]device.Addr{slabbuddy.OwnerSlab: {}, slabbuddy.OwnerBuddy: {}}
	type pair struct {
		whole, alone device.Addr
		owner        uint8
	}
	var live []pair
	rng := rand.New(rand.NewPCG(3, 0))
	for range 4000 {
		if len(live) > 0 && rng.IntN(100) < 45 {
			i := rng.IntN(len(live))
			require.NoError(t, whole.Free(live[i].whole))
			require.NoError(t, alone[live[i].owner].Free(live[i].alone))
			live = slices.Delete(live, i, i+1)
			continue
		}
		size, owner := device.Size(1+rng.IntN(int(block)-1)), slabbuddy.OwnerSlab
		if rng.IntN(2) == 0 {
			size, owner = block+device.Size(rng.IntN(8*int(block))), slabbuddy.OwnerBuddy
		}
		w, err := whole.Alloc(alloc.Request{Size: size})
		require.NoError(t, err)
		s, err := alone[owner].Alloc(alloc.Request{Size: size})
		require.NoError(t, err)
		require.Equal(t, s.Size, w.Size)
		mask := device.Addr(2*device.MiB - 1) // regions are 2 MiB apart
		if base, known := bases[owner][s.Addr&^mask]; known {
			require.Equal(t, base, w.Addr&^mask, "the same of its regions")
		}
		bases[owner][s.Addr&^mask] = w.Addr &^ mask
		require.Equal(t, s.Addr&mask, w.Addr&mask, "the same offset")
		live = append(live, pair{w.Addr, s.Addr, owner})
	}
	require.NoError(t, whole.Check())
}

func TestRandomCalls(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			a, f := open(t, 16*device.MiB, small)
			require.NoError(t, oracle.Drive{
				Seed: seed, Calls: 500, Granted: granted,
				Size: func(rng *rand.Rand) device.Size { return device.Size(rng.Uint64N(2 << rng.IntN(18))) },
			}.Run(a))
			require.NoError(t, a.Close())
			require.Zero(t, f.Usage().Regions)
		})
	}
}

func TestWarmCallsTakeNothingFromTheHeap(t *testing.T) {
	a, _ := open(t, 0, small)
	var blocks [64]device.Addr
	for i := range blocks {
		blocks[i] = get(t, a, device.Size(100+40*i)).Addr
	}
	i := 0
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if a.Free(blocks[i%64]) != nil || a.Free(blocks[i%64]) == nil {
			t.Fatal("free")
		}
		b, err := a.Alloc(alloc.Request{Size: device.Size(100 + 40*(i%64))})
		if err != nil {
			t.Fatal(err)
		}
		blocks[i%64] = b.Addr
		i++
	}))
}

func TestStatsCountTheWhole(t *testing.T) {
	a, f := open(t, 0, small)
	for _, size := range []device.Size{1, block, region, 2 * region} {
		get(t, a, size)
	}
	b := get(t, a, 3*region)
	require.NoError(t, a.Free(b.Addr))
	f.FailNext(1)
	_, err := a.Alloc(alloc.Request{Size: region})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	require.Equal(t, alloc.Stats{
		Allocs: 5, Frees: 1, OOMs: 1, Live: 4,
		Requested: 1 + block + 3*region, Allocated: 256 + block + 3*region, Active: 256 + block + 3*region,
		Reserved:      5 * region,
		PeakRequested: 1 + block + 6*region, PeakAllocated: 256 + block + 6*region, PeakActive: 256 + block + 6*region,
		PeakReserved: 8 * region, LargestAlloc: 3 * region,
		Regions: 4, Reserves: 5, ReserveFailures: 1, Releases: 1,
	}, a.Stats())
	require.NoError(t, power.ClearStats(a))
	require.Equal(t, 1+block+3*region, a.Stats().PeakRequested)
}
