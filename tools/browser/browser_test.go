package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// shared holds the browser and the built vramyard that all tests use.
var shared struct {
	browser context.Context
	program string
	dir     string
}

func TestMain(m *testing.M) {
	ctx, stop, err := start(context.Background())
	if errors.Is(err, errNoBrowser) {
		fmt.Println("skipped:", err)
		return
	}
	if err == nil {
		shared.browser = ctx
		shared.dir, err = os.MkdirTemp("", "vramyard")
	}
	if err == nil {
		shared.program, err = build(context.Background(), shared.dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	os.RemoveAll(shared.dir)
	if stop != nil {
		stop()
	}
	os.Exit(code)
}

var desk = look{width: 1280, height: 900}

// visit makes a report and opens it. At the end of the test it must have asked for nothing and
// logged nothing.
func visit(t *testing.T, words ...string) *tab {
	t.Helper()
	return opened(t, made(t, words...), desk, "")
}

// made makes a report.
func made(t *testing.T, words ...string) string {
	t.Helper()
	path, err := report(t.Context(), shared.program, t.TempDir(), "report", words...)
	require.NoError(t, err)
	return path
}

// opened opens a file with the promises of visit.
func opened(t *testing.T, path string, l look, hash string, first ...string) *tab {
	t.Helper()
	p, err := open(shared.browser, path, l, hash, first...)
	require.NoError(t, err)
	t.Cleanup(func() {
		p.close()
		p.mu.Lock()
		defer p.mu.Unlock()
		require.Empty(t, p.requests, "nothing leads out of the page")
		require.Empty(t, p.errors, "nothing is logged as an error")
	})
	return p
}

// traceFile writes a trace.
func traceFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	return path
}

// ask returns the value of an expression once everything is drawn. app is what the views of the
// page share.
func ask[T any](t *testing.T, p *tab, expression string) T {
	t.Helper()
	require.NoError(t, p.settle())
	v, err := eval[T](p, "(() => { const app = window.vramyard; return "+expression+"; })()")
	require.NoError(t, err, expression)
	return v
}

// do runs statements in the page and waits until it has drawn.
func do(t *testing.T, p *tab, statements string) {
	t.Helper()
	_, err := eval[bool](p, "(() => { const app = window.vramyard; "+statements+"; return true; })()")
	require.NoError(t, err, statements)
	require.NoError(t, p.settle())
}

// point is a place in the window.
type point struct{ X, Y float64 }

// onMap returns where an event and a place of the axis of addresses are on the first map, after
// scrolling to it.
func onMap(t *testing.T, p *tab, event, y float64) point {
	t.Helper()
	do(t, p, `app.map.list[0].plot.scrollIntoView({block: "center"})`)
	return ask[point](t, p, fmt.Sprintf(`(() => {
		const m = app.map.list[0], box = m.pixels.getBoundingClientRect(), v = m.view();
		return {X: box.left + (v.xOf(%g) - v.x0) / (v.x1 - v.x0) * box.width, Y: box.bottom - (%g - v.y0) / (v.y1 - v.y0) * box.height};
	})()`, event, y))
}

// colorOnMap returns the colour of a pixel of the first map at an event and a place of the axis of
// addresses.
func colorOnMap(t *testing.T, p *tab, event, y float64) string {
	t.Helper()
	return ask[string](t, p, fmt.Sprintf(`(() => {
		const m = app.map.list[0], v = m.view(), c = m.pixels;
		const x = Math.floor((v.xOf(%g) - v.x0) / (v.x1 - v.x0) * c.width), y = Math.floor(c.height - (%g - v.y0) / (v.y1 - v.y0) * c.height);
		const d = c.getContext("2d").getImageData(x, y, 1, 1).data;
		return "#" + [d[0], d[1], d[2]].map(n => n.toString(16).padStart(2, "0")).join("");
	})()`, event, y))
}

// small has two blocks side by side, then one in the place of the first. Its tags weigh as much as
// their order here.
const small = `# name small
a 1 8MiB tag=weights
a 2 4MiB tag=activations
f 1
a 3 2MiB tag=gradients
use 2 7
f 2
f 3
`

func TestPicturesMatchTheData(t *testing.T) {
	p := visit(t, "compare", "--strategies", "bfc", "--capacity", "16MiB", traceFile(t, "small.trace", small))
	const mib = 1 << 20
	require.Equal(t, "#88ccee", colorOnMap(t, p, 1, 4*mib), "weights weigh most and have the first colour")
	require.NotEqual(t, colorOnMap(t, p, 1, 4*mib), colorOnMap(t, p, 2, 10*mib), "another tag has another colour")
	require.Equal(t, "#e6e9ee", colorOnMap(t, p, 2, 15*mib), "what is held and free has the tint")
	require.Equal(t, "#e6e9ee", colorOnMap(t, p, 0.5, 10*mib), "block 2 is not there yet")

	at := onMap(t, p, 2.5, 10*mib)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.MouseEvent("mouseMoved", at.X, at.Y)))
	tip := ask[string](t, p, `document.querySelector(".vy-tip").innerText`)
	for _, want := range []string{"activations", "4.00 MiB", "event 1", "default stream"} {
		require.Contains(t, tip, want)
	}
	require.NoError(t, chromedp.Do(p.ctx, chromedp.MouseClickXY(at.X, at.Y)))
	require.Equal(t, []int{2, 2}, ask[[]int](t, p, `[app.state.event, app.state.pin]`), "a click keeps the block")
	require.Contains(t, ask[string](t, p, `app.instant.note.textContent`), "after event 2")
	states := ask[string](t, p, `app.instant.side.innerText`)
	require.Contains(t, states, "4.00 MiB", "the live block")
	require.Contains(t, states, "12.00 MiB", "free bytes")

	// The line of reserved memory passes through its peak, and the legend says the same.
	peak := ask[[]float64](t, p,
		`app.trace.runs[0].peaks.filter(p => p.what === "requested").map(p => [p.event, p.bytes])[0]`)
	require.Equal(t, []float64{1, 12 * mib}, peak)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.MouseEvent("mouseMoved", 1, 1)))
	do(t, p, `scrollTo(0, 0); app.state.set({curves: ["requested"]})`)
	do(t, p, `app.state.set({cursor: 1})`)
	require.Contains(t, ask[string](t, p, `app.timeline.legend.innerText`), "12.00 MiB")
	line := ask[string](t, p, `(() => {
		const u = app.timeline.memory.u, x = u.valToPos(1.5, "x", true), y = u.valToPos(12 * 1048576, "y", true);
		const d = u.ctx.getImageData(x - 6, y - 2, 12, 4).data, [r, g, b] = [0, 114, 178];
		for (let i = 0; i < d.length; i += 4) if (Math.abs(d[i] - r) + Math.abs(d[i+1] - g) + Math.abs(d[i+2] - b) < 60) return "blue";
		return "none";
	})()`)
	require.Equal(t, "blue", line)
}

