package stitch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/stitch"
)

// bench is an allocator over a device of its own.
type bench struct {
	*stitch.Allocator
	t   *testing.T
	gpu *sim.Device
}

// newBench returns an allocator with pages of 4 KiB over a device with room for some of them.
func newBench(t *testing.T, room device.Size, c stitch.Config) *bench {
	t.Helper()
	gpu, err := sim.New(sim.Config{Capacity: room * page, Align: page, Granularity: page, Charge: page,
		Memory: sim.Filled})
	require.NoError(t, err)
	c.ChunkBytes = page
	if c.SmallBytes == 0 {
		c.SmallBytes = page
	}
	if c.FragLimit == 0 {
		c.FragLimit = page
	}
	a, err := stitch.New(gpu, c)
	require.NoError(t, err)
	return &bench{a, t, gpu}
}

// take allocates so many pages.
func (b *bench) take(pages device.Size) device.Addr {
	b.t.Helper()
	got, err := b.Alloc(alloc.Request{Size: pages * page})
	require.NoError(b.t, err)
	require.Equal(b.t, pages*page, got.Size)
	require.NoError(b.t, b.Check())
	return got.Addr
}

// give frees blocks.
func (b *bench) give(all ...device.Addr) {
	b.t.Helper()
	for _, a := range all {
		require.NoError(b.t, b.Free(a))
		require.NoError(b.t, b.Check())
	}
}

// calls returns how many calls of some kinds the device has granted.
func (b *bench) calls(kinds ...device.Call) (n uint64) {
	for _, k := range kinds {
		n += b.gpu.Usage().Calls[k].Done
	}
	return n
}

// scattered returns an allocator with free pBlocks of so many pages, each in a segment of its own.
func scattered(t *testing.T, c stitch.Config, pages ...device.Size) *bench {
	t.Helper()
	b := newBench(t, 64, c)
	var all []device.Addr
	for _, n := range pages {
		all = append(all, b.take(n))
	}
	b.give(all...)
	return b
}

func TestStatesOfTheSearch(t *testing.T) {
	for _, c := range []struct {
		name    string
		free    []device.Size
		want    device.Size
		created uint64 // pages
		mapped  uint64 // pages, those created included
	}{
		{"a pBlock of the size", []device.Size{3, 5, 4}, 4, 0, 0},
		{"the smallest larger one is cut", []device.Size{3, 5, 9}, 4, 0, 0},
		{"two are stitched", []device.Size{3, 2}, 5, 0, 5},
		{"the last one is cut", []device.Size{3, 3}, 5, 0, 5},
		{"what is missing is created", []device.Size{3, 2}, 8, 3, 3 + 8},
		{"nothing is free", nil, 2, 2, 2},
	} {
		b := scattered(t, stitch.Config{}, c.free...)
		created, mapped := b.calls(device.CallCreateHandle), b.calls(device.CallMap)
		b.take(c.want)
		require.Equal(t, c.created, b.calls(device.CallCreateHandle)-created, c.name)
		require.Equal(t, c.mapped, b.calls(device.CallMap)-mapped, c.name)
	}
}

func TestAsFewPiecesAsCanBe(t *testing.T) {
	b := scattered(t, stitch.Config{}, 2, 6, 3, 7, 4)
	b.take(10) // seven and the smallest that has three
	var left []device.Size
	b.WalkFree(func(c alloc.Chunk) bool {
		left = append(left, c.Size/page)
		return true
	})
	require.Equal(t, []device.Size{2, 4, 6}, left)
}

func TestSBlockIsUsedAgain(t *testing.T) {
	b := scattered(t, stitch.Config{}, 3, 2)
	first := b.take(5)
	b.give(first)
	calls := b.gpu.Usage().Calls.Total()
	require.Equal(t, first, b.take(5))
	require.Equal(t, calls, b.gpu.Usage().Calls.Total(), "without a call to the device")
}

func TestBlockedSBlockWaits(t *testing.T) {
	b := scattered(t, stitch.Config{}, 3, 2)
	first := b.take(5)
	b.give(first)
	blocker := b.take(2)
	other := b.take(5) // three pages are free, two are created
	require.NotEqual(t, first, other)
	b.give(other, blocker)
	ranges := b.calls(device.CallReserveRange)
	again, more := b.take(5), device.Addr(0)
	require.Contains(t, []device.Addr{first, other}, again)
	require.Equal(t, ranges, b.calls(device.CallReserveRange))
	more = b.take(2)
	b.give(again, more)
}

