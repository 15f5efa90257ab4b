package chart_test

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
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/chart"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/offline"
	"github.com/vramyard/vramyard/harness/study/tune"
)

// read reads a source that must be right.
func read(t *testing.T, name, text string) *chart.Source {
	t.Helper()
	s, err := chart.Read(name, strings.NewReader(text), nil)
	require.NoError(t, err)
	return s
}

// svg draws sources and returns the file without its font.
func svg(t *testing.T, o chart.Options, sources ...*chart.Source) string {
	t.Helper()
	c, err := chart.Draw(sources, o)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, c.Write(&b, chart.SVG, chart.Page{Width: chart.TwoColumns, Font: 8, Linked: true}))
	return b.String()
}

// texts returns the texts of a figure, in file order.
func texts(svg string) (all []string) {
	for _, m := range regexp.MustCompile(`<text[^>]*>([^<]*)</text>`).FindAllStringSubmatch(svg, -1) {
		all = append(all, m[1])
	}
	return all
}

// row returns a run of a comparison.
func row(trace, strategy string, bound, need device.Size) compare.Run {
	r := compare.Run{Figures: compare.Figures{Trace: trace, TraceSHA256: "ab", Strategy: strategy,
		Config: json.RawMessage("{}"), LowerBound: bound, Waste: 0.25, External: 0.5, Internal: 0.125,
		PeakReserved: 2 * bound}}
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
	require.NoError(t, report.CompareTable(r).WriteCSV(&b))
	return string(text), b.String()
}

func TestCapacityIsSortedAndSaysWhatDoesNotComplete(t *testing.T) {
	text, csv := compared(t, row("t", "worse", 10<<30, 15<<30), row("t", "never", 10<<30, 0),
		row("t", "best", 10<<30, 11<<30))
	drawn := svg(t, chart.Options{}, read(t, "a.json", text))
	names := slices.DeleteFunc(texts(drawn), func(s string) bool {
		return !slices.Contains([]string{"worse", "never", "best"}, s)
	})
	assert.Equal(t, []string{"never", "worse", "best"}, names, "rows are written from the bottom")
	all := texts(drawn)
	for _, want := range []string{"1.100×", "1.500×", "none", "lower bound, 10.00 GiB", "minimum capacity (GiB)"} {
		assert.Contains(t, all, want)
	}
	assert.Equal(t, drawn, svg(t, chart.Options{}, read(t, "a.csv", csv)), "CSV draws the same")
}

func TestSeveralTracesAreInMultiplesOfTheirBounds(t *testing.T) {
	text, _ := compared(t, row("t", "a", 1<<30, 2<<30), row("u", "a", 1<<40, 1<<40), row("t", "b", 1<<30, 1<<30),
		row("u", "b", 1<<40, 0))
	all := texts(svg(t, chart.Options{}, read(t, "a.json", text)))
	for _, want := range []string{"t", "u", "1 none", "minimum capacity / lower bound"} {
		assert.Contains(t, all, want)
	}
	assert.Contains(t, texts(svg(t, chart.Options{Trace: "u"}, read(t, "a.json", text))), "lower bound, 1.00 TiB")
	budget := svg(t, chart.Options{Kind: "budget"}, read(t, "a.json", text))
	assert.Contains(t, texts(budget), "traces that complete (%)")
}

func TestWasteShowsThreeShares(t *testing.T) {
	text, _ := compared(t, row("t", "a", 1<<30, 2<<30), row("t", "b", 1<<30, 2<<30))
	all := texts(svg(t, chart.Options{Kind: "waste"}, read(t, "a.json", text)))
	for _, want := range []string{"reservation waste", "external fragmentation, peak", "internal fragmentation, at peak",
		"share (%)"} {
		assert.Contains(t, all, want)
	}
	one := texts(svg(t, chart.Options{Kind: "waste", Metric: "external_fragmentation_peak"}, read(t, "a.json", text)))
	assert.Contains(t, one, "external fragmentation peak (%)")
}

// replayed returns the result of a replay with a series.
func replayed(t *testing.T, strategy string, points []replay.Point) string {
	t.Helper()
	text, err := json.Marshal(replay.Result{Schema: replay.Schema, Strategy: strategy, Trace: "t", TraceSHA256: "ab",
		LowerBound: 1 << 30,
		Config:     json.RawMessage("{}"), Series: &replay.Series{Stride: 1, Points: points}})
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
		drawn := svg(t, chart.Options{Metric: "reserved"}, read(t, "a.json", replayed(t, "a", points)))
		assert.InDelta(t, 5000.0/5120, highest(t, drawn), 0.005, "seed %d, %d: the line reaches the peak, the "+
			"axis 5 KiB", seed, n)
	}
}

