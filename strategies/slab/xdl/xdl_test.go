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
	"github.com/vramyard/vramyard/strategies/slab/blaze"
	"github.com/vramyard/vramyard/strategies/slab/xdl"
)

const unit = 256

// open returns a strategy over a simulated device with the given capacity, and a wrapper
// to inject faults with.
func open(t testing.TB, capacity device.Size, c any) (alloc.Strategy, *device.Faults) {
	t.Helper()
	d, err := sim.New(sim.Config{Capacity: capacity, Charge: 2 * device.MiB})
	require.NoError(t, err)
	f, err := device.NewFaults(d, device.FaultPlan{})
	require.NoError(t, err)
	a, err := build(f, c)
	require.NoError(t, err)
	return a, f
}

// build returns the original that a configuration is of.
func build(src device.Source, c any) (alloc.Strategy, error) {
	if c, ok := c.(blaze.Config); ok {
		return blaze.New(src, c)
	}
	return xdl.New(src, c.(xdl.Config))
}

// chunked is a configuration with so many segments and chunks in a slice, units of 256 bytes.
func chunked(segments, chunks int) xdl.Config {
	return xdl.Config{
		Segments: segments, UnitBytes: unit, RegionBytes: device.Size(segments*chunks) * 64 * unit,
	}
}

// at allocates and returns the offset of the block from the start of the device.
func at(t testing.TB, a alloc.Strategy, size device.Size) device.Size {
	t.Helper()
	b, err := a.Alloc(alloc.Request{Size: size})
	require.NoError(t, err)
	require.NoError(t, a.Check())
	return b.Addr.Sub(sim.Base)
}

// units is at for so many units, in units.
func units(t testing.TB, a alloc.Strategy, n device.Size) device.Size {
	t.Helper()
	return at(t, a, n*unit) / unit
}

// free frees the block at an offset.
func free(t testing.TB, a alloc.Strategy, offset device.Size) {
	t.Helper()
	require.NoError(t, a.Free(sim.Base.Add(offset)))
	require.NoError(t, a.Check())
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		json, want string
	}{
		{`{}`, ``},
		{`{"compat":"slub"}`, `slab: compat "slub": want "xdl"`},
		{`{"compat":"xdl","segments":-1}`, `slab: segments -1: want 1 to 1048576`},
		{`{"compat":"xdl","segments":1048577}`, `slab: segments 1048577: want 1 to 1048576`},
		{`{"compat":"xdl","unit_bytes":18446744073709551615}`,
			`slab: unit_bytes 18446744073709551615: want 64*segments*unit_bytes of at most region_bytes 1073741824`},
		{`{"compat":"xdl","unit_bytes":144115188075855872}`,
			`slab: unit_bytes 144115188075855872: want 64*segments*unit_bytes of at most region_bytes 1073741824`},
		{`{"compat":"xdl","segments":3}`, `slab: region_bytes 1073741824: want a multiple of 64*segments*unit_bytes, 786432`},
		{`{"compat":"xdl","region_bytes":1099511627776,"segments":1,"unit_bytes":1}`,
			`slab: unit_bytes 1: want at most 64*2^24 units in region_bytes 1099511627776`},
		{`{"compat":"xdl"}`, ``},
		{`{"compat":"xdl","region_bytes":147456,"segments":3,"unit_bytes":256}`, ``},
	} {
		var cfg xdl.Config
		require.NoError(t, json.Unmarshal([]byte(c.json), &cfg))
		d, err := sim.New(sim.Config{})
		require.NoError(t, err)
		s, err := xdl.New(d, cfg)
		if c.want == "" {
			require.NoError(t, err, c.json)
		} else {
			require.EqualError(t, err, c.want, c.json)
			require.Nil(t, s, "not a typed nil")
		}
	}
}

func TestLocksAreBounded(t *testing.T) {
	d, err := sim.New(sim.Config{})
	require.NoError(t, err)
	_, err = xdl.NewLocked(d, xdl.Config{Segments: 2048, UnitBytes: unit})
	require.EqualError(t, err, "slab: segments 2048: want at most 1024 with locks")
}

