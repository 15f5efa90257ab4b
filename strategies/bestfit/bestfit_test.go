package bestfit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bestfit"
)

// withHoles returns an allocator with holes of the given sizes, lowest first, and a tail of
// what is left of the limit, with the addresses of the holes.
func withHoles(t *testing.T, c bestfit.Config, sizes ...device.Size) (*bestfit.Allocator, []device.Addr) {
	t.Helper()
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	a, err := bestfit.New(gpu, c)
	require.NoError(t, err)
	var holes []device.Addr
	for _, n := range sizes {
		b, err := a.Alloc(alloc.Request{Size: n})
		require.NoError(t, err)
		holes = append(holes, b.Addr)
		_, err = a.Alloc(alloc.Request{Size: 1})
		require.NoError(t, err)
	}
	for _, at := range holes {
		require.NoError(t, a.Free(at))
	}
	return a, holes
}

func TestWhichHoleIsTaken(t *testing.T) {
	const kib = device.KiB
	sizes := []device.Size{10 * kib, 9*kib + 256, 9 * kib, 8 * kib}
	for _, c := range []struct {
		name    string
		config  bestfit.Config
		request device.Size
		want    int
	}{
		{"strict takes the smallest", bestfit.Config{Looks: 1}, 8 * kib, 3},
		{"strict takes the smallest that serves", bestfit.Config{Looks: 1}, 8*kib + 1, 2},
		{"two looks reach the second smallest", bestfit.Config{Looks: 2}, 8 * kib, 2},
		{"an eighth above the smallest is near", bestfit.Config{Looks: 8}, 8 * kib, 2},
		{"by default there are two looks", bestfit.Config{Spread: 4}, 8 * kib, 2},
		{"a quantum more is not", bestfit.Config{Looks: 8, Spread: 8}, 8*kib - 256, 3},
		{"a quarter reaches further", bestfit.Config{Looks: 8, Spread: 4}, 8 * kib, 0},
		{"and is bounded by the looks", bestfit.Config{Spread: 4, Looks: 3}, 8 * kib, 1},
	} {
		c.config.Limit = device.MiB
		a, holes := withHoles(t, c.config, sizes...)
		b, err := a.Alloc(alloc.Request{Size: c.request})
		require.NoError(t, err)
		require.Equal(t, holes[c.want], b.Addr, c.name)
		require.NoError(t, a.Check())
	}
}

func TestLowestOfEqualHolesIsTaken(t *testing.T) {
	for _, looks := range []int{1, 2, 8} {
		a, holes := withHoles(t, bestfit.Config{Looks: looks, Limit: device.MiB}, 4096, 4096, 4096)
		for _, want := range holes {
			b, err := a.Alloc(alloc.Request{Size: 4096})
			require.NoError(t, err)
			require.Equal(t, want, b.Addr)
		}
	}
}

func TestSmallRemainderStaysWithTheBlock(t *testing.T) {
	for _, c := range []struct {
		name    string
		slack   int
		hole    device.Size
		request device.Size
		want    device.Size
	}{
		{"a sixteenth by default", 0, 4096 + 256, 4096, 4096 + 256},
		{"of the request, not of the block", 0, 4096 + 256, 4096 - 256, 4096 - 256},
		{"no quantum more", 0, 4096 + 512, 4096, 4096},
		{"counted from whole quanta", 0, 4096 + 256, 4096 - 255, 4096 + 256},
		{"as much again", 1, 8192, 4096, 8192},
		{"a quantum more than that", 1, 8192 + 256, 4096, 4096},
		{"nothing", bestfit.NoSlack, 4096 + 256, 4096, 4096},
		{"less than a quantum is nothing", 32, 4096 + 256, 4096, 4096},
	} {
		a, holes := withHoles(t, bestfit.Config{Slack: c.slack, Limit: device.MiB}, c.hole)
		b, err := a.Alloc(alloc.Request{Size: c.request})
		require.NoError(t, err)
		require.Equal(t, alloc.Block{Addr: holes[0], Size: c.want, Ref: b.Ref}, b, c.name)
		require.NoError(t, a.Check())
	}
}

func TestTailComesLast(t *testing.T) {
	for _, c := range []struct {
		tail string
		want device.Size // how far above the start of the region the block lies
	}{{bestfit.TailLast, 0}, {bestfit.TailHole, 32*device.KiB + 256}} {
		// The hole has 32 KiB, the tail 4.
		a, holes := withHoles(t, bestfit.Config{Tail: c.tail, Limit: 36*device.KiB + 256}, 32*device.KiB)
		b, err := a.Alloc(alloc.Request{Size: 4 * device.KiB})
		require.NoError(t, err)
		require.Equal(t, c.want, b.Addr.Sub(holes[0]), "tail %s", c.tail)
		if c.tail == bestfit.TailLast {
			last, err := a.Alloc(alloc.Request{Size: 29 * device.KiB})
			require.ErrorIs(t, err, alloc.ErrOutOfMemory, "granted %v", last)
			why, ok := a.LastRefusal()
			require.True(t, ok)
			require.Equal(t, 28*device.KiB, why.LargestHole)
		}
	}
}

func TestAlignmentTakesTheSmallestWithAnAlignedPlace(t *testing.T) {
	// The hole of 8.5 KiB has an aligned place of 4 KiB wherever it starts, and is the smaller one.
	a, holes := withHoles(t, bestfit.Config{Limit: device.MiB}, 16*device.KiB, 8*device.KiB+512)
	b, err := a.Alloc(alloc.Request{Size: 4 * device.KiB, Align: 4 * device.KiB})
	require.NoError(t, err)
	require.Equal(t, device.AlignUp(holes[1], 4*device.KiB), b.Addr)
	require.NoError(t, a.Check())
	require.NoError(t, a.Free(b.Addr))
	require.NoError(t, a.Check())
}

func TestEmptyRegionsGoBackBeforeARefusal(t *testing.T) {
	gpu, err := sim.New(sim.Config{Capacity: 64 * device.KiB, Align: 256})
	require.NoError(t, err)
	a, err := bestfit.New(gpu, bestfit.Config{Growth: "fixed", RegionBytes: 16 * device.KiB, Release: true,
		KeepBytes: device.MiB})
	require.NoError(t, err)
	var blocks []alloc.Block
	for range 4 {
		b, err := a.Alloc(alloc.Request{Size: 16 * device.KiB})
		require.NoError(t, err)
		blocks = append(blocks, b)
	}
	for _, b := range blocks {
		require.NoError(t, a.Free(b.Addr))
	}
	require.Equal(t, 4, a.Stats().Regions, "kept")
	_, err = a.Alloc(alloc.Request{Size: 64 * device.KiB})
	require.NoError(t, err)
	require.Equal(t, 1, a.Stats().Regions)
	require.NoError(t, a.Check())
}

func TestConfigurationIsJudged(t *testing.T) {
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	for field, c := range map[string]bestfit.Config{
		"quantum":      {Quantum: 300},
		"looks":        {Looks: -1},
		"spread":       {Spread: -1},
		"tail":         {Tail: "first"},
		"growth":       {Growth: "never"},
		"region_bytes": {RegionBytes: 100},
		"keep_bytes":   {KeepBytes: 1},
		"release":      {Release: true},
	} {
		_, err := bestfit.New(gpu, c)
		require.ErrorContains(t, err, "bestfit: "+field)
	}
	c, err := bestfit.Config{}.WithDefaults()
	require.NoError(t, err)
	require.Equal(t, device.Size(512), c.ForCapacity(512).Limit)
	require.True(t, c.Preallocates())
}
