package strategies_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/units"
	"github.com/vramyard/vramyard/strategies"
)

// effect finds a row with the effect of a configuration: the mean over the recorded traces of least
// memory over the lower bound, and the sum of device calls.
var effect = regexp.MustCompile("(?m)^(\\|.*\\| `)(\\{.*\\})(` \\| )([\\d.]+ \\| [\\d,]+)( \\|)$")

// TestEffectsOfSettings holds the tables of settings on the pages of strategies. Without -pages.all
// only the rows of the defaults are compared, with the results behind the tables of presets.
//
//	go test ./strategies -run TestEffectsOfSettings -rewrite
func TestEffectsOfSettings(t *testing.T) {
	var traces []*trace.Trace
	for _, tr := range workload.EachRecording {
		traces = append(traces, tr)
	}
	pages, err := filepath.Glob(filepath.Join("..", "docs", "strategies", "*.md"))
	require.NoError(t, err)
	results, rows := readResults(t), 0
	for _, path := range pages {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		written := effect.ReplaceAllFunc(page, func(row []byte) []byte {
			rows++
			cells := effect.FindStringSubmatch(string(row))
			figures := cells[4]
			switch {
			case *allPages || *rewrite:
				figures = effectOf(t, traces, name, cells[2])
			case cells[2] == "{}":
				figures = knownEffect(traces, results, name)
			}
			return []byte(cells[1] + cells[2] + cells[3] + figures + cells[5])
		})
		if *rewrite {
			require.NoError(t, os.WriteFile(path, written, 0o644))
			continue
		}
		require.Equal(t, string(page), string(written), "go test ./strategies -run TestEffectsOfSettings -rewrite")
	}
	require.NotZero(t, rows, "rows with effects of settings")
}

// effectOf searches the smallest capacities and counts the device calls.
func effectOf(t *testing.T, traces []*trace.Trace, name, config string) string {
	t.Helper()
	setup, err := strategies.All().Lookup(name, json.RawMessage(config))
	require.NoError(t, err)
	r, err := compare.Compare(t.Context(), traces, []setting.Setup{setup}, compare.Options{
		Device: replay.SimTarget(sim.Config{}),
	})
	require.NoError(t, err)
	calls := uint64(0)
	for _, run := range r.Runs {
		calls += run.DeviceCalls
	}
	return times3(mean(r, 0, 1)) + " | " + units.Count(calls)
}

// knownEffect returns the effect of the defaults from stored results.
func knownEffect(traces []*trace.Trace, results pageResults, name string) string {
	product, calls := 1.0, uint64(0)
	for _, tr := range traces {
		r := results[resultKey{name, tr.Header.Name}]
		product, calls = product*timesOf(r.smallest, tr), calls+r.calls
	}
	return times3(math.Pow(product, 1/float64(len(traces)))) + " | " + units.Count(calls)
}