// highest returns the highest point of the blue line of a figure as a share of its y axis.
func highest(t *testing.T, svg string) float64 {
	t.Helper()
	line := 0.0
	for _, path := range regexp.MustCompile(`<path d="([^"]*)" style="fill:none;stroke:`+
		figureHue(0)).FindAllStringSubmatch(svg, -1) {
		if strings.Count(path[1], "L") == 1 {
			continue // of the legend
		}
		for _, y := range regexp.MustCompile(`,([0-9.]+)`).FindAllStringSubmatch(path[1], -1) {
			line = max(line, number(t, y[1]))
		}
	}
	axis := regexp.MustCompile(
		`<path d="M([0-9.]+),([0-9.]+)L([0-9.]+),([0-9.]+)" style="fill:none;stroke:#E4E4E4`).FindStringSubmatch(svg)
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
	points := []replay.Point{{Event: 0, Reserved: 1 << 30}, {Event: 1, Reserved: 1 << 30, OOMs: 2},
		{Event: 2, Reserved: 1 << 30, OOMs: 1}, {Event: 3, Reserved: 1 << 30}}
	failing := read(t, "a.json", replayed(t, "a", points))
	assert.Contains(t, texts(svg(t, chart.Options{}, failing)), "memory runs out")
	points[1].OOMs, points[2].OOMs = 0, 0
	assert.NotContains(t, texts(svg(t, chart.Options{}, read(t, "a.json", replayed(t, "a", points)))), "memory runs out")
}

func TestRunsOfOneNameAreDistinguished(t *testing.T) {
	points := []replay.Point{{Event: 5, Reserved: 1 << 30}}
	all := texts(svg(t, chart.Options{}, read(t, "x/small.json", replayed(t, "a", points)),
		read(t, "large.json.gz", replayed(t, "a", points))))
	assert.Contains(t, all, "a (large)")
	assert.Contains(t, all, "a")
}

func TestTimesAreOverLiveBlocks(t *testing.T) {
	var runs []string
	for _, strategy := range []string{"a", "b"} {
		for _, live := range []int{100000, 1000} {
			runs = append(runs, fmt.Sprintf(
				`{"strategy":%q,"config":{},"workload":"w1","parameters":{"live":%d},"workload_hash":"0","live":%d,"ns_per_pair_median":%d}`,
				strategy, live, live, live/10+len(runs)))
		}
	}
	text := `{"schema":"vramyard-bench/1","runs":[` + strings.Join(runs, ",") + `]}`
	all := texts(svg(t, chart.Options{}, read(t, "b.json", text)))
	for _, want := range []string{"live blocks (w1)", "time of a pair, median (ns)", "1e3", "1e5", "a", "b"} {
		assert.Contains(t, all, want)
	}
}

// packed returns the result of an offline search.
func packed(t *testing.T, trace string, lower, best device.Size) string {
	t.Helper()
	text, err := json.Marshal(offline.Report{Schema: offline.Schema,
		Traces: []*offline.Summary{{Trace: trace, LowerBound: lower,
			Greedy: []offline.Placement{{Method: "greedy by size", Height: 2 * best}},
			Best:   offline.Placement{Method: "repacked", Height: best}}}})
	require.NoError(t, err)
	return string(text)
}

func TestOfflinePlacementsAreDrawnBesideStrategies(t *testing.T) {
	text, _ := compared(t, row("t", "a", 1<<30, 3<<30))
	strategies := read(t, "a.json", text)
	for _, sources := range [][]*chart.Source{{read(t, "o.json", packed(t, "t", 1<<30, 1<<30))},
		{strategies, read(t, "o.json", packed(t, "t", 1<<30, 1<<30))}} {
		all := texts(svg(t, chart.Options{}, sources...))
		for _, want := range []string{"offline: best", "1.000×", "offline: by size", "2.000×"} {
			assert.Contains(t, all, want)
		}
		assert.Equal(t, len(sources) == 2, slices.Contains(all, "3.000×"))
	}
	_, err := chart.Draw([]*chart.Source{strategies, read(t, "o.json", packed(t, "t", 2<<30, 2<<30))}, chart.Options{})
	assert.ErrorContains(t, err, "capacity: the runs on t have lower bounds of 2147483648 and 1073741824 bytes")
	_, err = chart.Draw([]*chart.Source{strategies, read(t, "o.json", packed(t, "t", 1<<30, 1<<30))},
		chart.Options{Kind: "waste"})
	assert.ErrorContains(t, err, "--kind waste: the results are of compare and offline: want capacity or budget")
}

