package main

import (
	"encoding/csv"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// helpers are what the tests of this file ask a page with: colours of pixels, and all texts that
// are drawn.
const helpers = `
	window.drawn = [];
	const fillText = CanvasRenderingContext2D.prototype.fillText;
	CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
		const m = this.getTransform();
		const at = {x: m.a * x + m.c * y + m.e, y: m.b * x + m.d * y + m.f}, w = this.measureText(text).width;
		const side = {left: 0, start: 0, center: 0.5, right: 1, end: 1}[this.textAlign], foot = {bottom: 1, top: 0}[this.textBaseline] ?? 0.5;
		const turned = Math.abs(m.b) > 0.5; // written upwards
		const left = turned ? at.x - 11 * foot : at.x - side * w, right = left + (turned ? 11 : w);
		drawn.push({canvas: this.canvas, text: String(text), ...at, turned, left, right});
		return fillText.call(this, text, x, y, ...rest);
	};
	window.hex = (d) => "#" + [...d].slice(0, 3).map((n) => n.toString(16).padStart(2, "0")).join("");
	window.near = (canvas, x, y, r, color, wide = r) => {
		const d = canvas.getContext("2d").getImageData(Math.round(x) - wide, Math.round(y) - r, 2 * wide + 1, 2 * r + 1).data;
		const want = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
		for (let i = 0; i < d.length; i += 4) if (want.every((c, k) => Math.abs(d[i + k] - c) < 24)) return true;
		return false;
	};
	window.textsOf = (canvas) => drawn.filter((t) => t.canvas === canvas);`

// The colours of three strategies and of the lower bound on white paper.
const (
	blue  = "#006bbd"
	paper = "#ffffff"
	held  = "#e6e9ee"
)

const mib = 1 << 20

// colorsOf returns the colour of each strategy of the page as the swatches of its legend show it.
func colorsOf(t *testing.T, p *tab) []string {
	t.Helper()
	return ask[[]string](t, p,
		`[...app.timeline.legend.querySelectorAll("tbody tr canvas")].map((c) => hex(c.getContext("2d").getImageData(3, Math.floor(c.height / 2), 1, 1).data))`)
}

// on reports whether a chart of the timeline has a colour at a value anywhere between an event and
// the next. Lines are dashed, and the lower bound, dashed too, lies on those that are as low: of 30
// pixels it may leave one of a line to be seen.
func on(t *testing.T, p *tab, chart int, event, value float64, color string) bool {
	t.Helper()
	return ask[bool](t, p, fmt.Sprintf(`(() => {
		const u = app.timeline.charts[%d].u, wide = Math.floor((u.valToPos(%g, "x", true) - u.bbox.left) / %[2]g / 2) - 3;
		return near(u.ctx.canvas, u.valToPos(%[2]g, "x", true), u.valToPos(%g, "y", true), 2, %q, wide);
	})()`, chart, event+0.5, value, color))
}

// figures returns a column of the table, in full, in the order of the runs.
func figures(t *testing.T, p *tab, column string) []float64 {
	t.Helper()
	return ask[[]float64](t, p, fmt.Sprintf(`app.trace.runs.map((run) => {
		const table = document.querySelector("#vy-tables table"), at = [...table.tHead.rows[0].cells].findIndex((c) => c.textContent === %q);
		return Number([...table.tBodies[0].rows].find((r) => r.cells[0].textContent.trim() === run.strategy).cells[at].dataset.v);
	})`, column))
}

// TestEveryValueOfALineIsAtItsEvent looks at every event of a trace whose sums follow from its
// text.
func TestEveryValueOfALineIsAtItsEvent(t *testing.T) {
	path := made(t, "compare", "--strategies", "bfc,buddy", "--capacity", "16MiB", traceFile(t, "small.trace", small))
	p := opened(t, path, desk, "", helpers)
	colors := colorsOf(t, p)
	require.Equal(t, []string{"bfc", "buddy"}, ask[[]string](t, p, `app.trace.runs.map((r) => r.strategy)`))
	require.Equal(t, blue, colors[0], "bfc is blue on every page")
	require.NotEqual(t, colors[0], colors[1])
	// In MiB, after each event. Block 2 is freed at event 5, but stream 7 still uses it: it is not
	// live any more.
	live := []float64{8, 12, 4, 6, 6, 2, 0}
	for _, run := range []int{0, 1} {
		do(t, p, fmt.Sprintf(`app.state.set({curves: ["requested"], hidden: [%d], cursor: null})`, 1-run))
		for event, n := range live {
			seen := n == 0 || on(t, p, 0, float64(event), n*mib, colors[run]) // at zero the axis covers it
			require.True(t, seen, "%s, requested after event %d", colors[run], event)
			require.False(t, on(t, p, 0, float64(event), (n+1.5)*mib, colors[run]), "%s, event %d: nothing above",
				colors[run], event)
		}
	}
	// Without a curve there is only the lower bound, a dashed line: what the trace has live.
	do(t, p, `app.state.set({curves: [], hidden: []})`)
	bound := ask[[]float64](t, p, `[...app.trace.bound]`)
	for event, n := range live {
		require.Equal(t, n*mib, bound[event], "the bound after event %d", event)
		dashed := ask[bool](t, p, fmt.Sprintf(`(() => {
			const u = app.timeline.memory.u, y = u.valToPos(%g, "y", true), color = getComputedStyle(document.documentElement).getPropertyValue("--text").trim();
			for (let x = %d + 0.2; x < %[2]d + 0.8; x += 0.01) if (near(u.ctx.canvas, u.valToPos(x, "x", true), y, 1, color)) return true;
			return false;
		})()`, n*mib, event))
		require.True(t, dashed, "the lower bound after event %d", event)
	}
	// What each holds at most stands in the table, which no picture has a part in.
	do(t, p, `app.state.set({curves: ["reserved"]})`)
	for run, peak := range figures(t, p, "peak reserved") {
		event := ask[float64](t, p, fmt.Sprintf(`app.trace.runs[%d].peaks.find((k) => k.what === "reserved").event`, run))
		require.True(t, on(t, p, 0, event, peak, colors[run]), "run %d reserves most at event %g", run, event)
	}
	// The two fragmentations and the largest free chunk of bfc, which has one region of 16 MiB: after
	// event 0 it has 8 MiB free in one piece; after event 2, 8 and 4 MiB.
	do(t, p, `app.state.set({hidden: [1]})`)
	require.True(t, on(t, p, 1, 0, 0, blue), "bfc rounds nothing here")
	require.True(t, on(t, p, 2, 2, 1-8.0/12, blue), "external fragmentation after event 2")
	require.True(t, on(t, p, 2, 0, 0, blue), "one free chunk is not scattered")
	require.True(t, on(t, p, 3, 0, 8*mib, blue), "largest free chunk after event 0")
	require.True(t, on(t, p, 3, 1, 4*mib, blue), "largest free chunk after event 1")
}

// TestCallsToTheDevice adds up the chart of calls and finds each call in it.
func TestCallsToTheDevice(t *testing.T) {
	path := made(t, "compare", "--strategies", "bfc,buddy,caching", "--device", "sim:24GiB",
		traceFile(t, "small.trace", small))
	p := opened(t, path, desk, "", helpers)
	colors := colorsOf(t, p)
	counted := figures(t, p, "device calls")
	require.Len(t, counted, 3)
	for i, name := range ask[[]string](t, p, `app.trace.runs.map((r) => r.strategy)`) {
		do(t, p, fmt.Sprintf(`app.state.set({calls: "all", hidden: [0, 1, 2].filter((i) => i !== %d)})`, i))
		values := ask[[]float64](t, p, `app.timeline.charts[4].u.data[1].slice(0, -1)`)
		sum := 0.0
		for event, n := range values {
			sum += n
			require.True(t, on(t, p, 4, float64(event), n, colors[i]), "%s has %g calls at event %d", name, n, event)
		}
		require.Equal(t, counted[i], sum, name)
		do(t, p, fmt.Sprintf(`app.state.set({calls: "%d"})`, i))
		kinds := ask[[]float64](t, p,
			`app.timeline.charts[4].u.data.slice(1).map((line) => line.slice(0, -1).reduce((a, b) => a + b, 0))`)
		sum = 0
		for _, n := range kinds {
			sum += n
		}
		require.Equal(t, counted[i], sum, "%s by kind", name)
	}
	do(t, p, `app.state.set({calls: "time", hidden: []})`)
	require.Contains(t, ask[[]string](t, p, `textsOf(app.timeline.charts[4].u.ctx.canvas).map((t) => t.text)`),
		"device time per event")

	// The cumulative sums end at the figures of the tables.
	do(t, p, `app.state.set({calls: "sum"})`)
	require.Equal(t, counted, ask[[]float64](t, p,
		`app.timeline.charts[4].u.data.slice(1).map((line) => line[line.length - 1])`))
	do(t, p, `app.state.set({calls: null})`)
	require.Equal(t, "all", ask[string](t, p, `document.querySelector("#vy-timeline figure select").value`),
		"lines of three strategies stay distinguishable")
}

// TestRectanglesEndWhereBlocksDo walks over the pixels of a map along an event and along an
// address.
func TestRectanglesEndWhereBlocksDo(t *testing.T) {
	path := made(t, "compare", "--strategies", "bfc", "--capacity", "16MiB", traceFile(t, "small.trace", small))
	p := opened(t, path, desk, "", helpers)
	// The rows and columns where the colour changes, but for the dark edges that blocks have.
	const changes = `(() => {
		const m = app.map.list[0], c = m.pixels, v = m.view(), g = c.getContext("2d"), rows = [], columns = [];
		const x = Math.floor((2.5 - v.x0) / (v.x1 - v.x0) * c.width), y = Math.round(c.height - (10 * 1048576 - v.y0) / (v.y1 - v.y0) * c.height);
		const down = g.getImageData(x, 0, 1, c.height).data, along = g.getImageData(0, y, c.width, 1).data;
		const at = (d, i) => hex(d.slice(4 * i, 4 * i + 3));
		for (let i = 1; i < c.height; i++) if (at(down, i) !== at(down, i - 1)) rows.push(i);
		for (let i = 1; i < c.width; i++) if (at(along, i) !== at(along, i - 1)) columns.push(i);
		return {Rows: rows, Columns: columns, W: c.width, H: c.height, Events: v.x1, Bytes: v.y1};
	})()`
	seen := ask[struct {
		Rows, Columns       []float64
		W, H, Events, Bytes float64
	}](t, p, changes)
	require.Equal(t, 16.0*mib, seen.Bytes)
	require.Equal(t, 7.0, seen.Events)
	row := func(bytes float64) float64 { return math.Round(seen.H - bytes/seen.Bytes*seen.H) }
	column := func(event float64) float64 { return math.Floor(event / seen.Events * seen.W) }
	// After event 2: block 2 from 8 to 12 MiB, with an edge of one pixel at its top; the rest is held.
	require.Equal(t, []float64{row(12 * mib), row(12*mib) + 1, row(8 * mib)}, seen.Rows)
	// At 10 MiB: from event 1 with an edge of one pixel to its end, with dots from the free on while
	// stream 7 uses it.
	require.Equal(t, column(1), seen.Columns[0])
	require.Equal(t, column(1)+1, seen.Columns[1])
	dies := ask[float64](t, p,
		`(() => { const r = app.map.list[0].tile.rects, i = r.id.indexOf(2); return Math.min(r.dies[i], 7); })()`)
	last := column(dies)
	if dies == 7 { // it lives to the edge of the picture
		last = seen.W
	}
	require.LessOrEqual(t, slices.Max(seen.Columns), last)
	// Its free is at event 5. From there it has dots, before it none.
	dots := ask[[]bool](t, p, `[[1.2, 4.8], [5.1, 6.8]].map(([from, to]) => {
		const m = app.map.list[0], c = m.pixels, g = c.getContext("2d"), v = m.view();
		const x = (e) => Math.ceil(e / v.x1 * c.width), y = (b) => Math.round(c.height - b * 1048576 / v.y1 * c.height);
		const d = g.getImageData(x(from), y(11.5), x(to) - x(from), y(8.5) - y(11.5)).data, seen = new Set();
		for (let i = 0; i < d.length; i += 4) seen.add(hex(d.slice(i, i + 3)));
		return seen.size > 1;
	})`)
	require.Equal(t, []bool{false,
		ask[bool](t, p,
			`(() => { const r = app.map.list[0].tile.rects, i = r.id.indexOf(2); return r.freed[i] < r.dies[i]; })()`)}, dots)
}

// TestStripesAreWhatRoundingAdded looks into a block of 5 MiB for which 8 were granted.
func TestStripesAreWhatRoundingAdded(t *testing.T) {
	path := made(t, "replay", "--strategy", "buddy:xdl", "--device", "sim:2GiB",
		traceFile(t, "r.trace", "# name r\na 1 5MiB tag=x\nmark here\nmark there\nf 1\n"))
	p := opened(t, path, desk, "", helpers)
	size := ask[[]float64](t, p, `(r => [r.y[0], r.size[0], r.requested[0]])(app.map.list[0].tile.rects)`)
	require.Equal(t, []float64{8 * mib, 5 * mib}, size[1:])
	do(t, p, fmt.Sprintf(`app.map.list[0].range(%g, %g)`, size[0], size[0]+8*mib))
	white := ask[[]bool](t, p, `[[0.2, 4.6], [5.4, 7.8]].map(([from, to]) => {
		const m = app.map.list[0], c = m.pixels, d = c.getContext("2d").getImageData(20, Math.ceil(c.height * (1 - to / 8)), 100, Math.floor(c.height * (to - from) / 8)).data;
		for (let i = 0; i < d.length; i += 4) if (hex(d.slice(i, i + 3)) === "#ffffff") return true;
		return false;
	})`)
	require.Equal(t, []bool{false, true}, white)
}

// TestFailuresAreShownWhereTheyAre has three refused requests, of which the second strategy grants
// all.
func TestFailuresAreShownWhereTheyAre(t *testing.T) {
	const trace = "# name oom\na 1 8MiB\na 2 20MiB\na 3 4MiB\na 4 20MiB\nf 1\na 5 20MiB\nf 3\n"
	path := made(t, "compare", "--strategies", "bfc,tlsf", "--capacity", "16MiB", traceFile(t, "oom.trace", trace))
	p := opened(t, path, desk, "", helpers)
	runs := ask[[]string](t, p, `app.trace.runs.map((r) => r.strategy)`)
	colors := colorsOf(t, p)
	rug := ask[[][]bool](t, p, fmt.Sprintf(`app.timeline.failing().map((run, row, all) => {
		const u = app.timeline.memory.u, y = u.bbox.top - (2 + 6 * (all.length - row)) + 2;
		return [0, 1, 2, 3, 4, 5, 6].map((e) => near(u.ctx.canvas, u.valToPos(e, "x", true), y, 1, [%q, %q][run.index]));
	})`, colors[0], colors[1]))
	require.Len(t, rug, len(runs), "16 MiB are too few for 20")
	for i := range rug {
		require.Equal(t, []bool{false, true, false, true, false, true, false}, rug[i], runs[i])
	}
	require.Equal(t, []string{"3", "3"},
		ask[[]string](t, p,
			`[...app.timeline.legend.querySelectorAll("tbody tr")].slice(0, 2).map((r) => r.cells[r.cells.length - 1].textContent)`))
	events := ask[[]string](t, p,
		`[...document.querySelectorAll("#vy-failures details:first-of-type tbody button")].map((b) => b.textContent)`)
	require.Equal(t, []string{"1", "3", "5"}, events)
	// The buttons go where they say: to the failure, to the first of all, to the peak, to the end.
	do(t, p, `document.querySelectorAll("#vy-failures details:first-of-type tbody button")[1].click()`)
	require.Equal(t, 3, ask[int](t, p, `app.state.event`))
	for _, button := range [][2]string{{"first failure", "1"}, {"peak requested", "2"}, {"end", "6"}} {
		label, event := button[0], button[1]
		do(t, p,
			fmt.Sprintf(
				`[...document.querySelectorAll("#vy-instant .vy-switch button")].find((b) => b.textContent.split(", ").includes(%q)).click()`, label))
		require.Contains(t, ask[string](t, p, `app.instant.note.textContent`), "after event "+event+":", label)
		require.Equal(t, event, ask[string](t, p, `document.querySelector("#vy-instant input[type=number]").value`), label)
		require.Equal(t, event, ask[string](t, p, `String(app.state.cursor)`), label)
	}
	do(t, p,
		`const n = document.querySelector("#vy-instant input[type=number]"); n.value = "4"; n.dispatchEvent(new Event("change"))`)
	require.Contains(t, ask[string](t, p, `app.instant.note.textContent`), "after event 4:")
	do(t, p, `[...document.querySelectorAll("#vy-instant button")].find((b) => b.textContent === "›").click()`)
	require.Contains(t, ask[string](t, p, `app.instant.note.textContent`), "after event 5:")
}

// TestAnInstantIsDrawnByAddress looks at the chunks of a region, and at the same instant rebuilt
// from the map.
func TestAnInstantIsDrawnByAddress(t *testing.T) {
	path := made(t, "compare", "--strategies", "bfc", "--capacity", "16MiB", traceFile(t, "small.trace", small))
	p := opened(t, path, desk, "", helpers)
	for event, want := range [][]string{ // in the rows of 4, 10 and 14 MiB
		{"#88ccee", paper, paper}, {"#88ccee", "#cc6677", paper}, {paper, "#cc6677", paper},
	} {
		do(t, p, fmt.Sprintf(`app.instant.go(%d)`, event))
		got := ask[[]string](t, p, `[4.5, 10.5, 14.5].map((at) => {
			const { instant } = app, piece = instant.layout.pieces.find((q) => { const a = at * 1048576 + instant.heap.regions[0].addr; return q.addr <= a && a < q.addr + q.size; });
			const x = 112 + (piece.from + at * 1048576 + instant.heap.regions[0].addr - piece.addr) * instant.scale, y = piece.row * 22 + 3 + 4;
			return hex(instant.canvas.getContext("2d").getImageData(Math.round(x), y, 1, 1).data);
		})`)
		require.Equal(t, want, got, "after event %d", event)
	}
	require.Equal(t, "rebuilt", ask[string](t, p, `app.instant.heap.how`), "event 2 has no recorded snapshot")
}

// TestEveryAxisHasWordsAndUnits reads what is drawn at the axes of every chart.
func TestEveryAxisHasWordsAndUnits(t *testing.T) {
	path := made(t, "compare", "--strategies", "bfc,caching", "meta_resnet50_b256")
	p := opened(t, path, desk, "", helpers)
	texts := func(of string) []string { return ask[[]string](t, p, `textsOf(`+of+`).map((t) => t.text)`) }
	size := regexp.MustCompile(`^[\d.]+ (B|KiB|MiB|GiB)$`)
	share := regexp.MustCompile(`^\d+ %$`)
	number := regexp.MustCompile(`^[\d.\x{202f}]+$`)
	duration := regexp.MustCompile(`^[\d.]+ (ns|µs|ms|s)$`)
	for _, c := range []struct {
		canvas, x, y string
		marks        *regexp.Regexp
	}{
		{`app.timeline.charts[0].u.ctx.canvas`, "event", "memory", size},
		{`app.timeline.charts[1].u.ctx.canvas`, "event", "share", share},
		{`app.timeline.charts[2].u.ctx.canvas`, "event", "share", share},
		{`app.timeline.charts[3].u.ctx.canvas`, "event", "memory", size},
		{`app.timeline.charts[4].u.ctx.canvas`, "event", "calls", number},
		{`app.map.list[0].frame`, "event", "reserved address space", size},
		{`app.map.list[1].frame`, "event", "reserved address space", size},
		{`app.latency.plots[0].ctx.canvas`, "latency of a call, logarithmic", "share of calls", duration},
		{`app.latency.plots[1].ctx.canvas`, "latency of a call, logarithmic", "share of calls", share},
	} {
		all := texts(c.canvas)
		require.Contains(t, all, c.x, c.canvas)
		require.True(t, slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, c.y) }), "%s: %q among %q",
			c.canvas, c.y, all)
		require.True(t, slices.ContainsFunc(all, c.marks.MatchString), "%s: %v among %q", c.canvas, c.marks, all)
	}
	// A mark of the axis stands where its value is.
	off := ask[[]float64](t, p, `[0, 3].map((i) => {
		const u = app.timeline.charts[i].u, k = {KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30};
		return Math.max(...textsOf(u.ctx.canvas).filter((t) => /^[\d.]+ [KMG]iB$/.test(t.text) && t.x < u.bbox.left).map((t) => {
			const [n, unit] = t.text.split(" ");
			return Math.abs(u.valToPos(n * k[unit], "y", true) - t.y);
		}));
	})`)
	require.Less(t, slices.Max(off), 3.0)
	off = ask[[]float64](t, p, `app.map.list.map((m) => {
		const k = {KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30}, h = m.pixels.height;
		return Math.max(...textsOf(m.frame).filter((t) => /^[\d.]+ [KMG]iB$/.test(t.text)).map((t) => {
			const [n, unit] = t.text.split(" ");
			return Math.abs(4 + h - (n * k[unit] - m.y0) / (m.y1 - m.y0) * h - t.y);
		}));
	})`)
	require.Less(t, slices.Max(off), 10.0, "the uppermost is moved into the picture")
}

