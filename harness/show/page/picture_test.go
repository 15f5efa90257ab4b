package page_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// randomTrace makes a trace with every kind of event that a picture handles.
func randomTrace(t *testing.T, seed uint64, events int) *trace.Trace {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 11))
	b := trace.NewBuilder(trace.Header{Name: fmt.Sprintf("random%d", seed), Format: "text", Hash: "abc"})
	now := int64(0)
	var live, freed []uint64
	add := func(e trace.Event) {
		e.Time = trace.NoTime
		if seed%2 == 0 {
			now += int64(rng.IntN(5000))
			e.Time = now
		}
		require.NoError(t, b.Add(e))
	}
	next := uint64(1)
	for range events {
		stream := device.Stream(rng.IntN(3) * 0x1000)
		switch k := rng.IntN(100); {
		case k < 50 || len(live) == 0:
			e := trace.Event{Kind: trace.Alloc, ID: next, Size: device.Size(1 + rng.IntN(1<<(4+rng.IntN(22)))), Stream: stream}
			if k%3 == 0 {
				e.Tag = b.Tag(fmt.Sprintf("layer%d", rng.IntN(4)))
			}
			add(e)
			live = append(live, next)
			next++
		case k < 90:
			i := rng.IntN(len(live))
			id := live[i]
			live[i], live = live[len(live)-1], live[:len(live)-1]
			add(trace.Event{Kind: trace.Free, ID: id})
			if seed%3 != 0 && rng.IntN(4) == 0 {
				freed = append(freed, id)
			}
		case k < 93 && len(freed) > 0:
			add(trace.Event{Kind: trace.Completed, ID: freed[0]})
			freed = freed[1:]
		case k < 95:
			add(trace.Event{Kind: trace.Use, ID: live[rng.IntN(len(live))], Stream: stream})
		case k < 97:
			add(trace.Event{Kind: trace.Drain, Stream: stream})
		case k < 98:
			add(trace.Event{Kind: trace.Trim})
		default:
			add(trace.Event{Kind: trace.Mark, Tag: b.Tag(fmt.Sprintf("step %d", rng.IntN(9)))})
		}
	}
	return b.Trace()
}

// forAll draws random traces through every strategy, with budgets that are far too small.
func forAll(t *testing.T, small page.Options, judge func(t *testing.T, c *drawn)) {
	for seed := range uint64(4) {
		tr := randomTrace(t, seed, 400)
		for _, name := range strategies.All().Names() {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				s, err := strategies.All().Lookup(name, nil)
				require.NoError(t, err)
				const capacity = 192 * device.MiB
				c := &drawn{trace: tr, setup: s.ForCapacity(capacity), capacity: capacity, o: small}
				if c.draw(t) {
					judge(t, c)
				}
			})
		}
	}
}

// drawn is a picture with its trace and setup.
type drawn struct {
	trace    *trace.Trace
	setup    setting.Setup
	capacity device.Size
	o        page.Options
	picture  *page.Trace
	run      *page.Picture
}

// device returns a fresh device.
func (c *drawn) device() (device.Device, error) { return sim.New(sim.Config{Capacity: c.capacity}) }

// draw draws, and reports whether the strategy can be built on the device.
func (c *drawn) draw(t *testing.T) bool {
	t.Helper()
	p, err := replay.Prepare(t.Context(), c.trace)
	require.NoError(t, err)
	c.picture, err = page.NewTrace(c.trace, c.o)
	require.NoError(t, err)
	c.run, err = c.picture.Draw(p, c.setup, c.device, c.o)
	if errors.Is(err, device.ErrOutOfMemory) {
		return false
	}
	require.NoError(t, err)
	return true
}

// observe replays once more and looks after every event.
func (c *drawn) observe(t *testing.T, look func(o replay.Observation)) *replay.Result {
	t.Helper()
	dev, err := c.device()
	require.NoError(t, err)
	res, err := replay.Run(c.trace, c.setup, dev, replay.Options{Figures: true, Observe: func(o replay.Observation) error {
		if o.Of != nil {
			look(o)
		}
		return nil
	}})
	require.NoError(t, err)
	return res
}

var tiny = page.Options{Buckets: 16, Blocks: 40, Regions: 10, Rows: 7, Columns: 9, Chunks: 25, Failures: 3}

// TestPeaksAndFailuresSurvive compares the curves with the figures of a separate replay.
func TestPeaksAndFailuresSurvive(t *testing.T) {
	forAll(t, tiny, func(t *testing.T, c *drawn) {
		ooms := make([]uint32, c.picture.Grid.Len())
		highest, made := 0.0, uint64(0)
		res := c.observe(t, func(o replay.Observation) {
			made = o.Faults.Usage().Calls.Total() // before it is closed
			if errors.Is(o.Err, alloc.ErrOutOfMemory) && o.Of.Kind == trace.Alloc {
				ooms[o.Event>>c.picture.Grid.Shift]++
			}
		})
		run := c.run
		require.Equal(t, ooms, run.OOMs)
		require.Equal(t, int(res.OOMs+res.Refused), run.Failed)
		require.Len(t, run.Failures, min(run.Failed, 3))
		if res.FirstFailure != nil {
			require.Equal(t, res.FirstFailure.Event, run.Failures[0].Event)
			require.Equal(t, res.FirstFailure.Size, run.Failures[0].Requested)
		}
		for k, want := range []device.Size{res.Peak.Requested, res.Peak.Allocated, res.Peak.Active, res.Peak.Reserved} {
			curve := run.Curves.All()[k]
			peak := 0.0
			for _, v := range curve.Max {
				peak = max(peak, v)
			}
			require.Equal(t, float64(want), peak, page.Sum(k))
			require.Equal(t, want, run.Peaks[k].Bytes, page.Sum(k))
		}
		for _, v := range run.Curves.External.Max {
			if !math.IsNaN(v) {
				highest = max(highest, v)
			}
		}
		require.Equal(t, res.ExternalFragmentationPeak, highest)
		var calls uint64
		for _, n := range run.Calls {
			for _, v := range n {
				calls += uint64(v)
			}
		}
		require.Equal(t, made, calls)
	})
}
