package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// asked returns a snapshot of PyTorch with a block of each of these stacks, the first of them the
// largest.
func asked(t *testing.T, stacks ...[]string) string {
	t.Helper()
	var entries []map[string]any
	for i, s := range stacks {
		frames := []map[string]any{}
		for k, function := range s {
			frames = append(frames, map[string]any{"filename": "train.py", "line": k + 1, "name": function})
		}
		entries = append(entries, map[string]any{
			"action": "alloc", "addr": 1<<32 + i<<28, "size": (len(stacks) - i) << 21, "stream": 0, "frames": frames,
		})
	}
	text, err := json.Marshal(map[string]any{"segments": []any{}, "device_traces": []any{entries}})
	require.NoError(t, err)
	return traceFile(t, "snapshot.json", string(text))
}

// TestBlockTooltipShowsTheCallSite points at blocks and keeps them.
func TestBlockTooltipShowsTheCallSite(t *testing.T) {
	const evil = `<img/src=x/onerror=window.hurt=1>`
	deep := make([]string, 100)
	for i := range deep {
		deep[i] = fmt.Sprint("f", i)
	}
	file := asked(t, []string{evil, "\u202eouter\u0007"}, []string{strings.Repeat("long", 2_500_000)}, deep, nil)
	for name, open := range map[string]func(t *testing.T) *tab{
		"file":   func(t *testing.T) *tab { return visit(t, "compare", "--strategies", "bfc", file) },
		"served": func(t *testing.T) *tab { return served(t, "--device", "sim:32MiB", "--strategies", "bfc", file) },
	} {
		t.Run(name, func(t *testing.T) { requireWhoAsked(t, open(t), evil) })
	}
}

// requireWhoAsked points at the blocks of a page and keeps them.
func requireWhoAsked(t *testing.T, p *tab, evil string) {
	t.Helper()
	said := func(block int) string {
		at := onMap(t, p, 3.5, ask[float64](t, p,
			fmt.Sprintf(`(r => r.y[%[1]d] + r.size[%[1]d] / 2)(app.map.list[0].tile.rects)`, block)))
		require.NoError(t, chromedp.Do(p.ctx, chromedp.MouseEvent("mouseMoved", at.X, at.Y)))
		tip := ask[string](t, p, `document.querySelector(".vy-tip").innerText`)
		require.NoError(t, chromedp.Do(p.ctx, chromedp.MouseClickXY(at.X, at.Y)))
		return tip
	}
	calls := `[...document.querySelectorAll("#vy-map .vy-card li")].map(l => l.textContent)`
	require.Contains(t, said(0), "train.py:1 "+evil+"\ntrain.py:2 \ufffdouter\ufffd")
	require.Equal(t, []string{"train.py:1 " + evil, "train.py:2 \ufffdouter\ufffd"}, ask[[]string](t, p, calls))
	require.Contains(t, said(1), "train.py:1 longlong")
	require.Less(t, len(ask[[]string](t, p, calls)[0]), 300)
	require.Contains(t, said(2), "train.py:4 f3\n… 61 more: click the block")
	list := ask[[]string](t, p, calls)
	require.Len(t, list, 65)
	require.Equal(t, "… outer frames omitted", list[64])
	require.NotContains(t, said(3), "requested at", "nothing is known of the last")
	require.Empty(t, ask[[]string](t, p, calls))
	require.Contains(t, ask[string](t, p, `document.querySelector("#vy-map .vy-card").innerText`), "2.00 MiB")
	do(t, p, `document.querySelector("#vy-map .vy-card button").click()`)
	require.True(t, ask[bool](t, p, `document.querySelector("#vy-map .vy-card").hidden && app.state.pin === null`))
	require.False(t, ask[bool](t, p, `"hurt" in window || document.querySelector("main img") !== null`))
	require.Less(t, ask[float64](t, p, `document.documentElement.scrollWidth - innerWidth`), 1.0)
	require.Less(t, ask[int](t, p, `document.documentElement.outerHTML.length`), 1_000_000)
}