func TestGrantIsInUnits(t *testing.T) {
	a, _ := open(t, 0, chunked(1, 4))
	for _, c := range []struct{ size, want device.Size }{
		{1, 1}, {255, 1}, {256, 1}, {257, 2}, {512, 2}, {513, 3}, {768, 3}, {769, 4}, {1023, 4}, {1024, 4},
	} {
		b, err := a.Alloc(alloc.Request{Size: c.size})
		require.NoError(t, err)
		require.Equal(t, c.want*unit, b.Size, "%d", c.size)
	}
	require.Equal(t, device.Size(1024), power.MaxRequest(a))
}

// TestTurn is who advances the rotation: two segments, a slice of one chunk each, so the
// offset tells the segment.
func TestTurn(t *testing.T) {
	bad := func(r alloc.Request) func(*testing.T, alloc.Strategy, *device.Faults) {
		return func(t *testing.T, a alloc.Strategy, _ *device.Faults) {
			before, walk := a.Stats(), slices.Collect(a.Walk)
			_, err := a.Alloc(r)
			require.ErrorIs(t, err, alloc.ErrInvalidRequest)
			require.Equal(t, before, a.Stats())
			require.Equal(t, walk, slices.Collect(a.Walk))
		}
	}
	for name, c := range map[string]struct {
		between func(*testing.T, alloc.Strategy, *device.Faults)
		next    device.Size
	}{
		"a grant passes it on":          {func(*testing.T, alloc.Strategy, *device.Faults) {}, 64},
		"a request of zero does not":    {bad(alloc.Request{}), 64},
		"one above four units does not": {bad(alloc.Request{Size: 4*unit + 1}), 64},
		"one of 2^32 units does not":    {bad(alloc.Request{Size: unit << 32}), 64},
		"one that overflows does not":   {bad(alloc.Request{Size: ^device.Size(0)}), 64},
		"a bad alignment does not":      {bad(alloc.Request{Size: 1, Align: 2 * unit}), 64},
		"no power of two does not":      {bad(alloc.Request{Size: 1, Align: 3}), 64},
		"a free does not":               {func(t *testing.T, a alloc.Strategy, _ *device.Faults) { free(t, a, 0) }, 64},
		"running out does": {func(t *testing.T, a alloc.Strategy, f *device.Faults) {
			for range 31 { // both segments' only chunks are filled
				units(t, a, 4)
			}
			f.FailNext(1)
			_, err := a.Alloc(alloc.Request{Size: 1})
			require.ErrorIs(t, err, alloc.ErrOutOfMemory)
			require.NoError(t, a.Check())
			r, _ := power.LastRefusal(a)
			require.Equal(t, power.ReasonDevice, r.Reason)
			require.Equal(t, device.Size(128*unit), r.Asked)
			require.ErrorIs(t, r.Device, device.ErrInjected)
			free(t, a, 0)         // of segment 0
			free(t, a, 64*unit*1) // of segment 1
		}, 64},
	} {
		t.Run(name, func(t *testing.T) {
			a, f := open(t, 0, chunked(2, 1))
			require.Equal(t, device.Size(0), units(t, a, 4))
			c.between(t, a, f)
			require.Equal(t, c.next, units(t, a, 4))
		})
	}
}

func TestSegmentsShareARegion(t *testing.T) {
	a, f := open(t, 0, chunked(4, 2))
	for g := range device.Size(4) {
		require.Equal(t, g*128, units(t, a, 1), "segment %d attaches its slice, lowest chunk first", g)
	}
	require.Equal(t, 1, f.Usage().Regions)
	for range 4 { // the second of each joins the first
		units(t, a, 1)
	}
	require.Equal(t, 1, f.Usage().Regions)
}

func TestNewSliceIsUsedFromItsLowestChunk(t *testing.T) {
	a, _ := open(t, 0, chunked(1, 3))
	for i := range device.Size(3 * 16) {
		require.Equal(t, 4*i, units(t, a, 4))
	}
	require.Equal(t, 2*device.MiB/unit, units(t, a, 4), "a new region")
}

// TestSmallestClassFirst has a chunk in each of lists 1 to 4.
func TestSmallestClassFirst(t *testing.T) {
	a, _ := open(t, 0, chunked(1, 4))
	for range 4 * 64 {
		units(t, a, 1)
	}
	for k := range device.Size(4) {
		for b := range k + 1 {
			free(t, a, (64*k+b)*unit)
		}
	}
	var classes []int32
	for c := range a.Walk {
		if c.State == alloc.Free {
			classes = append(classes, c.Class)
		}
	}
	require.Equal(t, []int32{1, 2, 3, 4}, classes)
	require.Equal(t, device.Size(128), units(t, a, 3), "class 3 is not class 2")
	require.Equal(t, device.Size(64), units(t, a, 2))
	require.Equal(t, device.Size(0), units(t, a, 1))
	require.Equal(t, device.Size(192), units(t, a, 4))
}

