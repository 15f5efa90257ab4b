package replay_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// deferring makes a strategy a StreamRecorder: it frees a block once the streams that use it have
// finished.
type deferring struct {
	alloc.Strategy
	on       device.Streams
	recorded map[device.Addr][]device.Stream
	blocks   map[device.Addr]freed
	waiting  []freed
	told     []device.Stream // every recorded stream
	events   []device.Event  // all events
	leaks    bool            // the events are not destroyed
}

// freed is a block, and the marks that its free waits for.
type freed struct {
	alloc.Block
	requested device.Size
	marks     []device.Event
}

func newDeferring(src device.Source, s alloc.Strategy) *deferring {
	on, _ := device.StreamsOf(src)
	return &deferring{Strategy: s, on: on, recorded: map[device.Addr][]device.Stream{}, blocks: map[device.Addr]freed{}}
}

func (d *deferring) Alloc(r alloc.Request) (alloc.Block, error) {
	if _, err := d.Poll(); err != nil {
		return alloc.Block{}, err
	}
	b, err := d.Strategy.Alloc(r)
	if err == nil {
		d.blocks[b.Addr] = freed{Block: b, requested: r.Size}
	}
	return b, err
}

func (d *deferring) RecordStream(a device.Addr, s device.Stream) error {
	d.recorded[a] = append(d.recorded[a], s)
	d.told = append(d.told, s)
	return nil
}

func (d *deferring) Free(a device.Addr) error {
	f := d.blocks[a]
	for _, s := range d.recorded[a] {
		e, err := d.on.NewEvent()
		if err != nil {
			return err
		}
		if err := d.on.Record(e, s); err != nil {
			return err
		}
		f.marks, d.events = append(f.marks, e), append(d.events, e)
	}
	delete(d.recorded, a)
	d.waiting = append(d.waiting, f)
	if len(f.marks) == 0 {
		_, err := d.Poll()
		return err
	}
	return nil
}

func (d *deferring) Poll() (n device.Size, err error) {
	d.waiting = slices.DeleteFunc(d.waiting, func(f freed) bool {
		for _, e := range f.marks {
			if done, failed := d.on.Done(e); failed != nil || !done {
				err = failed
				return false
			}
		}
		n += f.Size
		err = d.Strategy.Free(f.Addr)
		return err == nil
	})
	return n, err
}

func (d *deferring) Close() error {
	if d.leaks {
		if _, err := d.on.NewEvent(); err != nil {
			return err
		}
	}
	for _, e := range d.events {
		if err := d.on.DestroyEvent(e); err != nil {
			return err
		}
	}
	return d.Strategy.Close()
}

func (d *deferring) Stats() alloc.Stats {
	s := d.Strategy.Stats()
	for _, f := range d.waiting {
		s.Live--
		s.Requested -= f.requested
		s.Allocated -= f.Size
	}
	return s
}

// deferred returns a setup with streams, which leaves its strategy in last.
func deferred(t *testing.T, inner setting.Setup, last **deferring) setting.Setup {
	t.Helper()
	build := func(src device.Source, _ struct{}) (alloc.Strategy, error) {
		s, err := inner.New(src)
		*last = newDeferring(src, s)
		return *last, err
	}
	setup, err := setting.Catalogue{setting.SpecOf("deferring", "", build, setting.Preset{})}.Lookup("deferring", nil)
	require.NoError(t, err)
	return setup
}

// timed replays a text trace through bestfit, which may be given streams.
func timed(t *testing.T, text string, streams bool, at replay.FreeAt) (*replay.Result, *deferring) {
	t.Helper()
	tr, err := trace.Read(strings.NewReader(text), "test.trace", trace.Options{})
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("bestfit", nil)
	require.NoError(t, err)
	var d *deferring
	if streams {
		setup = deferred(t, setup, &d)
	}
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	r, err := replay.Run(tr, setup, dev, replay.Options{FreeAt: at, Figures: true})
	require.NoError(t, err)
	return r, d
}

// delayed frees block 1 while a stream uses it, and requests as much before and after its
// completion.
const delayed = "a 1 1MiB\nuse 1 7\nf 1\na 2 1MiB\ndone 1\na 3 1MiB\nf 2\nf 3\ndone 3\ndone 2\n"

func TestDelayedFreesAtRequestAndCompletion(t *testing.T) {
	for _, at := range []replay.FreeAt{"", replay.AtCompleted} {
		r, _ := timed(t, delayed, false, at)
		require.Equal(t, 2*device.MiB, r.Peak.Allocated)
		require.Equal(t, r.LowerBound, r.Peak.Requested)
		require.Equal(t, uint64(3), r.Frees)
		require.Equal(t, uint64(0), r.Ignored, "the use is told by when the free is final")
		require.Zero(t, r.Now.Requested)
	}
	r, _ := timed(t, "a 1 1MiB\nf 1\na 2 1MiB\nf 2\ndone 2\ndone 1\n", false, replay.AtCompleted)
	require.Equal(t, 2*device.MiB, r.Peak.Allocated)
	require.Equal(t, device.MiB, r.Peak.Requested, "what the program has freed is kept, and not asked for")
	require.Zero(t, r.InternalFragmentation)
	require.Equal(t, replay.Now{Reserved: r.Now.Reserved}, r.Now)
	r, _ = timed(t, "a 1 1MiB\nf 1\na 2 1MiB\nf 2\ndone 2\ndone 1\n", false, replay.AtRequested)
	require.Equal(t, device.MiB, r.Peak.Allocated)
	require.Equal(t, uint64(2), r.Ignored)
	require.Equal(t, uint64(2), r.Frees)
	require.Zero(t, r.PeakPending)
}

