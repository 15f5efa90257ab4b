package figure_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/chart"
	"github.com/vramyard/vramyard/harness/compare"
	"github.com/vramyard/vramyard/harness/figure"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/report"
)

// read reads a source that must be right.
func read(t *testing.T, name, text string) *figure.Source {
	t.Helper()
	s, err := figure.Read(name, strings.NewReader(text))
	require.NoError(t, err)
	return s
}

// svg draws sources and returns the file without its font.
func svg(t *testing.T, o figure.Options, sources ...*figure.Source) string {
	t.Helper()
	c, err := figure.Draw(sources, o)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, c.Write(&b, chart.SVG, chart.Page{Width: chart.TwoColumns, Font: 8, Linked: true}))
	return b.String()
}

// texts returns what is written in a figure, in the order of the file.
func texts(svg string) (all []string) {
	for _, m := range regexp.MustCompile(`<text[^>]*>([^<]*)</text>`).FindAllStringSubmatch(svg, -1) {
		all = append(all, m[1])
	}
	return all
}

// row returns a run of a comparison.
func row(trace, strategy string, bound, need device.Size) compare.Run {
	r := compare.Run{Trace: trace, TraceSHA256: "ab", Strategy: strategy, Config: json.RawMessage("{}"), LowerBound: bound,
		Waste: 0.25, External: 0.5, Internal: 0.125, PeakReserved: 2 * bound}
	if need > 0 {
		r.MinCapacity = &need
	}
	return r
}

// compared returns a comparison as JSON and as CSV.
func compared(t *testing.T, runs ...compare.Run) (asJSON, asCSV string) {
	t.Helper()
	r := &compare.Report{Schema: compare.Schema, Runs: append([]compare.Run{}, runs...)}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, report.CompareCSV(&b, r))
	return string(text), b.String()
}

func TestCapacityIsSortedAndSaysWhatDoesNotComplete(t *testing.T) {
	text, csv := compared(t, row("t", "worse", 10<<30, 15<<30), row("t", "never", 10<<30, 0), row("t", "best", 10<<30, 11<<30))
	drawn := svg(t, figure.Options{}, read(t, "a.json", text))
	names := slices.DeleteFunc(texts(drawn), func(s string) bool { return !slices.Contains([]string{"worse", "never", "best"}, s) })
	assert.Equal(t, []string{"never", "worse", "best"}, names, "rows are written from the bottom")
	all := texts(drawn)
	for _, want := range []string{"1.10×", "1.50×", "none", "lower bound, 10.00 GiB", "minimum capacity (GiB)"} {
		assert.Contains(t, all, want)
	}
	assert.Equal(t, drawn, svg(t, figure.Options{}, read(t, "a.csv", csv)), "CSV draws the same")
}

func TestSeveralTracesAreInMultiplesOfTheirBounds(t *testing.T) {
	text, _ := compared(t, row("t", "a", 1<<30, 2<<30), row("u", "a", 1<<40, 1<<40), row("t", "b", 1<<30, 1<<30), row("u", "b", 1<<40, 0))
	all := texts(svg(t, figure.Options{}, read(t, "a.json", text)))
	for _, want := range []string{"t", "u", "1 none", "minimum capacity / lower bound"} {
		assert.Contains(t, all, want)
	}
	assert.Contains(t, texts(svg(t, figure.Options{Trace: "u"}, read(t, "a.json", text))), "lower bound, 1.00 TiB")
	budget := svg(t, figure.Options{Kind: "budget"}, read(t, "a.json", text))
	assert.Contains(t, texts(budget), "traces that complete (%)")
}

func TestWasteShowsThreeShares(t *testing.T) {
	text, _ := compared(t, row("t", "a", 1<<30, 2<<30), row("t", "b", 1<<30, 2<<30))
	all := texts(svg(t, figure.Options{Kind: "waste"}, read(t, "a.json", text)))
	for _, want := range []string{"reservation waste", "external fragmentation, peak", "internal fragmentation, at peak", "share (%)"} {
		assert.Contains(t, all, want)
	}
	one := texts(svg(t, figure.Options{Kind: "waste", Metric: "external_fragmentation_peak"}, read(t, "a.json", text)))
	assert.Contains(t, one, "external fragmentation peak (%)")
}

// replayed returns the result of a replay with a course.
func replayed(t *testing.T, strategy string, points []replay.Point) string {
	t.Helper()
	text, err := json.Marshal(replay.Result{Schema: replay.Schema, Strategy: strategy, Trace: "t", TraceSHA256: "ab", LowerBound: 1 << 30,
		Config: json.RawMessage("{}"), Series: &replay.Series{Stride: 1, Points: points}})
	require.NoError(t, err)
	return string(text)
}

