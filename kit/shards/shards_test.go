package shards_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/kit/shards"
	"github.com/vramyard/vramyard/strategies/tlsf"
)

// build returns a set of tlsf on a device of their own; bare hides that it is one.
func build(t *testing.T, n int, bare bool) (*shards.Set, *shards.Device) {
	t.Helper()
	dev, err := sim.New(sim.Config{Capacity: 64 * device.MiB})
	require.NoError(t, err)
	var src device.Source = dev
	if bare {
		src = struct{ device.Source }{dev}
	}
	d := shards.NewDevice(src)
	set := shards.NewSet(d)
	for i := range n {
		s, err := tlsf.New(d.Part(i), tlsf.Config{Growth: regions.Fixed, RegionBytes: 64 * device.KiB})
		require.NoError(t, err)
		set.Add(s)
	}
	return set, d
}

// TestPeaksMatchOneAccount compares the counters with one account of all strategies.
func TestPeaksMatchOneAccount(t *testing.T) {
	for _, bare := range []bool{false, true} {
		set, d := build(t, 3, bare)
		rng := rand.New(rand.NewPCG(1, 2))
		type block struct {
			alloc.Block
			asked device.Size
		}
		var live []block
		var want alloc.Stats
		for range 3000 {
			if len(live) > 0 && rng.IntN(9) < 4 {
				i := rng.IntN(len(live))
				h, ok := d.Find(live[i].Addr)
				require.True(t, ok)
				require.NoError(t, set.Free(h.Shard, live[i].Addr))
				want.Freed(live[i].asked, live[i].Size)
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
				continue
			}
			asked := 1 + device.Size(rng.IntN(4096))
			b, err := set.Alloc(rng.IntN(3), alloc.Request{Size: asked})
			require.NoError(t, err)
			want.Granted(asked, b.Size)
			live = append(live, block{b, asked})
			got := set.Stats()
			require.Equal(t, want.PeakRequested, got.PeakRequested)
			require.Equal(t, want.PeakAllocated, got.PeakAllocated)
			require.Equal(t, want.PeakActive, got.PeakActive)
			require.Equal(t, want.LargestAlloc, got.LargestAlloc)
			require.Equal(t, got.Reserved, got.PeakReserved, "nothing goes back")
		}
	}
}

// TestPeaksOfManyThreads has threads that never hold less: the peak is near the live bytes.
func TestPeaksOfManyThreads(t *testing.T) {
	set, d := build(t, 4, false)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			var last device.Addr
			for k := range 2000 {
				b, err := set.Alloc((i+k)%4, alloc.Request{Size: 256})
				if err != nil {
					t.Error(err)
					return
				}
				if k%3 == 2 { // of another shard
					h, _ := d.Find(last)
					if err := set.Free(h.Shard, last); err != nil {
						t.Error(err)
					}
				}
				last = b.Addr
			}
		})
	}
	all.Wait()
	stats := set.Stats()
	require.EqualValues(t, 8000, stats.Allocs)
	require.Equal(t, 8000-4*666, stats.Live)
	require.GreaterOrEqual(t, stats.PeakRequested, stats.Requested)
	require.LessOrEqual(t, stats.PeakRequested, stats.Requested+4*256, "each thread has one more at times")
}

func TestFindFollowsRegions(t *testing.T) {
	_, d := build(t, 1, false)
	part := d.Part(7)
	r, err := part.Reserve(4096, 0)
	require.NoError(t, err)
	for _, at := range []device.Addr{r.Addr, r.End() - 1} {
		h, ok := d.Find(at)
		require.True(t, ok)
		require.Equal(t, shards.Held{Region: r, Shard: 7}, h)
	}
	for _, at := range []device.Addr{0, r.Addr - 1, r.End()} {
		_, ok := d.Find(at)
		require.False(t, ok, "%v", at)
	}
	require.NoError(t, part.Release(r.Addr))
	_, ok := d.Find(r.Addr)
	require.False(t, ok)
	require.Error(t, part.Release(r.Addr), "which leaves the table as it is")
}