// TestTouchedChunkComesFirst frees in one and then in the other of two chunks that stay
// in class 4 all the time: the one touched last is used next.
func TestTouchedChunkComesFirst(t *testing.T) {
	a, _ := open(t, 0, chunked(1, 2))
	for range 32 {
		units(t, a, 4)
	}
	for _, b := range []device.Size{0, 4, 8, 64, 68, 72} {
		free(t, a, b*unit)
	}
	require.Equal(t, device.Size(64), units(t, a, 1), "chunk 1 was touched last")
	free(t, a, 20*unit)
	require.Equal(t, device.Size(0), units(t, a, 1), "now chunk 0 was, though its class is the same")
	require.Equal(t, device.Size(1), units(t, a, 1), "and stays in front when it is granted from")
	free(t, a, 64*unit)
	require.Equal(t, device.Size(64), units(t, a, 1))
}

func TestLowestFitInAChunk(t *testing.T) {
	a, _ := open(t, 0, chunked(1, 1))
	var blocks []device.Size
	for range 16 {
		blocks = append(blocks, units(t, a, 4))
	}
	free(t, a, blocks[1]*unit) // a hole of four and above it
	free(t, a, blocks[5]*unit)
	require.Equal(t, blocks[1], units(t, a, 3))
	require.Equal(t, device.Size(7), units(t, a, 1), "the rest of the lower hole")
	require.Equal(t, blocks[5], units(t, a, 1), "the lowest, not the tightest")
}

func TestFreedRunsMerge(t *testing.T) {
	a, _ := open(t, 0, chunked(1, 1))
	var blocks []device.Size
	for i := range device.Size(64) {
		blocks = append(blocks, units(t, a, 1))
		require.Equal(t, i, blocks[i])
	}
	require.Zero(t, power.LargestFree(a))
	for _, b := range []device.Size{10, 12, 11, 63, 62, 0, 1} {
		free(t, a, b*unit)
	}
	require.Equal(t, device.Size(3*unit), power.LargestFree(a))
	require.Equal(t, device.Size(10), units(t, a, 3))
	require.Equal(t, device.Size(2*unit), power.LargestFree(a))
	require.Equal(t, device.Size(0), units(t, a, 2))
	require.Equal(t, device.Size(62), units(t, a, 2))
}

// TestStrideStarvesSegments is the original's behaviour with a keep and drop of requests
// in turn: all that is kept is with one segment, which takes region after region.
func TestStrideStarvesSegments(t *testing.T) {
	regions := func(segments int) int {
		a, f := open(t, 0, xdl.Config{
			Segments: segments, UnitBytes: unit, RegionBytes: 32 * 64 * unit,
		})
		for range 500 {
			for i := range 32 {
				b, err := a.Alloc(alloc.Request{Size: 4 * unit})
				require.NoError(t, err)
				if i > 0 { // only the first of 32 is kept
					require.NoError(t, a.Free(b.Addr))
				}
			}
		}
		require.NoError(t, a.Check())
		return f.Usage().Regions
	}
	require.Equal(t, 1, regions(1))
	require.Equal(t, 32, regions(32), "500 blocks fill 31.25 slices of 16 blocks")
}

func TestIllegalFrees(t *testing.T) {
	for _, c := range []any{chunked(2, 1), blaze.Config{RegionBytes: device.MiB}} {
		a, _ := open(t, 0, c)
		gone := at(t, a, 1000)
		kept := at(t, a, 1000)
		free(t, a, gone)
		before, walk := a.Stats(), slices.Collect(a.Walk)
		for name, p := range map[string]device.Addr{
			"null": 0, "double": sim.Base.Add(gone), "interior": sim.Base.Add(kept + unit), "unaligned": sim.Base.Add(kept + 1),
			"foreign": sim.Base - unit, "not granted": sim.Base.Add(kept + 1024), "far above": sim.Base.Add(device.GiB),
			"last": ^device.Addr(0),
		} {
			require.ErrorIs(t, a.Free(p), alloc.ErrInvalidFree, name)
		}
		require.Equal(t, before, a.Stats())
		require.Equal(t, walk, slices.Collect(a.Walk))
		require.NoError(t, a.Check())
	}
}

