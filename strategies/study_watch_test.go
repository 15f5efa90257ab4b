package strategies_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
)

// recaller is a strategy that counts the blocks that it granted at planned places.
type recaller interface{ Planned() uint64 }

// watcher observes a replay.
type watcher struct {
	of          studyCase
	third, last int    // first event of the third step, and the last event
	before      uint64 // device calls before the third step
	live        []alloc.Block
	seen        uint64 // planned places so far
	grants      [3]uint64
	studyResult
}

// watch replays a trace on an ample device.
func watch(t *testing.T, setup setting.Setup, c studyCase, tr *trace.Trace) studyResult {
	t.Helper()
	w := &watcher{of: c, third: -1, last: len(tr.Events) - 1}
	if c.steps.Count >= 3 {
		steps, err := trace.Steps(tr)
		require.NoError(t, err)
		w.third = steps[2].First
	}
	on := studyDevice
	on.Capacity = compare.Ample(tr.LowerBound())
	dev, err := sim.New(on)
	require.NoError(t, err)
	_, err = replay.Run(tr, setup.ForCapacity(on.Capacity), dev, replay.Options{Observe: w.observe})
	require.NoError(t, err)
	for i, n := range w.grants {
		w.planned[i] = 1000 * w.planned[i] / max(1, n)
	}
	return w.studyResult
}

// observe is called after each event.
func (w *watcher) observe(o replay.Observation) error {
	if o.Of == nil {
		return o.Err
	}
	if o.Event == w.third-1 {
		w.before = o.Faults.Usage().Calls.Total()
	} else if o.Event == w.last && w.third >= 0 {
		w.late = o.Faults.Usage().Calls.Total() - w.before
	}
	granted := o.Of.Kind == trace.Alloc && o.Called && o.Err == nil
	switch {
	case granted:
		w.grant(o.Block)
	case o.Called && o.Err == nil && (o.Of.Kind == trace.Free || o.Of.Kind == trace.Completed):
		if i, ok := slices.BinarySearchFunc(w.live, o.Addr, byAddress); ok {
			w.live = slices.Delete(w.live, i, i+1)
		}
	}
	if r, ok := o.Strategy.(recaller); ok && w.of.group == groupSpliced {
		w.count(o.Event, granted, r.Planned()-w.seen)
		w.seen = r.Planned()
	}
	return nil
}

func byAddress(b alloc.Block, a device.Addr) int { return cmp.Compare(b.Addr, a) }

// grant counts an overlap of a block, and adds it to the live ones, by address.
func (w *watcher) grant(b alloc.Block) {
	i, _ := slices.BinarySearchFunc(w.live, b.Addr, byAddress)
	if i > 0 && w.live[i-1].Addr.Add(w.live[i-1].Size) > b.Addr || i < len(w.live) && w.live[i].Addr < b.Addr.Add(b.Size) {
		w.overlaps++
	}
	w.live = slices.Insert(w.live, i, b)
}

// count adds an event to its period: the step before the deviation, or one of the two after it.
func (w *watcher) count(event int, granted bool, planned uint64) {
	c := &w.of
	for i, first := range []int{c.from - c.period, c.to, c.to + c.period} {
		if granted && event >= first && event < first+c.period {
			w.grants[i]++
			w.planned[i] += planned
		}
	}
	if event >= c.to && planned > 0 && w.back == 0 {
		w.back = uint64(event - c.to + 1)
	}
}
