package inspect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/inspect"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies"
)

// TestMapOfEveryStrategy holds a map to its strategy: bins and chunks add up to what it holds, and
// the chunks are in bins by their size.
func TestMapOfEveryStrategy(t *testing.T) {
	for _, name := range strategies.All().Names() {
		setup, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		gpu, err := sim.New(sim.Config{Capacity: 4 * device.GiB})
		require.NoError(t, err)
		s, err := setup.ForCapacity(4 * device.GiB).New(gpu)
		require.NoError(t, err)
		for tag, n := range []device.Size{100, 256, 511, 5000, 700_000, 3 * device.MiB} {
			if _, err := s.Alloc(alloc.Request{Size: n, Tag: uint64(tag)}); err != nil {
				require.ErrorIs(t, err, alloc.ErrInvalidRequest, name) // larger than the strategy serves
			}
		}
		m := inspect.MapOf(s, name)
		var bins, chunks, used device.Size
		require.Len(t, m.Bins, 21)
		for b, of := range m.Bins {
			require.Equal(t, device.Size(256)<<b, of.Size)
			require.LessOrEqual(t, of.RequestedInUse, of.BytesInUse, name)
			bins += of.BytesInBin
		}
		for _, c := range m.Chunks {
			chunks += c.Size
			if c.InUse {
				used += c.Size
				require.EqualValues(t, -1, c.Bin)
			} else if c.Bin >= 0 {
				require.GreaterOrEqual(t, max(c.Size, 256), m.Bins[c.Bin].Size, name)
			}
		}
		require.Equal(t, bins, chunks, name)
		require.Equal(t, s.Stats().Allocated, used, name)
		require.Equal(t, s.Stats().Reserved, chunks, name)
		require.Equal(t, s.Stats().Allocs, m.Stats.Allocs, name)
		require.NoError(t, s.Close())
	}
}