func TestDelayedFreesDriveReuseOnStreams(t *testing.T) {
	for _, at := range []replay.FreeAt{replay.AtRequested, replay.AtCompleted} {
		r, d := timed(t, delayed, true, at)
		require.Equal(t, 2*device.MiB, r.Peak.Active)
		require.Equal(t, device.MiB, r.PeakPending, "first 1, then 2")
		require.Equal(t, uint64(3), r.Frees)
		require.Zero(t, r.Ignored)
		require.Equal(t, device.MiB, r.Now.Active, "the free of 2 is final, and nobody looked")
		require.NotContains(t, d.told, device.Stream(7), "when the free is final says more")
		require.Len(t, d.told, 2, "3 is final at once")
		require.Less(t, device.Stream(1<<63)-1, slices.Min(d.told), "no stream of a program")
	}
}

// TestReservedStreamNumbersAreRefused replays traces whose streams have the numbers that stand for
// delayed frees.
func TestReservedStreamNumbersAreRefused(t *testing.T) {
	async, err := strategies.All().Lookup("async", nil)
	require.NoError(t, err)
	for _, c := range []struct{ text, err string }{
		{"a 1 1MiB stream=9223372036854775807\nf 1\na 2 1MiB\ndone 1\n", ""},
		{"a 1 1MiB stream=9223372036854775808\nf 1\n", ""}, // none is delayed
		{"a 1 1MiB\nf 1\na 2 1MiB\ndone 1\ndrain 9223372036854775808\n", "async on test: event 4: stream " +
			"9223372036854775808: want less than 2^63, from where on streams stand for delayed frees"},
	} {
		tr, err := trace.Read(strings.NewReader(c.text), "test.trace", trace.Options{})
		require.NoError(t, err)
		dev, err := sim.New(sim.Config{})
		require.NoError(t, err)
		if _, err = replay.Run(tr, async, dev, replay.Options{}); c.err == "" {
			require.NoError(t, err, c.text)
		} else {
			require.EqualError(t, err, c.err)
		}
		require.True(t, dev.Usage().Empty(), c.text)
	}
}

func TestUsesAndDrainsDriveReuse(t *testing.T) {
	const text = "a 1 1MiB\nuse 1 7\nf 1\na 2 1MiB\ndrain 6\na 3 1MiB\ndrain 7\na 4 1MiB\nf 2\npoll\n"
	r, d := timed(t, text, true, "")
	require.Equal(t, []device.Stream{7}, d.told)
	require.Equal(t, 3*device.MiB, r.Peak.Active, "4 lies where 1 was")
	require.Equal(t, device.MiB, r.PeakPending)
	require.Zero(t, r.Ignored)

	r, _ = timed(t, text, false, "")
	require.Equal(t, 3*device.MiB, r.Peak.Active)
	require.Equal(t, uint64(4), r.Ignored)
}

// TestReusedIDs has two allocations with one id; only the second has a completion.
func TestReusedIDs(t *testing.T) {
	const text = "a 1 1MiB\nf 1\na 1 1MiB\nuse 1 3\nf 1\na 2 1MiB\ndone 1\nf 2\ndone 2\n"
	r, d := timed(t, text, true, "")
	require.Len(t, d.told, 1)
	require.Equal(t, device.MiB, r.PeakPending)
	r, _ = timed(t, text, false, "")
	require.Equal(t, 2*device.MiB, r.Peak.Allocated)
	require.Equal(t, uint64(3), r.Frees)
}

func TestFiguresOfEachStream(t *testing.T) {
	r, _ := timed(t, "a 1 1000 stream=9\na 2 3000 stream=4\nf 1\na 3 500 stream=9\na 4 600 stream=9\nf 2\n", false, "")
	require.Equal(t, []replay.StreamFigures{
		{Stream: 4, Allocs: 1, PeakRequested: 3000, PeakAllocated: 3072},
		{Stream: 9, Allocs: 3, PeakRequested: 1100, PeakAllocated: 1280},
	}, r.Streams)
	r, _ = timed(t, "a 1 1000 stream=9\na 3 500 stream=9\n", false, "")
	require.Equal(t, []replay.StreamFigures{{Stream: 9, Allocs: 2, PeakRequested: 1500, PeakAllocated: r.Peak.Allocated}},
		r.Streams)
}

