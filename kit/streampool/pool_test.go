package streampool_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/streampool"
)

const kib = device.KiB

// all is a configuration with every kind of reuse.
var all = streampool.Config{Region: 16 * kib, FollowEvents: true, ReuseFinished: true, InsertWaits: true}

func newSim(t testing.TB, capacity device.Size) *sim.Device {
	t.Helper()
	d, err := sim.New(sim.Config{Capacity: capacity, Align: 512})
	require.NoError(t, err)
	return d
}

// get allocates a block and returns its address.
func get(t *testing.T, p *streampool.Pool, n device.Size, s device.Stream) device.Addr {
	t.Helper()
	h, err := p.Alloc(streampool.Request{Size: n, Stream: s})
	require.NoError(t, err)
	require.NoError(t, p.Check())
	return p.Show(h).Addr
}

// free frees the block that starts at an address.
func free(t *testing.T, p *streampool.Pool, a device.Addr, s device.Stream) {
	t.Helper()
	h := p.Find(a)
	require.NotZero(t, h)
	p.Free(h, s)
	require.NoError(t, p.Check())
}

// filled returns a pool of one region that is live except for a hole of 2 KiB freed by stream 1.
func filled(t *testing.T, d device.Source, c streampool.Config) (p *streampool.Pool, hole device.Addr) {
	t.Helper()
	p = streampool.New(d, c)
	get(t, p, 4*kib, 1)
	hole = get(t, p, 2*kib, 1)
	get(t, p, 10*kib, 1)
	free(t, p, hole, 1)
	return p, hole
}

func TestReuseAcrossStreamsNeedsOrdering(t *testing.T) {
	none := streampool.Config{Region: 16 * kib}
	follow, finished, waits := none, none, none
	follow.FollowEvents, finished.ReuseFinished, waits.InsertWaits = true, true, true
	wait := func(d *sim.Device) { // stream 2 waits for the work queued on stream 1
		e, err := d.NewEvent()
		require.NoError(t, err)
		require.NoError(t, d.Record(e, 1))
		require.NoError(t, d.Wait(2, e))
	}
	drain := func(d *sim.Device) { require.NoError(t, d.Drain(1)) }
	nothing := func(*sim.Device) {}
	for _, c := range []struct {
		name   string
		config streampool.Config
		stream device.Stream
		before func(*sim.Device)
		reused bool
		waits  uint64
	}{
		{"the stream itself", none, 1, nothing, true, 0},
		{"another one does not", none, 2, nothing, false, 0},
		{"not even if it waits", none, 2, wait, false, 0},
		{"nor if it is done", none, 2, drain, false, 0},
		{"one that waits may follow", follow, 2, wait, true, 0},
		{"one that does not may not", follow, 2, nothing, false, 0},
		{"another one may wait", waits, 2, nothing, true, 1},
		{"what is done needs no wait", finished, 2, drain, true, 0},
		{"what is not done does", finished, 2, wait, false, 0},
		{"a wait is the last resort after events", all, 2, wait, true, 0},
		{"and after the finished", all, 2, drain, true, 0},
	} {
		d := newSim(t, 0)
		p, hole := filled(t, d, c.config)
		c.before(d)
		a := get(t, p, 2*kib, c.stream)
		require.Equal(t, c.reused, a == hole, c.name)
		require.Equal(t, c.waits, p.Stats().Waits, c.name)
	}
}

func TestDeviceIsSynchronizedBeforeARefusal(t *testing.T) {
	d := newSim(t, 16*kib)
	p, hole := filled(t, d, streampool.Config{Region: 16 * kib})
	require.Equal(t, hole, get(t, p, kib, 2))
	require.EqualValues(t, 1, p.Stats().Syncs)
	_, err := p.Alloc(streampool.Request{Size: 2 * kib})
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	require.EqualValues(t, 1, p.Stats().Syncs, "there was nothing to wait for")
	require.Equal(t, kib, p.LargestFree())
}

