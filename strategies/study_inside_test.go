package strategies_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// twoSteps returns a trace of two steps with two blocks each, of which the second stays.
func twoSteps(t *testing.T, size device.Size) *trace.Trace {
	t.Helper()
	b := trace.NewBuilder(trace.Header{})
	for step := range uint64(2) {
		for _, e := range []trace.Event{
			{Kind: trace.Mark, Slot: trace.NoSlot, Tag: b.Tag([]string{"step 0", "step 1"}[step])},
			{Kind: trace.Alloc, ID: 2 * step, Size: size},
			{Kind: trace.Alloc, ID: 2*step + 1, Size: size},
			{Kind: trace.Free, ID: 2 * step},
		} {
			require.NoError(t, b.Add(e))
		}
	}
	return b.Trace()
}

func TestASplicedTraceIsBothTraces(t *testing.T) {
	x, y := twoSteps(t, 1000), twoSteps(t, 3000)
	turns, err := inTurns(x, y, 4, 4)
	require.NoError(t, err)
	var sizes []device.Size
	for _, e := range turns.Events {
		if e.Kind == trace.Alloc {
			sizes = append(sizes, e.Size)
		}
	}
	require.Equal(t, []device.Size{1000, 1000, 3000, 3000, 1000, 1000, 3000, 3000}, sizes)
	require.Equal(t, len(x.Events)+len(y.Events), len(turns.Events))
	require.Equal(t, device.Size(2*1000+3*3000), turns.LowerBound(), "the end of the last step")

	steps, err := trace.Steps(x)
	require.NoError(t, err)
	shaped, err := withShape(x, steps[1])
	require.NoError(t, err)
	sizes = sizes[:0]
	for _, e := range shaped.Events {
		if e.Kind == trace.Alloc {
			sizes = append(sizes, e.Size)
		}
	}
	require.Equal(t, []device.Size{1000, 1000, 1536, 1000}, sizes, "the block that stays keeps its size")
}

// planning is a strategy with planned places.
type planning struct {
	alloc.Strategy
	planned uint64
}

func (p *planning) Planned() uint64 { return p.planned }

func TestWatcherCounts(t *testing.T) {
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	faults, err := device.NewFaults(dev, device.FaultPlan{})
	require.NoError(t, err)
	w := &watcher{third: -1, of: studyCase{group: groupSpliced, from: 2, to: 4, period: 2}}
	s := &planning{}
	for i, planned := range []bool{true, true, false, false, false, true, true, true, false, false} {
		if planned {
			s.planned++
		}
		addr := device.Addr(1000 + 100*i)
		if i == 9 {
			addr -= 50
		}
		require.NoError(t, w.observe(replay.Observation{
			Event: i, Of: &trace.Event{Kind: trace.Alloc}, Strategy: s, Faults: faults, Called: true,
			Block: alloc.Block{Addr: addr, Size: 100},
		}))
	}
	require.Equal(t, studyResult{planned: [3]uint64{2, 1, 2}, back: 2, overlaps: 1}, w.studyResult)
	require.Equal(t, [3]uint64{2, 2, 2}, w.grants)
	require.NoError(t, w.observe(replay.Observation{
		Event: 9, Of: &trace.Event{Kind: trace.Free}, Strategy: s, Faults: faults, Called: true, Addr: 1000,
	}))
	require.Len(t, w.live, 9)
}
