package packing_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/packing"
)

// random returns a problem of n buffers.
func random(t *testing.T, rnd *rand.Rand, n int) *packing.Problem {
	t.Helper()
	var list []packing.Buffer
	for range n {
		from := rnd.Int64N(30)
		list = append(list, packing.Buffer{Lower: from, Upper: from + 1 + rnd.Int64N(9),
			Size: device.Size(rnd.IntN(5)), Align: 1 << rnd.IntN(3)})
	}
	p, err := packing.New(list)
	require.NoError(t, err)
	return p
}

// TestObstaclesStay fixes a part of the buffers at random offsets and packs the rest: no packed
// buffer overlaps another one that is live at the same time, in both ways of packing.
func TestObstaclesStay(t *testing.T) {
	above := 0
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := random(t, rnd, 2+rnd.IntN(20))
		list, b := p.Sorted(packing.Orders()[seed%3]), p.Buffers()
		fixed, list := list[:len(list)/3], list[len(list)/3:]
		offsets := make([]device.Size, len(b))
		for _, i := range fixed {
			offsets[i] = device.Size(rnd.IntN(20))
		}
		before := append([]device.Size(nil), offsets...)
		steps := uint64(math.MaxUint64)
		if seed%2 == 1 {
			steps = 3
		}
		k := p.Pack(list, fixed, offsets, steps)
		above += k.Above
		for _, i := range fixed {
			require.Equal(t, before[i], offsets[i])
		}
		for n, i := range list {
			require.LessOrEqual(t, offsets[i]+b[i].Size, k.Height, "seed %d", seed)
			require.Zero(t, offsets[i]%b[i].Align, "seed %d", seed)
			for _, j := range append(fixed[:len(fixed):len(fixed)], list[:n]...) {
				together := p.Spans()[i].Overlaps(p.Spans()[j]) && b[i].Size > 0 && b[j].Size > 0
				apart := offsets[i]+b[i].Size <= offsets[j] || offsets[j]+b[j].Size <= offsets[i]
				require.True(t, !together || apart, "seed %d: buffers %d and %d at %v", seed, i, j, offsets)
			}
		}
	}
	require.Positive(t, above, "buffers in slots")
}

func TestNewNamesTheBuffer(t *testing.T) {
	for want, b := range map[string]packing.Buffer{
		"buffer 0 (id 7): life [5, 5): want an end":         {ID: 7, Lower: 5, Upper: 5},
		"buffer 0 (id 0): alignment 3: want a power of two": {Upper: 1, Align: 3},
		"buffer 0 (id 0): the sum of sizes exceeds":         {Upper: 1, Size: 1 << 63},
	} {
		_, err := packing.New([]packing.Buffer{b})
		require.ErrorContains(t, err, want)
	}
}