// TestEveryViewCanBeUsed clicks through the page as a reader would.
func TestEveryViewCanBeUsed(t *testing.T) {
	p := visit(t, "compare", "--capacity", "2600MiB", "--strategies", "bfc,caching,slabbuddy", "cpu_gpt2_train_varlen")
	full := ask[float64](t, p, `app.state.to`)

	// Drag over the chart of memory: the window is what was dragged.
	do(t, p, `app.timeline.memory.plot.scrollIntoView({block: "center"})`)
	box := ask[[]float64](t, p,
		`(b => [b.left, b.top, b.width, b.height])(app.timeline.memory.u.over.getBoundingClientRect())`)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.DragAndDropXY(box[0]+box[2]/4, box[1]+40, box[0]+box[2]/2,
		box[1]+60, 5)))
	window := ask[[]float64](t, p, `[app.state.from, app.state.to]`)
	require.InDelta(t, full/4, window[0], full/50)
	require.InDelta(t, full/2, window[1], full/50)
	require.Equal(t, window, ask[[]float64](t, p, `(u => [u.scales.x.min, u.scales.x.max])(app.timeline.charts[4].u)`),
		"all charts follow")

	// Keys: zoom, move the cursor, go back to all.
	do(t, p, `app.timeline.memory.plot.focus()`)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent("+")))
	require.InDelta(t, full/8, ask[float64](t, p, `app.state.to - app.state.from`), full/50)
	before := ask[float64](t, p, `app.state.cursor`)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent(kb.ArrowRight)))
	require.Greater(t, ask[float64](t, p, `app.state.cursor`), before)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent(kb.End)))
	require.InDelta(t, full-1, ask[float64](t, p, `app.state.cursor`), 0)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent(kb.Escape)))
	require.InDelta(t, full, ask[float64](t, p, `app.state.to - app.state.from`), 0)

	// Drag over a map: both directions.
	from, to := onMap(t, p, full/4, 5e8), onMap(t, p, full/2, 15e8)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.DragAndDropXY(from.X, from.Y, to.X, to.Y, 5)))
	seen := ask[[]float64](t, p, `[app.state.from, app.state.to, app.map.list[0].y0, app.map.list[0].y1]`)
	for i, want := range []float64{full / 4, full / 2, 5e8, 15e8} {
		require.InDelta(t, want, seen[i], want/20)
	}
	do(t, p, `app.state.window(0, app.trace.events)`)

	// Every button and every choice that the page has.
	for range 2 {
		pressAll(t, p)
	}

	// Failures: the first of each strategy, and what the others did.
	failures := ask[string](t, p, `document.getElementById("vy-failures").innerText`)
	require.Contains(t, failures, "3.00 MiB at event 5\u202f423")
	require.Contains(t, failures, "Outcome under other strategies at event")
	require.Contains(t, failures, "Owners of blocks in regions with free memory", "why the first found no memory")

	// Tables: sorted by the value, not by the text.
	do(t, p, `document.querySelector("#vy-tables thead button").click()`)
	do(t, p,
		`[...document.querySelectorAll("#vy-tables thead button")].find(b => b.textContent === "device calls").click()`)
	calls := ask[[]float64](t, p,
		`[...document.querySelector("#vy-tables tbody").rows].map(r => [...r.cells].find((c, i) => r.closest("table").tHead.rows[0].cells[i].textContent === "device calls").dataset.v).filter(v => v).map(Number)`)
	require.IsIncreasing(t, calls)
}

