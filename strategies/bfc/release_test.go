package bfc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// growing returns an allocator with one live block in each of three regions of 2, 4 and 8 MiB.
func growing(t *testing.T, c bfc.Config) (*rig, []alloc.Block) {
	t.Helper()
	c.AllowGrowth = true
	r := newRig(t, c, sim.Config{})
	blocks := []alloc.Block{r.alloc(2 * mib), r.alloc(4 * mib), r.alloc(8 * mib)}
	require.Equal(t, 14*mib, r.Stats().Reserved)
	return r, blocks
}

func TestCloseGivesEverythingBack(t *testing.T) {
	for _, c := range []bfc.Config{{}, {Timing: true}, {CoalesceRegions: true}} {
		r, blocks := growing(t, c)
		r.free(blocks[1])
		require.NoError(t, r.Close())
		require.Zero(t, r.dev.Usage().Held)
		require.Empty(t, r.chunks())
		s := r.Stats()
		require.Zero(t, [6]uint64{uint64(s.Live), uint64(s.Allocated), uint64(s.Requested), uint64(s.Active),
			uint64(s.Reserved), uint64(s.Regions)})
		require.Equal(t, uint64(1), s.Frees, "what Close drops was not freed by the caller")
		require.NoError(t, r.Check())

		_, err := r.Alloc(alloc.Request{Size: 1})
		require.ErrorIs(t, err, alloc.ErrClosed)
		require.ErrorIs(t, r.Free(blocks[0].Addr), alloc.ErrClosed)
		_, err = r.Trim()
		require.ErrorIs(t, err, alloc.ErrClosed)
		require.NoError(t, r.Close())
	}
}

func TestCloseKeepsWhatTheDeviceRefuses(t *testing.T) {
	r, blocks := growing(t, bfc.Config{})
	r.dev.FailNext(1)
	require.ErrorIs(t, r.Close(), device.ErrInjected)
	require.Equal(t, []alloc.Chunk{{
		Region: blocks[0].Addr, Addr: blocks[0].Addr, Size: 2 * mib, Requested: 2 * mib, State: alloc.Live,
		Class: alloc.NoClass,
	}}, r.chunks())
	require.Equal(t, 2*mib, r.Stats().Reserved)
	require.Equal(t, 2*mib, r.dev.Usage().Held)
	require.NoError(t, r.Check())
	require.NoError(t, r.Close(), "again")
	require.Empty(t, r.chunks())
	require.Zero(t, r.dev.Usage().Held)
	require.Equal(t, uint64(3), r.Stats().Releases)
}

func TestTrimKeepsWhatTheDeviceRefuses(t *testing.T) {
	for _, timing := range []bool{false, true} {
		r, blocks := growing(t, bfc.Config{Timing: timing})
		r.free(blocks[0], blocks[2])
		before := r.chunks()
		r.dev.FailNext(2)
		n, err := r.Trim()
		require.ErrorIs(t, err, device.ErrInjected)
		require.Zero(t, n)
		require.Equal(t, before, r.chunks())
		require.NoError(t, r.Check())

		r.dev.FailNext(1) // the first region only
		n, err = r.Trim()
		require.ErrorIs(t, err, device.ErrInjected)
		require.Equal(t, 8*mib, n)
		require.Equal(t, 6*mib, r.Stats().Reserved)
		require.NoError(t, r.Check())
		n, err = r.Trim()
		require.NoError(t, err)
		require.Equal(t, 2*mib, n)
		require.Zero(t, r.QueuedFrees())
		require.NoError(t, r.Check())
	}
}

func TestJoinedRegionReturnsEveryReservation(t *testing.T) {
	r, blocks := growing(t, bfc.Config{CoalesceRegions: true})
	require.Equal(t, 1, r.Stats().Regions)
	require.Equal(t, 3, r.dev.Usage().Regions)
	r.free(blocks...)
	n, err := r.Trim()
	require.NoError(t, err)
	require.Equal(t, 14*mib, n)
	require.Zero(t, r.dev.Usage().Regions)
	s := r.Stats()
	require.Equal(t, uint64(3), s.Reserves)
	require.Equal(t, uint64(1), s.Releases, "the region counts once")
	require.NoError(t, r.Check())
}