func TestMemoryKeepsEveryPeak(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, 0))
	for n := range 40 {
		points := make([]replay.Point, 3+random.IntN(2048))
		for i := range points {
			points[i] = replay.Point{Event: i, Reserved: device.Size(1 + random.IntN(1000))}
		}
		at := random.IntN(len(points))
		points[at].Reserved = 5000
		drawn := svg(t, figure.Options{Metric: "reserved"}, read(t, "a.json", replayed(t, "a", points)))
		assert.InDelta(t, 5000.0/5120, highest(t, drawn), 0.005, "seed %d, %d: the line reaches the peak, the axis 5 KiB", seed, n)
	}
}

// highest returns the highest point of the blue line of a figure as a share of its y axis.
func highest(t *testing.T, svg string) float64 {
	t.Helper()
	line := 0.0
	for _, path := range regexp.MustCompile(`<path d="([^"]*)" style="fill:none;stroke:#0072B2`).FindAllStringSubmatch(svg, -1) {
		if strings.Count(path[1], "L") == 1 {
			continue // of the legend
		}
		for _, y := range regexp.MustCompile(`,([0-9.]+)`).FindAllStringSubmatch(path[1], -1) {
			line = max(line, number(t, y[1]))
		}
	}
	axis := regexp.MustCompile(`<path d="M([0-9.]+),([0-9.]+)L([0-9.]+),([0-9.]+)" style="fill:none;stroke:#E4E4E4`).FindStringSubmatch(svg)
	require.Len(t, axis, 5, "lines of the grid are as long as the axis")
	low, high := number(t, axis[2]), number(t, axis[4])
	return (line - low) / (high - low)
}

// number reads a number of a figure.
func number(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err)
	return x
}

func TestMemoryMarksWhereItRunsOut(t *testing.T) {
	points := []replay.Point{{Event: 0, Reserved: 1 << 30}, {Event: 1, Reserved: 1 << 30, OOMs: 2}, {Event: 2, Reserved: 1 << 30, OOMs: 1}, {Event: 3, Reserved: 1 << 30}}
	failing := read(t, "a.json", replayed(t, "a", points))
	assert.Contains(t, texts(svg(t, figure.Options{}, failing)), "memory runs out")
	points[1].OOMs, points[2].OOMs = 0, 0
	assert.NotContains(t, texts(svg(t, figure.Options{}, read(t, "a.json", replayed(t, "a", points)))), "memory runs out")
}

func TestRunsOfOneNameAreToldApart(t *testing.T) {
	points := []replay.Point{{Event: 5, Reserved: 1 << 30}}
	all := texts(svg(t, figure.Options{}, read(t, "x/small.json", replayed(t, "a", points)), read(t, "large.json.gz", replayed(t, "a", points))))
	assert.Contains(t, all, "a (large)")
	assert.Contains(t, all, "a")
}

func TestTimesAreOverLiveBlocks(t *testing.T) {
	var runs []string
	for _, strategy := range []string{"a", "b"} {
		for _, live := range []int{100000, 1000} {
			runs = append(runs, fmt.Sprintf(`{"strategy":%q,"config":{},"workload":"w1","parameters":{"live":%d},"workload_hash":"0","live":%d,"ns_per_pair_median":%d}`,
				strategy, live, live, live/10+len(runs)))
		}
	}
	text := `{"schema":"vramyard-bench/1","runs":[` + strings.Join(runs, ",") + `]}`
	all := texts(svg(t, figure.Options{}, read(t, "b.json", text)))
	for _, want := range []string{"live blocks (w1)", "time of a pair, median (ns)", "1e3", "1e5", "a", "b"} {
		assert.Contains(t, all, want)
	}
}

func TestEveryNumberOfStrategiesIsDrawn(t *testing.T) {
	for _, n := range []int{1, 2, 7, 16, 40} {
		var runs []compare.Run
		for i := range n {
			runs = append(runs, row("t", fmt.Sprintf("strategy:%d", i), 1<<30, 1<<30+device.Size(i)<<20))
		}
		text, _ := compared(t, runs...)
		for _, k := range []string{"capacity", "waste"} {
			all := texts(svg(t, figure.Options{Kind: k}, read(t, "a.json", text)))
			for _, r := range runs {
				assert.Contains(t, all, r.Strategy)
			}
		}
	}
}