// searched returns the result of a search over settings, each of a time and a capacity in MiB on
// one trace.
func searched(t *testing.T, strategy string, points ...[2]float64) string {
	t.Helper()
	r := tune.Result{Schema: tune.Schema, Strategy: strategy}
	for _, p := range points {
		run := row("t", strategy, 1<<20, device.Size(p[1]*(1<<20)))
		run.NsPerOp = p[0]
		r.Searched = append(r.Searched, tune.Point{Config: json.RawMessage("{}"), Runs: []compare.Run{run}})
	}
	r.Preset = r.Searched[0]
	for _, p := range []*tune.Point{&r.Smallest, &r.Fastest} {
		p.Config = json.RawMessage("{}")
	}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	return string(text)
}

func TestTradeoffJoinsTheParetoFront(t *testing.T) {
	text := searched(t, "a", [2]float64{100, 4}, [2]float64{200, 2}, [2]float64{300, 3}, [2]float64{400, 1},
		[2]float64{50, 0})
	drawn := svg(t, chart.Options{}, read(t, "a.json", text))
	for _, want := range []string{"a, Pareto front", "preset", "settings tried",
		"1 not drawn: they do not complete every trace", "time of an operation (ns)"} {
		assert.Contains(t, texts(drawn), want)
	}
	front := regexp.MustCompile(`<path d="(M[^"]*)" style="fill:none;stroke:`+figureHue(0)).FindAllStringSubmatch(drawn,
		-1)
	require.NotEmpty(t, front)
	assert.Equal(t, 4, strings.Count(front[0][1], "L"), "three points, with a step between any two: %s", front[0][1])
	two := texts(svg(t, chart.Options{}, read(t, "a.json", text), read(t, "b.json", searched(t, "b", [2]float64{60, 5}))))
	assert.Contains(t, two, "b, Pareto front")

	slow, quick := row("t", "slow", 1<<20, 1<<20), row("t", "quick", 1<<20, 3<<20)
	slow.NsPerOp, quick.NsPerOp = 9, 3
	both, csv := compared(t, slow, quick)
	fromJSON := svg(t, chart.Options{Kind: "tradeoff"}, read(t, "a.json", both))
	for _, want := range []string{"slow", "quick", "Pareto front"} {
		assert.Contains(t, texts(fromJSON), want)
	}
	assert.Equal(t, fromJSON, svg(t, chart.Options{Kind: "tradeoff"}, read(t, "a.csv", csv)))
	none, _ := compared(t, row("t", "a", 1<<20, 1<<20))
	_, err := chart.Draw([]*chart.Source{read(t, "a.json", none)}, chart.Options{Kind: "tradeoff"})
	assert.ErrorContains(t, err, "tradeoff: no strategy or setting completes every trace and has a time")
}

// TestFailureMarksDoNotOverlap draws a run in which every other request fails.
func TestFailureMarksDoNotOverlap(t *testing.T) {
	var points []replay.Point
	for i := range 2000 {
		points = append(points, replay.Point{Event: i, Reserved: 1 << 30, OOMs: uint32(i % 2)})
	}
	drawn := svg(t, chart.Options{}, read(t, "a.json", replayed(t, "a", points)))
	strokes := strings.Count(drawn, "stroke:#C00000")
	assert.Greater(t, strokes, 40)
	assert.Less(t, strokes, 51)
}

// TestRequestedCurveComesFromACompleteRun draws a run that refuses all, first.
func TestRequestedCurveComesFromACompleteRun(t *testing.T) {
	run := func(requested device.Size, ooms uint32) *chart.Source {
		return read(t, "a.json", replayed(t, fmt.Sprint("s", ooms),
			[]replay.Point{{Event: 0, Requested: requested, OOMs: ooms}, {Event: 9, Requested: requested, OOMs: ooms}}))
	}
	line := regexp.MustCompile(`<path d="([^"]*)" style="fill:none;stroke:#404040`)
	one := line.FindAllStringSubmatch(svg(t, chart.Options{}, run(0, 1), run(1<<30, 0)), -1)
	other := line.FindAllStringSubmatch(svg(t, chart.Options{}, run(1<<30, 0), run(0, 1)), -1)
	assert.Equal(t, other, one)
	require.NotEmpty(t, one)
}

