package recall_test

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/recall"
)

// bench is an allocator with pages of 4 KiB over a device of its own.
type bench struct {
	alloc.Strategy
	t   *testing.T
	gpu *sim.Device
}

// newBench returns an allocator over pages on a device with room for some.
func newBench(t *testing.T, room device.Size, c recall.Config) *bench {
	t.Helper()
	gpu, err := sim.New(sim.Config{Capacity: room * page, Align: page, Granularity: page, Charge: page,
		Memory: sim.Filled})
	require.NoError(t, err)
	c.Map, c.PageBytes = cmp.Or(c.Map, recall.Pages), page
	a, err := recall.New(gpu, c)
	require.NoError(t, err)
	return &bench{a, t, gpu}
}

// take allocates n bytes.
func (b *bench) take(n device.Size) device.Addr {
	b.t.Helper()
	got, err := b.Alloc(alloc.Request{Size: n})
	require.NoError(b.t, err)
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

func (b *bench) calls() uint64 { return b.gpu.Usage().Calls.Total() }

func (b *bench) created() uint64 { return b.gpu.Usage().Calls[device.CallCreateHandle].Done }

// scattered returns an allocator with two holes of two pages beside a live block.
func scattered(t *testing.T) *bench {
	b := newBench(t, 64, recall.Config{})
	low, _, high := b.take(2*page), b.take(2*page), b.take(2*page)
	b.give(low, high)
	return b
}

func TestIdleMemoryIsMappedAgain(t *testing.T) {
	b := scattered(t)
	created := b.created()
	whole := b.take(4 * page)
	require.Equal(t, created, b.created(), "four pages are idle")
	require.Equal(t, 6*page, b.Stats().Reserved)
	b.give(whole)
	calls := b.calls()
	require.Equal(t, whole, b.take(4*page))
	require.Equal(t, calls, b.calls(), "the alias is there")
}

func TestMissingMemoryIsCreated(t *testing.T) {
	b := scattered(t)
	b.take(5 * page)
	require.Equal(t, 7*page, b.Stats().Reserved)
}

func TestAliasIsBlockedByItsMemory(t *testing.T) {
	b := scattered(t)
	whole := b.take(4 * page)
	b.give(whole)
	blocker := b.take(2 * page)
	require.NotEqual(t, whole, b.take(4*page), "two of its pages are in use")
	b.give(blocker)
}

func TestContentsAreTheSameInBothWindows(t *testing.T) {
	b := scattered(t)
	whole := b.take(4 * page)
	require.NoError(t, b.gpu.Fill(whole, 4*page, 7))
	b.give(whole)
	for range 2 {
		_, same, err := b.gpu.Compare(b.take(2*page), 2*page, 7)
		require.NoError(t, err)
		require.True(t, same)
	}
}

// step makes one repetition: weights stay, activations of the given unit come and go.
func (b *bench) step(unit device.Size) {
	var all []device.Addr
	for i := range device.Size(400) {
		all = append(all, b.take(unit*(1+i%7)))
		if i%3 == 2 {
			b.give(all[len(all)-2])
			all = append(all[:len(all)-2], all[len(all)-1])
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		b.give(all[i])
	}
}

func TestRepetitionMakesNoCalls(t *testing.T) {
	b := newBench(t, 0, recall.Config{})
	b.take(10 * page)
	for range 2 {
		b.step(page / 2)
	}
	calls := b.calls()
	b.step(page / 2)
	require.Equal(t, calls, b.calls())
}

func TestTrimReleasesAliasesAndMemory(t *testing.T) {
	b := scattered(t)
	b.give(b.take(4 * page))
	back, err := b.Strategy.(power.Trimmer).Trim()
	require.NoError(t, err)
	require.Equal(t, 4*page, back)
	require.NoError(t, b.Check())
	require.Equal(t, 2*page, b.gpu.Usage().Held)
	require.Equal(t, 1, b.gpu.Usage().Ranges)
	b.take(2 * page)
	require.Equal(t, 4*page, b.gpu.Usage().Held, "behind the live block")
	require.NoError(t, b.Close())
	require.True(t, b.gpu.Usage().Empty())
}

// TestTablesStaySmallAfterTrims has one block that stays while other memory is released.
func TestTablesStaySmallAfterTrims(t *testing.T) {
	b := newBench(t, 0, recall.Config{Memory: 1 << 8})
	kept := b.take(page)
	var least device.Size
	for i := range 600 {
		large, next := b.take(8*page), b.take(page)
		b.give(large, kept)
		kept = next
		_, err := power.Trim(b.Strategy)
		require.NoError(t, err)
		if n, _ := power.MetadataBytes(b.Strategy); i < 300 {
			least = n
		} else {
			require.Equal(t, least, n)
		}
	}
}

func TestWindowsAreBounded(t *testing.T) {
	b := newBench(t, 0, recall.Config{})
	var all []device.Addr
	for range 200 { // holes of one page each
		all = append(all, b.take(page))
	}
	for i := 0; i < len(all); i += 2 {
		b.give(all[i])
	}
	for n := range device.Size(90) {
		b.give(b.take((n + 2) * page))
	}
	require.LessOrEqual(t, b.gpu.Usage().Ranges, 64)
}

func TestNoVirtualMemoryIsAnError(t *testing.T) {
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	_, err = recall.New(struct{ device.Source }{gpu}, recall.Config{Map: recall.Pages})
	require.ErrorIs(t, err, device.ErrUnsupported)
	_, err = recall.New(gpu, recall.Config{Map: recall.Pages, PageBytes: device.MiB})
	require.ErrorContains(t, err, "the device's pages have 2MiB")
}
