package strategies_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/inspect"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/report"
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
	reportHeap  = regexp.MustCompile(`(?m)^\$ printf '(.*)' > heap\.trace$`)
	reportSpot  = regexp.MustCompile(`(?s)(<!-- report: begin -->\n)(.*)(<!-- report: end -->)`)
	recordsSpot = regexp.MustCompile(`(?s)(<!-- records: begin -->\n)(.*)(<!-- records: end -->)`)
	binsSpot    = regexp.MustCompile(`(?s)(<!-- bins: begin -->\n)(.*)(<!-- bins: end -->)`)
	reportChunk = regexp.MustCompile(`(?m)^  (?:In use|Free  ) 0x\w+ of \d+ bytes, next (\d+)`)
)

// TestBFCPageReport holds the report and the bins on the page of bfc to what the commands before
// them print, and the records of the same heap to the report and to the chunks.
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
	var chunks []alloc.Chunk
	var bins strings.Builder
	pen := sketch{ids: map[device.Addr]uint64{}}
	res, err := replay.Run(tr, setup, dev, replay.Options{Report: true, Observe: func(o replay.Observation) error {
		if o.Err != nil {
			chunks = slices.Collect(o.Strategy.Walk) // as in the report
			state := inspect.MapOf(o.Strategy, setup.Name)
			require.NoError(t, report.Bins(&bins, "bfc on heap after event 5, which found no memory", &state))
		}
		pen.ids[o.Block.Addr] = o.Request.ID
		return nil
	}})
	require.NoError(t, err)
	var b strings.Builder
	for line := range strings.Lines(string(res.OOMReport) + string(res.OwnOOMReport)) {
		if !strings.Contains(line, "chunks 0,") { // as grep does on the page
			b.WriteString(line)
		}
	}
	holdSpot(t, bfcPage, reportSpot, "```\n"+b.String()+"```\n")
	holdSpot(t, bfcPage, binsSpot, "```\n"+bins.String()+"```\n")
	holdSpot(t, bfcPage, recordsSpot, "```\n"+records(t, chunks, &pen, string(res.OwnOOMReport))+"```\n")
}

// records writes the records of the chunks of one region, a column for each. The report has the
// handle of each next chunk; the first chunk has handle 0, because no chunk of the page's heap was
// merged away.
func records(t *testing.T, chunks []alloc.Chunk, pen *sketch, report string) string {
	t.Helper()
	next := reportChunk.FindAllStringSubmatch(report, -1)
	require.Len(t, next, len(chunks))
	rows := [...][]string{{"chunk"}, {"address"}, {"entry"}, {"handle"}, {"prev"}, {"next"}, {"bin"}}
	handle, prev := "0", "none"
	for i, c := range chunks {
		offset, bin, follows := c.Addr.Sub(c.Region), "none", next[i][1]
		if c.Class != alloc.NoClass {
			bin = fmt.Sprint(c.Class)
		}
		if i == len(chunks)-1 {
			follows = "none"
		}
		c.Class = alloc.NoClass
		for r, cell := range []string{pen.words(c), fmt.Sprintf("0x%04x", uint64(offset)), fmt.Sprint(uint64(offset) >> 8),
			handle, prev, follows, bin} {
			rows[r] = append(rows[r], cell)
		}
		handle, prev = follows, handle
	}
	var b strings.Builder
	for _, row := range rows {
		line := ""
		for _, cell := range row {
			line += fmt.Sprintf("%-14s", cell)
		}
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
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
