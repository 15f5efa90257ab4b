package index_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

func TestAgreesWithASlice(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var m index.MaxTree
		values := make([]device.Size, 1+rng.IntN(70))
		require.Zero(t, m.Max(nil))
		for range 2000 {
			i := rng.IntN(len(values))
			v := device.Size(rng.IntN(50))
			if v > values[i] {
				m.Raise(uint32(i), v)
			}
			values[i] = v
			if rng.IntN(4) == 0 {
				require.Equal(t, slices.Max(values), m.Max(func(i uint32) device.Size { return values[i] }))
			}
		}
	}
}

// TestQueryReadsFewValues has 10,000 values, of which one falls before each question.
func TestQueryReadsFewValues(t *testing.T) {
	var m index.MaxTree
	values := make([]device.Size, 10_000)
	for i := range values {
		values[i] = device.Size(1 + i)
		m.Raise(uint32(i), values[i])
	}
	looks := 0
	for i := range slices.Backward(values) {
		values[i] = 0
		require.Equal(t, device.Size(i), m.Max(func(i uint32) device.Size { looks++; return values[i] }))
	}
	require.LessOrEqual(t, looks, 2*len(values))
}
