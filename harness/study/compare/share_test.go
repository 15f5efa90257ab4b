package compare

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/trace"
)

// TestTheShareWeighsRunsByTheirCost goes through the runs of a comparison on a clock of its own:
// three setups, of which one takes a hundred times as long for an event and another twice as many
// replays, on traces of different lengths. Once each setup has finished a run, what is told to be
// left has to be what is left.
func TestTheShareWeighsRunsByTheirCost(t *testing.T) {
	var traces []*trace.Trace
	for _, events := range []int{1000, 9000, 3000} {
		tr, err := trace.Read(strings.NewReader(strings.Repeat("a 1 1MiB\nf 1\n", events/2)), "t.trace", trace.Options{})
		require.NoError(t, err)
		traces = append(traces, tr)
	}
	perEvent := []time.Duration{20, 2000, 50}
	replays := []int{30, 20, 60}
	whole := func(k int) time.Duration {
		return time.Duration(len(traces[k/3].Events)*replays[k%3]) * perEvent[k%3]
	}
	var all, clock time.Duration
	for k := range 9 {
		all += whole(k)
	}
	e := newEstimate(traces, grid(len(traces), len(perEvent)))
	for k := range 9 {
		for range replays[k%3] {
			events := len(traces[k/3].Events)
			took := time.Duration(events) * perEvent[k%3]
			clock += took
			share := e.add(k, events, took, false)
			require.Positive(t, share)
			require.Less(t, share, 1.0)
			if k >= 3 {
				left := time.Duration(float64(clock) * (1 - share) / share)
				require.InEpsilon(t, float64(all), float64(clock+left), 0.05, "run %d, after %v", k, clock)
			}
		}
		share := e.add(k, 0, 0, true)
		if k >= 2 {
			require.InDelta(t, float64(clock)/float64(all), share, 1e-9, "run %d is finished", k)
		}
	}
	require.Equal(t, all, clock)
}

// TestTheShareKnowsASlowSetupEarly begins with a cheap setup and goes on with one that is much
// dearer: as soon as it is under way, the trace after it is expected to be as dear.
func TestTheShareKnowsASlowSetupEarly(t *testing.T) {
	tr, err := trace.Read(strings.NewReader("a 1 1\nf 1\n"), "t.trace", trace.Options{})
	require.NoError(t, err)
	e := newEstimate([]*trace.Trace{tr, tr}, grid(2, 2))
	e.add(0, 2*TypicalReplays, 2*TypicalReplays*10, false)
	require.InDelta(t, 0.25, e.add(0, 0, 0, true), 0.01, "one of four, as far as anything is known")
	require.Less(t, e.add(1, 2, 2*1000, false), 0.02, "two of the four take a hundred times as long")
}

func TestTheShareOfNothing(t *testing.T) {
	tr, err := trace.Read(strings.NewReader("# vramyard-trace 1\n"), "t.trace", trace.Options{})
	require.NoError(t, err)
	e := newEstimate([]*trace.Trace{tr}, grid(1, 2))
	require.Zero(t, e.add(0, 0, 0, false))
	require.Zero(t, e.add(1, 0, 0, true))
}

// grid returns the runs of so many setups on each trace.
func grid(traces, setups int) []job { return (&Options{}).jobs(traces, make([]setting.Setup, setups)) }