func TestLongestIdleSBlockIsGivenUp(t *testing.T) {
	b := newBench(t, 64, stitch.Config{MostSBlocks: 2})
	b.give(b.take(3), b.take(2), b.take(2), b.take(2)) // nine pages in four segments
	b.give(b.take(4))                                  // merged pBlocks do not exist, so these are stitched
	b.give(b.take(5))
	require.EqualValues(t, 6, b.gpu.Usage().Ranges)
	b.give(b.take(6))
	require.EqualValues(t, 6, b.gpu.Usage().Ranges, "that of 4 is given up for it")
	ranges := b.calls(device.CallReserveRange)
	b.give(b.take(5))
	require.Equal(t, ranges, b.calls(device.CallReserveRange), "that of 5 is still there")
	b.take(4)
	require.Equal(t, ranges+1, b.calls(device.CallReserveRange), "that of 4 is not, and now that of 6 is not either")
}

func TestAllSBlocksInUse(t *testing.T) {
	b := newBench(t, 64, stitch.Config{MostSBlocks: 1})
	b.give(b.take(3), b.take(2), b.take(2), b.take(2))
	b.take(5)
	created := b.calls(device.CallCreateHandle)
	b.take(4)
	require.EqualValues(t, 4, b.calls(device.CallCreateHandle)-created, "four pages are free, but may not be stitched")
}

func TestSmallRequestsAreNotStitched(t *testing.T) {
	b := scattered(t, stitch.Config{FragLimit: 5 * page}, 2, 2, 2)
	created := b.calls(device.CallCreateHandle)
	b.take(4)
	require.EqualValues(t, 4, b.calls(device.CallCreateHandle)-created)
	b.take(5)
	require.EqualValues(t, 4, b.calls(device.CallCreateHandle)-created)
}

func TestTrimTakesPagesFromUnderLiveBlocks(t *testing.T) {
	b := newBench(t, 64, stitch.Config{})
	whole := b.take(8)
	b.give(whole)
	low, high := b.take(3), device.Addr(0)
	b.take(2)
	high = b.take(3)
	b.give(low, high)
	back, err := b.Trim()
	require.NoError(t, err)
	require.Equal(t, 6*page, back)
	require.NoError(t, b.Check())
	require.Equal(t, 2*page, b.gpu.Usage().Held)
	require.Equal(t, 1, b.gpu.Usage().Ranges)
}

func TestSmallPoolMakesDoWithAPageInNeed(t *testing.T) {
	for _, limit := range []device.Size{0, 4 * page} {
		b := newBench(t, 4, stitch.Config{SmallBytes: 2 * page, Limit: limit})
		b.give(b.take(4))
		b.take(2)
		b.take(1)
		small, err := b.Alloc(alloc.Request{Size: 100})
		require.NoError(t, err, "the last page goes back and becomes a region of the small pool")
		require.EqualValues(t, 512, small.Size)
		require.Equal(t, 4*page, b.gpu.Usage().Held)
		b.give(small.Addr)
		b.take(1) // and back
	}
}

func TestNoVirtualMemoryIsAnError(t *testing.T) {
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	_, err = stitch.New(struct{ device.Source }{gpu}, stitch.Config{})
	require.ErrorIs(t, err, device.ErrUnsupported)
	_, err = stitch.New(gpu, stitch.Config{ChunkBytes: device.MiB})
	require.ErrorContains(t, err, "the device's pages have 2MiB")
}

func TestConfigurationIsJudged(t *testing.T) {
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	for field, c := range map[string]stitch.Config{
		"chunk_bytes":  {ChunkBytes: 3 * device.MiB},
		"small_bytes":  {SmallBytes: 100},
		"frag_limit":   {FragLimit: 1 << 61},
		"most_sblocks": {MostSBlocks: -1},
	} {
		_, err := stitch.New(gpu, c)
		require.ErrorContains(t, err, "stitch: "+field)
	}
	c, err := stitch.Config{}.WithDefaults()
	require.NoError(t, err)
	require.Equal(t, device.Size(512), c.ForCapacity(512).Limit)
	a, err := stitch.New(gpu, stitch.Config{})
	require.NoError(t, err)
	require.Equal(t, c, a.Config())
}
