package bfc

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// TestSkippedSweepsWouldHaveDoneNothing runs two allocators side by side, one of which
// looks at its whole queue before every request.
func TestSkippedSweepsWouldHaveDoneNothing(t *testing.T) {
	for _, c := range []Config{
		{Timing: true},
		{Timing: true, Mended: true},
		{Timing: true, AllowGrowth: true, GarbageCollection: true},
		{Variant: V2026, Spatial: true, Timing: true},
	} {
		c.Limit = 2 * device.MiB
		for seed := range uint64(5) {
			compareSweeps(t, c, rand.New(rand.NewPCG(seed, 40)))
		}
	}
}

func compareSweeps(t *testing.T, c Config, rng *rand.Rand) {
	t.Helper()
	var both [2]*Allocator
	for i := range both {
		both[i] = newOverBump(t, c)
	}
	var live []device.Addr
	for range 2000 {
		switch k := rng.IntN(10); {
		case k < 5:
			r := alloc.Request{Size: 1 + device.Size(rng.Uint64N(40_000)), Hint: alloc.Hint(rng.IntN(3))}
			both[1].queue.full = true
			b, err := both[0].Alloc(r)
			other, otherErr := both[1].Alloc(r)
			require.Equal(t, b, other)
			require.Equal(t, err, otherErr)
			if err == nil {
				live = append(live, b.Addr)
			}
		case k < 9 && len(live) > 0:
			i := rng.IntN(len(live))
			require.NoError(t, both[0].Free(live[i]))
			require.NoError(t, both[1].Free(live[i]))
			live = slices.Delete(live, i, i+1)
		default:
			frontier := both[0].clock - min(both[0].clock, rng.Uint64N(30))
			both[0].SetFrontier(frontier)
			both[1].SetFrontier(frontier)
		}
		require.Equal(t, both[0].QueuedFrees(), both[1].QueuedFrees())
		require.Equal(t, slices.Collect(both[0].Walk), slices.Collect(both[1].Walk))
	}
}
