package caching_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/caching"
)

// onOOM are the options of a pool that serves requests outside of it.
var onOOM = power.PoolOptions{UseOnOOM: true}

// withPool returns a bench of 64 MiB, and the address of 30 MB that are free in pool 1, beside a
// live block of the pool.
func withPool(t *testing.T, c caching.Config, o power.PoolOptions) (*bench, device.Addr) {
	b := newBench(t, 64*mib, c)
	require.NoError(t, b.BeginMemPool(1, power.AllStreams, o))
	first := b.alloc(30_000_000, 0)
	b.alloc(10_000_000, 0)
	b.free(first)
	require.NoError(t, b.EndPool(1))
	return b, first
}

// TestPoolsServeOutsideOnOOM has the answers of PyTorch 2.9.1 and 2.11.0 to the same calls.
func TestPoolsServeOutsideOnOOM(t *testing.T) {
	for rules, frees := range map[string]int64{caching.Rules26: 1, caching.Rules211: 0} {
		b, first := withPool(t, caching.Config{Rules: rules}, onOOM)
		b.free(b.alloc(12_000_000, 0))
		require.Equal(t, first, b.alloc(25_000_000, 0))
		require.Equal(t, frees, b.counter("num_device_free"), "2.9.1 releases the cached 12 MB first")
		b.oom(25_000_000)
		b.free(first)
		require.NoError(t, b.BeginPool(1, power.AllStreams))
		require.Equal(t, first, b.alloc(30_000_000, 0), "the block is still one of the pool")
		require.NoError(t, b.EndPool(1))
	}
}

// TestPoolsServeOutsideOnOOMDuringACapture refuses nothing to a stream beside the capture, although
// no memory is released then.
func TestPoolsServeOutsideOnOOMDuringACapture(t *testing.T) {
	for _, rules := range []string{caching.Rules26, caching.Rules211} {
		b, first := withPool(t, caching.Config{Rules: rules}, onOOM)
		require.NoError(t, b.BeginPool(2, 1))
		b.free(b.alloc(12_000_000, 0))
		require.Equal(t, first, b.alloc(25_000_000, 0))
		b.oom(25_000_000)
		require.Zero(t, b.counter("num_device_free"))
	}
}

// TestPoolsThatGrowServeOutsideBefore210 has the answers of PyTorch 2.9.1 and 2.11.0.
func TestPoolsThatGrowServeOutsideBefore210(t *testing.T) {
	for _, rules := range []string{caching.Rules26, caching.Rules211} {
		b, first := withPool(t, caching.Config{Rules: rules, Conf: "expandable_segments:True"}, onOOM)
		b.free(b.alloc(12_000_000, 0))
		b.alloc(20_000_000, 0)
		if rules == caching.Rules26 {
			require.Equal(t, first, b.alloc(4_000_000, 0))
		} else {
			b.oom(4_000_000)
		}
		b.oom(35_000_000)
	}
}

// TestPoolsOnOOMThatServeNothing are those without the option, without users, or with requests of
// their own.
func TestPoolsOnOOMThatServeNothing(t *testing.T) {
	for _, rules := range []string{caching.Rules26, caching.Rules211} {
		b, _ := withPool(t, caching.Config{Rules: rules}, power.PoolOptions{NoSplit: true})
		b.oom(25_000_000)
		b, first := withPool(t, caching.Config{Rules: rules}, onOOM)
		require.NoError(t, b.BeginPool(1, 7))
		b.oom(25_000_000)
		require.NoError(t, b.EndPool(1))
		require.NoError(t, b.BeginPool(2, power.AllStreams))
		b.oom(25_000_000)
		require.NoError(t, b.EndPool(2))
		require.Equal(t, first, b.alloc(25_000_000, 0), "BeginPool leaves the options as they are")
		b.free(first)
		for range 2 {
			require.NoError(t, b.ReleasePool(1))
		}
		b.alloc(25_000_000, 0)
		require.EqualValues(t, 1, b.counter("num_device_free"), "without users the memory of the pool goes back")
	}
}

// TestTheLowestPoolServesOutside has two pools with the option. Lookups there follow the settings.
func TestTheLowestPoolServesOutside(t *testing.T) {
	b := newBench(t, 96*mib, caching.Config{Conf: "max_split_size_mb:24"})
	require.NoError(t, b.BeginMemPool(4, power.AllStreams, onOOM))
	high := b.alloc(20_000_000, 0)
	b.free(high)
	require.NoError(t, b.EndPool(4))
	require.NoError(t, b.BeginMemPool(3, power.AllStreams, onOOM))
	big, low := b.alloc(30_000_000, 0), b.alloc(20_000_000, 0)
	b.free(big)
	b.free(low)
	require.NoError(t, b.EndPool(3))
	b.alloc(12_000_000, 0)
	require.Equal(t, low, b.alloc(18_000_000, 0))
	require.Equal(t, high, b.alloc(17_000_000, 0))
	b.oom(16_000_000) // 30 MB are not split
	require.Equal(t, big, b.alloc(29_000_000, 0))
}

// TestNoSplit has the sizes of the blocks in PyTorch 2.11.0 and in releases without the option.
func TestNoSplit(t *testing.T) {
	requests := []device.Size{3_000_000, 700, 12_000_000}
	const page, whole, own = 2 * mib, 20 * mib, 12 * mib
	for _, c := range []struct {
		caching.Config
		sizes []device.Size // of the blocks
	}{
		{caching.Config{}, []device.Size{whole, page, own}},
		{caching.Config{Rules: caching.Rules26}, []device.Size{3_000_320, 1024, 12_000_256}},
		{caching.Config{Conf: "expandable_segments:True"}, []device.Size{whole, page, whole}},
		{caching.Config{Conf: "expandable_segments:True", Rules: caching.Rules26},
			[]device.Size{3_000_320, 1024, 12_000_256}},
	} {
		b := newBench(t, 128*mib, c.Config)
		require.NoError(t, b.BeginPool(1, power.AllStreams))
		b.free(b.alloc(2_000_000, 0)) // the pool has memory when it gets its options
		require.NoError(t, b.EndPool(1))
		require.NoError(t, b.BeginMemPool(1, power.AllStreams, power.PoolOptions{NoSplit: true}))
		for i, n := range requests {
			got, err := b.Alloc(alloc.Request{Size: n})
			require.NoError(t, err)
			require.Equal(t, c.sizes[i], got.Size, "%+v %v", c.Config, n)
		}
		if c.Conf == "" {
			require.NoError(t, b.Configure("max_split_size_mb:64"))
			got, err := b.Alloc(alloc.Request{Size: 2_500_000})
			require.NoError(t, err)
			require.Equal(t, c.Rules != caching.Rules26, got.Size == whole, "a change of settings keeps the option")
		}
		require.NoError(t, b.EndPool(1))
		got, err := b.Alloc(alloc.Request{Size: 3_000_000})
		require.NoError(t, err)
		require.EqualValues(t, 3_000_320, got.Size, "outside of the pool")
	}
}

func TestBeginMemPoolRefuses(t *testing.T) {
	b := newBench(t, 64*mib, caching.Config{})
	require.ErrorIs(t, b.BeginMemPool(0, 0, onOOM), alloc.ErrInvalidPool)
}
