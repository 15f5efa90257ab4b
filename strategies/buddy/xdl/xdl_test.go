package xdl_test

import (
	"encoding/json"
	"errors"
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
	"github.com/vramyard/vramyard/strategies/buddy/xdl"
)

// open returns an allocator over a simulated device with the given capacity, and a
// wrapper to inject faults with.
func open(t testing.TB, capacity, region, block device.Size) (*xdl.Allocator, *device.Faults) {
	t.Helper()
	d, err := sim.New(sim.Config{Capacity: capacity, Charge: 2 * device.MiB})
	require.NoError(t, err)
	f, err := device.NewFaults(d, device.FaultPlan{})
	require.NoError(t, err)
	a, err := xdl.New(f, xdl.Config{RegionBytes: region, BlockBytes: block})
	require.NoError(t, err)
	return a, f
}

// at allocates and returns the offset of the block from the start of the device.
func at(t testing.TB, a *xdl.Allocator, size device.Size) device.Size {
	t.Helper()
	b, err := a.Alloc(alloc.Request{Size: size})
	require.NoError(t, err)
	require.NoError(t, a.Check())
	return b.Addr.Sub(sim.Base)
}

// free frees the block at an offset.
func free(t testing.TB, a *xdl.Allocator, offset device.Size) {
	t.Helper()
	require.NoError(t, a.Free(sim.Base.Add(offset)))
	require.NoError(t, a.Check())
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		json, want string
	}{
		{`{"compat":"bfc"}`, `buddy: compat "bfc": want "xdl"`},
		{`{"compat":"xdl","block_bytes":3}`, `buddy: block_bytes 3: want a power of two`},
		{`{"compat":"xdl","region_bytes":1000}`, `buddy: region_bytes 1000: want a power of two`},
		{`{"compat":"xdl","region_bytes":4096,"block_bytes":4096}`,
			`buddy: block_bytes 4096: want less than region_bytes 4096`},
		{`{"compat":"xdl","region_bytes":4096}`, `buddy: block_bytes 16384: want less than region_bytes 4096`},
		{`{"compat":"xdl","region_bytes":2147483648,"block_bytes":1}`,
			`buddy: block_bytes 1: want at most 2^30 blocks in region_bytes 2147483648`},
		{`{"compat":"xdl","region_bytes":1073741824,"block_bytes":1}`, ``},
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

func TestGrantIsNextPowerOfTwo(t *testing.T) {
	a, _ := open(t, 0, 64*device.KiB, 256)
	for _, c := range []struct{ size, want device.Size }{
		{1, 256}, {255, 256}, {256, 256}, {257, 512}, {512, 512}, {513, 1024},
		{32*device.KiB - 1, 32 * device.KiB}, {32 * device.KiB, 32 * device.KiB}, {32*device.KiB + 1, 64 * device.KiB},
		{64*device.KiB - 1, 64 * device.KiB}, {64 * device.KiB, 64 * device.KiB},
	} {
		b, err := a.Alloc(alloc.Request{Size: c.size})
		require.NoError(t, err)
		require.Equal(t, c.want, b.Size, "%d", c.size)
		require.NoError(t, a.Check())
	}
}

func TestRefusedRequestsChangeNothing(t *testing.T) {
	a, _ := open(t, 0, 64*device.KiB, 256)
	at(t, a, 300)
	before, walk := a.Stats(), slices.Collect(a.Walk)
	for _, c := range []struct {
		r    alloc.Request
		want power.Reason
	}{
		{alloc.Request{}, power.ReasonZero},
		{alloc.Request{Size: 64*device.KiB + 1}, power.ReasonTooLarge},
		{alloc.Request{Size: 1 << 63}, power.ReasonTooLarge},
		{alloc.Request{Size: ^device.Size(0)}, power.ReasonTooLarge},
		{alloc.Request{Size: 1, Align: 3}, power.ReasonAlignment},
		{alloc.Request{Size: 1, Align: 512}, power.ReasonAlignment},
	} {
		_, err := a.Alloc(c.r)
		require.ErrorIs(t, err, alloc.ErrInvalidRequest)
		got, ok := a.LastRefusal()
		require.True(t, ok)
		require.Equal(t, power.Refusal{
			Reason: c.want, Request: c.r, LargestHole: 32 * device.KiB, Free: 64*device.KiB - 512,
		}, got)
	}
	require.Equal(t, before, a.Stats())
	require.Equal(t, walk, slices.Collect(a.Walk))
	require.Equal(t, 64*device.KiB, a.MaxRequest())
}

func TestAlignmentIsThatOfTheBlockAndTheRegion(t *testing.T) {
	a, _ := open(t, 0, 8*device.MiB, 256)
	for _, c := range []struct {
		size, align device.Size
		ok          bool
	}{
		{1, 1, true}, {1, 256, true}, {1, 512, false}, {257, 512, true}, {257, 1024, false},
		{2 * device.MiB, 2 * device.MiB, true}, {4 * device.MiB, 2 * device.MiB, true},
		{4 * device.MiB, 4 * device.MiB, false},
		{1, 1 << 63, false}, {1, 3, false},
	} {
		b, err := a.Alloc(alloc.Request{Size: c.size, Align: c.align})
		require.Equal(t, c.ok, err == nil, "%d aligned to %d: %v", c.size, c.align, err)
		if c.ok {
			require.True(t, b.Addr.IsAligned(c.align))
		}
	}
}

// TestSmallRegionsAreAligned has a device that aligns to nothing by itself.
func TestSmallRegionsAreAligned(t *testing.T) {
	d, err := sim.New(sim.Config{Align: 1, Round: 1})
	require.NoError(t, err)
	_, err = d.Reserve(1, 0)
	require.NoError(t, err)
	a, err := xdl.New(d, xdl.Config{RegionBytes: 4096, BlockBytes: 16})
	require.NoError(t, err)
	b, err := a.Alloc(alloc.Request{Size: 4096, Align: 4096})
	require.NoError(t, err)
	require.True(t, b.Addr.IsAligned(4096))
}

// TestLowestAddressBeatsBestFit is what sets the original apart from other buddies: the
// block of four is split although one of exactly the size is free higher up.
func TestLowestAddressBeatsBestFit(t *testing.T) {
	a, _ := open(t, 0, 4096, 256)
	four := at(t, a, 1024)
	for i := range device.Size(4) {
		require.Equal(t, 1024+i*256, at(t, a, 256))
	}
	free(t, a, 1024+3*256)
	free(t, a, four)
	require.Equal(t, device.Size(0), at(t, a, 256))
}

func TestFreedRunsMergeToTheTop(t *testing.T) {
	for _, blocks := range []device.Size{2, 4, 32, 64, 128, 1024} { // around a word of 64
		a, _ := open(t, 0, blocks*256, 256)
		for range blocks {
			at(t, a, 256)
		}
		require.Zero(t, a.LargestFree())
		for i := range blocks {
			free(t, a, (i*(blocks/2|1)%blocks)*256) // an odd step, far apart
		}
		require.Equal(t, blocks*256, a.LargestFree())
		require.Equal(t, device.Size(0), at(t, a, blocks*256))
		require.Equal(t, 1, a.Stats().Regions)
	}
}

func TestOldestRegionFirst(t *testing.T) {
	a, f := open(t, 0, 4096, 256)
	first := at(t, a, 4096)
	second := at(t, a, 4096)
	require.Equal(t, 2*device.MiB, second)
	free(t, a, second)
	free(t, a, first)
	require.Equal(t, first, at(t, a, 256))
	require.Equal(t, 2, f.Usage().Regions, "empty regions stay")
}

// TestOldestRegionIsNotTheLowest lets a lower hole open after the first region was taken.
func TestOldestRegionIsNotTheLowest(t *testing.T) {
	d, err := sim.New(sim.Config{})
	require.NoError(t, err)
	hole, err := d.Reserve(device.MiB, 0)
	require.NoError(t, err)
	a, err := xdl.New(d, xdl.Config{RegionBytes: 4096, BlockBytes: 256})
	require.NoError(t, err)
	old := at(t, a, 4096)
	require.NoError(t, d.Release(hole.Addr))
	require.Equal(t, device.Size(0), at(t, a, 4096))
	free(t, a, 0)
	free(t, a, old)
	require.Equal(t, old, at(t, a, 256), "older, though higher")
	var starts []device.Size
	for c := range a.Walk {
		starts = append(starts, c.Addr.Sub(sim.Base))
	}
	require.True(t, slices.IsSorted(starts), "the walk goes by address")
	var searched []device.Size
	for c := range a.WalkFree {
		searched = append(searched, c.Addr.Sub(sim.Base))
	}
	require.Equal(t, []device.Size{old + 256, old + 512, old + 1024, old + 2048, 0}, searched, "the search by age")
}

func TestIllegalFrees(t *testing.T) {
	a, _ := open(t, 0, 64*device.KiB, 256)
	gone := at(t, a, 1024)
	kept := at(t, a, 1024)
	free(t, a, gone)
	before, walk := a.Stats(), slices.Collect(a.Walk)
	for name, p := range map[string]device.Addr{
		"null": 0, "double": sim.Base.Add(gone), "interior": sim.Base.Add(kept + 256), "unaligned": sim.Base.Add(kept + 1),
		"foreign": sim.Base - 256, "above": sim.Base.Add(64 * device.KiB), "end": sim.Base.Add(kept + 1024),
		"last": ^device.Addr(0),
	} {
		require.ErrorIs(t, a.Free(p), alloc.ErrInvalidFree, name)
	}
	require.Equal(t, before, a.Stats())
	require.Equal(t, walk, slices.Collect(a.Walk))
	require.NoError(t, a.Check())
}

func TestOutOfMemoryChangesNothing(t *testing.T) {
	a, _ := open(t, 2*device.MiB, 4096, 256)
	at(t, a, 2048)
	walk := slices.Collect(a.Walk)
	_, err := a.Alloc(alloc.Request{Size: 4096})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	require.Equal(t, walk, slices.Collect(a.Walk))
	require.NoError(t, a.Check())
	got, _ := a.LastRefusal()
	require.Equal(t, power.Refusal{
		Reason: power.ReasonDevice, Request: alloc.Request{Size: 4096}, Asked: 4096, Device: device.ErrOutOfMemory,
		LargestHole: 2048, Free: 2048,
	}, got)
	s := a.Stats()
	require.Equal(t, [2]uint64{1, 1}, [2]uint64{s.OOMs, s.ReserveFailures})
	require.Equal(t, device.Size(2048), at(t, a, 2048))
}

// TestEveryDeviceCallMayFail refuses one device call of a run in turn, until one has none.
func TestEveryDeviceCallMayFail(t *testing.T) {
	for nth := uint64(1); ; nth++ {
		d, err := sim.New(sim.Config{})
		require.NoError(t, err)
		f, err := device.NewFaults(d, device.FaultPlan{Nth: nth})
		require.NoError(t, err)
		a, err := xdl.New(f, xdl.Config{RegionBytes: 4096, BlockBytes: 256})
		require.NoError(t, err)
		for range 3 {
			if _, err := a.Alloc(alloc.Request{Size: 4096}); err != nil {
				require.ErrorIs(t, err, alloc.ErrOutOfMemory)
				_, err = a.Alloc(alloc.Request{Size: 4096})
				require.NoError(t, err, "the next time it works")
			}
			require.NoError(t, a.Check())
		}
		if err := a.Close(); err != nil {
			require.ErrorIs(t, err, device.ErrInjected)
			require.NoError(t, a.Check())
			require.Equal(t, 1, a.Stats().Regions)
			require.Len(t, slices.Collect(a.Walk), 1, "what was refused stays on the books")
			require.NoError(t, a.Close(), "the next time it works")
		}
		require.Zero(t, d.Usage().Regions)
		require.NoError(t, a.Check())
		if f.Injected() == 0 {
			require.Equal(t, uint64(7), nth, "three regions taken and given back")
			return
		}
	}
}

func TestClosedRefuses(t *testing.T) {
	a, f := open(t, 0, 4096, 256)
	at(t, a, 256)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	_, err := a.Alloc(alloc.Request{Size: 1})
	require.ErrorIs(t, err, alloc.ErrClosed)
	require.ErrorIs(t, a.Free(sim.Base), alloc.ErrClosed)
	require.Empty(t, slices.Collect(a.Walk))
	require.Empty(t, slices.Collect(a.WalkFree))
	require.Zero(t, a.LargestFree())
	require.Zero(t, f.Usage().Regions)
	require.Zero(t, a.Stats().Live+a.Stats().Regions)
}

// TestExcessOfARegionIsSlack has a device that rounds regions up.
func TestExcessOfARegionIsSlack(t *testing.T) {
	d, err := sim.New(sim.Config{Round: device.MiB})
	require.NoError(t, err)
	a, err := xdl.New(d, xdl.Config{RegionBytes: 4096, BlockBytes: 256})
	require.NoError(t, err)
	at(t, a, 4096)
	chunks := slices.Collect(a.Walk)
	require.Len(t, chunks, 2)
	require.Equal(t, alloc.Chunk{
		Region: sim.Base, Addr: sim.Base + 4096, Size: device.MiB - 4096, State: alloc.Slack, Class: alloc.NoClass,
	}, chunks[1])
	require.Equal(t, device.MiB, a.Stats().Reserved)
}

func TestRandomCalls(t *testing.T) {
	for _, blocks := range []int{1, 2, 5, 6, 7, 10} { // orders of a region, around a word of 64
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("order=%d/seed=%d", blocks, seed), func(t *testing.T) {
				region := device.Size(256) << blocks
				a, f := open(t, 8*device.MiB, region, 256)
				require.NoError(t, oracle.Drive{
					Seed: seed, Calls: 400,
					Size: func(rng *rand.Rand) device.Size {
						return device.Size(rng.Uint64N(uint64(region)>>rng.IntN(blocks+1) + 2))
					},
					Granted: func(n device.Size) device.Size {
						granted := device.Size(256)
						for granted < n {
							granted *= 2
						}
						return granted
					},
				}.Run(a))
				require.NoError(t, a.Close())
				require.Zero(t, f.Usage().Regions)
			})
		}
	}
}

