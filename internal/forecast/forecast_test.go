package forecast_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
)

const base device.Addr = 1 << 20

// walkOf returns the walk of a region at base: free chunks are positive, live ones negative.
func walkOf(sizes ...int) forecast.Walk {
	return func(yield func(alloc.Chunk) bool) {
		at := base
		for _, n := range sizes {
			c := alloc.Chunk{Region: base, Addr: at, Size: device.Size(max(n, -n))}
			if n < 0 {
				c.State, c.Requested, c.Tag = alloc.Live, c.Size, 7
			}
			if !yield(c) {
				return
			}
			at = c.End()
		}
	}
}

// holes returns what would be free, as offsets and sizes.
func holes(p forecast.Placer, walk forecast.Walk, freed ...device.Addr) (all [][2]device.Size) {
	p.Holes(walk, freed, func(c alloc.Chunk) bool {
		all = append(all, [2]device.Size{c.Addr.Sub(base), c.Size})
		return true
	})
	return all
}

func TestHolesMergeAsPromised(t *testing.T) {
	walk := walkOf(2, -2, 4, -1, -1, 6)
	all := forecast.Placer{Promises: promise.Set{MustMerge: promise.MergeAll}}
	require.Equal(t, [][2]device.Size{{0, 2}, {4, 4}, {10, 6}}, holes(all, walk))
	require.Equal(t, [][2]device.Size{{0, 8}, {10, 6}}, holes(all, walk, base+2))
	require.Equal(t, [][2]device.Size{{0, 2}, {4, 5}, {10, 6}}, holes(all, walk, base+8, base+8, base+4, base+3))
	require.Equal(t, [][2]device.Size{{0, 16}}, holes(all, walk, base+9, base+2, base+8))
	buddies := forecast.Placer{Promises: promise.Set{MustMerge: promise.MergeBuddies}}
	require.Equal(t, [][2]device.Size{{0, 8}, {10, 6}}, holes(buddies, walk, base+2), "the chain of buddies")
	require.Equal(t, [][2]device.Size{{0, 2}, {4, 4}, {8, 2}, {10, 6}}, holes(buddies, walk, base+8, base+9))
	require.Equal(t, [][2]device.Size{{0, 2}, {2, 2}, {4, 4}, {10, 6}}, holes(forecast.Placer{}, walk, base+2),
		"nothing is known to merge")
	waiting := all
	waiting.Freed = func(alloc.Chunk, func(alloc.Chunk)) {}
	require.Equal(t, [][2]device.Size{{0, 2}, {4, 4}, {10, 6}}, holes(waiting, walk, base+2))
}

func TestOnlyLegalRequestsCanBePlaced(t *testing.T) {
	p := forecast.Placer{Most: 8, Promises: promise.Set{
		Honours: func(r alloc.Request) bool { return r.Align <= 4 },
		Serves:  promise.ServesAnywhere(1),
	}}
	for _, c := range []struct {
		size, align device.Size
		want        bool
	}{{8, 0, true}, {8, 4, true}, {9, 0, false}, {0, 0, false}, {8, 8, false}, {8, 3, false}} {
		require.Equal(t, c.want, p.CanPlace(walkOf(16), alloc.Request{Size: c.size, Align: c.align}, nil), "%+v", c)
	}
	p.Promises.Serves = nil
	require.False(t, p.CanPlace(walkOf(16), alloc.Request{Size: 1}, nil), "nothing is known to serve")
}