func TestAlignment(t *testing.T) {
	for _, c := range []struct {
		cfg  any
		want device.Size // largest that is honoured
	}{
		{chunked(2, 1), unit},
		{xdl.Config{}, 4096},
		{xdl.Config{UnitBytes: 768, Segments: 3, RegionBytes: 9 * 64 * 768}, 256},
		{xdl.Config{UnitBytes: 4 * device.MiB, Segments: 1}, 2 * device.MiB},
		{blaze.Config{}, 2},
		{blaze.Config{MinClassBytes: 512}, 512},
		{blaze.Config{MinClassBytes: 4 * device.MiB}, 2 * device.MiB},
	} {
		a, _ := open(t, 0, c.cfg)
		size := device.Size(1)
		if c, ok := c.cfg.(xdl.Config); ok {
			size = c.UnitBytes + 1
		}
		for range 3 {
			b, err := a.Alloc(alloc.Request{Size: size, Align: c.want})
			require.NoError(t, err)
			require.True(t, b.Addr.IsAligned(c.want))
		}
		for _, bad := range []device.Size{2 * c.want, 3, 1 << 63} {
			_, err := a.Alloc(alloc.Request{Size: 1, Align: bad})
			require.ErrorIs(t, err, alloc.ErrInvalidRequest, "%d", bad)
			r, _ := power.LastRefusal(a)
			require.Equal(t, power.ReasonAlignment, r.Reason)
		}
	}
}

// TestRegionsAbove4GiB has offsets that need more than 32 bits, signed or not.
func TestRegionsAbove4GiB(t *testing.T) {
	a, _ := open(t, 0, xdl.Config{RegionBytes: 16 * device.GiB, Segments: 4, UnitBytes: device.MiB})
	for g := range device.Size(8) {
		got := at(t, a, 1)
		require.Equal(t, g%4*4*device.GiB+g/4*device.MiB, got)
	}
	for g := range device.Size(4) {
		free(t, a, g*4*device.GiB)
	}
}

func TestMoreThan1024Regions(t *testing.T) {
	a, f := open(t, 0, chunked(1, 1))
	for range 1030 * 16 {
		_, err := a.Alloc(alloc.Request{Size: 4 * unit})
		require.NoError(t, err)
	}
	require.Equal(t, 1030, f.Usage().Regions)
	require.NoError(t, a.Check())
	free(t, a, 1029*2*device.MiB)
	require.NoError(t, a.Close())
	require.Zero(t, f.Usage().Regions)
}

func TestRandomCalls(t *testing.T) {
	small := func(rng *rand.Rand) device.Size { return device.Size(rng.IntN(4*unit + 40)) }
	grantXDL := func(n device.Size) device.Size { return (n + unit - 1) / unit * unit }
	grantBlaze := func(n device.Size) device.Size {
		granted := device.Size(2)
		for granted < n {
			granted *= 2
		}
		return granted
	}
	for name, c := range map[string]struct {
		cfg   any
		drive oracle.Drive
	}{
		"xdl, one chunk":      {chunked(1, 1), oracle.Drive{Size: small, Granted: grantXDL}},
		"xdl, two segments":   {chunked(2, 1), oracle.Drive{Size: small, Granted: grantXDL}},
		"xdl, three segments": {chunked(3, 2), oracle.Drive{Size: small, Granted: grantXDL}},
		"blaze":               {blaze.Config{RegionBytes: 8192}, oracle.Drive{Size: small, Granted: grantBlaze}},
	} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				a, f := open(t, 8*device.MiB, c.cfg)
				c.drive.Seed, c.drive.Calls = seed, 400
				require.NoError(t, c.drive.Run(a))
				require.NoError(t, a.Close())
				require.Zero(t, f.Usage().Regions)
			})
		}
	}
}

