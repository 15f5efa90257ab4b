package bfc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// timed returns an allocator with timing, and four blocks of 1 KiB that fill its 4 KiB.
func timed(t *testing.T, mended bool) (*rig, []alloc.Block) {
	t.Helper()
	r := newRig(t, bfc.Config{Limit: 4096, Timing: true, Mended: mended}, sim.Config{})
	var blocks []alloc.Block
	for range 4 {
		blocks = append(blocks, r.alloc(1024))
	}
	return r, blocks
}

// sizes returns the sizes of all chunks, free ones negative.
func sizes(r *rig) (all []int64) {
	for c := range r.Walk {
		n := int64(c.Size)
		if c.State == alloc.Free {
			n = -n
		}
		all = append(all, n)
	}
	return all
}

func TestUnsafeChunksAreGrantedButNotMerged(t *testing.T) {
	r, b := timed(t, false)
	r.free(b[0], b[1])
	require.Equal(t, []int64{-1024, -1024, 1024, 1024}, sizes(r))
	require.Equal(t, uint64(2), r.chunks()[1].FreedAt)
	require.Equal(t, 2, r.QueuedFrees())
	require.Zero(t, at(r.alloc(1024)))
}

func TestFrontierMergesStrictlyBelowAndOnlyOnAlloc(t *testing.T) {
	r, b := timed(t, false)
	r.free(b[0], b[1], b[2])
	r.SetFrontier(2) // the free counted 1 is safe, the one counted 2 is not
	require.Equal(t, []int64{-1024, -1024, -1024, 1024}, sizes(r), "setting it merges nothing")
	r.oom(alloc.Request{Size: 2048, Before: 9}) // sweeps, and does not merge by force
	require.Equal(t, []int64{-1024, -1024, -1024, 1024}, sizes(r))
	require.Equal(t, 2, r.QueuedFrees())
	r.SetFrontier(3)
	r.SetFrontier(1) // lower: ignored
	r.oom(alloc.Request{Size: 3072, Before: 9})
	require.Equal(t, []int64{-2048, -1024, 1024}, sizes(r))
	require.Equal(t, 1, r.QueuedFrees())
}

func TestBeforeSkipsChunksFreedLater(t *testing.T) {
	r, b := timed(t, false)
	r.free(b[2], b[0]) // counts 1 and 2
	require.Equal(t, b[2], r.request(alloc.Request{Size: 1024, Before: 1}))
	r.oom(alloc.Request{Size: 1024, Before: 1})
	require.Equal(t, b[0], r.request(alloc.Request{Size: 1024, Before: 2}))
}

func TestForcedMergeServesARequestWithoutBound(t *testing.T) {
	r, b := timed(t, false)
	r.free(b[1], b[0], b[2])
	r.oom(alloc.Request{Size: 3072, Before: 3})
	require.Equal(t, device.Size(3072), r.alloc(3072).Size)
	require.Equal(t, []int64{3072, 1024}, sizes(r))
}

func TestForcedMergeStopsWhenSatisfied(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: 6 * 1024, Timing: true}, sim.Config{})
	var b []alloc.Block
	for range 6 {
		b = append(b, r.alloc(1024))
	}
	r.free(b[0], b[1], b[3], b[4])
	r.alloc(2048)
	require.Equal(t, []int64{2048, 1024, -1024, -1024, 1024}, sizes(r))
	require.Equal(t, 2, r.QueuedFrees(), "the two not looked at wait on")
}

func TestRemainderOfAnUnsafeChunk(t *testing.T) {
	for _, mended := range []bool{false, true} {
		r, b := timed(t, mended)
		r.free(b[0])
		r.alloc(256)
		require.Equal(t, []int64{256, -768, 1024, 1024, 1024}, sizes(r))
		require.Equal(t, uint64(1), r.chunks()[1].FreedAt)
		r.free(b[1])
		r.SetFrontier(100)
		r.oom(alloc.Request{Size: 4096, Before: 100})
		if mended {
			require.Equal(t, []int64{256, -1792, 1024, 1024}, sizes(r), "queued and merged")
		} else {
			require.Equal(t, []int64{256, -768, -1024, 1024, 1024}, sizes(r), "a sliver for ever")
		}
	}
}

func TestResultOfAForcedMergeThatStaysInPlace(t *testing.T) {
	for _, mended := range []bool{false, true} {
		r, b := timed(t, mended)
		r.free(b[0], b[1])
		r.oom(alloc.Request{Size: 3072})
		require.Equal(t, []int64{-2048, 1024, 1024}, sizes(r))
		want := 0
		if mended {
			want = 1
		}
		require.Equal(t, want, r.QueuedFrees())
		require.NoError(t, r.Check())
	}
}

func TestStampsAreGoneFromLiveBlocks(t *testing.T) {
	r, b := timed(t, false)
	r.free(b[0])
	r.alloc(1024)
	for _, c := range r.chunks() {
		require.Zero(t, c.FreedAt)
	}
}

func TestFreedTwiceIsQueuedTwice(t *testing.T) {
	r, b := timed(t, false)
	r.free(b[0])
	r.free(r.alloc(1024))
	require.Equal(t, 2, r.QueuedFrees())
	r.SetFrontier(100)
	r.alloc(1024)
	require.Zero(t, r.QueuedFrees())
}

func TestFrontierWithoutTimingDoesNothing(t *testing.T) {
	r := newRig(t, bfc.Config{Limit: 4096}, sim.Config{})
	r.SetFrontier(5)
	r.free(r.alloc(1024))
	require.Len(t, r.chunks(), 1)
	require.Zero(t, r.QueuedFrees())
	require.Equal(t, device.Size(4096), r.request(alloc.Request{Size: 4096, Before: 1}).Size)
}

func TestLimitHoldsWhenMended(t *testing.T) {
	for _, mended := range []bool{false, true} {
		c := bfc.Config{Limit: 9437696, AllowGrowth: true, Mended: mended}
		r := newRig(t, c, sim.Config{Round: 2 * mib, Capacity: 80 * mib})
		for _, n := range []device.Size{2 * mib, 2 * mib, 3 * mib, 1 * mib} {
			r.alloc(n)
		}
		r.alloc(mib) // above the limit now: the device rounded
		require.Equal(t, 10*mib, r.Stats().Reserved)
		if mended {
			r.oom(alloc.Request{Size: 4 * mib})
			why, _ := r.LastRefusal()
			require.Equal(t, power.ReasonLimit, why.Reason)
		} else {
			r.alloc(4 * mib)
			require.Greater(t, r.Stats().Reserved, c.Limit)
		}
	}
}
