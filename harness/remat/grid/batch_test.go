package grid_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
)

func TestParseSizes(t *testing.T) {
	for text, want := range map[string]grid.Sizes{
		"32:512": {From: 32, To: 512, Step: 1}, "32:512:16": {From: 32, To: 512, Step: 16},
		"7:7":            {From: 7, To: 7, Step: 1},
		"1:1048576:1000": {From: 1, To: 1 << 20, Step: 1000},
	} {
		have, err := grid.ParseSizes(text)
		require.NoError(t, err)
		require.Equal(t, want, have)
		require.LessOrEqual(t, have.Last(), have.To)
		require.Greater(t, have.Last()+have.Step, have.To)
	}
	for _, text := range []string{"", "32", "512:32", "0:8", "-1:8", "1:8:0", "1:2:3:4", "a:b", "1:1048577", "1:1048576",
		"1.5:3"} {
		_, err := grid.ParseSizes(text)
		require.ErrorContains(t, err, "want FROM:TO or FROM:TO:STEP, such as 32:512 or 32:512:16", text)
	}
}

// scaled returns a log whose sizes and times are those of a log times the batch size.
func scaled(l grid.Log, batch int) grid.BatchLog {
	s := *l.Schedule
	s.Ops, s.Storages, s.Cost = append([]remat.Op{}, s.Ops...), append([]remat.Storage{}, s.Storages...), 0
	for i := range s.Ops {
		s.Ops[i].Cost *= int64(batch)
		s.Ops[i].OutputBytes *= device.Size(batch)
		s.Cost += s.Ops[i].Cost
	}
	for i := range s.Storages {
		s.Storages[i].Size *= device.Size(batch)
	}
	return grid.BatchLog{Log: grid.Log{Model: l.Model, Schedule: &s}, Batch: batch}
}

// TestLargestBatchesAgreesWithRunsOfEverySize compares the search with a run of every batch size.
func TestLargestBatchesAgreesWithRunsOfEverySize(t *testing.T) {
	unit := logOf(t, "syn_unet4")
	sizes := grid.Sizes{From: 4, To: 26, Step: 2}
	o := grid.BatchOptions{
		Options: grid.Options{Settings: grid.Settings{Liveness: "eager", Limit: 2}, Heuristics: []string{"eq", "lru"},
			Ladders: []string{grid.Evict}},
		Sizes: sizes,
	}
	single, err := grid.Grid(t.Context(), []grid.Log{unit}, nil, grid.Options{Settings: o.Settings,
		Heuristics: []string{"eq"}, Ratios: []grid.Ratio{grid.Whole}})
	require.NoError(t, err)
	o.Budgets = []device.Size{10 * single.Logs[0].Peak} // batch size 10 fits exactly
	logs := []grid.BatchLog{scaled(unit, 8), scaled(unit, 3)}
	r, err := grid.LargestBatches(t.Context(), logs, setupsOf(t, "bestfit"), o)
	require.NoError(t, err)
	require.Equal(t, []int{3, 8}, []int{r.Recorded[0].Batch, r.Recorded[1].Batch})
	require.Len(t, r.Fits, 6)
	require.Equal(t, grid.NoEviction, r.Fits[0].Heuristic)
	require.Equal(t, 10, *r.Fits[0].EveryUpTo, "counting without eviction")
	require.Equal(t, grid.Evicts, r.Fits[0].FirstFailure)
	for _, f := range r.Fits {
		every, largest, broken := 0, 0, false
		for n := sizes.From; n <= sizes.Last(); n += sizes.Step {
			ok := completes(t, scaled(unit, n).Schedule, f, o)
			if broken = broken || !ok; !broken {
				every = n
			}
			if ok {
				largest = n
			}
		}
		require.Equal(t, every, *f.EveryUpTo, "%s by %s", f.Strategy, f.Heuristic)
		require.Equal(t, largest, *f.Largest, "%s by %s", f.Strategy, f.Heuristic)
		require.NotZero(t, f.FirstFailure, "the range has sizes that fail")
	}
}

// completes runs a log as a fit does.
func completes(t *testing.T, s *remat.Schedule, f grid.Fit, o grid.BatchOptions) bool {
	t.Helper()
	c := remat.Config{Heuristic: f.Heuristic, Liveness: o.Liveness, Ladder: f.Ladder, Limit: s.Cost}
	if f.Heuristic == grid.NoEviction {
		c.Heuristic = "random"
	}
	var m remat.Memory = &remat.Counter{Budget: f.Budget}
	if f.Strategy != grid.Counting {
		space, err := remat.Over(setupsOf(t, f.Strategy)[0], f.Budget)
		require.NoError(t, err)
		defer func() { require.NoError(t, space.Close()) }()
		m = space
	}
	res, err := remat.Run(s, m, c)
	require.NoError(t, err)
	return res.Verdict == remat.OK && (f.Heuristic != grid.NoEviction || res.Evictions[remat.Pressure] == 0)
}

func TestLargestBatchesReportsWhatDoesNotFit(t *testing.T) {
	unit := logOf(t, "syn_unet4")
	o := grid.BatchOptions{
		Options: grid.Options{Settings: grid.Settings{Liveness: "eager", Limit: 2}, Heuristics: []string{"eq"},
			Ladders: []string{grid.Evict}},
		Sizes: grid.Sizes{From: 4, To: 8, Step: 1}, Budgets: []device.Size{device.MiB, 1 << 40},
	}
	logs := []grid.BatchLog{scaled(unit, 2), scaled(unit, 4)}
	r, err := grid.LargestBatches(t.Context(), logs, nil, o)
	require.NoError(t, err)
	require.Len(t, r.Fits, 4)
	for i, f := range r.Fits {
		if i < 2 {
			require.Nil(t, f.EveryUpTo)
			require.Nil(t, f.Largest)
			require.Equal(t, remat.OOMCapacity, f.FirstFailure)
			continue
		}
		require.Equal(t, 8, *f.EveryUpTo)
		require.Empty(t, f.FirstFailure)
	}
	_, err = grid.LargestBatches(t.Context(), logs[:1], nil, o)
	require.ErrorContains(t, err, "one recording")
	o.Heuristics = []string{"sublinear"}
	_, err = grid.LargestBatches(t.Context(), logs, nil, o)
	require.ErrorContains(t, err, "sublinear")
	o.Heuristics = []string{"eq"}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	r, err = grid.LargestBatches(ctx, logs, nil, o)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, r.Fits)
}
