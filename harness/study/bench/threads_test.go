package bench_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// threaded returns the report of a short benchmark of w1 by several threads.
func threaded(t *testing.T, names ...string) *bench.Report {
	t.Helper()
	var setups []setting.Setup
	c := strategies.All()
	c = append(c, setting.Sharded(c))
	for _, name := range names {
		s, err := c.Lookup(name, nil)
		require.NoError(t, err)
		setups = append(setups, s)
	}
	shape, err := workload.Lookup("w1")
	require.NoError(t, err)
	w, err := shape.New(workload.Params{Seed: 1, Live: 64, Pairs: 600})
	require.NoError(t, err)
	steps := 0
	r, err := bench.Measure(t.Context(), []workload.Workload{w}, setups, bench.Options{
		Rounds: 2, Threads: []int{1, 3}, Progress: func(done, known int) {
			steps++
			require.Equal(t, steps, done)
			require.LessOrEqual(t, done, known)
		},
	})
	require.NoError(t, err)
	return r
}

func TestThreadsAreTimedInEveryWay(t *testing.T) {
	type row struct {
		strategy string
		locking  bench.Locking
		threads  int
	}
	var got []row
	for _, run := range threaded(t, "tlsf", "sharded:tlsf:growth").Threads {
		got = append(got, row{run.Strategy, run.Locking, run.Threads})
		require.Len(t, run.Rounds, 2)
		require.Equal(t, 600, run.Pairs)
		require.LessOrEqual(t, 63, run.Live)
		require.Positive(t, run.Reserved)
		require.NotNil(t, run.MetadataPerBlock)
		require.True(t, json.Valid(run.Config))
		if run.Locking == bench.OneMutex || run.Locking == bench.InShards {
			require.NotNil(t, run.Ratio)
		} else {
			require.Nil(t, run.Ratio, "there is no mutex to compare with")
		}
	}
	require.Equal(t, []row{
		{"tlsf", bench.NoLock, 1}, {"tlsf", bench.OneMutex, 1}, {"tlsf", bench.InShards, 1},
		{"sharded:tlsf:growth", bench.OwnLocks, 1},
		{"tlsf", bench.OneMutex, 3}, {"tlsf", bench.InShards, 3}, {"sharded:tlsf:growth", bench.OwnLocks, 3},
	}, got)
}

func TestWrongNumbersOfThreadsAreRefused(t *testing.T) {
	got, err := bench.ParseThreads("1, 2,256")
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 256}, got)
	for _, list := range []string{"0", "-1", "257", "1,,2", "two", ""} {
		_, err := bench.ParseThreads(list)
		require.ErrorContains(t, err, "want whole numbers from 1 to 256, separated by commas", list)
	}
}