func TestJoinedRegionGoesOnWithWhatIsLeft(t *testing.T) {
	for refused := uint64(1); refused <= 3; refused++ {
		inner, err := sim.New(sim.Config{})
		require.NoError(t, err)
		dev, err := device.NewFaults(inner, device.FaultPlan{Nth: 3 + refused})
		require.NoError(t, err)
		a, err := bfc.New(dev, bfc.Config{AllowGrowth: true, CoalesceRegions: true, Timing: true})
		require.NoError(t, err)
		var blocks []alloc.Block
		for _, n := range []device.Size{2, 4, 8} {
			b, err := a.Alloc(alloc.Request{Size: n * mib})
			require.NoError(t, err)
			blocks = append(blocks, b)
		}
		for _, b := range blocks {
			require.NoError(t, a.Free(b.Addr))
		}
		n, err := a.Trim()
		require.ErrorIs(t, err, device.ErrInjected)
		require.Equal(t, []device.Size{0, 2 * mib, 6 * mib}[refused-1], n)
		require.Equal(t, 14*mib-n, a.Stats().Reserved)
		require.Equal(t, dev.Usage().Held, a.Stats().Reserved)
		require.NoError(t, a.Check())

		// What is left serves again, and goes back later.
		b, err := a.Alloc(alloc.Request{Size: 8 * mib})
		require.NoError(t, err)
		require.NoError(t, a.Free(b.Addr))
		require.NoError(t, a.Check())
		_, err = a.Trim()
		require.NoError(t, err)
		require.Zero(t, dev.Usage().Held)
		require.NoError(t, a.Check())
		require.Equal(t, uint64(1), a.Stats().Releases)
	}
}

func TestCollectionHappensOnlyIfItMakesRoom(t *testing.T) {
	c := bfc.Config{Limit: 14 * mib, GarbageCollection: true}
	r, blocks := growing(t, c)
	r.free(blocks[0], blocks[1])
	r.oom(alloc.Request{Size: 7 * mib})
	require.Equal(t, 3, r.Stats().Regions, "6 MiB are free in all")
	r.alloc(6 * mib)
	require.Equal(t, 2, r.Stats().Regions)
	require.Equal(t, uint64(2), r.Stats().Releases)
}

func TestCollectionKeepsWhatTheDeviceRefuses(t *testing.T) {
	r, blocks := growing(t, bfc.Config{Limit: 14 * mib, GarbageCollection: true})
	r.free(blocks...)
	r.dev.FailNext(1)
	r.alloc(12 * mib) // the 2 MiB that stay leave just that
	require.Equal(t, 2, r.Stats().Regions)
	require.NoError(t, r.Check())
}

func TestCollectionEmptiesTheQueue(t *testing.T) {
	r, blocks := growing(t, bfc.Config{Limit: 14 * mib, GarbageCollection: true, Timing: true})
	r.free(blocks...)
	require.Equal(t, 3, r.QueuedFrees())
	b := r.alloc(14 * mib)
	require.Zero(t, r.QueuedFrees())
	r.free(b)
	r.SetFrontier(100)
	r.alloc(256)
	require.NoError(t, r.Check())
	require.Zero(t, r.QueuedFrees())
}

func TestEveryReservationMayFail(t *testing.T) {
	for nth := uint64(1); nth < 12; nth++ {
		inner, err := sim.New(sim.Config{})
		require.NoError(t, err)
		dev, err := device.NewFaults(inner, device.FaultPlan{Nth: nth})
		require.NoError(t, err)
		a, err := bfc.New(dev, bfc.Config{Limit: 64 * mib, AllowGrowth: true, GarbageCollection: true})
		require.NoError(t, err)
		var blocks []alloc.Block
		for _, n := range []device.Size{1, 3, 9, 20, 31, 2} {
			if b, err := a.Alloc(alloc.Request{Size: n * mib}); err == nil {
				blocks = append(blocks, b)
			}
			require.NoError(t, a.Check())
			if len(blocks) == 2 {
				require.NoError(t, a.Free(blocks[0].Addr))
				blocks = blocks[1:]
			}
		}
		for err := a.Close(); err != nil; err = a.Close() {
			require.NoError(t, a.Check())
		}
		require.Zero(t, dev.Usage().Held)
	}
}

// TestCollectionReplacesAShortRegion shows when garbage collection matters without growth: another
// program holds memory at the first request, so the region is smaller than the limit. After that
// program has ended, a larger request makes the allocator release the region and take its limit.
func TestCollectionReplacesAShortRegion(t *testing.T) {
	for _, collects := range []bool{true, false} {
		r := newRig(t, bfc.Config{Limit: 16 * mib, GarbageCollection: collects}, sim.Config{Capacity: 16 * mib})
		other, err := r.dev.Reserve(6*mib, 256)
		require.NoError(t, err)
		r.free(r.alloc(mib))
		short := r.Stats().Reserved
		require.Less(t, short, 10*mib)
		require.NoError(t, r.dev.Release(other.Addr))
		if !collects {
			r.oom(alloc.Request{Size: 12 * mib})
			require.Equal(t, short, r.Stats().Reserved)
			continue
		}
		r.alloc(12 * mib)
		require.Equal(t, 16*mib, r.Stats().Reserved)
		require.Equal(t, 1, r.Stats().Regions)
	}
}
