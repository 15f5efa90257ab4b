package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests of this file know what must be seen from a trace, from a replay or from a result, never
// from the page.

// ending is what a replay ends with.
type ending struct {
	Requested float64 `json:"final_requested_bytes"`
	Allocated float64 `json:"final_allocated_bytes"`
	Active    float64 `json:"final_active_bytes"`
	Reserved  float64 `json:"final_reserved_bytes"`
	Calls     float64 `json:"device_calls"`
	Each      map[string]struct {
		Done float64 `json:"done"`
	} `json:"device_calls_each"`
}

// endings replays the first event of a trace alone, the first two, and so on: what holds after each
// event.
func endings(t *testing.T, strategy, trace string) (list []ending) {
	t.Helper()
	dir := t.TempDir()
	lines := strings.SplitAfter(strings.TrimSpace(trace)+"\n", "\n")
	for n := 2; n < len(lines); n++ {
		file, result := filepath.Join(dir, "first.trace"), filepath.Join(dir, "first.json")
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines[:n], "")), 0o666))
		out, err := exec.Command(shared.program, "replay", "--strategy", strategy, "--device", "sim:24GiB", "--json", result,
			file).CombinedOutput()
		require.NoError(t, err, string(out))
		var e ending
		decoded(t, result, &e)
		list = append(list, e)
	}
	return list
}

// decoded reads a result.
func decoded(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, into))
}

// stretch is a part of the axis.
type stretch struct{ from, to float64 }

// lineHeights returns in how many columns a line has a colour over a part of the axis, in what rows
// of the chart the colour is besides, counted from the line, and what the widest hole in the line
// is. A hole has nothing at all: the lower bound, which is dashed as well, lies on the sums that
// are as low, and covers most of their dashes for up to 25 pixels. Both ends are left out by two
// pixels: there lines go up and down. all is the whole axis. Positions are computed here, not asked
// for: the axis is as wide as the plot.
const lineHeights = `(() => {
	const u = app.timeline.charts[%[1]d].u, at = (x) => u.bbox.left + (x - %[2]g) / (%[3]g - %[2]g) * u.bbox.width;
	const left = Math.ceil(at(%[4]g)) + 2, right = Math.floor(at(%[5]g)) - 2, top = u.bbox.top, w = right - left, h = u.bbox.height + 2;
	const d = u.ctx.getImageData(left, top, w, h).data, want = [1, 3, 5].map((i) => parseInt(%[6]q.slice(i, i + 2), 16));
	const row = Math.round(u.valToPos(%[7]g, "y", true)), rows = [0];
	let columns = 0, hole = 0, last = -1;
	for (let x = 0; x < w; x++) for (let y = 0; y < h; y++) {
		const at = 4 * (y * w + x);
		if (top + y === row && d[at + 3] > 128) {
			hole = Math.max(hole, x - last - 1);
			last = x;
		}
		if (d[at + 3] < 128 || !want.every((c, k) => Math.abs(d[at + k] - c) < 24)) continue;
		rows.push(top + y - row);
		if (top + y === row) columns++;
	}
	return [columns, Math.min(...rows), Math.max(...rows), Math.max(hole, w - last - 1)];
})()`

// requireLine fails unless a chart has a line of a colour all along a part of its axis at a value,
// dashed or not, and nothing of that colour above or below it but the figures that tell strategies
// apart, which reach 5 pixels.
func requireLine(t *testing.T, p *tab, chart int, all, at stretch, value float64, color, of string) {
	t.Helper()
	seen := ask[[]float64](t, p, fmt.Sprintf(lineHeights, chart, all.from, all.to, at.from, at.to, color, value))
	says := fmt.Sprintf("%s, %s, chart %d, from %g to %g: %v", of, color, chart, at.from, at.to, seen)
	require.GreaterOrEqual(t, seen[1], -5.0, says+": something is above")
	require.LessOrEqual(t, seen[2], 5.0, says+": something is below")
	if value > 0 { // at zero the axis covers it
		require.Positive(t, seen[0], says)
		require.LessOrEqual(t, seen[3], 5.0, says+": the longest dash leaves no wider hole")
	}
}