// TestALongRunIsSummedUp draws more events than a page has buckets and more blocks than it keeps:
// 50,000 of 100 MiB, one after the other above one of 1100 MiB, then 15,000 of 60 MiB, all of which
// are left out.
func TestALongRunIsSummedUp(t *testing.T) {
	const heavy, light = 50_000, 15_000
	var long strings.Builder
	long.WriteString("# name long\na 0 1100MiB\n")
	for i := range heavy + light {
		fmt.Fprintf(&long, "a %d %dMiB\nf %[1]d\n", i+1, []int{100, 60}[i/heavy])
	}
	long.WriteString("f 0\n")
	p := opened(t, made(t, "compare", "--strategies", "bfc,caching", "--capacity", "2GiB",
		traceFile(t, "long.trace", long.String())), desk, "", helpers)
	// The legend has the highest value of the events that it names.
	for _, highest := range []struct {
		event int
		want  string
	}{{1000, "1.17 GiB"}, {1001, "1.17 GiB"}, {2*heavy + 1000, "1.13 GiB"}} {
		do(t, p, fmt.Sprintf(`app.state.set({cursor: %d})`, highest.event))
		require.Equal(t, highest.want, legend(t, p)[0])
		require.Contains(t, ask[string](t, p, `app.timeline.legend.innerText`), "highest within 32 events")
	}
	// What is left out is a shade of what is held, where it lies and nowhere else.
	const at = 2*heavy + light
	tone := colorOnMap(t, p, at, 1180*mib)
	require.Equal(t, held, tone)
	shade := colorOnMap(t, p, at, 1130*mib)
	require.NotContains(t, []string{held, paper}, shade)
	require.Equal(t, shade, colorOnMap(t, p, at+light/2, 1130*mib))
	require.NotEqual(t, shade, colorOnMap(t, p, heavy, 1130*mib), "a block that is kept has its colour")

	// No text is cut off, and the words at the side do not stand on numbers.
	require.Contains(t, ask[[]string](t, p, `textsOf(app.timeline.memory.u.ctx.canvas).map((t) => t.text)`),
		"100\u202f000")
	require.Empty(t, ask[[]string](t, p,
		`drawn.filter((t) => t.canvas.isConnected && !t.turned && (t.left < -1 || t.right > t.canvas.width + 1)).map((t) => t.text)`))
	require.Empty(t, ask[[]string](t, p, `drawn.filter((t) => t.canvas.isConnected && t.turned).flatMap((side) =>
		textsOf(side.canvas).filter((t) => !t.turned && t.left < side.right && t.right > side.left && Math.abs(t.y - side.y) < 40).map((t) => side.text + " on " + t.text))`))
}