// TestLongNamesStayDistinct draws settings whose names differ only where they are cut.
func TestLongNamesStayDistinct(t *testing.T) {
	var runs []string
	for _, x := range "xyz" {
		label := strings.Repeat("a", 30) + string(x) + strings.Repeat("b", 30)
		runs = append(runs, fmt.Sprintf(
			`{"label":%q,"strategy":"s","trace":"t","lower_bound_bytes":1,"min_capacity_bytes":%d}`, label, 2+x))
	}
	all := texts(svg(t, chart.Options{},
		read(t, "a.json", `{"schema":"vramyard-whatif/1","runs":[`+strings.Join(runs, ",")+`]}`)))
	for _, x := range "xyz" {
		assert.Contains(t, all, strings.Repeat("a", 10)+"…aaaa"+string(x)+strings.Repeat("b", 19)+"…")
	}
}

// TestLongTraceNamesStayDistinct draws traces whose names are the same where long ones are cut.
func TestLongTraceNamesStayDistinct(t *testing.T) {
	var r compare.Report
	r.Schema = compare.Schema
	for _, name := range []string{"monday", "tuesday", "tuesday again"} {
		trace := strings.Repeat("runs of the week, ", 3) + name + strings.Repeat(" until the evening", 3)
		r.Runs = append(r.Runs, row(trace, "bfc", 1<<30, 2<<30), row(trace, "tlsf", 1<<30, 3<<30))
	}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	all := strings.Join(texts(svg(t, chart.Options{}, read(t, "a.json", string(text)))), "\n")
	for _, want := range []string{"ek, monday until", "ek, tuesday until", "ek, tuesday again"} {
		assert.Contains(t, all, want)
	}
}

// TestSeriesAreBounded gives figures more than a page can show, which must not take the memory of a
// machine.
func TestSeriesAreBounded(t *testing.T) {
	list := func(n int, run string) *chart.Source {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ","+run, i)
		}
		return read(t, "a.json", `{"schema":"vramyard-compare/1","runs":[`+b.String()[1:]+`]}`)
	}
	const byStrategy, byTrace = `{"strategy":"s%d","trace":"t","min_capacity_bytes":5}`,
		`{"strategy":"s","trace":"t%d","min_capacity_bytes":5,"lower_bound_bytes":5}`
	for _, c := range []struct {
		run, want string
		o         chart.Options
	}{
		{byStrategy, "the results have 300 strategies or settings: want at most 256 in a figure; choose by --strategies",
			chart.Options{}},
		{byTrace, "the results have 300 traces: want at most 256 in a figure; choose by --trace", chart.Options{}},
		{byStrategy, "", chart.Options{Strategies: []string{"s7", "s9"}}},
		{byTrace, "", chart.Options{Trace: "t7"}},
	} {
		_, err := chart.Draw([]*chart.Source{list(300, c.run)}, c.o)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, c.want)
	}
	many := strings.Repeat("null,", 2_000_000)
	_, err := chart.Read("a.json", strings.NewReader(`{"schema":"vramyard-tune/1","preset":{"runs":[`+many+`null]}}`), nil)
	require.EqualError(t, err, "a.json: 2000001 values: want at most 2000000")
}

