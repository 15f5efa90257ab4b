package strategies_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// The pages that teach bfc.
var (
	bfcPage        = filepath.Join("..", "docs", "strategies", "bfc.md")
	bfcCachingPage = filepath.Join("..", "docs", "strategies", "bfc-and-caching.md")
)

var (
	reportHeap = regexp.MustCompile(`(?m)^\$ printf '(.*)' > heap\.trace$`)
	reportSpot = regexp.MustCompile(`(?s)(<!-- report: begin -->\n)(.*)(<!-- report: end -->)`)
)

// TestBFCPageReport holds the report on the page of bfc to what the commands before it print.
//
//	go test ./strategies -run TestBFCPageReport -rewrite
func TestBFCPageReport(t *testing.T) {
	page, err := os.ReadFile(bfcPage)
	require.NoError(t, err)
	heap := reportHeap.FindSubmatch(page)
	require.NotNil(t, heap, "the command that writes the trace")
	lines := strings.ReplaceAll(string(heap[1]), `\n`, "\n")
	tr, err := trace.Read(strings.NewReader(lines), "heap", trace.Options{})
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("bfc", []byte(`{"limit":"16KiB"}`))
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	res, err := replay.Run(tr, setup, dev, replay.Options{Report: true})
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString("```\n")
	for line := range strings.Lines(string(res.OOMReport) + string(res.OwnOOMReport)) {
		if !strings.Contains(line, "chunks 0,") { // as grep does on the page
			b.WriteString(line)
		}
	}
	b.WriteString("```\n")
	holdSpot(t, bfcPage, reportSpot, b.String())
}

// TestBFCPagePresets holds the page of bfc to the catalogue: its table of presets has them all.
func TestBFCPagePresets(t *testing.T) {
	page, err := os.ReadFile(bfcPage)
	require.NoError(t, err)
	_, rows, _ := strings.Cut(string(page), "| preset | stands for |")
	rows, _, _ = strings.Cut(rows, "\n\n")
	for _, spec := range strategies.All() {
		if spec.Name == "bfc" {
			for _, s := range presets(t, spec) {
				require.Contains(t, rows, "| `"+s.Name+"` |")
			}
		}
	}
}

// TestBFCAndCachingTable holds the table of the page that compares bfc and caching to the results
// of the searches behind the pages of both.
//
//	go test ./strategies -run TestBFCAndCachingTable -rewrite
func TestBFCAndCachingTable(t *testing.T) {
	var traces []*trace.Trace
	for _, tr := range workload.EachRecording {
		traces = append(traces, tr)
	}
	var rows strings.Builder
	var setups []setting.Setup
	for _, name := range []string{"bfc", "bfc:growth", "bfc:vmm", "caching", "caching:expandable"} {
		s, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		setups = append(setups, s)
	}
	for line := range strings.Lines(pageTable(t, traces, setups, readResults(t), nil, nil)) {
		cells := strings.Split(strings.TrimSuffix(line, "|\n"), "|")
		rows.WriteString(strings.Join(cells[:len(cells)-2], "|") + "|\n")
	}
	holdSpot(t, bfcCachingPage, table, rows.String())
}

// holdSpot compares the text between two marks of a page, or writes it with -rewrite.
func holdSpot(t *testing.T, path string, spot *regexp.Regexp, text string) {
	t.Helper()
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	parts := spot.FindSubmatch(page)
	require.NotNil(t, parts, "%s: marks of %s", path, spot)
	if *rewrite {
		page = spot.ReplaceAll(page, []byte("${1}"+strings.ReplaceAll(text, "$", "$$")+"${3}"))
		require.NoError(t, os.WriteFile(path, page, 0o644))
		return
	}
	require.Equal(t, string(parts[2]), text, "%s: go test ./strategies -run %s -rewrite", path, t.Name())
}
