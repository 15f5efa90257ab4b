package page_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/page"
	"github.com/vramyard/vramyard/harness/picture"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/report"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// reportOf returns a page of a trace through one strategy.
func reportOf(t *testing.T, tr *trace.Trace, strategy string, capacity device.Size) *page.Report {
	t.Helper()
	s, err := strategies.All().Lookup(strategy, nil)
	require.NoError(t, err)
	p, err := replay.Prepare(tr)
	require.NoError(t, err)
	o := page.Budget(1)
	drawn, err := picture.NewTrace(tr, o)
	require.NoError(t, err)
	on := func() (device.Device, error) { return sim.New(sim.Config{Capacity: capacity}) }
	run, err := drawn.Record(p, s.ForCapacity(capacity), on, o)
	require.NoError(t, err)
	res := *run.Result
	res.NsPerOp = 0 // the one figure that the clock decides
	return &page.Report{
		Kind: "replay", Title: strategy + " on " + tr.Header.Name, Version: "test", Command: "vramyard replay",
		Facts: []page.Fact{{Name: "seed", Value: "7"}}, Sheets: []report.Sheet{report.ReplaySheet(&res)},
		Traces: []page.Traced{{Picture: drawn, Runs: []page.Run{{
			Strategy: strategy, Config: run.Config, Figures: &res, Picture: run,
		}}}},
	}
}

func read(t *testing.T, text string) *trace.Trace {
	t.Helper()
	tr, err := trace.Read(strings.NewReader(text), "test.trace", trace.Options{})
	require.NoError(t, err)
	return tr
}

// written returns the page as text.
func written(t *testing.T, r *page.Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, page.Write(&b, r))
	return b.String()
}

// element returns the text of the script with an id.
func element(t *testing.T, text, id string) string {
	t.Helper()
	found := regexp.MustCompile(`(?s)<script[^>]*id="` + id + `">(.*?)</script>`).FindStringSubmatch(text)
	require.NotNil(t, found, id)
	return found[1]
}

// data returns the description and the arrays of a page.
func data(t *testing.T, text string) (about map[string]any, arrays []byte) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(element(t, text, "vy-report")), &about))
	packed, err := base64.StdEncoding.DecodeString(element(t, text, "vy-data"))
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	arrays, err = io.ReadAll(z)
	require.NoError(t, err)
	return about, arrays
}

const small = "# name small\na 1 1MiB tag=weights\na 2 2MiB tag=activations\nmark \"step 1\"\nf 1\na 3 100MiB\nf 2\n"

func TestASmallPage(t *testing.T) {
	text := written(t, reportOf(t, read(t, small), "bfc", 32*device.MiB))
	about, arrays := data(t, text)
	require.Equal(t, page.Schema, about["schema"])
	tr := about["traces"].([]any)[0].(map[string]any)
	run := tr["runs"].([]any)[0].(map[string]any)
	require.Equal(t, []any{"", "activations", "weights"}, tr["tags"])
	require.Len(t, run["failures"], 1)
	rects := run["map"].(map[string]any)["rects"].(map[string]any)
	born := rects["born"].(map[string]any)
	at := int(born["o"].(float64))
	require.Zero(t, at%8)
	require.Equal(t, []byte{0, 0, 0, 0, 1, 0, 0, 0}, arrays[at:at+4*int(born["n"].(float64))])
	require.Less(t, len(text), 120_000)
}

// TestTheSameReportGivesTheSameBytes draws everything twice.
func TestTheSameReportGivesTheSameBytes(t *testing.T) {
	one := written(t, reportOf(t, read(t, small), "caching", 32*device.MiB))
	require.Equal(t, one, written(t, reportOf(t, read(t, small), "caching", 32*device.MiB)))
}

// TestTablesReadWithoutScripts parses the page as a browser without scripts does.
func TestTablesReadWithoutScripts(t *testing.T) {
	r := reportOf(t, read(t, small), "bfc", 32*device.MiB)
	root, err := html.Parse(strings.NewReader(written(t, r)))
	require.NoError(t, err)
	var rows []string
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.ElementNode && n.Data == "tr" {
			rows = append(rows, textOf(n))
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
	}
	walk(root)
	require.Contains(t, rows, "peak requested|3.00 MiB|")
	require.Contains(t, rows, "out of memory|1|")
}

// textOf returns the cells of a row.
func textOf(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var b strings.Builder
	for c := range n.ChildNodes() {
		b.WriteString(textOf(c))
		if c.Type == html.ElementNode && (c.Data == "td" || c.Data == "th") {
			b.WriteString("|")
		}
	}
	return b.String()
}

// TestNothingLeadsToANetwork looks for links in what the browser would follow.
func TestNothingLeadsToANetwork(t *testing.T) {
	root, err := html.Parse(strings.NewReader(written(t, reportOf(t, read(t, small), "bfc", 32*device.MiB))))
	require.NoError(t, err)
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			require.NotContains(t, []string{"src", "href", "action", "srcset", "data"}, a.Key, n.Data)
		}
		if n.Type == html.ElementNode {
			require.NotContains(t, []string{"link", "iframe", "img", "object", "base"}, n.Data)
		}
	}
}