// course has calls at three events, a block that another stream uses on, two marks, and times that
// are not even.
const course = `# name course
a 1 12MiB tag=weights t=0
a 2 4MiB tag=activations t=2000000
use 2 7 t=4000000
f 2 t=8000000
mark warm t=12000000
mark up t=22000000
a 3 30MiB t=24000000
f 1 t=34000000
f 3 t=40000000
`

// TestCurvesMatchTheReplays holds each event of every curve to a replay that ends there, over
// events and over time.
func TestCurvesMatchTheReplays(t *testing.T) {
	truth := endings(t, "caching", course)
	p := opened(t, made(t, "replay", "--strategy", "caching", "--device", "sim:24GiB",
		traceFile(t, "course.trace", course)), desk, "", helpers)
	color := colorsOf(t, p)[0]
	times := []float64{0, 2e6, 4e6, 8e6, 12e6, 22e6, 24e6, 34e6, 40e6}
	require.Len(t, truth, len(times))
	for _, sum := range []struct {
		name string
		of   func(e ending) float64
	}{
		{"requested", func(e ending) float64 { return e.Requested }},
		{"allocated", func(e ending) float64 { return e.Allocated }},
		{"active", func(e ending) float64 { return e.Active }},
		{"reserved", func(e ending) float64 { return e.Reserved }},
	} {
		do(t, p, fmt.Sprintf(`app.state.set({curves: [%q], unit: "event"})`, sum.name))
		for k, e := range truth {
			requireLine(t, p, 0, stretch{0, 9}, stretch{float64(k), float64(k + 1)}, sum.of(e), color, sum.name)
		}
		do(t, p, `app.state.set({unit: "time"})`)
		for k, e := range truth[:8] { // the last ends where the axis does
			requireLine(t, p, 0, stretch{0, 40e6}, stretch{times[k], times[k+1]}, sum.of(e), color, sum.name)
		}
		requireMarks(t, p, 40e6, []float64{12e6, 22e6}, []float64{9e6, 14e6})
	}
	// Marks stand at their times, and numbers of the axis where they belong.
	const where = `textsOf(app.timeline.memory.u.ctx.canvas).filter((t) => %s).slice(-%d).map((t) => (t.x - app.timeline.memory.u.bbox.left) / app.timeline.memory.u.bbox.width * %g)`
	warm := ask[[]float64](t, p, fmt.Sprintf(where, `t.text === "warm"`, 1, 40e6))
	require.InDeltaSlice(t, []float64{12e6}, warm, 0.05e6)
	require.InDeltaSlice(t, []float64{10, 20, 30},
		ask[[]float64](t, p, fmt.Sprintf(where, `/^[123]0 ms$/.test(t.text)`, 3, 40.0)), 0.05)
	// The first block is 12 MiB high and there from the first event to its free, at 34 ms; before
	// that, nothing.
	right := ask[float64](t, p, `(() => {
		const m = app.map.list[0], c = m.pixels, w = c.width, d = c.getContext("2d").getImageData(0, Math.round(c.height * (1 - 6 * 1048576 / m.y1)), w, 1).data;
		let last = 0;
		for (let x = 0; x < w; x++) if (hex(d.slice(4 * x, 4 * x + 3)) === hex(d.slice(40, 43))) last = x;
		return (last + 1) / w;
	})()`)
	require.InDelta(t, 34.0/40, right, 0.005)

	// The legend says what the replay says at the cursor.
	do(t, p, `app.state.set({unit: "event", curves: ["reserved"]})`)
	for k, e := range truth {
		do(t, p, fmt.Sprintf(`app.state.set({cursor: %d})`, k))
		require.Equal(t, []string{said(e.Requested), said(e.Allocated), said(e.Active), said(e.Reserved)}, legend(t, p),
			"event %d", k)
	}

	// Calls to the device, all and by kind.
	before := 0.0
	for k, e := range truth {
		requireLine(t, p, 4, stretch{0, 9}, stretch{float64(k), float64(k + 1)}, e.Calls-before, color, "calls")
		before = e.Calls
	}
	do(t, p, `app.state.set({calls: "0"})`)
	byKind := ask[map[string][]float64](t, p,
		`Object.fromEntries(app.timeline.charts[4].lines.map((l) => [l.kind, app.timeline.charts[4].u.data[l.at]]))`)
	require.Len(t, byKind, len(truth[8].Each))
	for kind, n := range byKind {
		for k, e := range truth {
			if k > 0 {
				n[k] += n[k-1]
			}
			require.Equal(t, e.Each[kind].Done, n[k], "%s until event %d", kind, k)
		}
	}
	// Where the next stream still uses what was freed there are dots, nowhere else.
	do(t, p, `app.map.list[0].range(0, app.map.list[0].run.map.space)`)
	dots := ask[[]bool](t, p, `[...Array(9).keys()].map((k) => {
		const m = app.map.list[0], c = m.pixels, r = m.tile.rects, i = r.id.indexOf(2), seen = new Set();
		const y = (b) => Math.round(c.height * (1 - b / m.y1)), top = y(r.y[i] + r.size[i]) + 3, x = Math.ceil(k / 9 * c.width) + 3;
		const d = c.getContext("2d").getImageData(x, top, Math.floor(c.width / 9) - 6, y(r.y[i]) - 2 - top).data;
		for (let n = 0; n < d.length; n += 4) seen.add(hex(d.slice(n, n + 3)));
		return seen.size > 1;
	})`)
	for k, e := range truth {
		require.Equal(t, e.Active > e.Allocated, dots[k], "dots after event %d", k)
	}
	require.Contains(t, dots, true)
}