// TestTheCardIsALine draws minimum capacities with the capacity of the card.
func TestTheCardIsALine(t *testing.T) {
	const runs = `"runs":[{"label":"a","strategy":"a","trace":"t","min_capacity_bytes":%d},{"label":"b","strategy":"b","trace":"t","min_capacity_bytes":5}]}`
	of := func(head string, n uint64) []string {
		return texts(svg(t, chart.Options{}, read(t, "a.json", fmt.Sprintf("{"+head+","+runs, n))))
	}
	assert.Contains(t, of(`"schema":"vramyard-whatif/1","card_bytes":17179869184`, 20<<30), "card, 16.00 GiB")
	assert.Contains(t, of(`"schema":"vramyard-whatif/1","card_bytes":17179869184`, 12<<30), "card, 16.00 GiB")
	assert.Contains(t, of(`"schema":"vramyard-whatif/1","card_bytes":17179869184`, 1<<30),
		"card, 16.00 GiB, is far to the right")
	assert.NotContains(t, strings.Join(of(`"schema":"vramyard-whatif/1","card_bytes":0`, 12<<30), " "), "card")
	assert.Contains(t, of(`"schema":"vramyard-compare/1","device":{"capacity":17179869184}`, 12<<30), "card, 16.00 GiB")
	assert.NotContains(t, strings.Join(of(`"schema":"vramyard-compare/1","device":{"capacity":0}`, 12<<30), " "), "card")
	recorded :=
		`{"schema":"vramyard-compare/1","runs":[{"strategy":"a","trace":"t","min_capacity_bytes":8589934592,"recorded_capacity_bytes":8589934592}]}`
	assert.Contains(t, texts(svg(t, chart.Options{}, read(t, "a.json", recorded))), "card, 8.00 GiB")
	chosen := read(t, "b.json", strings.Replace(recorded, `"runs"`, `"device":{"capacity":17179869184},"runs"`, 1))
	other := read(t, "c.json", strings.Replace(recorded, `"runs"`, `"device":{"capacity":0},"runs"`, 1))
	for _, sources := range [][]*chart.Source{{chosen, other}, {other, chosen}} {
		assert.NotContains(t, strings.Join(texts(svg(t, chart.Options{}, sources...)), " "), "card",
			"one result is of its own card")
	}
}

// TestBenchmarksHaveErrorBars counts the strokes of a figure with and without the rounds.
func TestBenchmarksHaveErrorBars(t *testing.T) {
	draw := func(rounds string) string {
		run := `{"strategy":"a","workload":"w1","live":%d,"ns_per_pair_median":50` + rounds + `}`
		return svg(t, chart.Options{},
			read(t, "a.json", fmt.Sprintf(`{"schema":"vramyard-bench/1","runs":[`+run+`,`+run+`]}`, 10, 100)))
	}
	plain, barred := draw(""), draw(`,"ns_per_pair_min":40,"ns_per_pair_max":70`)
	assert.NotContains(t, texts(plain), "bars: shortest and longest round")
	assert.Contains(t, texts(barred), "bars: shortest and longest round")
	// Two bars, each of a stroke and two caps. The axis reaches to the longest round, so it has
	// more ticks.
	assert.GreaterOrEqual(t, strings.Count(barred, "<path"), strings.Count(plain, "<path")+2*3)
	assert.NotContains(t, texts(draw(`,"ns_per_pair_min":50,"ns_per_pair_max":50`)),
		"bars: shortest and longest round")
}

// TestSettingsHaveTheColourOfTheirStrategy draws a setting, which has no colour of its own.
func TestSettingsHaveTheColourOfTheirStrategy(t *testing.T) {
	text := `{"schema":"vramyard-whatif/1","runs":[{"label":"other","strategy":"o","trace":"t","min_capacity_bytes":5},` +
		`{"label":"s x:1","strategy":"s","trace":"t","min_capacity_bytes":5}]}`
	drawn := svg(t, chart.Options{Number: func(name string) int { return len(name) * 2 }}, read(t, "a.json", text))
	assert.Equal(t, 2, strings.Count(drawn, "fill:"+figureHue(2)), "the third colour, of both strategies")
}

