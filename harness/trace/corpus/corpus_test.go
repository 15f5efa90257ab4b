package corpus_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/show/chart"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/corpus"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/units"
)

var rewrite = flag.Bool("rewrite", false, "write the statistics, the pictures and the cards")

const (
	archive  = "../../../corpus"
	page     = "../../../docs/corpus.md"
	pictures = "../../../docs/corpus"
)

// TestCards compares the archive with the manifest, and the cards and pictures of docs/corpus.md
// with both.
func TestCards(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a run without -short: reads every trace of the corpus")
	}
	m := corpus.Read()
	var cards strings.Builder
	for i := range m.Traces {
		e := &m.Traces[i]
		tr := openEntry(t, e)
		if *rewrite {
			var err error
			e.Stats, err = corpus.StatsOf(tr)
			require.NoError(t, err)
		}
		require.NoError(t, e.Check(tr))
		card(&cards, e)
		same(t, filepath.Join(pictures, e.Name+".svg"), picture(t, tr))
	}
	var manifest bytes.Buffer
	enc := json.NewEncoder(&manifest)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(m))
	same(t, "manifest.json", manifest.Bytes())

	const (
		begin = "<!-- cards: written by go test ./harness/trace/corpus -run TestCards -rewrite -->\n"
		end   = "<!-- /cards -->"
	)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	same(t, page, []byte(before+begin+cards.String()+end+after))
}

// same compares a file with its content, or writes it with -rewrite.
func same(t *testing.T, path string, content []byte) {
	t.Helper()
	if *rewrite {
		require.NoError(t, os.WriteFile(path, content, 0o644))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(have, content), "%s differs: go test ./harness/trace/corpus -run TestCards -rewrite", path)
}

func openEntry(t *testing.T, e *corpus.Entry) *trace.Trace {
	t.Helper()
	tr, err := e.Open(archive, formats.Options{})
	require.NoError(t, err)
	return tr
}

// picture draws the live bytes over the events.
func picture(t *testing.T, tr *trace.Trace) []byte {
	t.Helper()
	const columns = 150
	each := max(len(tr.Events)/columns, 1)
	var ledger trace.Ledger
	var points []chart.Point
	begin := 0
	for part := range slices.Chunk(tr.Events, each) {
		high := ledger.Live()
		for i := range part {
			ledger.Step(&part[i])
			high = max(high, ledger.Reached())
		}
		points = append(points, chart.Point{X: float64(begin), Y: float64(high)})
		begin += len(part)
	}
	c := chart.New(chart.Counts("event", float64(len(tr.Events))), chart.Bytes("live", float64(ledger.Peak())))
	c.Line(chart.Line{Look: chart.LookOf(0), Points: points, Steps: true})
	var b bytes.Buffer
	size := chart.Page{Width: chart.OneColumn, Height: chart.OneColumn / 3, Font: 7, Linked: true}
	require.NoError(t, c.Write(&b, chart.SVG, size))
	require.Less(t, b.Len(), 15<<10)
	return b.Bytes()
}

// card writes the card of a trace.
func card(b *strings.Builder, e *corpus.Entry) {
	s := &e.Stats
	fmt.Fprintf(b, "\n### %s\n\n![live bytes of %[1]s over its events](corpus/%[1]s.svg)\n\n%s", e.Name,
		strings.TrimSuffix(e.Program, "."))
	if e.Source != "" {
		fmt.Fprintf(b, " ([report](%s))", e.Source)
	}
	fmt.Fprintf(b, ".\n\n| | |\n|---|---|\n")
	row := func(name, format string, args ...any) {
		fmt.Fprintf(b, "| %s | %s |\n", name, fmt.Sprintf(format, args...))
	}
	row("recorded", "%s", e.Recorded)
	row("versions", "%s", e.Versions)
	row("device", "%s", e.Device)
	row("clock", "%s", e.Clock)
	row("license", "%s", e.License)
	row("events", "%d, of these %d allocations and %d marks, which show %d steps", s.Events, s.Allocs, s.Marks, s.Steps)
	row("peak", "%s in %d blocks; %d blocks are live at the end", units.Bytes(s.Peak), s.PeakLive, s.EndLive)
	row("sizes", "%d distinct, from %s to %s, median %s", s.Sizes, units.Bytes(s.MinSize), units.Bytes(s.MaxSize),
		units.Bytes(s.Median))
	var classes []string
	for i, n := range s.Classes {
		classes = append(classes, fmt.Sprintf("%d %s", n, corpus.ClassNames[i]))
	}
	row("classes", "%s", strings.Join(classes, ", "))
	row("lifetimes", "median %d events, 90th percentile %d, maximum %d", s.LifeMid, s.LifeP90, s.LifeMax)
	row("streams, private pools, refused requests", "%d, %d, %d", s.Streams, s.Pools, s.Refused)
	row("SHA-256", "`%s`", e.Hash)
}

// TestManifestIsComplete holds the manifest to the program, the archive and the examples.
func TestManifestIsComplete(t *testing.T) {
	m := corpus.Read()
	require.Equal(t, corpus.Schema, m.Schema)
	require.Positive(t, m.Version)
	hash := regexp.MustCompile(`^[0-9a-f]{64}$`)
	objects := []string{"README.md", "go.mod"}
	var inside []string
	for _, e := range m.Traces {
		require.Regexp(t, hash, e.Hash)
		for _, fact := range []string{e.Program, e.Versions, e.Device, e.Recorded, e.Clock, e.License} {
			require.NotEmpty(t, fact, e.Name)
		}
		if e.Inside() {
			require.Empty(t, e.Object)
			inside = append(inside, e.Name)
			continue
		}
		require.True(t, strings.HasPrefix(e.Object, e.Hash+"."), e.Name)
		info, err := os.Stat(e.Path(archive))
		require.NoError(t, err)
		require.EqualValues(t, e.ObjectBytes, info.Size())
		objects = append(objects, e.Object)
	}
	require.Equal(t, workload.RecordingNames(), inside)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(corpus.Names()))), len(m.Traces), "names are distinct")
	files, err := os.ReadDir(archive)
	require.NoError(t, err)
	var have []string
	for _, f := range files {
		have = append(have, f.Name())
	}
	require.ElementsMatch(t, objects, have)
}

// TestExamplesAreInTheArchive compares the traces of the examples with their objects.
func TestExamplesAreInTheArchive(t *testing.T) {
	for prefix, folder := range map[string]string{"oom_": "oom", "incident_": "incidents"} {
		files, err := filepath.Glob("../../../examples/" + folder + "/*.trace.gz")
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, path := range files {
			e, ok := corpus.Lookup(prefix + strings.ReplaceAll(trace.BaseName(path), "-", "_"))
			require.True(t, ok, path)
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			have, err := os.ReadFile(e.Path(archive))
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, have), "%s: copy it to corpus, under its hash, and raise the version", path)
		}
	}
}