// TestHistogramsOfLatency compares bars and quantiles with the counts that the page holds. Each
// strategy has a page of its own: on a common page the curve of another one may cover the pixel
// that is looked at.
func TestHistogramsOfLatency(t *testing.T) {
	for _, strategy := range []string{"bfc", "caching"} {
		p := opened(t, made(t, "compare", "--strategies", strategy, "meta_resnet50_b256"), desk, "", helpers)
		color := colorsOf(t, p)[0]
		require.NotEmpty(t, color)
		for chart, what := range []string{"alloc", "free"} {
			h := ask[struct{ Upto, Count []float64 }](t, p,
				fmt.Sprintf(`(l => ({Upto: [...l.upto_ns], Count: [...l.count]}))(app.trace.runs[0].latency.%s)`, what))
			all, bins := 0.0, map[float64]float64{}
			for i, ns := range h.Upto {
				all += h.Count[i]
				bins[math.Floor(4*math.Log2(max(ns, 1)))] += h.Count[i]
			}
			most, top := 0.0, 0.0
			for k, n := range bins {
				if n > top {
					most, top = k, n
				}
			}
			there := ask[bool](t, p, fmt.Sprintf(`(() => {
				const u = app.latency.plots[%d], x = (%g + 0.5) / 4 * Math.log10(2);
				return near(u.ctx.canvas, u.valToPos(x, "x", true), u.valToPos(%g, "y", true), 2, %q);
			})()`, chart, most, top/all, color))
			require.True(t, there, "%s of %s: %.3f of the calls take about %.0f ns", what, strategy, top/all, math.Exp2(most/4))
			// The table beside it: calls, and the latency that half of them do not exceed.
			row := ask[[]string](t, p, fmt.Sprintf(
				`[...app.latency.table.querySelectorAll("tbody tr")].filter((r) => r.cells[0].textContent === app.trace.runs[0].strategy && r.cells[1].textContent === %q).map((r) => [...r.cells].map((c) => c.textContent))[0]`, what))
			require.Equal(t, fmt.Sprint(all), strings.ReplaceAll(row[2], "\u202f", ""))
			seen, median := 0.0, 0.0
			for i, n := range h.Count {
				if seen += n; seen >= all/2 {
					median = h.Upto[i]
					break
				}
			}
			if median < 1000 {
				require.Equal(t, fmt.Sprintf("%.0f ns", median), row[3])
			}
		}
	}
}

