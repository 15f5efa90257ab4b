package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// writtenWords keeps every word that a canvas shows, with its place in points.
const writtenWords = `window.words = new Map();
const plain = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
	const list = window.words.get(this.canvas) ?? [];
	window.words.set(this.canvas, list);
	list.push([text, x / (window.devicePixelRatio || 1)]);
	plain.apply(this, arguments);
};`

// TestAxisOfALongTraceShowsTimes draws a trace of many buckets in which time goes faster and
// faster, and one large block begins at a time that the test knows. The words that a chart and the
// map show below their axes, and the pixels at which the block begins, must agree on that time,
// whole and zoomed.
func TestAxisOfALongTraceShowsTimes(t *testing.T) {
	const events, begins = 30_000, 17_000
	at := func(event int) float64 { return float64(event) * float64(event) * 1000 } // nanoseconds
	var text strings.Builder
	for i := range events {
		switch {
		case i == begins:
			fmt.Fprintf(&text, "a %d 64MiB", events)
		case i%2 == 1 && i != begins+1:
			fmt.Fprintf(&text, "f %d", i-1)
		default:
			fmt.Fprintf(&text, "a %d 512", i)
		}
		fmt.Fprintf(&text, " t=%.0f\n", 7e11+at(i)) // the axis begins with the trace
	}
	path := made(t, "replay", "--strategy", "caching", traceFile(t, "faster.trace", text.String()))
	p := opened(t, path, desk, "#unit=time", writtenWords)
	require.Greater(t, ask[int](t, p, `app.trace.shift`), 1, "a bucket holds many events")

	for _, window := range [][2]int{{0, events}, {begins - 1000, begins + 2000}} {
		if window[1] < events {
			do(t, p, fmt.Sprintf(`window.words.clear(); app.state.window(%d, %d)`, window[0], window[1]))
		}
		// What a reader does: two ticks with their words give the scale, and the pixel of the step
		// its time.
		got := ask[map[string]float64](t, p, `(() => {
			const units = {ns: 1, "µs": 1e3, ms: 1e6, s: 1e9};
			const ticks = (canvas) => window.words.get(canvas)
				.map(([text, x]) => [/^([\d.]+) (ns|µs|ms|s)$/.exec(text), x]).filter(([m]) => m)
				.map(([m, x]) => ({x, time: Number(m[1]) * units[m[2]]})).sort((a, b) => a.x - b.x);
			const read = (list, x) => {
				const a = list[0], b = list[list.length - 1];
				return a.time + (x - a.x) / (b.x - a.x) * (b.time - a.time);
			};
			const u = app.timeline.memory.u, scale = window.devicePixelRatio || 1;
			const at = u.bbox, y = Math.round(u.valToPos(40 * 2 ** 20, "y", true));
			const row = u.ctx.getImageData(at.left, y, at.width, 1).data;
			let chart = 0; // the darkest pixel: the line of reserved memory, or the lower bound on it
			const light = (x) => row[4 * x + 3] < 128 ? 765 : row[4 * x] + row[4 * x + 1] + row[4 * x + 2]; // nothing is there
			for (let x = 1; x < at.width; x++) if (light(x) < light(chart)) chart = x;
			const map = app.map.list[0], c = map.pixels, v = map.view();
			const rects = map.tile.rects, large = rects.size.indexOf(64 * 2 ** 20);
			const high = rects.y[large] + rects.size[large] / 2;
			const line = Math.floor(c.height - (high - v.y0) / (v.y1 - v.y0) * c.height);
			const pixels = new Uint32Array(c.getContext("2d").getImageData(0, line, c.width, 1).data.buffer);
			const block = pixels.findIndex((n, i) => i > 0 && pixels[c.width - 1] === n);
			return {
				chart: read(ticks(u.ctx.canvas), (at.left + chart + 0.5) / scale), map: read(ticks(map.frame), c.offsetLeft + block / scale),
				least: Math.min(ticks(u.ctx.canvas).length, ticks(map.frame).length), point: (v.x1 - v.x0) / c.width,
			};
		})()`)
		require.GreaterOrEqual(t, got["least"], 2.0, "ticks have words")
		// A bucket is drawn from its first event on; the line and the ticks are as wide as two
		// points.
		blur := at(begins) - at(begins-8) + 3*got["point"]
		require.InDelta(t, at(begins), got["chart"], blur, "the chart, %v: %v", window, got)
		require.InDelta(t, at(begins), got["map"], blur, "the map, %v: %v", window, got)
		require.Less(t, blur, at(window[1])/20)
	}
}
