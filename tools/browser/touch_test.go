package main

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// fingers puts fingers on a page, moves them in ten steps, and lifts them.
func fingers(t *testing.T, p *tab, from, to []point) {
	t.Helper()
	send := func(kind input.DispatchTouchEventType, share float64) {
		params := input.DispatchTouchEventParams{Type: kind, TouchPoints: []*input.TouchPoint{}}
		if kind != input.DispatchTouchEventTypeTouchEnd {
			for i := range from {
				id := float64(i)
				params.TouchPoints = append(params.TouchPoints, &input.TouchPoint{
					X: from[i].X + share*(to[i].X-from[i].X), Y: from[i].Y + share*(to[i].Y-from[i].Y), ID: &id,
				})
			}
		}
		_, err := chromedp.Call(p.ctx, input.DispatchTouchEvent, params)
		require.NoError(t, err)
	}
	send(input.DispatchTouchEventTypeTouchStart, 0)
	for i := range 10 {
		send(input.DispatchTouchEventTypeTouchMove, float64(i+1)/10)
	}
	send(input.DispatchTouchEventTypeTouchEnd, 1)
	require.NoError(t, p.settle())
}

// TestFingersMoveTheWindow pans and pinches a chart and a map, and scrolls over them.
func TestFingersMoveTheWindow(t *testing.T) {
	path, err := report(t.Context(), shared.program, t.TempDir(), "report", "compare", "--strategies", "bfc,tlsf",
		"meta_resnet50_b256")
	require.NoError(t, err)
	p := opened(t, path, look{width: 360, height: 740}, "")
	_, err = chromedp.Call(p.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{
		Enabled: true})
	require.NoError(t, err)
	events := ask[float64](t, p, `app.trace.events`)
	window := func() []float64 { return ask[[]float64](t, p, `[app.state.from, app.state.to]`) }
	for _, of := range []string{"app.timeline.memory.u.over", "app.map.list[0].pixels"} {
		do(t, p, `app.state.window(0, app.trace.events); app.state.set({cursor: null, pin: null}); `+of+
			`.scrollIntoView({block: "center"})`)
		box := ask[[]float64](t, p, `(b => [b.left, b.top, b.width, b.height])(`+of+`.getBoundingClientRect())`)
		at := func(share float64) point { return point{box[0] + share*box[2], box[1] + box[3]/2} }

		// All is shown: a finger has nothing to move but the cursor.
		fingers(t, p, []point{at(0.5)}, []point{at(0.25)})
		require.Equal(t, []float64{0, events}, window(), of)
		require.InDelta(t, events/4, ask[float64](t, p, `app.state.cursor`), events/30, of)

		// Two fingers from the middle half to all of the width: half of the axis fills it.
		fingers(t, p, []point{at(0.3), at(0.7)}, []point{at(0.1), at(0.9)})
		zoomed := window()
		require.InDelta(t, events/4, zoomed[0], events/30, of)
		require.InDelta(t, events*3/4, zoomed[1], events/30, of)

		// One finger takes the window with it.
		fingers(t, p, []point{at(0.3)}, []point{at(0.7)})
		require.InDelta(t, zoomed[0]-0.4*(zoomed[1]-zoomed[0]), window()[0], events/30, of)
		require.InDelta(t, zoomed[1]-zoomed[0], window()[1]-window()[0], 1, of)

		// Up and down it scrolls the page, and the window stays.
		before, top := window(), ask[float64](t, p, `scrollY`)
		fingers(t, p, []point{at(0.5)}, []point{{at(0.5).X, at(0.5).Y - 200}})
		require.Greater(t, ask[float64](t, p, `scrollY`), top+50, of)
		require.Equal(t, before, window(), of)
	}
}

// TestATapSelectsABlock taps on a map where a pointer would click.
func TestATapSelectsABlock(t *testing.T) {
	path, err := report(t.Context(), shared.program, t.TempDir(), "report", "compare", "--strategies", "bfc", "--capacity",
		"16MiB", traceFile(t, "small.trace", small))
	require.NoError(t, err)
	p := opened(t, path, look{width: 360, height: 740}, "")
	_, err = chromedp.Call(p.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{
		Enabled: true})
	require.NoError(t, err)
	tap := onMap(t, p, 2.5, 10<<20)
	fingers(t, p, []point{tap}, []point{tap})
	require.NoError(t, p.wait(`window.vramyard.state.pin === 2`))
	require.Contains(t, ask[string](t, p, `document.querySelector("#vy-map .vy-card").innerText`), "activations")
}