func TestWarmCallsTakeNothingFromTheHeap(t *testing.T) {
	a, _ := open(t, 4*device.MiB, 64*device.KiB, 256)
	var blocks [64]device.Addr
	for i := range blocks {
		blocks[i] = sim.Base.Add(at(t, a, 300))
	}
	i := 0
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if a.Free(blocks[i%64]) != nil || a.Free(blocks[i%64]) == nil {
			t.Fatal("free")
		}
		b, err := a.Alloc(alloc.Request{Size: device.Size(1 + i*13%1000)})
		if err != nil {
			t.Fatal(err)
		}
		blocks[i%64] = b.Addr
		i++
	}))
	for {
		if _, err := a.Alloc(alloc.Request{Size: 64 * device.KiB}); err != nil {
			break
		}
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := a.Alloc(alloc.Request{Size: 64 * device.KiB}); !errors.Is(err, alloc.ErrOutOfMemory) {
			t.Fatal(err)
		}
	}), "nor does running out")
}

func TestMetadataIsSmall(t *testing.T) {
	a, _ := open(t, 0, device.GiB, 16*device.KiB)
	at(t, a, 1)
	n, err := power.MetadataBytes(a)
	require.NoError(t, err)
	require.Less(t, n, 24*device.KiB)
}

func TestClearStats(t *testing.T) {
	a, _ := open(t, 0, 4096, 256)
	free(t, a, at(t, a, 4096))
	at(t, a, 100)
	require.NoError(t, power.ClearStats(a))
	s := a.Stats()
	require.Zero(t, s.Allocs+s.Frees)
	require.Equal(t, device.Size(100), s.PeakRequested)
	require.Equal(t, device.Size(256), s.PeakAllocated)
}
