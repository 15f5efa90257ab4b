package page_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// reportOf returns a page of a trace through one strategy.
func reportOf(t *testing.T, tr *trace.Trace, strategy string, capacity device.Size) *page.Report {
	t.Helper()
	s, err := strategies.All().Lookup(strategy, nil)
	require.NoError(t, err)
	p, err := replay.Prepare(t.Context(), tr)
	require.NoError(t, err)
	o := page.Budget(1)
	drawn, err := page.NewTrace(tr, o)
	require.NoError(t, err)
	on := func() (device.Device, error) { return sim.New(sim.Config{Capacity: capacity}) }
	run, err := drawn.Draw(p, s.ForCapacity(capacity), on, o)
	require.NoError(t, err)
	res := *run.Result
	res.NsPerOp = 0 // the one figure that the clock decides
	return &page.Report{
		Kind: "replay", Title: strategy + " on " + tr.Header.Name, Provenance: provenance.Build{Version: "test"},
		Command: "vramyard replay",
		Facts:   []page.Fact{{Name: "seed", Value: "7"}}, Sheets: []report.Sheet{report.ReplaySheet(&res)},
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
	require.Less(t, len(text), 250_000)
}

// TestOnlyServedPagesSendRequests compares the two.
func TestOnlyServedPagesSendRequests(t *testing.T) {
	r := reportOf(t, read(t, small), "bfc", 32*device.MiB)
	file := written(t, r)
	require.NotContains(t, file, "fetch(")
	require.NotContains(t, file, "connect-src")
	r.Live = true
	live := written(t, r)
	require.Contains(t, live, "fetch(")
	require.Contains(t, live, "connect-src &#39;self&#39;")
}

// TestTheSameReportGivesTheSameBytes draws everything twice.
func TestTheSameReportGivesTheSameBytes(t *testing.T) {
	one := written(t, reportOf(t, read(t, small), "caching", 32*device.MiB))
	require.Equal(t, one, written(t, reportOf(t, read(t, small), "caching", 32*device.MiB)))
}

// TestTablesWorkWithoutScripts parses the page as a browser without scripts does.
func TestTablesWorkWithoutScripts(t *testing.T) {
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

// TestNothingLeadsToANetwork searches the page for links that a browser would follow.
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

// hostile are texts that must be shown and never run.
var hostile = []string{
	`</script><script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, "\x00\x1b[31m\u202e\u2028",
	"\xff\xfe", `"'&<!--`,
	`javascript:alert(1)`, strings.Repeat("x", 10<<20), `]]>`, `{{.Version}}`,
}

// hostileTrace has every text wherever a trace has texts.
func hostileTrace(t testing.TB, texts []string) *trace.Trace {
	t.Helper()
	b := trace.NewBuilder(trace.Header{Name: texts[0], Format: "text", Hash: "abc"})
	for i, s := range texts {
		id := uint64(i + 1)
		require.NoError(t, b.Add(trace.Event{Kind: trace.Alloc, ID: id, Size: 1000, Tag: b.Tag(s), Time: trace.NoTime}))
		require.NoError(t, b.Add(trace.Event{Kind: trace.Mark, Tag: b.Tag(s), Time: trace.NoTime}))
	}
	tr := b.Trace()
	for _, s := range texts {
		tr.Header.Meta = append(tr.Header.Meta, trace.Pair{Key: "key", Value: s})
	}
	return tr
}

// requireShown fails if a text has become part of the page's structure.
func requireShown(t testing.TB, text string, scripts int) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	require.NoError(t, err)
	found := 0
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "script" {
			found++
		}
		require.NotContains(t, []string{"img", "iframe", "object", "link"}, n.Data)
		for _, a := range n.Attr {
			require.False(t, strings.HasPrefix(a.Key, "on"), a.Key)
		}
	}
	require.Equal(t, scripts, found, "scripts")
}

// ourScripts is how many script elements a page has: two with data and two that run.
const ourScripts = 4

