package main

import (
	"bufio"
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

// served starts "vramyard view" on files and opens its page. At the end the page must have asked nobody else
// and logged nothing, and the program must end well when it is interrupted.
func served(t *testing.T, words ...string) *tab {
	t.Helper()
	c := exec.Command(house.program, append([]string{"view", "--no-browser", "--cache", "none"}, words...)...)
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
	p, err := open(house.browser, address+"0/", desk, "")
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
	_, err := eval[bool](p, "new Promise(done => setTimeout(() => done(true), 200))") // what rests is asked for after 90 ms
	require.NoError(t, err)
	require.NoError(t, p.wait(`document.documentElement.dataset.asking === "0"`))
	require.NoError(t, p.settle())
}

// TestAServedPageKnowsAllWhenLookedAtCloser zooms into a trace that a page has no room for.
func TestAServedPageKnowsAllWhenLookedAtCloser(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "w1.parquet")
	require.NoError(t, exec.Command(house.program, "trace", "gen", "w1", "--live", "2000", "--pairs", "50000", trace).Run())
	p := served(t, "--strategies", "caching,bfc", trace)
	require.False(t, ask[bool](t, p, "app.map.list[0].tile.complete"))
	require.Greater(t, ask[int](t, p, "app.trace.shift"), 0)
	events := ask[float64](t, p, "app.trace.events")

	do(t, p, "app.state.window(50000, 50400)")
	answered(t, p)
	for _, i := range []string{"0", "1"} {
		require.True(t, ask[bool](t, p, "app.map.list["+i+"].tile.complete"))
		// Every event of the window but its first is the birth or the end of a block that is there within.
		require.Equal(t, 399.0, ask[float64](t, p, `(() => {
			const r = app.map.list[`+i+`].tile.rects, at = new Set();
			for (let k = 0; k < r.born.length; k++) for (const e of [r.born[k], r.dies[k]]) if (e > 50000 && e < 50400) at.add(e);
			return at.size;
		})()`))
	}
	require.Equal(t, 0, ask[int](t, p, "app.trace.shift"))
	require.Equal(t, ask[float64](t, p, "app.trace.events"), events)
	// The highest values of the whole are what they were: no finer bucket lies above the coarse one around it.
	require.True(t, ask[bool](t, p, `(() => {
		const r = app.trace.runs[0], top = (v) => v.reduce((a, b) => Math.max(a, b), 0);
		return top(r.series.reserved.max) === top(r.whole.reserved.max) && top(app.trace.bound) === top(app.trace.whole.bound);
	})()`))
	require.True(t, ask[bool](t, p, `app.trace.buckets.first.every((e, i, all) => i === 0 || e === app.trace.buckets.last[i - 1] + 1)`))

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
	require.True(t, ask[bool](t, p, "app.map.list[0].tile === app.map.list[0].run.map && app.trace.buckets === app.trace.whole.buckets"))
}
