package stitch_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/stitch"
)

func TestAnSBlockIsItsPBlocks(t *testing.T) {
	b := scattered(t, stitch.Config{}, 3, 2)
	whole := b.take(5)
	require.NoError(t, b.gpu.Fill(whole, 3*page, 1))
	require.NoError(t, b.gpu.Fill(whole.Add(3*page), 2*page, 2))
	b.give(whole)
	for _, c := range []struct {
		pages   device.Size
		pattern uint32
	}{{3, 1}, {2, 2}} {
		at := b.take(c.pages)
		_, same, err := b.gpu.Compare(at, c.pages*page, c.pattern)
		require.NoError(t, err)
		require.True(t, same, "the piece of %d pages", c.pages)
	}
}

// filled is a live block and what is in it.
type filled struct {
	alloc.Block
	pattern uint32
}

// TestNoBlockWritesIntoAnother fills each block with a pattern of its own and looks at it before it
// is freed, while every kind of call fails now and then. At the end everything goes back.
func TestNoBlockWritesIntoAnother(t *testing.T) {
	for seed := range uint64(20) {
		gpu, err := sim.New(sim.Config{Capacity: 40 * page, Align: page, Granularity: page, Charge: page, Memory: sim.Filled})
		require.NoError(t, err)
		faulty, err := device.NewFaults(gpu, device.FaultPlan{Probability: 0.01 * float64(seed%3), Seed: seed})
		require.NoError(t, err)
		a, err := stitch.New(faulty, stitch.Config{
			ChunkBytes: page, SmallBytes: 2 * page, FragLimit: page << (seed % 3), MostSBlocks: 4 + int(seed),
		})
		require.NoError(t, err)
		churn(t, a, gpu, rand.New(rand.NewPCG(seed, 1)))
		for range 100 {
			if err = a.Close(); err == nil {
				break
			}
		}
		require.NoError(t, err)
		require.True(t, gpu.Usage().Empty(), "%+v", gpu.Usage())
	}
}

// churn allocates, frees and trims at random.
func churn(t *testing.T, a *stitch.Allocator, gpu *sim.Device, rng *rand.Rand) {
	t.Helper()
	var live []filled
	for step := range uint32(1500) {
		if len(live) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(live))
			b := live[i]
			at, same, err := gpu.Compare(b.Addr, b.Size, b.pattern)
			require.NoError(t, err)
			require.True(t, same, "block %v of %v: somebody has written to %v", b.Addr, b.Size, at)
			require.NoError(t, a.Free(b.Addr))
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			continue
		}
		if rng.IntN(100) == 0 {
			_, err := a.Trim()
			if err != nil {
				require.ErrorIs(t, err, device.ErrInjected)
			}
			continue
		}
		n := 1 + device.Size(rng.IntN(10*int(page)))
		b, err := a.Alloc(alloc.Request{Size: n})
		if err != nil {
			require.ErrorIs(t, err, alloc.ErrOutOfMemory)
			continue
		}
		require.NoError(t, gpu.Fill(b.Addr, b.Size, step))
		live = append(live, filled{b, step})
		require.NoError(t, a.Check())
	}
}
