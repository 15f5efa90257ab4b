package compare_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
)

// TestComparisonReportsItsShare has a comparison of two runs tell how much of it is done long
// before the first run is.
func TestComparisonReportsItsShare(t *testing.T) {
	tr, err := trace.Read(strings.NewReader(strings.Repeat("a 1 1MiB\nf 1\n", 100_000)), "t.trace", trace.Options{})
	require.NoError(t, err)
	var lock sync.Mutex
	var shares []float64
	first := -1 // shares that were told before the first run was finished
	o := compare.Options{Workers: 1, Share: func(done float64) {
		lock.Lock()
		defer lock.Unlock()
		shares = append(shares, done)
	}, Done: func(int, *compare.Run) {
		lock.Lock()
		defer lock.Unlock()
		if first < 0 {
			first = len(shares)
		}
	}}
	_, err = compare.Compare(t.Context(), []*trace.Trace{tr}, setups(t, "bfc", "tlsf"), o)
	require.NoError(t, err)
	require.Greater(t, first, 4)
	require.Less(t, shares[0], 0.2)
	require.Greater(t, shares[first-2], shares[0])
	for _, s := range shares {
		require.Positive(t, s)
		require.LessOrEqual(t, s, 1.0)
	}
	require.InDelta(t, 1, shares[len(shares)-1], 1e-9)
}