// TestBenchmarks draws a benchmark, which has no trace.
func TestBenchmarks(t *testing.T) {
	p := visit(t, "bench", "--strategies", "tlsf,caching", "--workloads", "w1,loguniform", "--live", "50,100,200",
		"--pairs", "500", "--rounds", "2")
	require.Equal(t, 4, ask[int](t, p, `document.querySelectorAll("#vy-bench .vy-plot > canvas").length`))
	for _, theme := range []string{"dark", "light"} {
		do(t, p, fmt.Sprintf(`[...document.querySelectorAll(".vy-theme button")].find(b => b.textContent === %q).click()`,
			theme))
		require.Equal(t, theme, ask[string](t, p, `document.documentElement.dataset.theme`))
	}
	// tlsf takes the whole device at once, so that only caching has dots in the chart of memory.
	colors := ask[[]bool](t, p, `(() => {
		const c = document.querySelectorAll("#vy-bench .vy-plot canvas")[1], d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		const has = (r, g, b) => { for (let i = 0; i < d.length; i += 4) if (d[i] === r && d[i+1] === g && d[i+2] === b && d[i+3] === 255) return true; return false; };
		return [has(190, 126, 186), has(88, 12, 140)];
	})()`)
	require.Equal(t, []bool{false, true}, colors)

	// A dot is named at the pointer, and by keys.
	tip := `(t => t.hidden ? "" : t.innerText)(document.querySelector(".vy-tip"))`
	do(t, p,
		`document.querySelector("#vy-bench .vy-plot").scrollIntoView({block: "center"}); document.querySelector("#vy-bench .vy-plot").focus()`)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent(kb.ArrowRight)))
	first := ask[string](t, p, tip)
	require.Regexp(t,
		`(?s)tlsf.*live blocks\s50\s.*rounds\sfrom .* to .* ns.*memory\s.*iB, reserved at start.*reserved ∕ live\s\d`, first)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent(kb.ArrowRight)))
	require.Regexp(t, `(?s)tlsf.*live blocks\s100\s`, ask[string](t, p, tip))
	require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent(kb.ArrowDown)))
	require.Regexp(t, `(?s)caching.*live blocks\s100\s.*memory\s[0-9.]+ .iB\s`, ask[string](t, p, tip))
	do(t, p, `document.activeElement.blur()`)
	require.Empty(t, ask[string](t, p, tip))
	at := ask[point](t, p, `(() => {
		const box = document.querySelector("#vy-bench .vy-plot canvas").getBoundingClientRect();
		return {X: box.left + 74 + (box.width - 88) / 2, Y: box.top + 115};
	})()`)
	seen := map[string]bool{}
	for y := at.Y - 100; y < at.Y+100; y += 3 { // finer than a dot: each is met, whatever the times are
		require.NoError(t, chromedp.Do(p.ctx, chromedp.MouseEvent("mouseMoved", at.X, y)))
		seen[ask[string](t, p, tip)] = true
	}
	require.Greater(t, len(seen), 2, "both strategies, and none beside them")
}

