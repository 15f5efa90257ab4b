package dlmalloc_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/strategies/dlmalloc"
)

func TestConfigurationIsJudged(t *testing.T) {
	for field, c := range map[string]dlmalloc.Config{
		"quantum":      {Quantum: 300},
		"min_chunk":    {MinChunk: 9},
		"direct_bytes": {DirectBytes: 1},
		"growth":       {Growth: "never"},
		"region_bytes": {RegionBytes: 100},
		"keep_bytes":   {KeepBytes: 1},
		"release":      {Release: true},
	} {
		_, err := dlmalloc.New(nil, c)
		require.ErrorContains(t, err, "dlmalloc: "+field)
	}
	c, err := dlmalloc.Config{}.WithDefaults()
	require.NoError(t, err)
	require.Equal(t, device.Size(512), c.ForCapacity(512).Limit)
	require.Equal(t, c.Quantum, c.ForCapacity(1).Limit)
	require.True(t, c.Preallocates())
}

// TestLargeRequestsGetTheBestFit compares the sizes of large blocks with a search of all free
// chunks.
func TestLargeRequestsGetTheBestFit(t *testing.T) {
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	a, err := dlmalloc.New(gpu, dlmalloc.Config{Quantum: 1, Growth: regions.Fixed, RegionBytes: device.MiB})
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	var live []device.Addr
	for range 3000 {
		if len(live) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(live))
			require.NoError(t, a.Free(live[i]))
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			continue
		}
		n := device.Size(32) << r.IntN(8)
		n += device.Size(r.Uint64N(uint64(n)))
		best, top := device.Size(math.MaxUint64), device.Addr(0)
		sizes := map[device.Addr]device.Size{}
		for c := range a.Walk {
			if c.State == alloc.Free && c.Owner == dlmalloc.OwnerTop {
				top = c.Addr
			} else if c.State == alloc.Free && c.Size >= n {
				best = min(best, c.Size)
				sizes[c.Addr] = c.Size
			}
		}
		b, err := a.Alloc(alloc.Request{Size: n})
		require.NoError(t, err)
		if best != math.MaxUint64 {
			require.NotEqual(t, top, b.Addr, "a request for %d bytes took top", uint64(n))
			require.Equal(t, best, sizes[b.Addr], "size of the chunk for %d bytes", uint64(n))
		}
		live = append(live, b.Addr)
		require.NoError(t, a.Check())
	}
}
