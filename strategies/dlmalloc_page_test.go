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
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// eagerBFC is bfc with the split of dlmalloc: every remainder that matters is cut off.
const eagerBFC = `bfc{"fragmentation_fraction":0.000001}`

// leftOut finds the table of the page that compares bfc with dlmalloc.
var leftOut = regexp.MustCompile(`(?s)(<!-- left out: begin -->\n)(.*)(<!-- left out: end -->)`)

// TestWhatBFCLeftOut holds the table on the page of dlmalloc to testdata/pages.csv, and its line of
// bfc with another split to the traces. The lines of presets are those of TestStrategyPages.
//
//	go test ./strategies -run TestWhatBFCLeftOut -rewrite
func TestWhatBFCLeftOut(t *testing.T) {
	if testing.Short() {
		t.Skip("replays each trace four times")
	}
	results := readResults(t)
	var traces []*trace.Trace
	for _, tr := range workload.EachRecording {
		traces = append(traces, tr)
	}
	name, config, _ := strings.Cut(eagerBFC, "{")
	setup, err := strategies.All().Lookup(name, json.RawMessage("{"+config))
	require.NoError(t, err)
	setup.Name = eagerBFC
	if *rewrite {
		search(t, traces, []setting.Setup{setup}, results)
		writeResults(t, results)
	}
	table, rule := "| preset |", "\n|---|"
	for _, tr := range traces {
		table, rule = table+" "+strings.ReplaceAll(tr.Header.Name, "_", " ")+" |", rule+"--:|"
	}
	table += " mean |" + rule + "--:|\n"
	for _, row := range []string{"bfc", eagerBFC, "bestfit:strict", "dlmalloc"} {
		table += "| `" + row + "` |"
		product := 1.0
		for _, tr := range traces {
			f := timesOf(results[resultKey{row, tr.Header.Name}].smallest, tr)
			table, product = table+" "+times3(f)+" |", product*f
		}
		table += " " + times3(math.Pow(product, 1/float64(len(traces)))) + " |\n"
	}
	path := filepath.Join("..", "docs", "strategies", "dlmalloc.md")
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	if *rewrite {
		page = leftOut.ReplaceAll(page, []byte("${1}"+table+"${3}"))
		require.NoError(t, os.WriteFile(path, page, 0o644))
		return
	}
	found := leftOut.FindSubmatch(page)
	require.NotNil(t, found, "%s lacks the table", path)
	require.Equal(t, table, string(found[2]), "go test ./strategies -run TestWhatBFCLeftOut -rewrite")
	for _, tr := range traces {
		t.Run(tr.Header.Name, func(t *testing.T) {
			t.Parallel()
			p, err := replay.Prepare(t.Context(), tr)
			require.NoError(t, err)
			holdResult(t, p, setup, results[resultKey{eagerBFC, tr.Header.Name}])
		})
	}
}
