package replay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// Two requests are refused and survived, the third ended the program.
const refusals = "a 1 3000\nrefused 4000\nrefused 9000\nf 1\na 2 3000\nrefused 6000\nf 2\n"

// The same as requests.
const requested = "a 1 3000\na 3 4000\nf 3\na 4 9000\nf 4\nf 1\na 2 3000\na 5 6000\nf 2\n"

func TestRefusedRequestsAreReplayed(t *testing.T) {
	var want, got strings.Builder
	figures := func(text string, out *strings.Builder) *replay.Result {
		r, err := run(t, text, "bestfit", "", sim.Config{Capacity: 8192}, replay.Options{Figures: true, Placements: out,
			Final: out})
		require.NoError(t, err)
		return r
	}
	x, r := figures(requested, &want), figures(refusals, &got)
	require.Equal(t, want.String(), got.String(), "placements and the state at the end")
	require.Equal(t, x.LowerBound, r.LowerBound)
	require.Equal(t, 12000, int(r.LowerBound), "the second refused request, beside what was live")
	require.Equal(t, x.Peak, r.Peak)
	require.Equal(t, x.Now, r.Now)
	require.Equal(t, [3]uint64{x.Allocs, x.Frees, x.OOMs}, [3]uint64{r.Allocs, r.Frees, r.OOMs})
	require.Equal(t, x.Calls, r.Calls)
	require.Equal(t, x.ExternalFragmentationPeak, r.ExternalFragmentationPeak)
	require.Equal(t, 7, r.Events)
	require.Equal(t, 2, r.FirstFailure.Event, "by its number in the trace")
	require.Len(t, r.Series.Points, 7)
	require.EqualValues(t, 7000, r.Series.Points[1].Requested, "also while it is there")
	require.EqualValues(t, 3000, r.Series.Points[3].Requested+r.Series.Points[4].Requested)
}

func TestRefusedRequestsAreObserved(t *testing.T) {
	var seen []string
	observe := func(o replay.Observation) error {
		if o.Of != nil {
			seen = append(seen, fmt.Sprintf("%d %v %d %v", o.Event, o.Of.Kind, o.Of.ID, o.Called && o.Err == nil))
		}
		return nil
	}
	_, err := run(t, refusals, "bestfit", "", sim.Config{Capacity: 8192}, replay.Options{Observe: observe, Figures: true})
	require.NoError(t, err)
	require.Equal(t, []string{
		"0 alloc 1 true", "1 alloc 3 true", "1 free 3 true", "2 alloc 4 false", "3 free 1 true", "4 alloc 2 true",
		"5 alloc 5 false", "6 free 2 true",
	}, seen)

	seen = nil
	_, err = run(t, refusals, "bestfit", "", sim.Config{Capacity: 8192}, replay.Options{Observe: observe, StopAtOOM: true})
	require.NoError(t, err)
	require.Equal(t, "2 alloc 4 false", seen[len(seen)-1])
}

// TestRefusedRequestsInPieces has the same figures whether the trace lies in memory or is read.
func TestRefusedRequestsInPieces(t *testing.T) {
	tr, err := trace.Read(strings.NewReader(refusals), "test.trace", trace.Options{})
	require.NoError(t, err)
	whole, err := replay.Prepare(t.Context(), tr)
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("caching", nil)
	require.NoError(t, err)
	for most := range 8 {
		p, err := replay.Prepare(t.Context(), pieces{tr, most + 1})
		require.NoError(t, err)
		require.Equal(t, replayed(t, whole, setup, replay.AtCompleted), replayed(t, p, setup, replay.AtCompleted))
	}
}