// TestBrokenInvariant draws the calls that broke one: of a strategy with a planted bug, which does
// not merge a freed chunk with the free one before it, in a build that has such bugs.
func TestBrokenInvariant(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	overlay := t.TempDir()
	for _, args := range [][]string{
		{"run", "./props/planted/bugs/overlay", overlay},
		{"test", "-overlay", filepath.Join(overlay, "overlay.json"), "-count=1", "./cli", "-run", "TestThePageOfAPlantedBug",
			"-planted-page", path},
	} {
		out, err := exec.Command("go", append([]string{"-C", "../.."}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	p := opened(t, path, desk, "")
	text := func() string { return ask[string](t, p, `document.getElementById("vy-proof").innerText`) }
	// edges returns the colours along the upper edge of the row of chunks, each once: alarm is that
	// of what the invariant names.
	edges := func() string {
		return ask[string](t, p, `(() => {
			const c = document.querySelector("#vy-proof .vy-plot canvas"), d = c.getContext("2d").getImageData(112, 5, c.width - 120, 1).data, seen = new Set();
			for (let i = 0; i < d.length; i += 4) seen.add([d[i], d[i + 1], d[i + 2]].join(" "));
			return [...seen].join();
		})()`)
	}
	key := func(name string) {
		do(t, p,
			fmt.Sprintf(
				`document.querySelector("#vy-proof .vy-plot").dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true}))`, name))
	}
	const alarm = "179 38 30"
	require.Contains(t, text(), "Broken here: I21 (private indexes): bestfit: invariant K2 (free neighbours are merged): 0x7f")
	require.Contains(t, ask[string](t, p, `document.querySelector(".vy-broken code").textContent`), "f 0x7f0000000100")
	require.Contains(t, edges(), alarm)
	require.Equal(t, []bool{true, true},
		ask[[]bool](t, p,
			`[...document.querySelectorAll("#vy-proof tbody tr")].map((r) => r.cells[7].textContent.includes("named by the invariant"))`))
	steps := ask[int](t, p, `document.querySelectorAll("#vy-proof ol.vy-steps li").length`)
	require.Equal(t, 5, steps, "the least calls that show it")
	for i := steps - 2; i >= 0; i-- { // back to where it was built, then on by the button
		key("ArrowLeft")
		require.Contains(t, text(), fmt.Sprintf("step %d of %d", i, steps-1))
		require.NotContains(t, text(), "Broken here")
		require.NotContains(t, edges(), alarm)
	}
	for range steps - 1 {
		do(t, p, `[...document.querySelectorAll("#vy-proof button")].find((b) => b.textContent.startsWith("next")).click()`)
	}
	require.Contains(t, text(), "Broken here")
	require.Contains(t, edges(), alarm)
}

// TestWhatif shows the answer with what to copy, and a bar for every setting.
func TestWhatif(t *testing.T) {
	result := filepath.Join(t.TempDir(), "whatif.json")
	p := visit(t, "whatif", "--json", result, "../../examples/oom/chat.pickle.gz")
	require.Equal(t, "export PYTORCH_ALLOC_CONF=expandable_segments:True  # PyTorch 2.10 and newer\n"+
		"export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True  # before 2.10",
		ask[string](t, p, `document.querySelector("#vy-answer pre").textContent`))
	const left = `getBoundingClientRect().left`
	const right = `getBoundingClientRect().right`
	bars := fmt.Sprintf(`[...document.querySelectorAll(".vy-needs tbody tr")].map((r) => {
		const end = Math.max(...[...r.querySelectorAll(".vy-bars span")].map((b) => b.%s));
		return [r.cells[4].textContent === "✓ completes", end <= r.querySelector(".vy-at-card").%s, end >= r.querySelector(".vy-at-bound").%[2]s - 1];
	})`, right, left)
	lengths := ask[[][]float64](t, p, `[...document.querySelectorAll(".vy-needs tbody tr")].map((r) => [
		[...r.querySelectorAll(".vy-bars span")].reduce((n, b) => n + b.getBoundingClientRect().width, 0), parseFloat(r.cells[2].textContent)])`)
	for _, l := range lengths {
		require.InEpsilon(t, lengths[0][0]/lengths[0][1], l[0]/l[1], 0.005)
	}
	rows := ask[[][]bool](t, p, bars)
	require.Greater(t, len(rows), 20)
	for i, r := range rows {
		require.Equal(t, r[0], r[1], "row %d: what fits on the card ends before its line", i)
		require.True(t, r[2], "row %d: nothing ends before the lower bound", i)
	}
	words := ask[string](t, p, `document.getElementById("vy-answer").innerText`)
	require.Contains(t, words, "The only failure, at event")
	require.Contains(t, words, "If it must also work with\nrdma, ipc (--permit rdma,ipc): PYTORCH_ALLOC_CONF=")

	// Bars have the colour of their verdict, which the key and the table say in words.
	colors := ask[map[string][]string](t, p, `[...document.querySelectorAll(".vy-needs tbody tr")].reduce((all, r) => {
		const color = getComputedStyle(r.querySelector(".vy-bars span")).getPropertyValue("--bar");
		const seen = (all[r.cells[4].textContent] ??= []);
		if (!seen.includes(color)) seen.push(color);
		return all;
	}, {})`)
	require.Len(t, colors, 2)
	require.Len(t, colors["✓ completes"], 1)
	require.Len(t, colors["✗ fails"], 1)
	require.NotEqual(t, colors["✓ completes"], colors["✗ fails"])
	require.Contains(t, words, "completes on the card")
	require.Contains(t, words, "fails on the card")

	requireTable(t, p, result)
	require.Equal(t, 3, ask[int](t, p, `app.trace.runs.filter((r) => r.drawn).length`))
}

// TestAFileThatCannotAnswer shows how to record one that can, and the heap that the file has.
func TestAFileThatCannotAnswer(t *testing.T) {
	p := visit(t, "whatif", "../../harness/trace/torch/testdata/vectors/state_only.pickle.xz")
	words := ask[string](t, p, `document.getElementById("vy-answer").innerText`)
	require.Contains(t, words, "This file cannot answer that")
	require.Contains(t, words, "The heap when the file was written")
	require.Contains(t, words, "empty_cache()")
	require.NotContains(t, words, "export ")
	require.Contains(t, ask[string](t, p, `document.querySelector("#vy-answer pre").textContent`),
		"_record_memory_history(")
	require.Zero(t, ask[int](t, p, `document.querySelectorAll(".vy-needs").length`))
}

// TestTheAddressHoldsTheView opens a page at what its address says, and at nonsense.
func TestTheAddressHoldsTheView(t *testing.T) {
	path, err := report(t.Context(), shared.program, t.TempDir(), "report", "compare", "--strategies", "bfc,tlsf",
		"meta_resnet50_b256")
	require.NoError(t, err)
	p := opened(t, path, desk, "#x=100-900&unit=time&hide=1&curves=active&paint=size&at=1.500&theme=dark")
	require.Equal(t, "100 900 time 1 active size 1 500 dark", ask[string](t, p,
		`[app.state.from, app.state.to, app.state.unit, app.state.hidden, app.state.curves, app.state.paint, app.state.run, app.state.event, document.documentElement.dataset.theme].join(" ")`))
	do(t, p, `app.state.window(200, 300)`)
	require.NoError(t, p.wait(`location.hash.includes("x=200.00-300.00")`))
	opened(t, path, desk, "#x=9e9-1&unit=x&hide=7.q&curves=&paint=%00&at=-1.nan&theme=<b>&trace=99&block=1e99")
}

// TestALongTrace opens a page of a million events, or as many pairs as the environment asks for,
// and logs how long its pictures take.
func TestALongTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long.parquet")
	pairs := cmp.Or(os.Getenv("VRAMYARD_PAIRS"), "500000")
	out, err := exec.Command(shared.program, "trace", "gen", "w1", "--live", "10000", "--pairs", pairs,
		path).CombinedOutput()
	require.NoError(t, err, string(out))
	p := visit(t, "replay", "--strategy", "bfc:growth", path)
	events := ask[float64](t, p, `app.trace.events`)
	first := ask[float64](t, p, `performance.getEntriesByName("vy-picture")[0].startTime`)
	whole := ask[string](t, p, `app.map.list[0].plot.dataset.ms`)
	do(t, p, `app.state.window(app.trace.events / 2, app.trace.events * 0.52)`)
	t.Logf("%.0f events: first picture after %.0f ms, map %s ms, zoomed %s ms", events, first, whole,
		ask[string](t, p, `app.map.list[0].plot.dataset.ms`))
	require.Greater(t, ask[int](t, p, `app.map.list[0].run.map.rects.y.length`), 50_000)
	peak := ask[[]float64](t, p,
		`[Math.max(...app.trace.runs[0].series.reserved.max), app.trace.runs[0].peaks.find(p => p.what === "reserved").bytes]`)
	require.Equal(t, peak[1], peak[0])
}

// TestEmptyTrace has nothing to draw and says so in its table.
func TestEmptyTrace(t *testing.T) {
	p := visit(t, "compare", "--strategies", "bfc,caching", traceFile(t, "empty.trace", "# name empty\n"))
	require.Contains(t, ask[string](t, p, `document.getElementById("vy-tables").innerText`), "bfc")
}

// TestHostileNames shows names as text, whatever they are.
func TestHostileNames(t *testing.T) {
	const evil = `<img/src=x/onerror=window.hurt=1></script><script>window.hurt=1</script>`
	trace := "# name " + evil + "\na 1 1MiB tag=" + evil + "\na 2 1MiB tag=" + strings.Repeat("long", 250_000) +
		"\na 3 64MiB tag=\u202e\u0007\u2028x\n"
	p := visit(t, "compare", "--capacity", "8MiB", "--strategies", "caching", traceFile(t, "x.trace", trace))
	do(t, p, `document.querySelectorAll("details").forEach(d => d.open = true)`)
	require.False(t, ask[bool](t, p, `"hurt" in window || document.querySelector("main img") !== null`))
	at := onMap(t, p, 0.5, 1<<19)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.MouseEvent("mouseMoved", at.X, at.Y)))
	require.Contains(t, ask[string](t, p, `document.querySelector(".vy-tip").innerText`), evil)
	require.Less(t, ask[float64](t, p, `document.documentElement.scrollWidth - innerWidth`), 1.0,
		"a long name does not widen the page")
}