func TestWrongInputIsRefused(t *testing.T) {
	a, _ := compared(t, row("t", "a", 1<<30, 2<<30))
	two, _ := compared(t, row("t", "a", 1<<30, 2<<30), row("u", "a", 1<<30, 2<<30))
	empty, _ := compared(t)
	none, _ := compared(t, row("t", "a", 1<<30, 0))
	r := replayed(t, "a", []replay.Point{{Event: 5}})
	noCourse := strings.Replace(r, `"series"`, `"other"`, 1)
	for want, c := range map[string]struct {
		o     figure.Options
		texts []string
	}{
		`unknown kind "pie": want one of memory, capacity, waste, budget, time`:                       {figure.Options{Kind: "pie"}, []string{a}},
		"0.json is vramyard-compare/1: it can be drawn as capacity or waste or budget, not as memory": {figure.Options{Kind: "memory"}, []string{a}},
		"0.json is vramyard-compare/1 and 1.json is vramyard-replay/1":                                {figure.Options{}, []string{a, r}},
		"0.json: there is no figure of vramyard-verify/1":                                             {figure.Options{}, []string{`{"schema":"vramyard-verify/1","strategy":"a","trace":"t"}`}},
		`no run of "b": the results have a`:                                                           {figure.Options{Strategies: []string{"b"}}, []string{a}},
		`no run on "v": the results are on t, u`:                                                      {figure.Options{Trace: "v"}, []string{two}},
		"the results hold no run":                                                                     {figure.Options{}, []string{empty}},
		`capacity: no run has a number for "min_capacity_bytes"`:                                      {figure.Options{}, []string{none}},
		`capacity: metric "ns_per_op": want one of bytes`:                                             {figure.Options{Metric: "ns_per_op"}, []string{a}},
		`waste: metric "ns_per_op": want one of reservation_waste, external`:                          {figure.Options{Kind: "waste", Metric: "ns_per_op"}, []string{a}},
		"budget: want results on at least two traces":                                                 {figure.Options{Kind: "budget"}, []string{a}},
		`memory: metric "x": want requested, allocated or reserved`:                                   {figure.Options{Metric: "x"}, []string{r}},
		"memory: the result holds no course of its run":                                               {figure.Options{}, []string{noCourse}},
	} {
		var sources []*figure.Source
		for i, text := range c.texts {
			sources = append(sources, read(t, fmt.Sprintf("%d.json", i), text))
		}
		_, err := figure.Draw(sources, c.o)
		assert.ErrorContains(t, err, want)
	}
	for text, want := range map[string]string{
		"":                                "a: byte 0: JSON ends in the middle",
		"hello\n1,2\n":                    "a: no result: want the JSON of a command, or CSV",
		`{"schema":"x"}`:                  `a: schema "x": want one of`,
		"trace,strategy,ns_per_op\nt,s,x": `a: line 2, "ns_per_op": "x" is no number`,
		"trace,strategy\nt":               "a: record on line 2: wrong number of fields",
		"trace,strategy,a,a\nt,s,1,2":     `a: the column "a" is there twice`,
		strings.Replace(r, `"event":5`, `"event":-5`, 1):  `a: "series", point 0: event -5 does not follow`,
		strings.Replace(r, `"event":5`, `"event":"x"`, 1): `a: json: cannot unmarshal string`,
	} {
		_, err := figure.Read("a", strings.NewReader(text))
		assert.ErrorContains(t, err, want, text)
	}
}

func TestLongAndHostileNamesAreShort(t *testing.T) {
	text, _ := compared(t, row("t", strings.Repeat("n", 1<<20), 1<<30, 2<<30), row("t", "\x1b[31m<b>", 1<<30, 3<<30))
	all := texts(svg(t, figure.Options{}, read(t, "a.json", text)))
	assert.Contains(t, all, strings.Repeat("n", 35)+"…")
	assert.Contains(t, all, "&#34;\\x1b[31m&lt;b&gt;&#34;")
}

// TestLargeMultiplesMakeTheAxisLogarithmic draws one strategy that needs far more than the others.
func TestLargeMultiplesMakeTheAxisLogarithmic(t *testing.T) {
	text, _ := compared(t, row("t", "a", 1<<20, 1<<20), row("u", "a", 1<<20, 3<<20), row("t", "b", 1<<20, 2000<<20), row("u", "b", 1<<20, 40<<20))
	for _, kind := range []string{"capacity", "budget"} {
		all := texts(svg(t, figure.Options{Kind: kind}, read(t, "a.json", text)))
		for _, want := range []string{"1", "10", "100", "1000"} {
			assert.Contains(t, all, want, kind)
		}
		assert.NotContains(t, all, "500", kind)
	}
}
