package strategies_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace/vectors"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/bfc/textbook"
)

// TestGoldenPlacements replays every vector and compares each placement, each failure and,
// for BFC, the final statistics, regions and chunks with what the original gave; for PyTorch also
// what the strategy did besides, and its totals on the way.
func TestGoldenPlacements(t *testing.T) {
	all, err := vectors.All()
	require.NoError(t, err)
	require.Greater(t, len(all), 90, "vectors are missing")
	for _, v := range all {
		t.Run(v.ID(), func(t *testing.T) {
			t.Parallel()
			requireGolden(t, v, v.Config)
		})
		setup, err := strategies.All().Lookup(v.Strategy, v.Config)
		require.NoError(t, err)
		if _, ok := setup.WithLocks(); ok {
			t.Run(v.ID()+"/with_locks", func(t *testing.T) {
				t.Parallel()
				requireGolden(t, v, with(t, v.Config, "locks", true))
			})
		}
		for _, variant := range v.SameIn {
			t.Run(v.ID()+"/as_"+variant, func(t *testing.T) {
				t.Parallel()
				requireGolden(t, v, with(t, v.Config, "variant", variant))
			})
		}
		if config, ok := textbookConfig(t, v); ok {
			t.Run(v.ID()+"/as_textbook", func(t *testing.T) {
				t.Parallel()
				requireGolden(t, v, config)
			})
		}
	}
}

// textbookConfig returns the configuration of bfc:textbook for a vector, and whether there is one:
// for the vectors of BFC with the rules of 2024 that set no option but the limit and growth.
func textbookConfig(t *testing.T, v vectors.Vector) (json.RawMessage, bool) {
	t.Helper()
	if v.Variant != "2024" && !slices.Contains(v.SameIn, "2024") {
		return nil, false
	}
	var fields map[string]any
	require.NoError(t, json.Unmarshal(v.Config, &fields))
	delete(fields, "variant")
	for field := range fields {
		if field != "limit" && field != "allow_growth" {
			return nil, false
		}
	}
	fields["compat"] = "textbook"
	config, err := json.Marshal(fields)
	require.NoError(t, err)
	return config, true
}

// requireGolden replays a vector with the given configuration.
func requireGolden(t *testing.T, v vectors.Vector, config json.RawMessage) {
	t.Helper()
	events, err := v.Trace()
	require.NoError(t, err)
	want, err := v.Expected()
	require.NoError(t, err)
	setup, err := strategies.All().Lookup(v.Strategy, config)
	require.NoError(t, err)
	if i := slices.Index(want, "S timestamped_queue_len 0"); i >= 0 && !hasQueue(setup) {
		want[i] = "S timestamped_queue_len -1"
	}
	cfg, err := sim.ParseConfig(v.Sim)
	require.NoError(t, err)
	dev, err := sim.New(cfg)
	require.NoError(t, err)
	var got bytes.Buffer
	var final bytes.Buffer
	o := replay.Options{Placements: &got}
	switch v.Suite {
	case "xdl":
	case "rmm":
		o.Final = &final
	default:
		o.Final = &got // it follows the placements, as in the original's output
	}
	_, err = replay.Run(events, setup, dev, o)
	require.NoError(t, err)
	if v.Suite == "rmm" {
		got.WriteString(rmmEnd(final.String(), dev.Usage().Calls))
	}
	lines := strings.Split(strings.TrimSuffix(got.String(), "\n"), "\n")
	if v.Suite == "torch" {
		left := func(l string) bool {
			return slices.ContainsFunc(v.Lacks, func(stat string) bool { return strings.HasPrefix(l, stat+" ") })
		}
		want, lines = slices.DeleteFunc(want, left), slices.DeleteFunc(lines, left)
		sortRuns(want)
		sortRuns(lines)
	}
	requireLines(t, want, lines)
}

// rmmEnd returns the last lines of an output of RMM: the regions, and the numbers of device calls.
func rmmEnd(final string, calls device.Calls) string {
	var end strings.Builder
	for line := range strings.Lines(final) {
		if strings.HasPrefix(line, "R ") {
			end.WriteString(line)
		}
	}
	fmt.Fprintf(&end, "D %d %d %d %d %d\n", calls[device.CallReserve].Failed, calls[device.CallRecord].Done,
		calls[device.CallWait].Done, calls[device.CallSyncStream].Done, calls[device.CallSyncDevice].Done)
	return end.String()
}

// hasQueue reports whether a strategy has BFC's timestamps. The textbook leaves them out.
func hasQueue(s setting.Setup) bool {
	_, textbooks := s.Config.(textbook.Config)
	return !textbooks
}

// sortRuns sorts each run of lines that tell of delayed frees: in the original, the order among
// streams is that of a hash table.
func sortRuns(lines []string) {
	const completed = "! free_completed "
	for len(lines) > 0 {
		n := 0
		for n < len(lines) && strings.HasPrefix(lines[n], completed) {
			n++
		}
		slices.Sort(lines[:n])
		lines = lines[max(n, 1):]
	}
}

// requireLines compares line by line, so that a failure shows the first difference and
// not a hundred thousand lines.
func requireLines(t *testing.T, want, got []string) {
	t.Helper()
	for i := range want {
		require.Less(t, i, len(got), "output ends before line %d: %s", i+1, want[i])
		w := want[i]
		if strings.HasSuffix(w, " FATAL") { // where the original aborts, ours refuses
			w = strings.TrimSuffix(w, "FATAL") + "INVALID"
		}
		require.Equal(t, w, got[i], "line %d", i+1)
	}
	require.Len(t, got, len(want), "lines behind the end of the original's output")
}

// with returns config with another value of a field.
func with(t *testing.T, config json.RawMessage, field string, value any) json.RawMessage {
	t.Helper()
	var fields map[string]any
	require.NoError(t, json.Unmarshal(config, &fields))
	fields[field] = value
	out, err := json.Marshal(fields)
	require.NoError(t, err)
	return out
}
