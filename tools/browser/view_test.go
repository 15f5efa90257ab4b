package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// served starts "vramyard view" on files and opens its page. At the end the page must have asked
// nobody else and logged nothing, and the program must end well when it is interrupted.
func served(t *testing.T, words ...string) *tab {
	t.Helper()
	c := exec.Command(shared.program, append([]string{"view", "--no-browser", "--cache", "none"}, words...)...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		require.NoError(t, c.Process.Signal(os.Interrupt))
		require.NoError(t, c.Wait())
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	address = strings.TrimSpace(address)
	made := func() bool {
		answer, err := http.Get(address + "0/")
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return strings.Contains(string(text), "vy-app")
	}
	for !made() {
		time.Sleep(50 * time.Millisecond)
	}
	p, err := open(shared.browser, address+"0/", desk, "")
	require.NoError(t, err)
	t.Cleanup(func() {
		p.close()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, r := range p.requests {
			require.True(t, strings.HasPrefix(r, address), r)
		}
		require.Empty(t, p.errors, "nothing is logged as an error")
	})
	return p
}

// answered waits until the page has all that it asked for.
func answered(t *testing.T, p *tab) {
	t.Helper()
	require.NoError(t, p.settle())
	// what rests is asked for after 90 ms
	_, err := eval[bool](p, "new Promise(done => setTimeout(() => done(true), 200))")
	require.NoError(t, err)
	require.NoError(t, p.wait(`document.documentElement.dataset.requests === "0"`))
	require.NoError(t, p.settle())
}

// TestServedPageLoadsDetailsOnZoom zooms into a trace that a page has no room for.
func TestServedPageLoadsDetailsOnZoom(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "w1.parquet")
	require.NoError(t, exec.Command(shared.program, "trace", "gen", "w1", "--live", "2000", "--pairs", "50000",
		trace).Run())
	p := served(t, "--strategies", "caching,bfc", trace)
	require.False(t, ask[bool](t, p, "app.map.list[0].run.map.complete"))
	require.Greater(t, ask[int](t, p, "app.trace.shift"), 0)
	events := ask[float64](t, p, "app.trace.events")

	do(t, p, "app.state.window(50000, 50400)")
	answered(t, p)
	for _, i := range []string{"0", "1"} {
		require.True(t, ask[bool](t, p, "app.map.list["+i+"].tile.complete"))
		// Every event of the window but its first is the birth or the end of a block that is there
		// within.
		require.Equal(t, 399.0, ask[float64](t, p, `(() => {
			const r = app.map.list[`+i+`].tile.rects, at = new Set();
			for (let k = 0; k < r.born.length; k++) for (const e of [r.born[k], r.dies[k]]) if (e > 50000 && e < 50400) at.add(e);
			return at.size;
		})()`))
	}
	require.Equal(t, 0, ask[int](t, p, "app.trace.shift"))
	require.Equal(t, ask[float64](t, p, "app.trace.events"), events)
	// The highest values of the whole are what they were: no finer bucket lies above the coarse one
	// around it.
	require.True(t, ask[bool](t, p, `(() => {
		const r = app.trace.runs[0], top = (v) => v.reduce((a, b) => Math.max(a, b), 0);
		return top(r.series.reserved.max) === top(r.whole.reserved.max) && top(app.trace.bound) === top(app.trace.whole.bound);
	})()`))
	require.True(t, ask[bool](t, p,
		`app.trace.buckets.first.every((e, i, all) => i === 0 || e === app.trace.buckets.last[i - 1] + 1)`))

	// The state after any event holds the blocks that the map has there.
	do(t, p, "app.state.set({event: 50123, run: 0})")
	answered(t, p)
	require.Equal(t, "recorded", ask[string](t, p, "app.instant.heap.how"))
	require.Equal(t, 50123, ask[int](t, p, "app.instant.heap.event"))
	require.True(t, ask[bool](t, p, `(() => {
		const r = app.map.list[0].tile.rects, ids = [];
		for (let k = 0; k < r.born.length; k++) if (r.born[k] <= 50123 && 50123 < r.dies[k]) ids.push(r.id[k]);
		const live = app.instant.heap.chunks.filter((c) => app.report.states[c.state] === "live").map((c) => c.id);
		return ids.length > 1000 && ids.sort().join() === live.sort().join();
	})()`))

	do(t, p, "app.state.window(0, app.trace.events)")
	answered(t, p)
	require.True(t, ask[bool](t, p, "app.map.list[0].tile.complete && app.trace.buckets === app.trace.whole.buckets"))
}

