package slabbuddy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
)

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		json, want string
	}{
		{`{}`, ``},
		{`{"slab_max_bytes":16777217}`, `slabbuddy: slab_max_bytes 16777217: want at most 16MiB`},
		{`{"slab_max_bytes":"2EiB"}`, `slabbuddy: slab_max_bytes 2305843009213693952: want at most 16MiB`},
		{`{"slab_max_bytes":8388609,"block_bytes":2}`, `slabbuddy: slab_max_bytes 8388609: want at most 8MiB`},
		{`{"slab_max_bytes":8388608,"block_bytes":2}`, ``},
		{`{"direct_bytes":4096}`, ``},
		{`{"direct_bytes":1}`, ``},
		{`{"block_bytes":"2MiB"}`, ``},
		{`{"slab_max_bytes":4096,"direct_bytes":4095}`, `slabbuddy: direct_bytes 4095: want at least slab_max_bytes 4096`},
		{`{"slab_max_bytes":4096,"direct_bytes":4096}`, ``},
		{`{"slab_max_bytes":1}`, ``},
		{`{"slab_slots":-1}`, `slabbuddy: slab_slots -1: want 1 to 4096`},
		{`{"slab_slots":4097}`, `slabbuddy: slab_slots 4097: want 1 to 4096`},
		{`{"slab_waste":-1}`, `slabbuddy: slab_waste -1: want 1 to 4096`},
		{`{"empty_slabs":-1}`, `slabbuddy: empty_slabs -1: want 0 to 1048576`},
		{`{"magazine_rounds":4097}`, `slabbuddy: magazine_rounds 4097: want 0 to 4096`},
		{`{"magazine_rounds":1,"depot":65537}`, `slabbuddy: depot 65537: want 0 to 65536`},
		{`{"depot":1}`, `slabbuddy: depot 1: needs magazine_rounds`},
		{`{"classes":"k3"}`, `slabbuddy: slab: classes "k3": want "pow2", "k2", "k4" or "k8"`},
		{`{"selection":"best"}`, `slabbuddy: slab: selection "best": want "fullest", "emptiest", "lifo", "fifo" or "lowest"`},
		{`{"family":"k5"}`, `slabbuddy: buddy: family "k5": want one of binary, weighted, fibonacci, k4, k8`},
		{`{"block_bytes":3}`, `slabbuddy: buddy: block_bytes 3: want a power of two up to 2MiB`},
		{`{"keep_bytes":1}`, `slabbuddy: buddy: keep_bytes 1: needs release`},
		{
			`{"family":"fibonacci","block_bytes":4,"slab_max_bytes":16777216,"direct_bytes":16777216,"slab_slots":4096,"classes":"pow2"}`,
			`slabbuddy: slab_max_bytes 16777216: no block is a slab of 4096 slots within slab_waste 8`},
	} {
		var cfg slabbuddy.Config
		require.NoError(t, json.Unmarshal([]byte(c.json), &cfg))
		a, err := slabbuddy.New(new(nothing), cfg)
		if c.want == "" {
			require.NoError(t, err, c.json)
			continue
		}
		require.EqualError(t, err, c.want, c.json)
		require.Nil(t, a, "no typed nil")
	}
}

// nothing is a device without memory.
type nothing struct{}

func (nothing) Reserve(_, _ device.Size) (device.Region, error) {
	return device.Region{}, device.ErrOutOfMemory
}

func (nothing) Release(device.Addr) error { return device.ErrInvalid }

func TestSizesGoToTheirParts(t *testing.T) {
	for _, c := range []struct {
		size, align, granted device.Size
		owner                uint8
	}{
		{1, 0, 256, slabbuddy.OwnerSlab},
		{256, 0, 256, slabbuddy.OwnerSlab},
		{257, 0, 512, slabbuddy.OwnerSlab},
		{1024, 0, 1024, slabbuddy.OwnerSlab},
		{256, 512, 512, slabbuddy.OwnerSlab},   // the next class is aligned
		{256, 2048, 256, slabbuddy.OwnerBuddy}, // no class is
		{1025, 0, 2048, slabbuddy.OwnerBuddy},
		{16384, 0, 16384, slabbuddy.OwnerBuddy},
		{16385, 0, 16640, slabbuddy.OwnerDirect},
		{1, 2 * device.MiB, 256, slabbuddy.OwnerBuddy},
	} {
		a, _ := layers(t, 0, tight)
		b, err := a.Alloc(alloc.Request{Size: c.size, Align: c.align})
		require.NoError(t, err, "%d", c.size)
		require.True(t, b.Addr.IsAligned(max(c.align, 1)))
		require.Equal(t, c.granted, b.Size, "%d", c.size)
		require.Equal(t, c.owner, ownerOfSlabBuddy(a, b.Addr), "%d", c.size)
		require.NoError(t, a.Free(b.Addr))
		require.ErrorIs(t, a.Free(b.Addr), alloc.ErrInvalidFree)
		require.NoError(t, a.Check())
	}
}

// TestFirstSlabIsSmall holds the region of one small request to what its slab needs.
func TestFirstSlabIsSmall(t *testing.T) {
	for _, size := range []device.Size{1, 1000, 5000, 32 * device.KiB} {
		a, _ := layers(t, 0, slabbuddy.Config{})
		b := get(t, a, size)
		require.LessOrEqual(t, a.Stats().Reserved, max(16*device.KiB, 16*b.Size), "%d", size)
	}
}

// TestClassesShareThePool frees all blocks of one class and takes as much of another.
func TestClassesShareThePool(t *testing.T) {
	a, d := layers(t, 0, tight)
	drop(t, a, fill(t, a, 64, 256))
	held := a.Stats().Reserved
	fill(t, a, 16, device.KiB)
	require.Equal(t, held, a.Stats().Reserved, "what one class freed serves another")
	require.Zero(t, d.Usage().Calls.Returned())
}

func TestWatermarksKeepWhatTheySay(t *testing.T) {
	c := tight
	c.EmptySlabs, c.Release, c.KeepBytes = 1, true, 4*device.KiB
	a, _ := layers(t, 0, c)
	drop(t, a, fill(t, a, 16, device.KiB))
	require.Equal(t, 1, count(a, isEmptySlab), "one slab stays with its class")
	require.Equal(t, 8*device.KiB, a.Stats().Reserved, "its region, and one without a live block")
	n, err := a.Trim()
	require.NoError(t, err)
	require.Equal(t, 8*device.KiB, n)
}
