package whatif_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// BenchmarkQuickGrid asks a trace of a million events with the quick grid, on one core, and reports
// what that takes in replays: a replay is the mean of one through each setting of the grid,
// counting only, which is done before and after. docs/whatif.md says how to run it.
func BenchmarkQuickGrid(b *testing.B) {
	shape, err := workload.Lookup("w1")
	require.NoError(b, err)
	p := shape.Default
	p.Pairs = 500_000
	made, err := shape.New(p)
	require.NoError(b, err)
	t := &trace.Trace{Header: made.Source().Head().Header}
	require.NoError(b, made.Source().Batches(func(events []trace.Event) error {
		for _, e := range events {
			t.Events = append(t.Events, e)
			if e.Slot != trace.NoSlot {
				t.Slots = max(t.Slots, int(e.Slot)+1)
			}
		}
		return nil
	}))
	text, err := os.ReadFile("../../../cli/grids/quick.yaml")
	require.NoError(b, err)
	grid, err := whatif.ReadGrid(bytes.NewReader(text), strategies.All())
	require.NoError(b, err)
	prepared, err := replay.Prepare(b.Context(), t)
	require.NoError(b, err)
	at := compare.Ample(prepared.LowerBound())
	oneEach := func() time.Duration {
		start := time.Now()
		for _, s := range grid {
			dev, err := sim.New(sim.Config{Capacity: at})
			require.NoError(b, err)
			_, err = prepared.Run(s.ForCapacity(at), dev, replay.Options{})
			require.NoError(b, err)
		}
		return time.Since(start) / time.Duration(len(grid))
	}
	var replays, share float64
	for b.Loop() {
		before := oneEach()
		start := time.Now()
		w, err := whatif.Survey(t)
		require.NoError(b, err)
		r, err := whatif.Search(b.Context(), w, whatif.Recorded{}, grid, whatif.Options{Workers: 1})
		require.NoError(b, err)
		took := time.Since(start)
		replays += float64(took) / (float64(before+oneEach()) / 2)
		share += float64(r.Replayed) / float64(len(t.Events))
	}
	b.ReportMetric(replays/float64(b.N), "replays")
	b.ReportMetric(share/float64(b.N), "counted-replays")
}