// requireMarks fails unless the chart of memory has faint lines at some places of its axis and none
// at others. The lines are solid: they are in each of four rows above the curves, of which a line
// of the grid may cross one.
func requireMarks(t *testing.T, p *tab, all float64, there, not []float64) {
	t.Helper()
	for _, at := range slices.Concat(there, not) {
		line := ask[bool](t, p, fmt.Sprintf(`(() => {
			const u = app.timeline.memory.u, x = Math.round(u.bbox.left + %g / %g * u.bbox.width);
			const faint = (y) => u.ctx.getImageData(x - 5, u.bbox.top + y, 10, 1).data.some((v, i) => i %% 4 === 3 && v > 0);
			return [1, 2, 3, 4].every(faint);
		})()`, at, all))
		require.Equal(t, slices.Contains(there, at), line, "at %g", at)
	}
}

// said returns a size as tables write it.
func said(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	k := 0
	for ; k < 3 && n >= 1024; k++ {
		n /= 1024
	}
	if k == 0 {
		return fmt.Sprintf("%.0f B", n)
	}
	return fmt.Sprintf("%.2f %s", n, units[k])
}

// legend returns what the first row of the legend says of the four sums, from requested to
// reserved.
func legend(t *testing.T, p *tab) []string {
	t.Helper()
	return ask[[]string](t, p,
		`[...app.timeline.legend.querySelectorAll("tbody tr")[0].cells].slice(1, 5).reverse().map((c) => c.textContent)`)
}