// TestBrokenDataKeepTables cuts the data of a page short.
func TestBrokenDataKeepTables(t *testing.T) {
	path, err := report(t.Context(), shared.program, t.TempDir(), "report", "replay", "--strategy", "bfc",
		traceFile(t, "s.trace", small))
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	at := strings.Index(string(text), `id="vy-data">`) + len(`id="vy-data">`)
	require.NoError(t, os.WriteFile(path,
		append(text[:at+40:at+40], append([]byte(strings.Repeat("A", 40)), text[at+80:]...)...), 0o666))
	p := opened(t, path, desk, "")
	require.Contains(t, ask[string](t, p, `document.querySelector("[role=alert]").textContent`), "cannot be shown")
	require.Contains(t, ask[string](t, p, `document.getElementById("vy-tables").innerText`), "peak reserved")
}

// TestPhoneAndPaper opens a page as wide as a phone, and prints a dark one.
func TestPhoneAndPaper(t *testing.T) {
	path, err := report(t.Context(), shared.program, t.TempDir(), "report", "compare", "--strategies", "bfc,tlsf",
		"meta_resnet50_b256")
	require.NoError(t, err)
	p := opened(t, path, look{width: 360, height: 740, dark: true}, "")
	require.Less(t, ask[float64](t, p, `document.documentElement.scrollWidth - innerWidth`), 1.0)
	require.Equal(t, "#14171b", ask[string](t, p,
		`getComputedStyle(document.documentElement).getPropertyValue("--paper")`))
	do(t, p,
		`window.seen = []; addEventListener("beforeprint", () => seen.push(getComputedStyle(document.documentElement).getPropertyValue("--paper"), app.timeline.memory.u.width))`)
	_, err = chromedp.Run(p.ctx, chromedp.PrintToPDF())
	require.NoError(t, err)
	require.Equal(t, "#ffffff 700", ask[string](t, p, `seen.join(" ")`), "paper is white, and charts are as wide as it")
	require.Equal(t, "#14171b", ask[string](t, p,
		`getComputedStyle(document.documentElement).getPropertyValue("--paper")`))
}

