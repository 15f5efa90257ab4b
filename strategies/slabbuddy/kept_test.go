package slabbuddy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
)

// TestSlabsInKeptRegions lets a slab take the region that a large block left. What the region
// has beyond the slab is nobody's as long as the slab is there, used or not, and the region is
// whole again when the slab is given up.
func TestSlabsInKeptRegions(t *testing.T) {
	const slab = 32 * device.KiB // of four slots
	for _, c := range []struct {
		name  string
		large device.Size // of the block before
		serve bool        // its region takes the slab
	}{
		{"as large", slab, true},
		{"a block larger", slab + 256, true},
		{"an eighth larger", slab + slab/8, true},
		{"more than an eighth", slab + slab/8 + 256, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			room := c.large // and no more, where one region is enough
			if !c.serve {
				room += slab
			}
			a, d := layers(t, room, slabbuddy.Config{
				BlockBytes: 256, SlabMaxBytes: 8 * device.KiB, SlabSlots: 4, Classes: "pow2", DirectBytes: 16 * device.KiB,
				DirectCacheBytes: device.MiB, EmptySlabs: 1,
			})
			large := get(t, a, c.large)
			require.NoError(t, a.Free(large.Addr))
			small := get(t, a, 8*device.KiB)
			require.NoError(t, a.Check())
			if !c.serve {
				require.Equal(t, uint64(2), d.Usage().Calls.Obtained(), "too large to be the slab's")
				return
			}
			require.Equal(t, uint64(1), d.Usage().Calls.Obtained())
			require.Equal(t, c.large-slab, sum(a, isSlack))
			require.Equal(t, 8*device.KiB, a.LargestFree(), "slots are free, the rest is not")

			require.NoError(t, a.Free(small.Addr))
			require.NoError(t, a.Check())
			require.Equal(t, c.large-slab, sum(a, isSlack), "the class keeps the slab")
			require.Equal(t, slab, a.LargestFree())

			require.Equal(t, large.Addr, get(t, a, c.large).Addr, "the region is whole again when it is wanted")
			require.Zero(t, d.Usage().Calls.Returned())
			require.NoError(t, a.Check())
		})
	}
}

func isSlack(c alloc.Chunk) bool { return c.State == alloc.Slack }