// TestTheEndOfMemoryIsALine looks for the line of the capacity where the plot reaches it, and where
// it does not.
func TestTheEndOfMemoryIsALine(t *testing.T) {
	p := opened(t, made(t, "compare", "--strategies", "bfc", "--capacity", "16MiB", traceFile(t, "small.trace", small)),
		desk, "", helpers)
	const alarm = "#b2251d"
	count := func() float64 {
		return ask[float64](t, p, fmt.Sprintf(`(() => {
			const u = app.timeline.memory.u, d = u.ctx.getImageData(0, 0, u.ctx.canvas.width, u.ctx.canvas.height).data, want = [1, 3, 5].map((i) => parseInt(%q.slice(i, i + 2), 16));
			let n = 0;
			for (let i = 0; i < d.length; i += 4) if (want.every((c, k) => Math.abs(d[i + k] - c) < 40)) n++;
			return n;
		})()`, alarm))
	}
	do(t, p, `drawn.length = 0; app.state.set({curves: ["requested", "reserved"]})`)
	text := ask[[]float64](t, p,
		`textsOf(app.timeline.memory.u.ctx.canvas).filter((t) => t.text === "capacity 16.00 MiB").map((t) => t.y - app.timeline.memory.u.valToPos(16 * 1048576, "y", true))`)
	require.NotEmpty(t, text)
	require.InDelta(t, -3, text[0], 1, "its words stand on it")
	require.Greater(t, count(), ask[float64](t, p, `app.timeline.memory.u.bbox.width / 2`),
		"a dashed line from side to side")
	do(t, p, `drawn.length = 0; app.state.set({curves: ["requested"]})`) // 12 MiB at most
	require.Zero(t, count())
	require.NotContains(t, ask[[]string](t, p, `drawn.map((t) => t.text)`), "capacity 16.00 MiB")
}

// TestDotsOfABenchmark finds each run of the result where the numbers at the axes say that it is.
func TestDotsOfABenchmark(t *testing.T) {
	result := filepath.Join(t.TempDir(), "bench.json")
	p := opened(t, made(t, "bench", "--strategies", "bfc:growth", "--workloads", "w1", "--live", "50,100,400", "--pairs",
		"500", "--rounds", "2", "--json", result), desk, "", helpers)
	var raw struct {
		Runs []struct {
			Live     float64 `json:"live"`
			Reserved float64 `json:"reserved_ratio"`
			Median   float64 `json:"ns_per_pair_median"`
			Min      float64 `json:"ns_per_pair_min"`
			Max      float64 `json:"ns_per_pair_max"`
		} `json:"runs"`
	}
	decoded(t, result, &raw)
	require.Len(t, raw.Runs, 3)
	for chart, of := range []struct {
		name  string
		log   bool
		value func(i int) float64
	}{
		{"time", true, func(i int) float64 { return raw.Runs[i].Median }},
		{"memory", false, func(i int) float64 { return raw.Runs[i].Reserved }},
	} {
		canvas := fmt.Sprintf(`document.querySelectorAll("#vy-bench .vy-plot canvas")[%d]`, chart)
		type label struct {
			Text string
			X, Y float64
		}
		labels := ask[[]label](t, p, `textsOf(`+canvas+
			`).filter((t) => !t.turned && /^[\d.\u202f]+$/.test(t.text)).map((t) => ({Text: t.text, X: t.x, Y: t.y}))`)
		foot := 0.0
		for _, l := range labels {
			foot = max(foot, l.Y)
		}
		var up, along [][2]float64 // value and place
		for _, l := range labels {
			v, err := strconv.ParseFloat(strings.ReplaceAll(l.Text, "\u202f", ""), 64)
			require.NoError(t, err)
			if l.Y == foot {
				along = append(along, [2]float64{math.Log(v), l.X})
			} else {
				if of.log {
					require.Positive(t, v, "a logarithmic axis has no zero")
					v = math.Log(v)
				}
				up = append(up, [2]float64{v, l.Y})
			}
		}
		require.Len(t, along, 3, "50, 100 and 400 live blocks")
		require.GreaterOrEqual(t, len(up), 2)
		for i, r := range raw.Runs {
			v := of.value(i)
			if of.log {
				v = math.Log(v)
			}
			x, y := placeAt(along, math.Log(r.Live)), placeAt(up, v)
			filled := ask[bool](t, p, fmt.Sprintf(`(() => {
				const d = %s.getContext("2d").getImageData(%g, %g, 3, 3).data;
				return d.every((v, i) => (i %% 4 === 3 ? v > 250 : Math.abs(v - d[i %% 4]) < 8));
			})()`, canvas, math.Floor(x)-1, math.Floor(y)-1))
			require.True(t, filled, "%s of %g live blocks: a dot at %.1f, %.1f", of.name, r.Live, x, y)
		}
		for _, l := range slices.Concat(along, up) { // every number stands on the same straight axis
			axis := along
			if slices.Contains(up, l) {
				axis = up
			}
			require.InDelta(t, l[1], placeAt(axis, l[0]), 1, of.name)
		}
	}
}

