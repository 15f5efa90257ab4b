package compare_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

func TestAStoppedComparisonHasWhatIsFinished(t *testing.T) {
	traces := []*trace.Trace{read(t, fragmenting())}
	all := setups(t, "bfc", "bestfit", "tlsf", "buddy")
	ctx, stop := context.WithCancel(t.Context())
	r, err := compare.Compare(ctx, traces, all, compare.Options{Workers: 1, Done: func(int, *compare.Run) { stop() }})
	require.ErrorIs(t, err, context.Canceled)
	require.NotEmpty(t, r.Runs, "the run that was done")
	require.Less(t, len(r.Runs), len(all))
	for _, run := range r.Runs {
		require.NotNil(t, run.MinCapacity, "%s is finished", run.Strategy)
	}
	r, err = compare.Compare(ctx, traces, all, compare.Options{})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, r.Runs, "nothing begins")
}

func TestAStopCutsAReplay(t *testing.T) {
	w, err := workload.All()[0].New(workload.All()[0].Default)
	require.NoError(t, err)
	long, err := trace.Cut(w.Source(), trace.Span{End: 200_000}, 0)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	replayed := 0
	r, err := compare.Compare(ctx, []*trace.Trace{long}, setups(t, "bfc"),
		compare.Options{Workers: 1, Replayed: func(n int) {
			replayed += n
			stop()
		}})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, r.Runs)
	require.Positive(t, replayed)
	require.Less(t, replayed, 200_000)
}
