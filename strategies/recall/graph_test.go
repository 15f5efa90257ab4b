package recall_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/recall"
)

// capturing is a stream that captures graphs.
const capturing device.Stream = 7

// captures returns a graph on a device with room for some pages.
func captures(t *testing.T, room device.Size) *bench {
	return newBench(t, room, recall.Config{Map: recall.Graph})
}

// within redirects the requests of calls into a pool.
func (b *bench) within(id alloc.PoolID, calls func()) {
	b.t.Helper()
	require.NoError(b.t, power.BeginPool(b.Strategy, id, power.AllStreams))
	calls()
	require.NoError(b.t, power.EndPool(b.Strategy, id))
	require.NoError(b.t, b.Check())
}

func (b *bench) release(id alloc.PoolID) {
	b.t.Helper()
	require.NoError(b.t, power.ReleasePool(b.Strategy, id))
	require.NoError(b.t, b.Check())
}

func (b *bench) trim() device.Size {
	b.t.Helper()
	n, err := power.Trim(b.Strategy)
	require.NoError(b.t, err)
	require.NoError(b.t, b.Check())
	return n
}

// TestGraphWithoutPoolsIsPages makes the same calls with and without private pools to choose from.
func TestGraphWithoutPoolsIsPages(t *testing.T) {
	g, p := captures(t, 300), newBench(t, 300, recall.Config{})
	random := rand.New(rand.NewPCG(1, 2))
	var live []device.Addr
	refused := 0
	for range 3000 {
		if k := random.IntN(2 * (len(live) + 1)); k < len(live) {
			g.give(live[k])
			p.give(live[k])
			live = append(live[:k], live[k+1:]...)
			continue
		}
		r := alloc.Request{Size: device.Size(1 + random.IntN(30*int(page)))}
		want, refusal := p.Alloc(r)
		got, err := g.Alloc(r)
		require.Equal(t, refusal, err)
		require.Equal(t, want, got)
		if err == nil {
			live = append(live, got.Addr)
		} else {
			refused++
		}
	}
	require.Equal(t, p.Stats(), g.Stats())
	require.Positive(t, refused)
}

// TestMappingsOfAPoolStay makes the same calls in a pool and outside of it, where the windows of
// aliases are undone from time to time.
func TestMappingsOfAPoolStay(t *testing.T) {
	calls := func(b *bench) uint64 {
		random := rand.New(rand.NewPCG(1, 2))
		var live []device.Addr
		for range 4000 {
			if k := random.IntN(20); k < len(live) {
				b.give(live[k])
				live = append(live[:k], live[k+1:]...)
			} else {
				live = append(live, b.take(page*device.Size(1+random.IntN(100))))
			}
		}
		return b.gpu.Usage().Calls[device.CallUnmap].Done
	}
	b := captures(t, 0)
	b.within(1, func() { require.Zero(t, calls(b)) })
	require.NotZero(t, calls(captures(t, 0)))
}

// TestIdleMemoryIsMappedAgainInAPool captures a large graph after two small ones whose memory is
// free but not adjacent.
func TestIdleMemoryIsMappedAgainInAPool(t *testing.T) {
	b := captures(t, 6)
	b.within(1, func() {
		low, _, high := b.take(2*page), b.take(2*page), b.take(2*page)
		b.give(low, high)
		b.take(4 * page)
	})
	require.Equal(t, 6*page, b.Stats().Reserved)
}

func TestCapturesAgainMakeNoCalls(t *testing.T) {
	b := captures(t, 0)
	capture := func() {
		for _, batch := range []device.Size{1, 2, 4, 8} {
			b.step(batch * page / 4)
		}
	}
	b.within(1, capture)
	b.within(1, capture)
	calls := b.calls()
	b.within(1, capture)
	require.Equal(t, calls, b.calls())
}

// TestMemoryGoesBackAfterTheLastUser has a pool that two graphs use.
func TestMemoryGoesBackAfterTheLastUser(t *testing.T) {
	b := captures(t, 16)
	b.within(1, func() { b.give(b.take(4 * page)) })
	var kept device.Addr
	b.within(1, func() { kept = b.take(4 * page) })
	require.Equal(t, 4*page, b.Stats().Reserved)
	b.release(1)
	b.give(kept)
	require.Zero(t, b.trim(), "one graph is left")
	b.release(1)
	require.Equal(t, 4*page, b.trim())
	require.Zero(t, b.gpu.Usage().Ranges)
	require.ErrorIs(t, power.ReleasePool(b.Strategy, 1), alloc.ErrInvalidPool)
}

// TestRequestsGetMemoryOfUnusedPools needs the memory of the other pools, and gets it from one
// without users.
func TestRequestsGetMemoryOfUnusedPools(t *testing.T) {
	b := captures(t, 8)
	b.within(1, func() { b.give(b.take(4 * page)) })
	_, err := b.Alloc(alloc.Request{Size: 8 * page})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	b.release(1)
	require.Equal(t, 4*page, b.Stats().Reserved)
	b.give(b.take(8 * page))
	b.within(2, func() {
		_, err := b.Alloc(alloc.Request{Size: page})
		require.ErrorIs(t, err, alloc.ErrOutOfMemory, "nothing is released during a capture")
		require.Zero(t, b.trim())
	})
	require.Equal(t, 8*page, b.trim())
}

// TestTheFirstRedirectionOfAStreamDecides shows the pools of blocks of two streams.
func TestTheFirstRedirectionOfAStreamDecides(t *testing.T) {
	b := captures(t, 0)
	pool := func(s device.Stream) alloc.PoolID {
		got, err := b.Alloc(alloc.Request{Size: page, Stream: s})
		require.NoError(t, err)
		c, err := power.BlockAt(b.Strategy, got.Addr)
		require.NoError(t, err)
		return c.Pool
	}
	require.NoError(t, power.BeginPool(b.Strategy, 9, capturing))
	require.NoError(t, power.BeginPool(b.Strategy, 3, power.AllStreams))
	require.EqualValues(t, 9, pool(capturing))
	require.EqualValues(t, 3, pool(0))
	require.NoError(t, power.EndPool(b.Strategy, 3))
	require.EqualValues(t, 9, pool(capturing))
	require.Zero(t, pool(0))
	require.NoError(t, b.Check())
}