func TestRegionsAreReleasedBeforeARefusal(t *testing.T) {
	d := newSim(t, 32*kib)
	p := streampool.New(d, streampool.Config{Region: 16 * kib})
	a, b := get(t, p, 16*kib, 1), get(t, p, 16*kib, 1)
	free(t, p, a, 1)
	free(t, p, b, 2)
	require.Equal(t, a, get(t, p, 32*kib, 3))
	require.Equal(t, 1, p.Stats().Regions)
}

func TestSmallerRegionIsBetterThanNone(t *testing.T) {
	p := streampool.New(newSim(t, 3*device.MiB), streampool.Config{Region: 4 * device.MiB})
	get(t, p, device.MiB, 0)
	require.Equal(t, 2*device.MiB, p.Stats().Reserved, "whole pages")
	require.Equal(t, 2*device.MiB, p.Asked())
}

func TestTheLimitHolds(t *testing.T) {
	p := streampool.New(newSim(t, 0), streampool.Config{Region: 16 * kib, Limit: 20 * kib})
	get(t, p, 16*kib, 0)
	_, err := p.Alloc(streampool.Request{Size: 1})
	require.ErrorIs(t, err, streampool.ErrLimit)
	require.Zero(t, p.Asked())
	require.Zero(t, p.Stats().ReserveFailures)
}

func TestFreedChunksCoalesceWithOwnAndUnownedChunks(t *testing.T) {
	d := newSim(t, 0)
	p := streampool.New(d, streampool.Config{Region: 16 * kib})
	var at []device.Addr
	for _, s := range []device.Stream{1, 1, 2, 1} {
		at = append(at, get(t, p, 4*kib, s))
	}
	for i, s := range []device.Stream{1, 1, 2} {
		free(t, p, at[i], s)
	}
	require.Equal(t, 8*kib, p.LargestFree(), "stream 2 freed the third")
	require.NoError(t, d.Drain(1))
	bytes, err := p.Poll()
	require.NoError(t, err)
	require.Zero(t, bytes, "nothing was pending")
	require.Equal(t, 8*kib, p.LargestFree(), "unowned chunks and those of stream 2 do not coalesce")
	free(t, p, at[3], 2)
	require.Equal(t, 16*kib, p.LargestFree(), "stream 2 takes all along")
}

func TestBlocksOfMoreStreamsArePending(t *testing.T) {
	d := newSim(t, 0)
	p := streampool.New(d, all)
	a := get(t, p, 16*kib, 1)
	for _, s := range []device.Stream{2, 3, 2, 1} {
		p.Use(p.Find(a), s)
	}
	free(t, p, a, 1)
	require.Equal(t, streampool.Stats{
		Reserved: 16 * kib, ReservedHigh: 16 * kib, UsedHigh: 16 * kib, Pending: 16 * kib, Regions: 1, Reserves: 1,
	}, p.Stats())
	for _, s := range []device.Stream{3, 2} {
		bytes, err := p.Poll()
		require.NoError(t, err)
		require.Zero(t, bytes)
		require.NotEqual(t, a, get(t, p, 16*kib, 1), "even its own stream may not have it")
		require.NoError(t, d.Drain(s))
	}
	bytes, err := p.Poll()
	require.NoError(t, err)
	require.Equal(t, 16*kib, bytes)
	require.NoError(t, p.Check())
	require.Equal(t, a, get(t, p, 16*kib, 1))
}

func TestPollReleasesAboveTheThreshold(t *testing.T) {
	for threshold, stays := range map[device.Size]device.Size{
		0: 0, 1: 16 * kib, 16 * kib: 16 * kib, 20 * kib: 32 * kib, 1 << 40: 48 * kib,
	} {
		d := newSim(t, 0)
		p := streampool.New(d, streampool.Config{Region: 16 * kib, Threshold: threshold})
		var at []device.Addr
		for range 3 {
			at = append(at, get(t, p, 16*kib, 5))
		}
		for _, a := range at {
			free(t, p, a, 5)
		}
		_, err := p.Poll()
		require.NoError(t, err)
		require.Equal(t, 48*kib, p.Stats().Reserved, "nothing is known to have finished")
		require.NoError(t, d.SyncStream(5))
		_, err = p.Poll()
		require.NoError(t, err)
		require.Equal(t, stays, p.Stats().Reserved, "threshold %v", threshold)
		require.NoError(t, p.Check())
	}
}

