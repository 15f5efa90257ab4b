package pgmo_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/pgmo"
)

// sample is a forecast of two iterations: each requests a block of 4 KiB and frees it, then one of
// 2 KiB. A block of 8 KiB lives from before until after them.
func sample() power.Forecast {
	request := func(n device.Size, freed int) power.Expected {
		return power.Expected{Request: alloc.Request{Size: n}, Other: freed}
	}
	free := func(n int) power.Expected { return power.Expected{Kind: power.ExpectFree, Other: n} }
	mark := func(text string) power.Expected { return power.Expected{Kind: power.ExpectMark, Mark: text} }
	return slices.Values([]power.Expected{
		request(8192, -1),
		mark("iter 0"), request(4096, 3), free(2), request(2048, 5), free(4),
		mark("iter 1"), request(4096, 8), free(7), request(2048, 10), free(9),
	})
}

// open returns an allocator with the plan of the sample, before the first iteration.
func open(t *testing.T) *pgmo.Allocator {
	t.Helper()
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	a, err := pgmo.New(gpu, pgmo.Config{RegionBytes: 512})
	require.NoError(t, err)
	a.Plan(sample())
	return a
}

// pass requests and frees blocks in turn, and returns their addresses.
func pass(t *testing.T, a *pgmo.Allocator, sizes ...device.Size) (at []device.Addr) {
	t.Helper()
	for _, n := range sizes {
		b, err := a.Alloc(alloc.Request{Size: n})
		require.NoError(t, err)
		at = append(at, b.Addr)
		require.NoError(t, a.Free(b.Addr))
		require.NoError(t, a.Check())
	}
	return at
}

// TestIterationsRepeat runs two iterations: their blocks share one place in the arena.
func TestIterationsRepeat(t *testing.T) {
	a := open(t)
	_, err := a.Alloc(alloc.Request{Size: 8192})
	require.NoError(t, err)
	require.Equal(t, device.Size(8192), a.Stats().Reserved, "the fallback serves what comes before")
	for _, mark := range []string{"iter 0", "phase fwd", "iter 1"} {
		a.Mark(mark)
		if mark != "phase fwd" {
			at := pass(t, a, 4096, 2048)
			require.Equal(t, at[0], at[1])
		}
	}
	require.Equal(t, device.Size(8192+4096), a.Stats().Reserved)
}

// TestLambdaReturnsAtMarks drops a request: the rest of the iteration misses its places, the next
// one finds them.
func TestLambdaReturnsAtMarks(t *testing.T) {
	a := open(t)
	a.Mark("iter 0")
	arena := pass(t, a, 4096)[0]
	a.Mark("iter 1")
	pass(t, a, 2048) // the place of 4 KiB is large enough
	require.NotEqual(t, arena, pass(t, a, 3000)[0], "larger than planned")
	a.Mark("iter 2")
	require.Equal(t, arena, pass(t, a, 4096)[0])
}

// TestReoptimization exceeds a planned size. The next iteration has a larger arena, but not while a
// block lies in the old one.
func TestReoptimization(t *testing.T) {
	a := open(t)
	a.Mark("iter 0")
	kept, err := a.Alloc(alloc.Request{Size: 4096})
	require.NoError(t, err)
	large := pass(t, a, 6000)[0] // the second request
	a.Mark("iter 1")
	require.NotEqual(t, kept.Addr, pass(t, a, 4096)[0], "the place is in use")
	require.NoError(t, a.Free(kept.Addr))
	a.Mark("iter 2")
	at := pass(t, a, 4096, 6000)
	require.Equal(t, at[0], at[1], "the new arena has room for both, one after the other")
	require.NotEqual(t, large, at[1])
	require.Equal(t, uint64(1), a.Stats().Releases, "the old arena went back")
}

func TestConfigNamesTheField(t *testing.T) {
	_, err := pgmo.New(nil, pgmo.Config{RegionBytes: 5})
	require.ErrorContains(t, err, "pgmo: region_bytes 5: want a multiple of 512")
}
