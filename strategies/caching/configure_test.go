package caching_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/caching"
)

// configured is an allocator whose settings change.
type configured struct {
	*testing.T
	*caching.Allocator
}

func newConfigured(t *testing.T, c caching.Config) configured {
	dev, err := sim.New(sim.Config{Capacity: device.GiB})
	require.NoError(t, err)
	a, err := caching.New(dev, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return configured{t, a}
}

func (c configured) conf(text string) {
	c.Helper()
	require.NoError(c, c.Configure(text))
	require.NoError(c, c.Check())
}

// get requests some MiB and returns the block.
func (c configured) get(mib device.Size) alloc.Block {
	c.Helper()
	b, err := c.Alloc(alloc.Request{Size: mib * device.MiB})
	require.NoError(c, err)
	require.NoError(c, c.Check())
	return b
}

func (c configured) free(b alloc.Block) {
	c.Helper()
	require.NoError(c, c.Free(b.Addr))
	require.NoError(c, c.Check())
}

// owner returns the Owner of the live block at an address.
func (c configured) owner(a device.Addr) uint8 {
	chunk, err := c.BlockAt(a)
	require.NoError(c, err)
	return chunk.Owner
}

// TestSplittingIsRefusedForAPhase is what vLLM does: max_split_size_mb holds only while weights are
// loaded.
func TestSplittingIsRefusedForAPhase(t *testing.T) {
	c := newConfigured(t, caching.Config{})
	c.free(c.get(100))
	c.conf("max_split_size_mb:20")
	require.Equal(t, 12*device.MiB, c.get(12).Size, "the free block of 100 MiB may not be split")
	require.Equal(t, 112*device.MiB, c.Stats().Reserved)
	c.conf("")
	c.get(12)
	require.Equal(t, 112*device.MiB, c.Stats().Reserved, "now it is split")
}

// TestAChangeResetsThreeSettings compares the keys that a string without them resets with those
// that keep their values.
func TestAChangeResetsThreeSettings(t *testing.T) {
	c := newConfigured(t, caching.Config{Conf: "roundup_power2_divisions:2,expandable_segments:True"})
	require.Equal(t, 96*device.MiB, c.get(70).Size)
	c.conf("max_non_split_rounding_mb:40")
	b := c.get(70)
	require.Equal(t, 70*device.MiB, b.Size, "no division is left")
	require.Equal(t, power.OwnerExpandable, c.owner(b.Addr), "segments still grow")
}

// TestSegmentsGrowForAPhase frees a block of an expandable segment while expandable_segments is
// off.
func TestSegmentsGrowForAPhase(t *testing.T) {
	c := newConfigured(t, caching.Config{})
	plain := c.get(30)
	c.conf("expandable_segments:True")
	grown := c.get(40)
	require.Equal(t, power.OwnerExpandable, c.owner(grown.Addr))
	c.conf("expandable_segments:False")
	c.free(grown)
	b := c.get(40)
	require.NotEqual(t, power.OwnerExpandable, c.owner(b.Addr), "a free block that grows is not used")
	c.conf("expandable_segments:True")
	require.Equal(t, grown.Addr, c.get(40).Addr, "now it is")
	c.free(plain)
	require.Equal(t, plain.Addr, c.get(20).Addr, "and a plain segment serves too")
	require.Equal(t, 10*device.MiB, c.LargestFree(), "its rest is split off, as of a segment that grows")
}

// TestTheMemoryFractionIsReadOnce changes the bound, which PyTorch reads when it makes the
// allocator of a device.
func TestTheMemoryFractionIsReadOnce(t *testing.T) {
	c := newConfigured(t, caching.Config{MemoryFraction: 0.5})
	c.conf("per_process_memory_fraction:0.9")
	_, err := c.Alloc(alloc.Request{Size: 600 * device.MiB})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	c.conf("per_process_memory_fraction:0.1")
	c.get(500)
}

// TestAFreedPartOfASegmentStays lowers max_split_size_mb below the size of a free block that shares
// its segment with a live one. The original would give memory of the live block to the device.
func TestAFreedPartOfASegmentStays(t *testing.T) {
	c := newConfigured(t, caching.Config{})
	whole := c.get(600)
	c.free(whole)
	live := c.get(200)
	c.conf("max_split_size_mb:20")
	_, err := c.Alloc(alloc.Request{Size: 500 * device.MiB})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	require.Equal(t, 600*device.MiB, c.Stats().Reserved)
	c.free(live)
	require.NoError(t, c.Check())
}

// TestWrongSettingsChangeNothing has settings that PyTorch rejects, and a device without virtual
// memory.
func TestWrongSettingsChangeNothing(t *testing.T) {
	c := newConfigured(t, caching.Config{Conf: "max_split_size_mb:32"})
	for conf, want := range map[string]string{
		"max_split_size_mb:5":     "max_split_size_mb:5: want at least 20, the size of a large segment",
		"backend:cudaMallocAsync": "backend:cudaMallocAsync: want native; the driver's pool is the strategy async",
		"split:1":                 `unknown key "split": did you mean "max_non_split_rounding_mb"?`,
	} {
		err := c.Configure(conf)
		require.ErrorIs(t, err, alloc.ErrInvalidSettings)
		require.ErrorContains(t, err, "alloc: invalid settings: "+want)
	}
	c.free(c.get(100))
	require.Equal(t, 12*device.MiB, c.get(12).Size)

	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	plain, err := caching.New(struct{ device.Source }{dev}, caching.Config{})
	require.NoError(t, err)
	require.ErrorIs(t, plain.Configure("expandable_segments:True"), alloc.ErrUnsupported)
	require.NoError(t, plain.Configure("expandable_segments:False"))
	require.NoError(t, plain.Close())
	require.ErrorIs(t, plain.Configure(""), alloc.ErrClosed)
}
