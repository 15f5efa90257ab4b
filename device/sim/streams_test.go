package sim_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// item is a queued operation, a node of the graph of all of them.
type item struct {
	after  []*item // operations that precede it
	finish uint64  // time at which it ends
	done   bool    // the host knows that it has finished
}

// graph is the oracle of streams: every item ever queued, and its predecessors.
type graph struct {
	timed bool
	now   uint64
	last  map[device.Stream]*item
	marks map[device.Event]*item // nil: never recorded
}

func (g *graph) over(i *item) bool { return i == nil || i.done || g.timed && i.finish <= g.now }

// queue puts an item that takes ns on a stream. It is also ordered after the items behind.
func (g *graph) queue(s device.Stream, ns uint64, behind ...*item) *item {
	i := &item{finish: g.now}
	for _, b := range append(behind, g.last[s]) {
		if b != nil {
			i.after = append(i.after, b)
			i.finish = max(i.finish, b.finish)
		}
	}
	i.finish += ns
	g.last[s] = i
	return i
}

// finish marks an item and all its predecessors.
func (g *graph) finish(i *item) {
	if i == nil || i.done {
		return
	}
	i.done = true
	i.finish = min(i.finish, g.now)
	for _, b := range i.after {
		g.finish(b)
	}
}

func (g *graph) sync(i *item) {
	if i != nil && !i.done {
		g.now = max(g.now, i.finish)
	}
	g.finish(i)
}

// reaches reports whether an item is ordered after another.
func (g *graph) reaches(from, to *item, seen map[*item]bool) bool {
	if from == nil || seen[from] {
		return false
	}
	seen[from] = true
	if from == to {
		return true
	}
	for _, b := range from.after {
		if g.reaches(b, to, seen) {
			return true
		}
	}
	return false
}

// pair is a device and its oracle.
type pair struct {
	t       *testing.T
	d       *sim.Device
	g       *graph
	events  []device.Event
	streams []device.Stream
}

func newPair(t *testing.T, clock sim.Clock) *pair {
	return &pair{
		t: t, d: newDevice(t, sim.Config{Clock: clock, Ordinal: 3, Costs: sim.NoCosts}),
		g: &graph{
			timed: clock == sim.Timed, last: map[device.Stream]*item{}, marks: map[device.Event]*item{},
		},
		streams: []device.Stream{0, 1, 4096, 1 << 63, ^device.Stream(0)},
	}
}

// step makes one call on both, with one of the existing events.
func (p *pair) step(kind, stream, event uint, ns uint64) {
	t, d, g := p.t, p.d, p.g
	s := p.streams[stream%uint(len(p.streams))]
	if len(p.events) == 0 || kind%16 == 0 && len(p.events) < 12 {
		e, err := d.NewEvent()
		require.NoError(t, err)
		require.NotContains(t, g.marks, e)
		p.events, g.marks[e] = append(p.events, e), nil
		return
	}
	at := event % uint(len(p.events))
	e := p.events[at]
	switch kind % 16 {
	case 0, 1:
		require.NoError(t, d.DestroyEvent(e))
		delete(g.marks, e)
		p.events = append(p.events[:at], p.events[at+1:]...)
		require.ErrorIs(t, d.Record(e, s), device.ErrEvent)
	case 2, 3, 4:
		require.NoError(t, d.Record(e, s))
		g.marks[e] = g.queue(s, 0)
	case 5, 6, 7, 8:
		require.NoError(t, d.Wait(s, e))
		if g.over(g.marks[e]) {
			g.queue(s, 0)
		} else {
			g.queue(s, 0, g.marks[e])
		}
	case 9, 10:
		require.NoError(t, d.Work(s, ns))
		g.queue(s, ns)
	case 11:
		require.NoError(t, d.SyncEvent(e))
		g.sync(g.marks[e])
	case 12:
		require.NoError(t, d.Drain(s))
		g.finish(g.last[s])
	case 13:
		require.NoError(t, d.Elapse(ns))
		g.now += ns
	case 14:
		require.NoError(t, d.SyncStream(s))
		g.sync(g.last[s])
	default:
		p.settle(ns)
	}
}

// settle rarely waits for all work, in one of several ways.
func (p *pair) settle(how uint64) {
	switch {
	case how%8 > 1:
		return
	case how%8 == 1:
		require.NoError(p.t, p.d.SyncDevice())
	default:
		r, err := p.d.Reserve(1, 0)
		require.NoError(p.t, err)
		require.NoError(p.t, p.d.Release(r.Addr))
	}
	for _, i := range p.g.last {
		p.g.sync(i)
	}
	for _, i := range p.g.last { // streams synchronized earlier are done by then
		i.finish = min(i.finish, p.g.now)
	}
}

// agree compares everything that callers can observe.
func (p *pair) agree() {
	require.Equal(p.t, p.g.now, p.d.Now())
	require.Len(p.t, p.events, p.d.Usage().Events)
	for _, s := range p.streams {
		var finish uint64
		if i := p.g.last[s]; i != nil {
			finish = i.finish
		}
		require.Equal(p.t, finish, p.d.StreamTime(s), "stream %v", s)
	}
	for _, e := range p.events {
		done, err := p.d.Done(e)
		require.NoError(p.t, err)
		require.Equal(p.t, p.g.over(p.g.marks[e]), done)
		for _, s := range p.streams {
			ordered, err := p.d.Ordered(e, s)
			require.NoError(p.t, err)
			want := done || p.g.reaches(p.g.last[s], p.g.marks[e], map[*item]bool{})
			require.Equal(p.t, want, ordered, "event %v, stream %v", e, s)
		}
	}
}

