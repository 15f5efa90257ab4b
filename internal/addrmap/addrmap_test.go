package addrmap_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/addrmap"
)

// rows keeps the address of each handle, as a strategy does.
type rows []device.Addr

func (r rows) at(handle uint32) device.Addr { return r[handle] }

// TestAgreesWithMap drives the table and Go's map with the same random calls. Addresses are
// drawn from few values with many trailing zeros, so that runs collide and wrap around.
func TestAgreesWithMap(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		keys := 1 + rng.IntN(2000)
		var m addrmap.Map
		r := make(rows, keys)
		want := map[device.Addr]uint32{}
		var spare []uint32
		for h := range r {
			spare = append(spare, uint32(h))
		}
		for range 20000 {
			a := device.Addr(rng.IntN(keys)) << 12
			w, live := want[a]
			switch {
			case rng.IntN(3) == 0:
				got, ok := m.Get(a, r.at)
				require.Equal(t, live, ok, "seed %d: %v", seed, a)
				require.Equal(t, w, got)
			case live:
				got, ok := m.Delete(a, r.at)
				require.True(t, ok)
				require.Equal(t, w, got)
				delete(want, a)
				spare = append(spare, w)
			default:
				_, ok := m.Delete(a, r.at)
				require.False(t, ok)
				h := spare[len(spare)-1]
				spare = spare[:len(spare)-1]
				r[h] = a
				m.Put(a, h)
				want[a] = h
			}
			require.Equal(t, len(want), m.Len())
		}
		for a, w := range want {
			got, ok := m.Get(a, r.at)
			require.True(t, ok)
			require.Equal(t, w, got)
		}
	}
}

// TestSameHashIsToldApart has addresses whose products differ in the lower half only. The
// inverse of the multiplier finds them.
func TestSameHashIsToldApart(t *testing.T) {
	const golden = 0x9E3779B97F4A7C15
	inverse := uint64(golden) // by Newton's iteration, which doubles the bits that are right
	for range 5 {
		inverse *= 2 - golden*inverse
	}
	r := rows{}
	var m addrmap.Map
	for low := range uint64(100) {
		a := device.Addr((0x12345678<<32 | low) * inverse)
		r = append(r, a)
		m.Put(a, uint32(low))
	}
	for h, a := range r {
		got, ok := m.Get(a, r.at)
		require.True(t, ok)
		require.EqualValues(t, h, got)
	}
	_, ok := m.Get(device.Addr((0x12345678<<32|100)*inverse), r.at)
	require.False(t, ok)
	for h, a := range r {
		got, ok := m.Delete(a, r.at)
		require.True(t, ok)
		require.EqualValues(t, h, got)
	}
}

func TestHandlesUseAllBits(t *testing.T) {
	var m addrmap.Map
	m.Put(0, addrmap.Most)
	v, ok := m.Get(0, func(uint32) device.Addr { return 0 })
	require.True(t, ok)
	require.EqualValues(t, addrmap.Most, v)
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	var m addrmap.Map
	r := make(rows, 1000)
	for i := range r {
		r[i] = device.Addr(i) << 8
		m.Put(r[i], uint32(i))
	}
	next := 1000
	require.Zero(t, testing.AllocsPerRun(10000, func() {
		h, _ := m.Delete(r[next%1000], r.at)
		r[h] = device.Addr(next) << 8
		m.Put(r[h], h)
		next++
	}))
	require.Equal(t, 1000, m.Len())
}

// BenchmarkPair deletes a random block and puts another in its place.
func BenchmarkPair(b *testing.B) {
	for _, live := range []int{1000, 100_000, 1_000_000} {
		b.Run("live="+map[int]string{1000: "1e3", 100_000: "1e5", 1_000_000: "1e6"}[live], func(b *testing.B) {
			var m addrmap.Map
			r := make(rows, live)
			for i := range r {
				r[i] = 0x7f0000000000 + device.Addr(i)<<12
				m.Put(r[i], uint32(i))
			}
			rng := rand.New(rand.NewPCG(1, 0))
			for b.Loop() {
				a := r[rng.IntN(live)]
				h, _ := m.Delete(a, r.at)
				m.Put(a, h)
			}
			b.ReportMetric(float64(m.Bytes())/float64(live), "B/block")
		})
	}
}
