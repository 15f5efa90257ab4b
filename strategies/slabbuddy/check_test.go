package slabbuddy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/oracle"
	"github.com/vramyard/vramyard/strategies/internal/blocks"
)

// TestCheckOfSlabBuddyNamesWhatIsBroken spoils one thing at a time. W5 is about what a request
// was refused for, which only the refusal knows.
func TestCheckOfSlabBuddyNamesWhatIsBroken(t *testing.T) {
	for want, spoil := range map[string]func(*Allocator, []alloc.Block){
		"W1": func(a *Allocator, _ []alloc.Block) { a.pieces.places[0] = 0 },
		"W2": func(a *Allocator, b []alloc.Block) { a.live.Take(b[1].Addr) },
		"W3": func(a *Allocator, b []alloc.Block) {
			_, _, _ = a.cells.Return(b[0].Addr)
			_, _ = a.cells.Grab(0, 0, &alloc.Request{Size: device.MiB}, true)
		},
		"W4": func(a *Allocator, _ []alloc.Block) {
			other := *a.cells // with the same slabs, and counters of its own
			_, _ = other.Grab(0, 0, &alloc.Request{Size: 1}, true)
		},
		"W6": func(a *Allocator, _ []alloc.Block) { a.front.Stats.Requested++ },
	} {
		a, err := New(new(oracle.Shelf), Config{})
		require.NoError(t, err)
		var blocks []alloc.Block
		for _, size := range []device.Size{1, 50000, device.GiB} {
			b, err := a.Alloc(alloc.Request{Size: size})
			require.NoError(t, err)
			blocks = append(blocks, b)
		}
		require.NoError(t, a.Check())
		spoil(a, blocks)
		require.ErrorContains(t, a.Check(), "slabbuddy: invariant "+want+" ", want)
	}
}

// TestEachPartKnowsItsOwn has blocks on both sides of the bounds between the parts.
func TestEachPartKnowsItsOwn(t *testing.T) {
	a, err := New(new(oracle.Shelf), Config{})
	require.NoError(t, err)
	for size, slot := range map[device.Size]bool{1: true, 32 * device.KiB: true, 32*device.KiB + 1: false,
		device.MiB + 1: false} {
		b, err := a.Alloc(alloc.Request{Size: size})
		require.NoError(t, err)
		_, ok := a.live.Get(b.Addr)
		require.Equal(t, slot, !ok, "%d", size)
	}
}

// TestPlaceOfTheLargestBlock has a block of as many units as there can be.
func TestPlaceOfTheLargestBlock(t *testing.T) {
	a, err := New(new(oracle.Shelf), Config{RegionBytes: device.TiB, DirectBytes: device.TiB, BlockBytes: 512})
	require.NoError(t, err)
	b, err := a.Alloc(alloc.Request{Size: device.TiB})
	require.NoError(t, err)
	l, _ := a.live.Get(b.Addr)
	place, _ := a.blocks.PlaceOf(b.Addr)
	require.False(t, blocks.IsDirect(place))
	require.Equal(t, device.TiB, a.granted(b.Addr, l))
	require.NoError(t, a.Check())
	require.NoError(t, a.Free(b.Addr))
	require.Equal(t, device.TiB, a.LargestFree())
}