// TestTablesAreSortedAndCopied sorts by words and by values, both ways, and reads what is copied.
func TestTablesAreSortedAndCopied(t *testing.T) {
	p := visit(t, "compare", "--strategies", "tlsf,bfc,caching",
		traceFile(t, "small.trace", strings.Replace(small, "name small", `name a "b", c`, 1)))
	column := func(name string) []string {
		return ask[[]string](t, p, fmt.Sprintf(`(() => {
			const table = document.querySelector("#vy-tables table"), at = [...table.tHead.rows[0].cells].findIndex((c) => c.textContent === %q);
			return [...table.tBodies[0].rows].map((r) => r.cells[at].textContent.trim());
		})()`, name))
	}
	press := func(name string) {
		do(t, p,
			fmt.Sprintf(`[...document.querySelectorAll("#vy-tables thead button")].find((b) => b.textContent === %q).click()`,
				name))
	}
	press("strategy")
	require.Equal(t, []string{"bfc", "caching", "lower bound", "tlsf"}, column("strategy"))
	press("strategy")
	require.Equal(t, []string{"tlsf", "lower bound", "caching", "bfc"}, column("strategy"))
	press("peak reserved")
	require.Equal(t, "descending", func() string {
		press("peak reserved")
		return ask[string](t, p, `document.querySelector("#vy-tables th[aria-sort]").getAttribute("aria-sort")`)
	}())
	press("device calls")
	require.Equal(t, "—", column("device calls")[3], "what has no value comes last")
	press("device calls")
	require.Equal(t, "—", column("device calls")[3], "the other way round too")

	do(t, p,
		`window.copied = []; navigator.clipboard.writeText = (text) => { copied.push(text); return Promise.resolve(); };
		document.querySelector("#vy-tables .vy-copy").click()`)
	text := ask[[]string](t, p, `copied`)
	require.Len(t, text, 1)
	rows, err := csv.NewReader(strings.NewReader(text[0])).ReadAll()
	require.NoError(t, err)
	shown := ask[[][]string](t, p,
		`[...document.querySelector("#vy-tables table").rows].map((r) => [...r.cells].map((c) => c.dataset.v || c.textContent))`)
	require.Equal(t, shown, rows)
	at := slices.Index(rows[0], "peak reserved")
	full := slices.IndexFunc(rows, func(r []string) bool { return r[0] == "bfc" })
	require.Regexp(t, `^\d{8}$`, rows[full][at], "bytes in full, not rounded")

	// A page out of a file may be refused the clipboard: then a selected text is copied.
	do(t, p, `navigator.clipboard.writeText = () => Promise.reject(new Error("no")); window.copied = [];
		document.execCommand = (what) => { copied.push(what + " " + document.activeElement.value); return true; };
		document.querySelector("#vy-tables .vy-copy").click()`)
	require.NoError(t, p.wait(`copied.length > 0`))
	require.Equal(t, []string{"copy " + strings.ReplaceAll(text[0], "\r\n", "\n")}, ask[[]string](t, p, `copied`))
}