// TestEventsLeftBehind replays through a strategy that does not destroy its event.
func TestEventsLeftBehind(t *testing.T) {
	tr, err := trace.Read(strings.NewReader("a 1 1\n"), "test.trace", trace.Options{})
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("bestfit", nil)
	require.NoError(t, err)
	build := func(src device.Source, _ struct{}) (alloc.Strategy, error) {
		s, err := setup.New(src)
		d := newDeferring(src, s)
		d.leaks = true
		return d, err
	}
	leaking, err := setting.Catalogue{setting.SpecOf("leaking", "", build, setting.Preset{})}.Lookup("leaking", nil)
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	_, err = replay.Run(tr, leaking, dev, replay.Options{})
	require.ErrorContains(t, err, "close left 0 bytes reserved, 0 handles, 0 ranges and 1 events")
}

func TestParseFreeAt(t *testing.T) {
	at, err := replay.ParseFreeAt("")
	require.NoError(t, err)
	require.Equal(t, replay.AtCompleted, at)
	at, err = replay.ParseFreeAt("requested")
	require.NoError(t, err)
	require.Equal(t, replay.AtRequested, at)
	_, err = replay.ParseFreeAt("later")
	require.EqualError(t, err, `free at "later": want "requested" or "completed"`)
}

// sideStreams makes a trace of a small training loop: one stream computes, three others send its
// results. A buffer that is sent is freed at once, and the free is final some steps later. Every
// fourth buffer has a use and a drain instead.
func sideStreams(t *testing.T, steps int) *trace.Trace {
	t.Helper()
	b := trace.NewBuilder(trace.Header{Name: "side-streams"})
	rng := rand.New(rand.NewPCG(1, 0))
	add := func(e trace.Event) {
		e.Time = trace.NoTime
		require.NoError(t, b.Add(e))
	}
	var waiting []uint64
	id := uint64(0)
	for step := range steps {
		var activations []uint64
		for range 20 {
			id++
			activations = append(activations, id)
			add(trace.Event{Kind: trace.Alloc, ID: id, Size: device.Size(1+rng.IntN(1<<12)) * device.KiB})
		}
		for i, a := range activations {
			side := device.Stream(1 + i%3)
			switch {
			case i%4 == 3:
				add(trace.Event{Kind: trace.Use, ID: a, Stream: side})
			case i%2 == 0:
				waiting = append(waiting, a)
			}
			add(trace.Event{Kind: trace.Free, ID: a})
			id++
			add(trace.Event{Kind: trace.Alloc, ID: id, Size: 64 * device.KiB, Stream: side})
			add(trace.Event{Kind: trace.Free, ID: id})
		}
		for len(waiting) > 25 {
			add(trace.Event{Kind: trace.Completed, ID: waiting[0]})
			waiting = waiting[1:]
		}
		if step%2 == 1 {
			add(trace.Event{Kind: trace.Drain, Stream: device.Stream(1 + step%3)})
		}
	}
	return b.Trace()
}

// TestManyStreamsThroughEveryStrategy compares the two timings: the requested bytes are equal, the
// bytes that a strategy without streams holds are not.
func TestManyStreamsThroughEveryStrategy(t *testing.T) {
	p, err := replay.Prepare(t.Context(), sideStreams(t, 50))
	require.NoError(t, err)
	for _, name := range strategies.All().Default(setting.Compared) {
		t.Run(name, func(t *testing.T) {
			setup, err := strategies.All().Lookup(name, nil)
			require.NoError(t, err)
			results := map[replay.FreeAt]*replay.Result{}
			for _, at := range []replay.FreeAt{replay.AtRequested, replay.AtCompleted} {
				dev, err := sim.New(sim.Config{Capacity: device.GiB})
				require.NoError(t, err)
				r, err := p.Run(setup.ForCapacity(device.GiB), dev, replay.Options{FreeAt: at, Figures: true})
				require.NoError(t, err)
				if r.OOMs+r.Refused > 0 {
					t.Skip("some pool of it, whose size is fixed, is too small for the trace")
				}
				require.Equal(t, p.LowerBound(), r.Peak.Requested)
				require.Len(t, r.Streams, 4)
				for _, s := range r.Streams[1:] {
					require.Equal(t, 64*device.KiB, s.PeakRequested)
				}
				results[at] = r
			}
			early, late := results[replay.AtRequested], results[replay.AtCompleted]
			if late.PeakPending > 0 { // it handles streams, so the timing has no effect
				early.NsPerOp, late.NsPerOp = 0, 0
				require.Equal(t, early, late)
				return
			}
			require.Equal(t, early.Streams[0].PeakRequested, late.Streams[0].PeakRequested)
			require.Less(t, early.Peak.Allocated, late.Peak.Allocated)
		})
	}
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("bestfit", nil)
	require.NoError(t, err)
	var d *deferring
	r, err := p.Run(deferred(t, setup, &d), dev, replay.Options{Figures: true})
	require.NoError(t, err)
	require.Equal(t, p.LowerBound(), r.Peak.Requested)
	require.Less(t, 10*device.MiB, r.PeakPending)
	require.Zero(t, r.Ignored)
}