// TestStreamsAgreeWithTheGraph makes random calls on a few streams and events, or on many streams.
func TestStreamsAgreeWithTheGraph(t *testing.T) {
	for _, clock := range []sim.Clock{sim.Drained, sim.Timed} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprint(clock, "/", seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 6))
				p := newPair(t, clock)
				if seed%5 == 4 {
					for s := range device.Stream(100) {
						p.streams = append(p.streams, 1000+s)
					}
				}
				for range 400 {
					p.step(rng.Uint(), rng.Uint(), rng.Uint(), rng.Uint64N(100))
					p.agree()
				}
			})
		}
	}
}

// FuzzStreams reads calls of four bytes each.
func FuzzStreams(f *testing.F) {
	f.Add([]byte("\x00\x01\x00\x02\x02\xff\x00\x03\x05\x80\x00\x07\x0c\x00\x00\x00"), true)
	f.Add([]byte("\x00\x01\x00\x02\x02\x00\x00\x03\x05\x01\x00\x07\x0e\x01\x00\x00"), false)
	f.Fuzz(func(t *testing.T, data []byte, timed bool) {
		clock := sim.Drained
		if timed {
			clock = sim.Timed
		}
		p := newPair(t, clock)
		for ; len(data) >= 4 && len(data) < 1200; data = data[4:] {
			w := binary.LittleEndian.Uint32(data)
			p.step(uint(w&255), uint(w>>8&255), uint(w>>16&255), uint64(w>>24))
			p.agree()
		}
	})
}

// TestEventsAreOfOneDevice uses events of another device and destroyed events.
func TestEventsAreOfOneDevice(t *testing.T) {
	d, other := newDevice(t, sim.Config{}), newDevice(t, sim.Config{Ordinal: 1})
	mine, err := d.NewEvent()
	require.NoError(t, err)
	foreign, err := other.NewEvent()
	require.NoError(t, err)
	gone, err := d.NewEvent()
	require.NoError(t, err)
	require.NoError(t, d.DestroyEvent(gone))
	again, err := d.NewEvent()
	require.NoError(t, err)
	require.NotEqual(t, gone, again)
	for _, bad := range []device.Event{0, 9, foreign, gone, ^device.Event(0)} {
		require.ErrorIs(t, d.Record(bad, 0), device.ErrEvent)
		require.ErrorIs(t, d.Wait(0, bad), device.ErrEvent)
		require.ErrorIs(t, d.SyncEvent(bad), device.ErrEvent)
		require.ErrorIs(t, d.DestroyEvent(bad), device.ErrEvent)
		_, err := d.Done(bad)
		require.ErrorIs(t, err, device.ErrEvent)
		_, err = d.Ordered(bad, 0)
		require.ErrorIs(t, err, device.ErrEvent)
	}
	done, err := d.Done(mine)
	require.NoError(t, err)
	require.True(t, done, "never recorded")
	u := d.Usage()
	require.Equal(t, 2, u.Events)
	require.Equal(t, device.CallCount{Done: 1, Failed: 5}, u.Calls[device.CallDone])
	require.Equal(t, device.CallCount{Done: 1, Failed: 5}, u.Calls[device.CallDestroyEvent])
}

// TestTimesDoNotOverflow queues work beyond the largest time.
func TestTimesDoNotOverflow(t *testing.T) {
	d := newDevice(t, sim.Config{Clock: sim.Timed})
	require.NoError(t, d.Work(1, ^uint64(0)))
	require.NoError(t, d.Work(1, 5))
	require.Equal(t, ^uint64(0), d.StreamTime(1))
	require.NoError(t, d.SyncStream(1))
	require.NoError(t, d.Elapse(1))
	require.Equal(t, ^uint64(0), d.Now())
}

// TestStreamsAllocateNothingOnceWarm runs a ring of streams that wait for each other.
func TestStreamsAllocateNothingOnceWarm(t *testing.T) {
	d := newDevice(t, sim.Config{})
	rng := rand.New(rand.NewPCG(1, 1))
	events := make([]device.Event, 32)
	turn := func() {
		i, s := rng.IntN(len(events)), device.Stream(rng.IntN(8))
		if events[i] != 0 {
			require.NoError(t, d.Wait(s, events[i]))
			require.NoError(t, d.DestroyEvent(events[i]))
		}
		events[i], _ = d.NewEvent()
		require.NoError(t, d.Record(events[i], s))
		if rng.IntN(50) == 0 {
			require.NoError(t, d.SyncStream(s))
		}
	}
	for range 20_000 {
		turn()
	}
	require.Zero(t, testing.AllocsPerRun(10_000, turn))
}

// BenchmarkWait makes streams wait for each other's events without a drain.
func BenchmarkWait(b *testing.B) {
	for _, n := range []int{2, 8, 64} {
		b.Run(fmt.Sprint("streams=", n), func(b *testing.B) {
			d := newDevice(b, sim.Config{})
			e, _ := d.NewEvent()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_ = d.Record(e, device.Stream(i%n))
				_ = d.Wait(device.Stream((i+1)%n), e)
			}
		})
	}
}