// TestAReplayOpensOnAPicture looks at the first window, on a desk and on a phone.
func TestAReplayOpensOnAPicture(t *testing.T) {
	path := made(t, "replay", "--strategy", "bfc", traceFile(t, "s.trace", small))
	for _, l := range []look{{width: 1280, height: 800}, {width: 360, height: 740}} {
		p := opened(t, path, l, "")
		require.True(t, ask[bool](t, p,
			`(b => b.height > 30 && b.top > 0 && b.bottom < innerHeight)(document.querySelector(".vy-flame").getBoundingClientRect())`), "%d x %d", l.width, l.height)
	}
}

// TestEveryControlHasAName walks over what can be pressed, typed into or focused.
func TestEveryControlHasAName(t *testing.T) {
	p := visit(t, "compare", "--strategies", "bfc,tlsf", "meta_resnet50_b256")
	require.Empty(t, ask[[]string](t, p, `[...document.querySelectorAll("button, select, input, [tabindex]")].filter(e =>
		!(e.textContent.trim() || e.ariaLabel || e.title || e.labels?.[0]?.textContent.trim())).map(e => e.outerHTML.slice(0, 200))`))
	require.Empty(t, ask[[]string](t, p,
		`[...document.querySelectorAll("button")].filter(e => !/[\p{L}\p{N}]/u.test(e.ariaLabel ?? e.textContent)).map(e => e.outerHTML)`), "a sign is no name")
	require.Empty(t, ask[[]string](t, p,
		`[...document.querySelectorAll("canvas")].filter(e => !e.closest("[aria-label], [aria-hidden]")).map(e => e.outerHTML.slice(0, 200))`))

	// What is pressed by a key keeps the focus, though what it is part of is made anew.
	for _, control := range []string{".vy-theme button:nth-of-type(3)", "#vy-map .vy-controls button:nth-of-type(4)",
		"#vy-instant .vy-switch button:last-of-type",
		"#vy-timeline .vy-legend tbody input", ".vy-bar .vy-switch button"} {
		do(t, p, fmt.Sprintf(`(c => { c.focus(); c.click(); })(document.querySelector(%q))`, control))
		require.True(t, ask[bool](t, p, fmt.Sprintf(`document.activeElement === document.querySelector(%q)`, control)),
			control)
	}
	// Charts say their values where the cursor is, and instants the block that is kept.
	do(t, p, `app.timeline.memory.plot.focus(); app.state.set({cursor: 5000})`)
	require.Regexp(t, `^event 5\D000: lower bound .* GiB, tlsf reserved .* GiB$`,
		ask[string](t, p, `app.timeline.memory.plot.ariaValueText`))
	do(t, p, `app.instant.go(1800)`)
	do(t, p, `app.instant.plot.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown"}))`)
	require.Equal(t, "Block", ask[string](t, p, `app.map.card.hidden ? "" : app.map.card.innerText.slice(0, 5)`))
}

