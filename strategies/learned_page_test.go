package strategies_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// learnedTable finds the table of the strategies that learned from the trace itself.
var learnedTable = regexp.MustCompile(`(?s)(<!-- learned: begin -->\n)(.*)(<!-- learned: end -->)`)

// learnedSuffix marks results with the trace itself as the profile.
const learnedSuffix = " --learn"

// planners returns every setup of the catalogue that plans from an earlier run, under the names of
// its results.
func planners(t *testing.T) (setups []setting.Setup) {
	t.Helper()
	for _, spec := range strategies.All() {
		for _, s := range presets(t, spec) {
			if compare.Plans(s) {
				s.Name += learnedSuffix
				setups = append(setups, s)
			}
		}
	}
	require.NotEmpty(t, setups)
	return setups
}

// TestLearnedTable holds the table of docs/strategies/README.md as TestStrategyPages holds those of
// the pages: each strategy that plans has learned from the trace that it is measured on.
//
//	go test ./strategies -run TestLearnedTable -rewrite
func TestLearnedTable(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a run without -short: replays presets some hundred times")
	}
	path := filepath.Join("..", "docs", "strategies", "README.md")
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	parts := learnedTable.FindSubmatch(page)
	require.NotNil(t, parts)
	setups, results := planners(t), readResults(t)
	var traces []*trace.Trace
	for _, tr := range workload.EachRecording {
		traces = append(traces, tr)
		learned, _, err := compare.Learn(tr, setups)
		require.NoError(t, err)
		if *rewrite {
			search(t, []*trace.Trace{tr}, learned, results)
			continue
		}
		p, err := replay.Prepare(t.Context(), tr)
		require.NoError(t, err)
		for _, s := range learned {
			t.Run(s.Name+"/"+tr.Header.Name, func(t *testing.T) {
				t.Parallel()
				holdResult(t, p, s, results[resultKey{s.Name, tr.Header.Name}])
			})
		}
	}
	if *rewrite {
		writeResults(t, results)
	}
	text := withoutLast(pageTable(t, traces, setups, results, nil, nil), 2)
	if *rewrite {
		page = learnedTable.ReplaceAll(page, []byte("${1}"+text+"${3}"))
		require.NoError(t, os.WriteFile(path, page, 0o644))
		return
	}
	require.Equal(t, text, string(parts[2]), "go test ./strategies -run TestLearnedTable -rewrite")
}

// withoutLast returns a table without its last columns.
func withoutLast(table string, columns int) string {
	var b strings.Builder
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		b.WriteString(strings.Join(cells[:len(cells)-1-columns], "|") + "|\n")
	}
	return b.String()
}
