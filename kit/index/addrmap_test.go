package index_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// rows keeps the address of each handle, as a strategy does.
type rows []device.Addr

func (r rows) at(handle uint32) device.Addr { return r[handle] }

// TestAgreesWithMap drives the table and Go's map with the same random calls. Addresses are
// drawn from few values with many trailing zeros, so that runs collide and wrap around.
func TestAgreesWithMap(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		keys := 2 + rng.IntN(2000)
		m := index.NewAddrMap()
		r := make(rows, keys)
		want := map[device.Addr]uint32{}
		var spare []uint32
		for h := 1; h < keys; h++ {
			spare = append(spare, uint32(h))
		}
		for range 20000 {
			a := device.Addr(rng.IntN(keys-1)) << 12
			w, live := want[a] // w is addrmap.None if there is none
			switch {
			case rng.IntN(3) == 0:
				require.Equal(t, w, m.Get(a, r.at), "seed %d: %v", seed, a)
			case live:
				require.Equal(t, w, m.Delete(a, r.at))
				delete(want, a)
				spare = append(spare, w)
			default:
				require.EqualValues(t, index.NoHandle, m.Delete(a, r.at))
				h := spare[len(spare)-1]
				spare = spare[:len(spare)-1]
				r[h] = a
				m.Put(a, h, r.at)
				want[a] = h
			}
			require.Equal(t, len(want), m.Len())
		}
		for a, w := range want {
			require.Equal(t, w, m.Get(a, r.at))
		}
	}
}

// TestChainsLoseNoEntry has addresses of one bucket, taken out from every place of the chain.
func TestChainsLoseNoEntry(t *testing.T) {
	const golden = 0x9E3779B97F4A7C15
	inverse := uint64(golden) // by Newton's iteration, which doubles the bits that are right
	for range 5 {
		inverse *= 2 - golden*inverse
	}
	const n = 40
	for gone := 1; gone <= n; gone++ {
		r := rows{0}
		m := index.NewAddrMap()
		for low := range uint64(n) {
			x := (0x12345678<<32 | low) * inverse
			r = append(r, device.Addr(x^x>>23^x>>46)) // which folds to x
			m.Put(r[low+1], uint32(low+1), r.at)
		}
		require.EqualValues(t, index.NoHandle, m.Get(device.Addr(42), r.at))
		require.EqualValues(t, gone, m.Delete(r[gone], r.at))
		for h := 1; h <= n; h++ {
			want := h
			if h == gone {
				want = index.NoHandle
			}
			require.EqualValues(t, want, m.Get(r[h], r.at), "without %d", gone)
		}
	}
}

// TestNoStrideMakesLongChains enters blocks of one size behind each other. A lookup among
// random addresses passes a quarter of an entry on average.
func TestNoStrideMakesLongChains(t *testing.T) {
	for _, blocks := range []int{1000, 100_000} {
		for _, stride := range []device.Size{
			256, 512, 1792, 4096, 65536, 196608, 1 << 20, 2 << 20, 2_262_784, 5 << 20, 6_788_352,
		} {
			b := index.NewAddrBuckets()
			for b.Len() < blocks {
				if b.Full() {
					b.Double() // what was entered is lost, which is as well
				}
				b.Enter(0, 1)
			}
			chains := map[*uint32]int{}
			looks := 0
			for i := range blocks {
				first := b.Of(device.Addr(0x7f0000000000).Add(device.Size(i) * stride))
				chains[first]++
				looks += chains[first]
			}
			require.Less(t, float64(looks)/float64(blocks), 1.5, "%d blocks of %d bytes", blocks, uint64(stride))
		}
	}
}

func TestNewMapIsEmpty(t *testing.T) {
	m := index.NewAddrMap()
	require.EqualValues(t, index.NoHandle, m.First(1<<40))
	require.EqualValues(t, index.NoHandle, m.Delete(0, nil))
	require.Zero(t, m.Len())
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	m := index.NewAddrMap()
	r := make(rows, 1001)
	for i := 1; i <= 1000; i++ {
		r[i] = device.Addr(i) << 8
		m.Put(r[i], uint32(i), r.at)
	}
	next := 1000
	require.Zero(t, testing.AllocsPerRun(10000, func() {
		h := m.Delete(r[1+next%1000], r.at)
		r[h] = device.Addr(next) << 8
		m.Put(r[h], h, r.at)
		next++
	}))
	require.Equal(t, 1000, m.Len())
}

// BenchmarkPair deletes a random block and puts another in its place.
func BenchmarkPair(b *testing.B) {
	for _, live := range []int{1000, 100_000, 1_000_000} {
		b.Run("live="+map[int]string{1000: "1e3", 100_000: "1e5", 1_000_000: "1e6"}[live], func(b *testing.B) {
			m := index.NewAddrMap()
			r := make(rows, live+1)
			for i := 1; i <= live; i++ {
				r[i] = 0x7f0000000000 + device.Addr(i)<<12
				m.Put(r[i], uint32(i), r.at)
			}
			rng := rand.New(rand.NewPCG(1, 0))
			for b.Loop() {
				a := r[1+rng.IntN(live)]
				m.Put(a, m.Delete(a, r.at), r.at)
			}
			b.ReportMetric(float64(m.Bytes())/float64(live), "B/block")
		})
	}
}

// TestDroppedMapIsRestored drops a map, changes what it would hold, and restores it.
func TestDroppedMapIsRestored(t *testing.T) {
	m := index.NewAddrMap()
	r := make(rows, 1001)
	for h := 1; h < len(r)-1; h++ {
		r[h] = device.Addr(h) << 12
		m.Put(r[h], uint32(h), r.at)
	}
	m.UnlinkRef(r[7], 7)
	require.True(t, m.Dropped())
	require.Zero(t, m.Bytes())
	r[1000] = 1000 << 12
	m.Put(r[1000], 1000, r.at)
	m.Unlink(r[8], 8)
	m.UnlinkRef(r[9], 9)
	require.Zero(t, m.Len())

	held := func(h uint32) bool { return h < 7 || h > 9 }
	m.Restore(997, func(yield func(uint32) bool) {
		for h := uint32(1); int(h) < len(r); h++ {
			if held(h) && !yield(h) {
				return
			}
		}
	}, r.at)
	require.Equal(t, 997, m.Len())
	for h := uint32(1); int(h) < len(r); h++ {
		require.Equal(t, held(h), m.Get(r[h], r.at) == h, "handle %d", h)
	}
	m.UnlinkRef(r[20], 20)
	require.False(t, m.Dropped(), "it was restored once")
	require.EqualValues(t, index.NoHandle, m.Get(r[20], r.at))
	require.Equal(t, 996, m.Len())
}