func TestWithoutStreamsFreedChunksAreReusedAtOnce(t *testing.T) {
	p := streampool.New(struct{ device.Source }{newSim(t, 0)}, streampool.Config{Region: 16 * kib})
	a := get(t, p, 16*kib, 1)
	p.Use(p.Find(a), 2)
	free(t, p, a, 1)
	require.Equal(t, a, get(t, p, 16*kib, 3))
	require.NoError(t, p.Close())
}

// shadow records for each quantum the work that may still use it, with its own events.
type shadow struct {
	t     *testing.T
	d     *sim.Device // below the wrapper that injects faults
	freed map[device.Addr][]device.Event
}

// free records an event on each stream that uses a block.
func (s *shadow) free(c streampool.Chunk, streams []device.Stream) {
	var events []device.Event
	for _, on := range streams {
		e, err := s.d.NewEvent()
		require.NoError(s.t, err)
		require.NoError(s.t, s.d.Record(e, on))
		events = append(events, e)
	}
	for a := c.Addr; a < c.Addr.Add(c.Size); a += device.Addr(streampool.Quantum) {
		s.freed[a] = events
	}
}

// granted checks that a block's stream is ordered after all recorded work on its memory.
func (s *shadow) granted(c streampool.Chunk) {
	for a := c.Addr; a < c.Addr.Add(c.Size); a += device.Addr(streampool.Quantum) {
		for _, e := range s.freed[a] {
			safe, err := s.d.Ordered(e, c.Stream)
			require.NoError(s.t, err)
			require.True(s.t, safe, "%v is still used", a)
		}
		delete(s.freed, a)
	}
}

// driver makes random calls.
type driver struct {
	*shadow
	p       *streampool.Pool
	rng     *rand.Rand
	live    []streampool.Handle
	uses    map[streampool.Handle][]device.Stream
	perfect bool // no faults
}

func (r *driver) step() {
	switch k := r.rng.IntN(100); {
	case k < 40:
		r.alloc()
	case k < 75 && len(r.live) > 0:
		i := r.rng.IntN(len(r.live))
		h := r.live[i]
		r.live[i], r.live = r.live[len(r.live)-1], r.live[:len(r.live)-1]
		c := r.p.Show(h)
		on := c.Stream
		if r.rng.IntN(8) == 0 {
			on = device.Stream(r.rng.IntN(4))
		}
		r.shadow.free(c, append(r.uses[h], on))
		delete(r.uses, h)
		r.p.Free(h, on)
	case k < 82 && len(r.live) > 0:
		h, s := r.live[r.rng.IntN(len(r.live))], device.Stream(r.rng.IntN(4))
		r.p.Use(h, s)
		r.uses[h] = append(r.uses[h], s)
	case k < 88:
		require.NoError(r.t, r.d.Drain(device.Stream(r.rng.IntN(4))))
	case k < 92:
		_, err := r.p.Poll()
		require.True(r.t, err == nil || !r.perfect, "%v", err)
	case k < 93:
		_, err := r.p.Trim(device.Size(r.rng.IntN(2))*16*kib, r.rng.IntN(2) == 0)
		require.True(r.t, err == nil || !r.perfect, "%v", err)
	case k < 96:
		e, err := r.d.NewEvent()
		require.NoError(r.t, err)
		require.NoError(r.t, r.d.Record(e, device.Stream(r.rng.IntN(4))))
		require.NoError(r.t, r.d.Wait(device.Stream(r.rng.IntN(4)), e))
	}
}