// placeAt returns where a value is on an axis with some values and their places: on the line
// through the first and the last.
func placeAt(axis [][2]float64, v float64) float64 {
	a, b := axis[0], axis[len(axis)-1]
	return a[1] + (v-a[0])/(b[0]-a[0])*(b[1]-a[1])
}

// requireTable sorts and copies the table of a what-if, and holds both to the result.
func requireTable(t *testing.T, p *tab, result string) {
	t.Helper()
	var raw struct {
		Runs []struct {
			Strategy string          `json:"strategy"`
			Reserved float64         `json:"peak_reserved_bytes"`
			Calls    float64         `json:"device_calls"`
			Config   json.RawMessage `json:"config"`
			OOMs     int             `json:"oom_count"`
			Refused  int             `json:"refused_count"`
		} `json:"runs"`
	}
	decoded(t, result, &raw)
	var calls, reserved []float64
	commas := 0
	for _, r := range raw.Runs {
		if r.OOMs+r.Refused == 0 { // a run that failed shows no figures
			calls, reserved = append(calls, r.Calls), append(reserved, r.Reserved)
		}
		if regexp.MustCompile(`"conf":\s*"[^"]*,`).Match(r.Config) {
			commas++
		}
	}
	require.Greater(t, commas, 2, "settings of several parts")
	slices.Sort(calls)
	slices.Sort(reserved)
	texts := func(list []float64) (s []string) {
		for _, v := range list {
			s = append(s, strconv.FormatFloat(v, 'f', -1, 64))
		}
		return s
	}
	require.False(t, slices.IsSorted(texts(calls)), "by letters the order is another")
	read := func() [][]string {
		do(t, p,
			`window.copied = []; navigator.clipboard.writeText = (text) => { copied.push(text); return Promise.resolve(); };
			document.querySelector("#vy-tables .vy-copy").click()`)
		rows, err := csv.NewReader(strings.NewReader(ask[string](t, p, `copied[0]`))).ReadAll()
		require.NoError(t, err)
		require.Len(t, rows, len(raw.Runs)+1)
		return rows
	}
	column := func(rows [][]string, name string) (list []string) {
		at := slices.Index(rows[0], name)
		for _, r := range rows[1:] {
			if r[at] != "—" {
				list = append(list, r[at])
			}
		}
		return list
	}
	press := func(name string) {
		do(t, p,
			fmt.Sprintf(`[...document.querySelectorAll("#vy-tables thead button")].find((b) => b.textContent === %q).click()`,
				name))
	}
	press("device calls")
	require.Equal(t, texts(calls), column(read(), "device calls"))
	press("device calls")
	slices.Reverse(calls)
	require.Equal(t, texts(calls), column(read(), "device calls"))
	press("peak reserved")
	rows := read()
	require.Equal(t, texts(reserved), column(rows, "peak reserved"))
	parts := 0
	for _, setting := range column(rows, "setting") {
		if strings.Contains(setting, ",") {
			parts++
		}
	}
	require.GreaterOrEqual(t, parts, commas)
}
