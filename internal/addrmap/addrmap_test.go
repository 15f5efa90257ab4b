package addrmap_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/addrmap"
)

// TestAgreesWithMap drives the table and Go's map with the same random calls. Keys are
// drawn from few values with many trailing zeros, so that runs collide and wrap around.
func TestAgreesWithMap(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		keys := 1 + rng.IntN(2000)
		var m addrmap.Map
		want := map[device.Addr]uint32{}
		for range 20000 {
			a := device.Addr(rng.IntN(keys)) << rng.IntN(3) << 12
			switch v := rng.Uint32(); rng.IntN(3) {
			case 0:
				m.Put(a, v)
				want[a] = v
			case 1:
				got, ok := m.Delete(a)
				w, wok := want[a]
				require.Equal(t, wok, ok)
				require.Equal(t, w, got)
				delete(want, a)
			default:
				got, ok := m.Get(a)
				w, wok := want[a]
				require.Equal(t, wok, ok, "seed %d: key %v", seed, a)
				require.Equal(t, w, got)
			}
			require.Equal(t, len(want), m.Len())
		}
		n := 0
		for a, v := range m.Range {
			require.Equal(t, want[a], v)
			n++
		}
		require.Equal(t, len(want), n)
		m.Clear()
		_, ok := m.Get(0)
		require.False(t, ok)
		require.Zero(t, m.Len())
	}
}

func TestHandlesUseAllBits(t *testing.T) {
	var m addrmap.Map
	m.Put(0, ^uint32(0))
	v, ok := m.Get(0)
	require.True(t, ok)
	require.Equal(t, ^uint32(0), v)
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	var m addrmap.Map
	for i := range device.Addr(1000) {
		m.Put(i<<8, uint32(i))
	}
	next := device.Addr(1000)
	require.Zero(t, testing.AllocsPerRun(10000, func() {
		m.Delete((next - 1000) << 8)
		m.Put(next<<8, 1)
		next++
	}))
	require.Equal(t, 1000, m.Len())
}
