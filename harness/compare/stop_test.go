package compare_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/compare"
	"github.com/vramyard/vramyard/harness/trace"
)

func TestAStoppedComparisonHasWhatIsFinished(t *testing.T) {
	traces := []*trace.Trace{read(t, fragmenting())}
	all := setups(t, "bfc", "bestfit", "tlsf", "buddy")
	stop := make(chan struct{})
	var once sync.Once
	r, err := compare.Compare(traces, all, compare.Options{Workers: 1, Stop: stop, Done: func() { once.Do(func() { close(stop) }) }})
	require.ErrorIs(t, err, context.Canceled)
	require.NotEmpty(t, r.Runs, "the run that was done")
	require.Less(t, len(r.Runs), len(all))
	for _, run := range r.Runs {
		require.NotNil(t, run.MinCapacity, "%s is finished", run.Strategy)
	}
	r, err = compare.Compare(traces, all, compare.Options{Stop: stop})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, r.Runs, "nothing begins")
}