func (r *driver) alloc() {
	q := streampool.Request{
		Size: 1 + device.Size(r.rng.Uint64N(1<<(6+r.rng.Uint64N(8)))), Stream: device.Stream(r.rng.IntN(4)),
		Tag: r.rng.Uint64(),
	}
	if r.rng.IntN(6) == 0 {
		q.Align = 1 << r.rng.IntN(14)
	}
	h, err := r.p.Alloc(q)
	if err != nil {
		n := device.AlignUp(q.Size, streampool.Quantum)
		require.True(r.t, !r.perfect || q.Align > streampool.Quantum || r.p.LargestFree() < n, "%v of %+v", err, q)
		return
	}
	c := r.p.Show(h)
	require.Equal(r.t, device.AlignUp(q.Size, streampool.Quantum), c.Size)
	require.True(r.t, q.Align == 0 || c.Addr.IsAligned(q.Align))
	require.Equal(r.t, [2]uint64{uint64(q.Size), q.Tag}, [2]uint64{uint64(c.Requested), c.Tag})
	r.granted(c)
	r.live = append(r.live, h)
}

// TestMemoryIsNotReusedTooEarly makes random calls on a device that may refuse them, and checks the
// order of work for every quantum.
func TestMemoryIsNotReusedTooEarly(t *testing.T) {
	for seed := range uint64(48) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 8))
			d := newSim(t, 64*kib)
			plan := device.FaultPlan{Seed: seed}
			if seed%3 == 2 {
				plan.Probability = 0.1
			}
			faults, err := device.NewFaults(d, plan)
			require.NoError(t, err)
			p := streampool.New(faults, streampool.Config{
				Region: 16 * kib, Threshold: device.Size(seed%2) * 32 * kib,
				FollowEvents: seed&1 != 0, ReuseFinished: seed&2 != 0, InsertWaits: seed&4 != 0,
			})
			r := driver{
				shadow: &shadow{t, d, map[device.Addr][]device.Event{}}, p: p, rng: rng,
				uses: map[streampool.Handle][]device.Stream{}, perfect: plan.Probability == 0,
			}
			for range 1500 {
				r.step()
				require.NoError(t, p.Check())
			}
			for i := 0; p.Close() != nil; i++ {
				require.Less(t, i, 100)
				require.NoError(t, p.Check())
			}
			require.Zero(t, d.Usage().Regions)
		})
	}
}

// TestNothingIsAllocatedOnceWarm allocates and frees on a few streams.
func TestNothingIsAllocatedOnceWarm(t *testing.T) {
	d := newSim(t, 0)
	p := streampool.New(d, all)
	rng := rand.New(rand.NewPCG(3, 3))
	live := make([]streampool.Handle, 64)
	turn := func() {
		i, s := rng.IntN(len(live)), device.Stream(rng.IntN(3))
		if live[i] != streampool.None {
			if rng.IntN(4) == 0 {
				p.Use(live[i], 9)
			}
			p.Free(live[i], s)
		}
		live[i], _ = p.Alloc(streampool.Request{Size: 1 + device.Size(rng.IntN(4096)), Stream: s, Align: 1 << rng.IntN(11)})
		if rng.IntN(30) == 0 {
			_ = d.SyncStream(9)
			_, _ = p.Poll()
		}
	}
	for range 30_000 {
		turn()
	}
	require.Zero(t, testing.AllocsPerRun(10_000, turn))
}

// TestAFaultAtAnyCallLosesNothing refuses each call in turn.
func TestAFaultAtAnyCallLosesNothing(t *testing.T) {
	for nth := uint64(1); nth < 60; nth++ {
		d := newSim(t, 32*kib)
		faults, err := device.NewFaults(d, device.FaultPlan{Nth: nth})
		require.NoError(t, err)
		p := streampool.New(faults, all)
		for i := range 12 {
			h, err := p.Alloc(streampool.Request{Size: device.Size(1+i%3) * 4 * kib, Stream: device.Stream(i % 3)})
			if err == nil {
				p.Use(h, device.Stream(i%2))
				p.Free(h, device.Stream(i%3))
			}
			require.NoError(t, d.Drain(device.Stream(i%4)))
			_, _ = p.Poll()
			require.NoError(t, p.Check())
		}
		require.NoError(t, d.SyncDevice())
		_, _ = p.Poll()
		_, err = p.Poll()
		require.NoError(t, err)
		require.Zero(t, p.Stats().Pending)
		require.Zero(t, p.Stats().Reserved)
		if p.Close() != nil {
			require.NoError(t, p.Close())
		}
		require.True(t, d.Usage().Empty(), "%+v", d.Usage())
	}
}
