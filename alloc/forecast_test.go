package alloc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
)

func TestForecastsPassThroughEveryWrapper(t *testing.T) {
	for name, s := range wrapped(t, &rich{toy: newToy(4)}) {
		below, above := power.FreeNeighbours(s, 7)
		require.Equal(t, [2]device.Size{7, 14}, [2]device.Size{below, above}, name)
		require.True(t, power.CanPlace(s, alloc.Request{Size: 8}, []device.Addr{1}), name)
		require.False(t, power.CanPlace(s, alloc.Request{Size: 9}, []device.Addr{1}), name)
		var moves []alloc.Block
		n, err := power.Compact(s, func(c alloc.Chunk) bool { return c.Addr == 9 }, func(_, to alloc.Block) {
			moves = append(moves, to)
		})
		if name != "bare" && name != "limited" { // outside of the one that records
			require.ErrorIs(t, err, alloc.ErrUnsupported, name)
			require.False(t, power.Has(s, power.PowerMover), name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, device.Size(1), n, name)
		require.Equal(t, []alloc.Block{{Addr: 8, Size: 1}}, moves, name)
	}
}

func TestForecastsWithoutPowers(t *testing.T) {
	s := newToy(4)
	var at []device.Addr
	for range 4 {
		b, err := s.Alloc(alloc.Request{Size: 256})
		require.NoError(t, err)
		at = append(at, b.Addr)
	}
	require.NoError(t, s.Free(at[1]))
	below, above := power.FreeNeighbours(s, at[0])
	require.Zero(t, below)
	require.Zero(t, above, "nothing is known of what merges")
	for _, c := range []struct {
		size, align device.Size
		freed       []device.Addr
		want        bool
	}{
		{256, 0, nil, true},
		{200, 512, nil, false},
		{257, 0, nil, false},
		{512, 0, []device.Addr{at[0]}, true},
		{512, 512, []device.Addr{at[2]}, false},
		{512, 256, []device.Addr{at[2]}, true},
		{1024, 0, []device.Addr{at[3], at[2]}, false},
		{1024, 0, []device.Addr{at[3], at[2], at[0]}, true},
		{256, 0, []device.Addr{at[0] + 1}, true},
		{0, 0, []device.Addr{at[0]}, false},
		{256, 3, []device.Addr{at[0]}, false},
	} {
		require.Equal(t, c.want, power.CanPlace(s, alloc.Request{Size: c.size, Align: c.align}, c.freed), "%+v", c)
	}
	_, err := power.Compact(s, nil, nil)
	require.ErrorIs(t, err, alloc.ErrUnsupported)
	limited, err := wrap.Limited(s, 1000)
	require.NoError(t, err)
	require.True(t, power.CanPlace(limited, alloc.Request{Size: 200}, nil))
	require.False(t, power.CanPlace(limited, alloc.Request{Size: 256}, nil), "above the limit")
	require.True(t, power.CanPlace(limited, alloc.Request{Size: 256}, at[:1]))
}
