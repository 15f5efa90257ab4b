package blaze_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/slab/blaze"
)

// open returns an allocator over a simulated device with the given capacity, and a wrapper to
// inject faults with.
func open(t testing.TB, capacity device.Size, c blaze.Config) (*blaze.Allocator, *device.Faults) {
	t.Helper()
	d, err := sim.New(sim.Config{Capacity: capacity, Charge: 2 * device.MiB})
	require.NoError(t, err)
	f, err := device.NewFaults(d, device.FaultPlan{})
	require.NoError(t, err)
	a, err := blaze.New(f, c)
	require.NoError(t, err)
	return a, f
}

// at allocates and returns the offset of the block from the start of the device.
func at(t testing.TB, a alloc.Strategy, size device.Size) device.Size {
	t.Helper()
	b, err := a.Alloc(alloc.Request{Size: size})
	require.NoError(t, err)
	require.NoError(t, a.Check())
	return b.Addr.Sub(sim.Base)
}

// free frees the block at an offset.
func free(t testing.TB, a alloc.Strategy, offset device.Size) {
	t.Helper()
	require.NoError(t, a.Free(sim.Base.Add(offset)))
	require.NoError(t, a.Check())
}

func TestConfigErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"compat":"blase"}`:                           `slab: compat "blase": want "blaze"`,
		`{"min_class_bytes":3}`:                        `slab: min_class_bytes 3: want a power of two`,
		`{"max_class_bytes":3}`:                        `slab: max_class_bytes 3: want a power of two`,
		`{"max_class_bytes":1}`:                        `slab: max_class_bytes 1: want at least min_class_bytes 2`,
		`{"region_bytes":1024,"max_class_bytes":2048}`: `slab: max_class_bytes 2048: want at most region_bytes 1024`,
		`{"region_bytes":1023}`:                        `slab: region_bytes 1023: want a multiple of min_class_bytes 2`,
		`{"region_bytes":1024}`:                        ``,
		`{}`:                                           ``,
	} {
		var c blaze.Config
		require.NoError(t, json.Unmarshal([]byte(text), &c))
		_, err := c.WithDefaults()
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.EqualError(t, err, want, text)
	}
}

// regionOf is a configuration with the given size of a region.
func regionOf(region device.Size) blaze.Config {
	return blaze.Config{RegionBytes: region}
}

func TestBlazeGrantIsNextPowerOfTwo(t *testing.T) {
	a, _ := open(t, 0, blaze.Config{})
	for _, c := range []struct{ size, want device.Size }{
		{0, 2}, {1, 2}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {1025, 2048},
		{128*device.MiB + 1, 256 * device.MiB}, {256 * device.MiB, 256 * device.MiB},
	} {
		b, err := a.Alloc(alloc.Request{Size: c.size})
		require.NoError(t, err)
		require.Equal(t, c.want, b.Size, "%d", c.size)
		require.NoError(t, a.Check())
	}
	for _, size := range []device.Size{256*device.MiB + 1, 1 << 63, ^device.Size(0)} {
		_, err := a.Alloc(alloc.Request{Size: size})
		require.ErrorIs(t, err, alloc.ErrInvalidRequest)
		r, _ := power.LastRefusal(a)
		require.Equal(t, power.ReasonTooLarge, r.Reason)
	}
	require.Equal(t, 256*device.MiB, power.MaxRequest(a))
}

func TestBlazeTakesItsFirstRegionAtOnce(t *testing.T) {
	a, f := open(t, 0, regionOf(device.MiB))
	require.Equal(t, 1, f.Usage().Regions)
	require.Equal(t, []alloc.Chunk{{Region: sim.Base, Addr: sim.Base, Size: device.MiB, Class: alloc.NoClass}},
		slices.Collect(a.Walk))
}

func TestBlazeCutsFromTheBottomWithoutAlignment(t *testing.T) {
	a, _ := open(t, 0, regionOf(device.MiB))
	require.Equal(t, device.Size(0), at(t, a, 1))
	require.Equal(t, device.Size(2), at(t, a, 65536))
	require.Equal(t, device.Size(65538), at(t, a, 3))
}

func TestBlazeGrantsTheBlockFreedLast(t *testing.T) {
	a, _ := open(t, 0, regionOf(device.MiB))
	for range 4 {
		at(t, a, 1024)
	}
	for _, b := range []device.Size{1024, 3072, 0} {
		free(t, a, b)
	}
	var searched []device.Size
	power.WalkFree(a, func(c alloc.Chunk) bool { searched = append(searched, c.Addr.Sub(sim.Base)); return true })
	require.Equal(t, []device.Size{0, 3072, 1024, 4096}, searched)
	for _, b := range []device.Size{0, 3072, 1024, 4096} {
		require.Equal(t, b, at(t, a, 1000))
	}
}

// TestBlazeListsDoNotMix frees one class and requests another: neither split nor merge.
func TestBlazeListsDoNotMix(t *testing.T) {
	a, _ := open(t, 0, regionOf(4096))
	free(t, a, at(t, a, 2048))
	require.Equal(t, device.Size(2048), at(t, a, 1024))
	free(t, a, 2048)
	require.Equal(t, device.Size(3072), at(t, a, 512))
}

func TestBlazeLosesTheTailOfARegion(t *testing.T) {
	a, f := open(t, 0, regionOf(4096))
	at(t, a, 1024)
	require.Equal(t, 2*device.MiB, at(t, a, 4096), "3072 bytes are too few")
	require.Equal(t, 4*device.MiB, at(t, a, 2), "and are lost for small blocks too")
	require.Equal(t, 3, f.Usage().Regions)
	var states []alloc.State
	for c := range a.Walk {
		states = append(states, c.State)
	}
	require.Equal(t, []alloc.State{alloc.Live, alloc.Slack, alloc.Live, alloc.Live, alloc.Free}, states)
	_, err := a.Alloc(alloc.Request{Size: 4097})
	require.ErrorIs(t, err, alloc.ErrInvalidRequest)
	r, _ := power.LastRefusal(a)
	require.Equal(t, device.Size(4094), r.Free)
	require.Equal(t, device.Size(4094), r.LargestHole)
}

// TestBlazeSurvivesARefusedRegion is where the original starts to grant live memory again.
func TestBlazeSurvivesARefusedRegion(t *testing.T) {
	a, f := open(t, 0, regionOf(4096))
	at(t, a, 2048)
	at(t, a, 1024)
	walk := slices.Collect(a.Walk)
	f.FailNext(1)
	_, err := a.Alloc(alloc.Request{Size: 4096})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	require.Equal(t, walk, slices.Collect(a.Walk))
	require.NoError(t, a.Check())
	require.Equal(t, device.Size(3072), at(t, a, 1024), "the tail is still there")
}