func TestHostileTextsAreShown(t *testing.T) {
	r := reportOf(t, hostileTrace(t, hostile), "bfc", 32*device.MiB)
	r.Title, r.Command = hostile[0], hostile[1]
	r.Facts = append(r.Facts, page.Fact{Name: hostile[1], Value: hostile[0]})
	text := written(t, r)
	requireShown(t, text, ourScripts)
	require.Less(t, len(text), 250_000)
	about, _ := data(t, text)
	tags := about["traces"].([]any)[0].(map[string]any)["tags"].([]any)
	require.Contains(t, tags, hostile[0], "a short text is shown as it is")
	require.Contains(t, tags, strings.Repeat("x", 200)+"…")
	require.NotContains(t, text, "\x1b")
}

func FuzzHostileTexts(f *testing.F) {
	for _, s := range hostile[:6] {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := reportOf(t, hostileTrace(t, []string{s}), "bfc", 32*device.MiB)
		r.Title, r.Command = s, s
		var b bytes.Buffer
		require.NoError(t, page.Write(&b, r))
		requireShown(t, b.String(), ourScripts)
		data(t, b.String())
	})
}

// TestPagesFitTheirLimit draws more than fits, again and again less of it.
func TestPagesFitTheirLimit(t *testing.T) {
	b := trace.NewBuilder(trace.Header{Name: "long", Format: "text", Hash: "abc"})
	add := func(e trace.Event) {
		e.Time = trace.NoTime
		require.NoError(t, b.Add(e))
	}
	x, live := uint64(1), []uint64(nil)
	for id := uint64(1); id <= 8_000; id++ { // sizes and lives without a pattern that packs well
		x = x*6364136223846793005 + 1442695040888963407
		add(trace.Event{Kind: trace.Alloc, ID: id, Size: device.Size(1 + x>>44),
			Tag: b.Tag(strings.Repeat("t", int(id%97)+1))})
		live = append(live, id)
		if len(live) > 300 {
			i := int(x >> 33 % 300)
			add(trace.Event{Kind: trace.Free, ID: live[i]})
			live = slices.Delete(live, i, i+1)
		}
	}
	r := reportOf(t, b.Trace(), "bfc:growth", device.GiB)
	for len(r.Traces[0].Runs) < 12 {
		r.Traces[0].Runs = append(r.Traces[0].Runs, r.Traces[0].Runs[0])
	}
	for _, limit := range []int{0, 700_000} {
		r.Limit = limit
		text := written(t, r)
		if limit == 0 {
			limit = 5_000_000
		}
		require.LessOrEqual(t, len(text), limit)
		about, _ := data(t, text)
		run := about["traces"].([]any)[0].(map[string]any)["runs"].([]any)[11].(map[string]any)
		for k, p := range run["peaks"].([]any) {
			require.EqualValues(t, r.Traces[0].Runs[0].Picture.Peaks[k].Bytes, p.(map[string]any)["bytes"])
		}
	}
}

// TestManyTracesAreThinnedAsTheyCome adds traces to a page that has no room for them as they are.
// They are thinned before the page is written, and not more than Write would have thinned them.
func TestManyTracesAreThinnedAsTheyCome(t *testing.T) {
	var text strings.Builder
	x := uint64(1)
	for id := range 3000 { // sizes without a pattern that packs well
		x = x*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&text, "a %d %d tag=t%d\n", id, 1+x>>44, x>>50)
		if id >= 200 {
			fmt.Fprintf(&text, "f %d\n", id-200)
		}
	}
	whole := reportOf(t, read(t, text.String()), "bfc:growth", device.GiB)
	one := whole.Traces[0]
	buckets := one.Picture.Grid.Len()
	for len(whole.Traces) < 6 {
		whole.Traces = append(whole.Traces, one)
	}
	adding := func(limit int) *page.Report {
		r := *whole
		r.Traces, r.Limit = nil, limit
		for range whole.Traces {
			require.NoError(t, r.Add(one))
		}
		return &r
	}
	require.Equal(t, written(t, whole), written(t, adding(0)), "where there is room, nothing changes")
	require.Equal(t, buckets, one.Picture.Grid.Len())
	for _, limit := range []int{900_000, 600_000} {
		whole.Limit = limit
		want := written(t, whole)
		r := adding(limit)
		require.Less(t, r.Traces[0].Picture.Grid.Len(), buckets, "thinned before it is written")
		got := written(t, r)
		require.LessOrEqual(t, len(got), limit)
		require.GreaterOrEqual(t, len(got), len(want), "no more is left out")
	}
}