// TestAMillionBlocksAreDrawnAsTheyAre holds pixels of a map with a million blocks to the blocks
// that lie there, and logs what they took.
func TestAMillionBlocksAreDrawnAsTheyAre(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "w1.parquet")
	pairs := cmp.Or(os.Getenv("VRAMYARD_PAIRS"), "1100000")
	require.NoError(t, exec.Command(shared.program, "trace", "gen", "w1", "--live", "10000", "--pairs", pairs, trace).Run())
	p := served(t, "--strategies", "bfc:growth", trace)
	do(t, p, `app.state.set({paint: "size"})`)
	answered(t, p)
	require.GreaterOrEqual(t, ask[int](t, p, "app.map.list[0].tile.rects.y.length"), 1_000_000)
	for _, part := range []int{1, 10, 50, 1000} {
		do(t, p, fmt.Sprintf(`app.state.window(app.trace.events / 2, app.trace.events / 2 + app.trace.events / %d)`, part))
		followed := ask[string](t, p, "app.map.list[0].plot.dataset.ms")
		answered(t, p)
		t.Logf("1/%d: %s ms with what was there, %s ms with %.0f blocks of the window", part, followed,
			ask[string](t, p, "app.map.list[0].plot.dataset.ms"), ask[float64](t, p, "app.map.list[0].tile.rects.y.length"))
		// A pixel has the colour of a block that touches it or its neighbours; where there is none,
		// it is ground.
		wrong := ask[[]string](t, p, `(() => {
			const m = app.map.list[0], r = m.tile.rects, v = m.view(), w = m.pixels.width, h = m.pixels.height;
			const image = m.pixels.getContext("2d").getImageData(0, 0, w, h).data, hex = (n) => n.toString(16).padStart(2, "0");
			const ground = new Set(), bad = [];
			let seed = 7, painted = 0;
			for (let k = 0; k < 120; k++) {
				seed = (seed * 1103515245 + 12345) % 2147483648;
				const x = seed % w;
				seed = (seed * 1103515245 + 12345) % 2147483648;
				const y = seed % h, at = (y * w + x) * 4;
				const color = "#" + hex(image[at]) + hex(image[at + 1]) + hex(image[at + 2]);
				const events = (n) => v.x0 + (n / w) * (v.x1 - v.x0), bytes = (n) => v.y1 - (n / h) * (v.y1 - v.y0);
				const paint = m.tints.paint, colors = new Set();
				let inside = false;
				for (let i = 0; i < r.y.length; i++) {
					if (r.born[i] > events(x + 2) || r.dies[i] < events(x - 1) || r.y[i] > bytes(y - 1) || r.y[i] + r.size[i] < bytes(y + 2)) continue;
					colors.add(paint.color({size: r.size[i]}));
					inside ||= r.born[i] <= events(x) && r.dies[i] >= events(x + 1) && r.y[i] <= bytes(y + 1) && r.y[i] + r.size[i] >= bytes(y);
				}
				const shades = [...colors].map((c) => darker(c));
				if (colors.has(color) || shades.includes(color)) painted++;
				else if (inside) bad.push("a block covers the pixel and " + color + " is not of one that touches it");
				else ground.add(color);
				function darker(c) { return "#" + [1, 3, 5].map((n) => hex(Math.floor(parseInt(c.slice(n, n + 2), 16) * 0.66))).join(""); }
			}
			if (painted < 60) bad.push("only " + painted + " pixels have the colour of a block");
			return bad;
		})()`)
		require.Empty(t, wrong, "1/%d", part)
	}
	do(t, p, "app.state.window(0, app.trace.events)") // what is known is shown at once
	require.Greater(t, ask[float64](t, p, "app.map.list[0].tile.rects.y.length"), 0.0)
}

// TestHeapIsShownBeforeTheReplayEnds shows what the recorded blocks say of an event and then what a
// replay says: both have the same blocks.
func TestHeapIsShownBeforeTheReplayEnds(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "w1.parquet")
	require.NoError(t, exec.Command(shared.program, "trace", "gen", "w1", "--live", "2000", "--pairs", "100000",
		trace).Run())
	p := served(t, "--strategies", "caching", trace)
	answered(t, p)
	do(t, p, `window.seen = []; const renew = app.instant.renew;
		let go; const first = new Promise((done) => (go = done)), ask = window.fetch; // the replay ends after the blocks are there
		window.fetch = async (question, o) => { if (question.startsWith("state")) await first; return ask(question, o); };
		app.instant.renew = function () { renew.call(this); seen.push(this.heap, this.note.textContent); go(); };
		app.state.set({event: 190000})`)
	answered(t, p)
	require.Equal(t, []string{"rebuilt", "recorded"}, ask[[]string](t, p, "[seen[0].how, seen[2].how]"))
	require.True(t, ask[bool](t, p, `seen[1].includes("Replaying") && !seen[3].includes("Replaying")`))
	require.True(t, ask[bool](t, p, `(() => {
		const blocks = (heap) => heap.chunks.filter((c) => app.report.states[c.state] === "live").map((c) => [c.addr, c.size, c.requested, c.id].join()).sort();
		const [a, b] = [blocks(seen[0]), blocks(seen[2])];
		return a.length > 1500 && a.join(";") === b.join(";");
	})()`))
	held := func(i int) float64 {
		return ask[float64](t, p, fmt.Sprintf("seen[%d].regions.reduce((n, r) => n + r.size, 0)", i))
	}
	require.Equal(t, held(2), held(0))
}