func TestWarmCallsTakeNothingFromTheHeap(t *testing.T) {
	for _, c := range []any{chunked(2, 2), blaze.Config{RegionBytes: 64 * device.KiB}} {
		a, _ := open(t, 4*device.MiB, c)
		var blocks [64]device.Addr
		for i := range blocks {
			blocks[i] = sim.Base.Add(at(t, a, 1000))
		}
		i := 0
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			if a.Free(blocks[i%64]) != nil || a.Free(blocks[i%64]) == nil {
				t.Fatal("free")
			}
			b, err := a.Alloc(alloc.Request{Size: device.Size(513 + i*13%500)})
			if err != nil {
				t.Fatal(err)
			}
			blocks[i%64] = b.Addr
			i++
		}))
		for refused := 0; refused < 4; {
			if _, err := a.Alloc(alloc.Request{Size: 1000}); err != nil {
				refused++
			}
		}
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if _, err := a.Alloc(alloc.Request{Size: 1000}); !errors.Is(err, alloc.ErrOutOfMemory) {
				t.Fatal(err)
			}
		}), "nor does running out")
	}
}

// TestEveryDeviceCallMayFail refuses one device call of a run in turn, until one has none.
func TestEveryDeviceCallMayFail(t *testing.T) {
	for _, c := range []any{chunked(1, 1), blaze.Config{RegionBytes: 16 * 1024, MinClassBytes: 1024}} {
		for nth := uint64(1); ; nth++ {
			d, err := sim.New(sim.Config{})
			require.NoError(t, err)
			f, err := device.NewFaults(d, device.FaultPlan{Nth: nth})
			require.NoError(t, err)
			a, err := build(f, c)
			if err != nil {
				require.ErrorIs(t, err, device.ErrInjected)
				require.Regexp(t, "^first region of 16KiB: ", err.Error(), "who builds it names the strategy")
				require.Zero(t, d.Usage().Regions)
				continue
			}
			for range 40 {
				if _, err := a.Alloc(alloc.Request{Size: 1024}); err != nil {
					require.ErrorIs(t, err, alloc.ErrOutOfMemory)
					_, err = a.Alloc(alloc.Request{Size: 1024})
					require.NoError(t, err, "the next time it works")
				}
				require.NoError(t, a.Check())
			}
			if err := a.Close(); err != nil {
				require.ErrorIs(t, err, device.ErrInjected)
				require.NoError(t, a.Check())
				require.Len(t, slices.Collect(a.Walk), 1, "what was refused stays on the books")
				require.NoError(t, a.Close(), "the next time it works")
			}
			require.Zero(t, d.Usage().Regions)
			require.NoError(t, a.Check())
			if f.Injected() == 0 {
				require.Equal(t, uint64(7), nth, "three regions taken and given back")
				break
			}
		}
	}
}

func TestClosedRefuses(t *testing.T) {
	for _, c := range []any{chunked(2, 2), blaze.Config{}} {
		a, f := open(t, 0, c)
		at(t, a, 256)
		require.NoError(t, a.Close())
		require.NoError(t, a.Close())
		_, err := a.Alloc(alloc.Request{Size: 1})
		require.ErrorIs(t, err, alloc.ErrClosed)
		require.ErrorIs(t, a.Free(sim.Base), alloc.ErrClosed)
		require.Empty(t, slices.Collect(a.Walk))
		power.WalkFree(a, func(alloc.Chunk) bool { t.Error("a free chunk"); return true })
		require.Zero(t, power.LargestFree(a))
		require.Zero(t, f.Usage().Regions)
		require.Zero(t, a.Stats().Live+a.Stats().Regions)
	}
}

func TestClearStats(t *testing.T) {
	for _, c := range []any{chunked(2, 2), blaze.Config{}} {
		a, _ := open(t, 0, c)
		free(t, a, at(t, a, 1000))
		at(t, a, 100)
		require.NoError(t, power.ClearStats(a))
		require.Zero(t, a.Stats().Allocs)
		require.Equal(t, device.Size(100), a.Stats().PeakRequested)
	}
}

// TestExcessOfARegionIsSlack has a device that rounds regions up.
func TestExcessOfARegionIsSlack(t *testing.T) {
	for _, c := range []any{chunked(1, 1), blaze.Config{RegionBytes: 64 * unit}} {
		d, err := sim.New(sim.Config{Round: device.MiB})
		require.NoError(t, err)
		a, err := build(d, c)
		require.NoError(t, err)
		at(t, a, 256)
		chunks := slices.Collect(a.Walk)
		require.Equal(t, alloc.Chunk{
			Region: sim.Base, Addr: sim.Base + 64*unit, Size: device.MiB - 64*unit, State: alloc.Slack, Class: alloc.NoClass,
		}, chunks[len(chunks)-1])
	}
}