// TestTheBarShowsTheWhole looks at the course of memory in the bar above, and drags its window.
func TestTheBarShowsTheWhole(t *testing.T) {
	path := made(t, "compare", "--strategies", "bfc", "--capacity", "16MiB", traceFile(t, "small.trace", small))
	p := opened(t, path, desk, "", helpers)
	at := func(event, share float64, color string) bool {
		return ask[bool](t, p, fmt.Sprintf(`(() => {
			const c = app.overview.canvas, h = c.height;
			return near(c, %g / app.trace.events * c.width, h - 2 - %g * (h - 6), 1, %q);
		})()`, event, share, color))
	}
	require.True(t, at(3.5, 1, blue), "16 MiB are held all the time")
	require.True(t, at(1.5, 0.6, held), "the lower bound is filled: 12 of 16 MiB after event 1")
	require.False(t, at(2.5, 0.6, held), "4 of 16 after event 2")
	const pixel = `hex(app.overview.canvas.getContext("2d").getImageData(1.5 / 7 * app.overview.canvas.width, app.overview.canvas.height / 2, 1, 1).data)`
	require.Equal(t, held, ask[string](t, p, pixel))
	do(t, p, `app.state.window(2, 4)`)
	require.NotEqual(t, held, ask[string](t, p, pixel), "what is not in the window is pale")
}