func TestEveryNumberOfStrategiesIsDrawn(t *testing.T) {
	for _, n := range []int{1, 2, 7, 16, 40} {
		var runs []compare.Run
		for i := range n {
			runs = append(runs, row("t", fmt.Sprintf("strategy:%d", i), 1<<30, 1<<30+device.Size(i)<<20))
		}
		text, _ := compared(t, runs...)
		for _, k := range []string{"capacity", "waste"} {
			all := texts(svg(t, chart.Options{Kind: k}, read(t, "a.json", text)))
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
		o     chart.Options
		texts []string
	}{
		`--kind "pie": want memory, capacity, waste, budget, tradeoff, time or overhead`: {
			chart.Options{Kind: "pie"}, []string{a}},
		"--kind memory: 0.json is a result of compare: want capacity, waste, budget or tradeoff": {
			chart.Options{Kind: "memory"}, []string{a}},
		"the results are of compare and replay: no kind of figure combines them": {chart.Options{},
			[]string{a, r}},
		`--strategies "b": the results have a`: {
			chart.Options{Strategies: []string{"b"}}, []string{a}},
		`--trace "v": the results are on t, u`: {
			chart.Options{Trace: "v"}, []string{two}},
		"the results contain no run": {chart.Options{},
			[]string{empty}},
		`capacity: no run has a numeric "min_capacity_bytes"`: {chart.Options{},
			[]string{none}},
		`capacity: --metric "ns_per_op": want one of bytes`: {
			chart.Options{Metric: "ns_per_op"}, []string{a}},
		`waste: --metric "ns_per_op": want one of reservation_waste, external`: {
			chart.Options{Kind: "waste", Metric: "ns_per_op"}, []string{a}},
		"budget: want results on at least two traces": {
			chart.Options{Kind: "budget"}, []string{a}},
		`memory: --metric "x": want requested, allocated or reserved`: {
			chart.Options{Metric: "x"}, []string{r}},
		"memory: the result has no series of points over events": {chart.Options{},
			[]string{noCourse}},
	} {
		var sources []*chart.Source
		for i, text := range c.texts {
			sources = append(sources, read(t, fmt.Sprintf("%d.json", i), text))
		}
		_, err := chart.Draw(sources, c.o)
		assert.ErrorContains(t, err, want)
	}
	for text, want := range map[string]string{
		`{"schema":"vramyard-verify/1"}`: "a: results of verify cannot be drawn: " +
			"memory takes replay, capacity takes compare, whatif or offline, ",
		`{"schema":"vramyard-diff/1"}`:                                 "a: results of diff cannot be drawn",
		`{"schema":"vramyard-postmortem/1"}`:                           "a: results of replay --explain cannot be drawn",
		`{"schema":"vramyard-offline/1","traces":[null]}`:              `a: "traces": want objects`,
		`{"schema":"vramyard-offline/1","traces":[{"trace":""}]}`:      `a: "runs", run 0: want "strategy" and "trace"`,
		`{"schema":"vramyard-tune/1","evaluated_points":[{"runs":1}]}`: "a: json: cannot unmarshal number",
		"": "a: byte 0: JSON ends early",
		"hello\n1,2\n": "a: not a result: want --json output of replay, compare, whatif, tune, offline, " +
			"bench or remat, or --csv output of compare, whatif, bench or remat",
		`{"schema":"x"}`:                                  `a: schema "x": want the result of replay, compare, whatif, tune, offline, bench or remat`,
		"trace,strategy,ns_per_op\nt,s,x":                 `a: line 2, "ns_per_op": "x": want a number`,
		"trace,strategy\nt":                               "a: record on line 2: wrong number of fields",
		"trace,strategy,a,a\nt,s,1,2":                     `a: duplicate column "a"`,
		strings.Replace(r, `"event":5`, `"event":-5`, 1):  `a: "series", point 0: event -5 does not follow`,
		strings.Replace(r, `"event":5`, `"event":"x"`, 1): `a: json: cannot unmarshal string`,
	} {
		_, err := chart.Read("a", strings.NewReader(text), nil)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestLongAndHostileNamesAreShort(t *testing.T) {
	text, _ := compared(t, row("t", strings.Repeat("n", 1<<20), 1<<30, 2<<30), row("t", "\x1b[31m<b>", 1<<30, 3<<30))
	all := texts(svg(t, chart.Options{}, read(t, "a.json", text)))
	assert.Contains(t, all, strings.Repeat("n", 17)+"…"+strings.Repeat("n", 18))
	assert.Contains(t, all, "&#34;\\x1b[31m&lt;b&gt;&#34;")
}

// TestLargeMultiplesMakeTheAxisLogarithmic draws one strategy that needs far more than the others.
func TestLargeMultiplesMakeTheAxisLogarithmic(t *testing.T) {
	text, _ := compared(t, row("t", "a", 1<<20, 1<<20), row("u", "a", 1<<20, 3<<20), row("t", "b", 1<<20, 2000<<20),
		row("u", "b", 1<<20, 40<<20))
	for _, kind := range []string{"capacity", "budget"} {
		all := texts(svg(t, chart.Options{Kind: kind}, read(t, "a.json", text)))
		for _, want := range []string{"1", "10", "100", "1000"} {
			assert.Contains(t, all, want, kind)
		}
		assert.NotContains(t, all, "500", kind)
	}
}

// hue returns a colour of the palette as SVG files write it.
func figureHue(number int) string {
	c := chart.Light()[number]
	return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B)
}
