package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// flame returns the boxes of the flame graph: what is read out of each, and its place in shares of
// the width.
func flame(t *testing.T, p *tab) map[string][2]float64 {
	t.Helper()
	return ask[map[string][2]float64](t, p, `(() => {
		const host = document.querySelector(".vy-flame").getBoundingClientRect();
		return Object.fromEntries([...document.querySelectorAll(".vy-flame-box")].map((b) => {
			const r = b.getBoundingClientRect();
			return [b.getAttribute("aria-label"), [(r.left - host.left) / host.width, r.width / host.width]];
		}));
	})()`)
}

// TestAPageShowsWhoHoldsMemory holds the boxes of a flame graph to the stacks of a snapshot, and
// walks over them by keys.
func TestAPageShowsWhoHoldsMemory(t *testing.T) {
	const evil = `<img/src=x/onerror=window.hurt=1>`
	file := asked(t, []string{evil, "main"}, []string{"load_weights", "main"}, []string{"other"}, nil) // 8, 6, 4 and 2 MiB
	p := visit(t, "replay", "--strategy", "bfc", file)
	require.Equal(t, "vy-holders", ask[string](t, p, `document.querySelector("#vy-app section").id`), "it is the first view")
	require.Contains(t, ask[string](t, p, `document.querySelector("#vy-holders").innerText`),
		"20.00 MiB live in 4 blocks at the peak, after event 3")
	want := map[string][2]float64{
		"all live blocks, 20.00 MiB, 100.0 %, 4 blocks": {0, 1}, "train.py:2 main, 14.00 MiB, 70.0 %, 2 blocks": {0, 0.7},
		"train.py:1 " + evil + ", 8.00 MiB, 40.0 %, 1 block": {0, 0.4}, "train.py:1 load_weights, 6.00 MiB, 30.0 %, 1 block": {0.4, 0.3},
		"train.py:1 other, 4.00 MiB, 20.0 %, 1 block": {0.7, 0.2}, "(not recorded), 2.00 MiB, 10.0 %, 1 block": {0.9, 0.1},
	}
	requireBoxes := func(want map[string][2]float64) {
		t.Helper()
		got := flame(t, p)
		require.Len(t, got, len(want))
		for label, place := range want {
			require.InDeltaSlice(t, place[:], []float64{got[label][0], got[label][1]}, 0.002, label)
		}
	}
	requireBoxes(want)
	require.False(t, ask[bool](t, p, `"hurt" in window`))
	require.Equal(t, []string{"not known 14.00 MiB, 70.0 %", "weights 6.00 MiB, 30.0 %"},
		ask[[]string](t, p, `[...document.querySelectorAll("#vy-holders .vy-key")].map((k) => k.textContent)`))

	// One box is reached by Tab. Arrow keys lead from line to line, Enter fills the width, Escape
	// shows all.
	require.Equal(t, 1, ask[int](t, p, `document.querySelectorAll('.vy-flame-box[tabindex="0"]').length`))
	press := func(keys ...string) string {
		for _, k := range keys {
			require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent(k)))
		}
		return ask[string](t, p, `document.activeElement.getAttribute("aria-label")`)
	}
	do(t, p, `document.querySelector('.vy-flame-box[tabindex="0"]').focus()`)
	require.Contains(t, press(kb.ArrowDown), "main")
	require.Contains(t, press(kb.ArrowDown, kb.ArrowRight), "load_weights")
	require.Contains(t, press(kb.ArrowRight), "load_weights", "it is the last of its caller")
	require.Contains(t, press(kb.Enter), "load_weights")
	requireBoxes(map[string][2]float64{
		"all live blocks, 20.00 MiB, 100.0 %, 4 blocks": {0, 1}, "train.py:2 main, 14.00 MiB, 70.0 %, 2 blocks": {0, 1},
		"train.py:1 load_weights, 6.00 MiB, 30.0 %, 1 block": {0, 1},
	})
	press(kb.Escape)
	requireBoxes(want)
	require.Contains(t, press(kb.Home), "all live blocks")

	// The table agrees, and the button leads to the blocks.
	require.Contains(t, ask[string](t, p, `document.querySelector("#vy-holders table").innerText`), "train.py:1 load_weights")
	do(t, p, `app.instant.go(0); document.querySelector("#vy-holders .vy-controls button").click()`)
	require.Equal(t, 3, ask[int](t, p, `app.state.event`))
}

// TestTheFailureHasAFlameGraphToo switches to the last refused request of a run that died, in a
// page that is served.
func TestTheFailureHasAFlameGraphToo(t *testing.T) {
	file := filepath.Join("..", "..", "examples", "oom", "chat.pickle.gz")
	out, err := exec.Command(shared.program, "top", "--json", "-", file).Output()
	require.NoError(t, err)
	var truth struct {
		Peak, Failure struct {
			Event  int     `json:"event"`
			Bytes  float64 `json:"live_bytes"`
			Stacks []struct {
				Lines []string `json:"lines"`
				Bytes float64  `json:"bytes"`
			} `json:"stacks"`
		}
	}
	require.NoError(t, json.Unmarshal(out, &truth))
	p := served(t, file)
	for i, m := range []struct {
		event int
		bytes float64
	}{{truth.Peak.Event, truth.Peak.Bytes}, {truth.Failure.Event, truth.Failure.Bytes}} {
		do(t, p, fmt.Sprintf(`document.querySelectorAll("#vy-holders .vy-switch button")[%d].click()`, i))
		stacks := truth.Peak.Stacks
		if i == 1 {
			stacks = truth.Failure.Stacks
		}
		boxes := flame(t, p)
		for _, s := range stacks[:2] {
			found := 0.0
			for label, place := range boxes {
				if len(label) > len(s.Lines[0]) && label[:len(s.Lines[0])+1] == s.Lines[0]+"," {
					found = place[1]
				}
			}
			require.InDelta(t, s.Bytes/m.bytes, found, 0.002, s.Lines[0])
		}
		do(t, p, `document.querySelector("#vy-holders .vy-controls > button").click()`)
		require.Equal(t, m.event, ask[int](t, p, `app.state.event`))
	}
}

// TestTracesWithoutStacksShowWhatTheyHave opens a trace with tags, and one with neither.
func TestTracesWithoutStacksShowWhatTheyHave(t *testing.T) {
	tags := visit(t, "replay", "--strategy", "bfc", traceFile(t, "tags.trace", small))
	require.Contains(t, flame(t, tags), "weights, 8.00 MiB, 66.7 %, 1 block")
	require.Contains(t, ask[string](t, tags, `document.querySelector("#vy-holders").innerText`),
		"Categories are what the tags begin with.")
	sizes := visit(t, "replay", "--strategy", "bfc", traceFile(t, "sizes.trace", "a 1 1MiB\na 2 2MiB\na 3 2MiB\n"))
	require.Contains(t, flame(t, sizes), "blocks of 2MiB, 4.00 MiB, 80.0 %, 2 blocks")
	require.Contains(t, ask[string](t, sizes, `document.querySelector("#vy-holders").innerText`),
		"Less than half of the bytes have a stack or a tag")
	none := visit(t, "replay", "--strategy", "bfc", traceFile(t, "none.trace", "# name none\nmark x\n"))
	require.True(t, ask[bool](t, none, `document.querySelector("#vy-holders").hidden`))
}