// TestColoursAreDistinguishable looks at the lines of strategies as people with deuteranopia do.
func TestColoursAreDistinguishable(t *testing.T) {
	p := visit(t, "replay", "--strategy", "bfc", traceFile(t, "s.trace", small))
	for _, theme := range []string{"light", "dark"} {
		do(t, p, fmt.Sprintf(`app.state.set({theme: %q}, true)`, theme))
		var colors []string
		raw := ask[string](t, p, fmt.Sprintf(`JSON.stringify(app.lineColors(%t))`, theme == "dark"))
		require.NoError(t, json.Unmarshal([]byte(raw), &colors))
		require.Len(t, colors, 16)
		for i := range colors {
			for j := range i {
				require.Greater(t, distance(colors[i], colors[j]), 0.07, "%s: %s and %s", theme, colors[i], colors[j])
			}
		}
	}
}

// distance returns how far two colours are apart in the space Oklab, seen without green cones. The
// matrix is that of Machado, Oliveira and Fernandes (2009) for deuteranopia, over linear light.
func distance(a, b string) float64 {
	x, y := oklab(deuteranopia(linear(a))), oklab(deuteranopia(linear(b)))
	return math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2])
}

// linear returns a colour in linear light.
func linear(hex string) (v [3]float64) {
	var c [3]int
	fmt.Sscanf(hex, "#%02x%02x%02x", &c[0], &c[1], &c[2])
	for i, n := range c {
		if s := float64(n) / 255; s <= 0.04045 {
			v[i] = s / 12.92
		} else {
			v[i] = math.Pow((s+0.055)/1.055, 2.4)
		}
	}
	return v
}

// deuteranopia returns a colour as it is seen without green cones.
func deuteranopia(v [3]float64) [3]float64 {
	return times([3][3]float64{
		{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881},
	}, v)
}

// oklab returns a colour in Ottosson's space Oklab (2020).
func oklab(v [3]float64) [3]float64 {
	lms := times([3][3]float64{
		{0.4122214708, 0.5363325363, 0.0514459929}, {0.2119034982, 0.6806995451, 0.1073969566},
		{0.0883024619, 0.2817188376, 0.6299787005},
	}, v)
	for i := range lms {
		lms[i] = math.Cbrt(lms[i])
	}
	return times([3][3]float64{
		{0.2104542553, 0.7936177850, -0.0040720468}, {1.9779984951, -2.4285922050, 0.4505937099},
		{0.0259040371, 0.7827717662, -0.8086757660},
	}, lms)
}

// times returns the product of a matrix and a vector.
func times(m [3][3]float64, v [3]float64) (p [3]float64) {
	for i := range m {
		p[i] = m[i][0]*v[0] + m[i][1]*v[1] + m[i][2]*v[2]
	}
	return p
}
