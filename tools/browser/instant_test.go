package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRebuiltHeapNamesItsSource looks at an event of which no state was recorded, and at one
// behind the end of a run.
func TestRebuiltHeapNamesItsSource(t *testing.T) {
	p := visit(t, "compare", "--strategies", "slabbuddy", "meta_resnet50_b256")
	recorded := ask[int](t, p, `app.trace.runs[0].instants[0].event`)
	do(t, p, `app.instant.go(app.trace.runs[0].instants[0].event)`)
	require.Contains(t, ask[string](t, p, `app.instant.note.textContent`), "As recorded, chunk by chunk.")
	require.Contains(t, ask[string](t, p, `app.instant.side.innerText`), "By bin, order or size class")

	do(t, p, `app.instant.go(app.trace.runs[0].instants[0].event - 1)`)
	require.Equal(t, recorded-1, ask[int](t, p, `app.instant.heap.event`))
	require.Contains(t, ask[string](t, p, `app.instant.note.textContent`), "Rebuilt from the blocks of the map")
	side := ask[string](t, p, `app.instant.side.innerText`)
	require.Contains(t, side, "Blocks by bin, order or size class")
	require.Contains(t, side, "The class of free memory is known at recorded instants only.")
	require.Contains(t, side, "As of event")
	// The blocks that the first table counts are the live ones of a class, no free memory among
	// them.
	sums := ask[[]int](t, p, `(() => {
		const table = [...app.instant.side.querySelectorAll("table")].find((t) => t.caption.textContent.startsWith("Blocks by"));
		const told = [...table.tBodies[0].rows].reduce((n, r) => n + Number(r.cells[1].textContent.replace(/\s/g, "")), 0);
		return [told, app.instant.heap.chunks.filter((c) => app.instant.isBlock(c) && c.class >= 0).length];
	})()`)
	require.Equal(t, sums[1], sums[0])
	require.Positive(t, sums[0])

	short := visit(t, "replay", "--strategy", "bfc", "--device", "sim:8MiB", "--stop-at-oom",
		traceFile(t, "o.trace", "a 1 4MiB\na 2 64MiB\nf 1\na 3 1MiB\n"))
	do(t, short, `app.instant.go(3)`)
	require.Contains(t, ask[string](t, short, `app.instant.note.textContent`), "The run ended there, before event 3.")
}

// touching makes regions that touch and regions that are partly free, on one stream.
const touching = "a 1 30MiB\na 2 30MiB\na 3 30MiB\na 4 1MiB\nf 2\nf 1\na 5 5MiB\nf 3\na 6 40MiB\nf 5\na 7 300KiB\n" +
	"f 4\nf 6\n"

// TestARebuiltInstantHasTheRegionsOfTheStrategy compares rebuilt instants, chunk by chunk, with a
// walk of the strategy at the same event, which the program that serves a page answers with. The
// strategies merge adjacent free chunks.
func TestARebuiltInstantHasTheRegionsOfTheStrategy(t *testing.T) {
	strategies := []string{"caching", "caching:expandable", "bfc:growth", "bfc:vmm", "tlsf:growth", "vmm"}
	words := []string{"--strategies", strings.Join(strategies, ","), "--device", "sim:256MiB",
		traceFile(t, "touching.trace", touching)}
	file, live := visit(t, append([]string{"compare"}, words...)...), served(t, words...)
	type state struct {
		How    string
		Chunks [][]float64
	}
	at := func(p *tab, run, event int) state {
		do(t, p, fmt.Sprintf(`app.state.set({run: %d, event: %d})`, run, event))
		if p == live {
			answered(t, p)
		}
		return ask[state](t, p, `(({how, regions, chunks}) => {
			const held = chunks.filter((c) => c.state !== 4);
			return {How: how, Chunks: held.map((c) => [regions[c.region].addr, c.addr, c.size, c.state, c.id])};
		})(app.instant.heap)`)
	}
	rebuilt := 0
	for run, name := range strategies {
		touched := false
		for event := range strings.Count(touching, "\n") {
			got, want := at(file, run, event), at(live, run, event)
			require.Equal(t, "recorded", want.How)
			if got.How != "rebuilt" {
				continue
			}
			rebuilt++
			require.Equal(t, want.Chunks, got.Chunks, "%s after event %d", name, event)
			for i := 1; i < len(got.Chunks); i++ {
				before, c := got.Chunks[i-1], got.Chunks[i]
				touched = touched || before[1]+before[2] == c[1] && before[0] != c[0]
			}
		}
		if name == "caching" {
			require.True(t, touched, "regions touch, or the test says nothing")
		}
	}
	require.Greater(t, rebuilt, 3*len(strategies))
}

// TestBlocksHaveTheColoursOfTheirCallSites opens a snapshot with stacks, of which two lead to one
// call site, as a file and served.
func TestBlocksHaveTheColoursOfTheirCallSites(t *testing.T) {
	file := asked(t, []string{"forward", "train"}, []string{"other"}, []string{"forward", "eval"}, nil)
	for name, open := range map[string]func() *tab{
		"file":   func() *tab { return visit(t, "compare", "--strategies", "bfc", file) },
		"served": func() *tab { return served(t, "--device", "sim:64MiB", "--strategies", "bfc", file) },
	} {
		p := open()
		require.Equal(t, "site", ask[string](t, p, `app.state.paint`), name)
		at := func(block int) string {
			return colorOnMap(t, p, 3.5, ask[float64](t, p,
				fmt.Sprintf(`(r => r.y[%[1]d] + r.size[%[1]d] / 2)(app.map.list[0].tile.rects)`, block)))
		}
		require.Equal(t, "#88ccee", at(0), name)
		require.Equal(t, at(0), at(2), name)
		require.Equal(t, "#cc6677", at(1), name)
		require.Equal(t, "#a8a8a8", at(3), "no stack")
		key := ask[string](t, p, `app.map.key.innerText`)
		for _, want := range []string{"train.py:1 forward", "train.py:1 other", "no known stack"} {
			require.Contains(t, key, want, name)
		}
		do(t, p, `app.instant.go(2)`)
		require.Equal(t, []int{1, 2, 1},
			ask[[]int](t, p, `app.instant.heap.chunks.filter((c) => app.instant.isBlock(c)).map((c) => c.site)`))
	}
	plain := visit(t, "replay", "--strategy", "bfc", traceFile(t, "t.trace", small))
	require.NotContains(t, ask[string](t, plain, `app.map.controls.innerText`), "call site")
	do(t, plain, `app.state.set({paint: "site"})`)
	require.Equal(t, "tag", ask[string](t, plain, `app.state.paint`), "a trace without stacks has no call sites")
}

// TestInitialColouringDistinguishesBlocks opens traces without tags.
func TestInitialColouringDistinguishesBlocks(t *testing.T) {
	for want, c := range map[string]struct{ strategy, trace string }{
		"tag":      {"bfc", small},
		"stream":   {"bfc", "a 1 1MiB\na 2 1MiB stream=7\nf 1\n"},
		"class":    {"slab", "a 1 256\na 2 2KiB\na 3 1KiB\nf 1\n"},
		"lifetime": {"tlsf", "a 1 1MiB\na 2 4MiB\nf 1\n"},
	} {
		p := visit(t, "replay", "--strategy", c.strategy, traceFile(t, "t.trace", c.trace))
		require.Equal(t, want, ask[string](t, p, `app.state.paint`))
		do(t, p, `app.state.set({paint: "size"})`)
		require.Equal(t, "size", ask[string](t, p, `app.state.paint`))
	}
}

// TestBinsOfFreeMemoryShowNoShareInUse looks at a strategy whose blocks are in no bin, and at one
// whose blocks have a class.
func TestBinsOfFreeMemoryShowNoShareInUse(t *testing.T) {
	const few = "a 1 1MiB\na 2 300KiB\na 3 1MiB\nf 2\na 4 256\n"
	bins := visit(t, "replay", "--strategy", "bfc", "--device", "sim:48MiB", traceFile(t, "f.trace", few))
	require.Contains(t, ask[string](t, bins, `app.instant.side.innerText`), "By bin, order or size class (free)")
	require.Zero(t, ask[int](t, bins, `app.instant.side.querySelectorAll("meter").length`))
	classes := visit(t, "replay", "--strategy", "slab", traceFile(t, "s.trace", "a 1 256\na 2 2KiB\na 3 1KiB\n"))
	require.Positive(t, ask[int](t, classes, `app.instant.side.querySelectorAll("meter").length`))
}

// TestFreeChunksStandInTheirBins reads the columns of the event of --at, and of one near it.
func TestFreeChunksStandInTheirBins(t *testing.T) {
	const few = "a 1 1MiB\na 2 300KiB\na 3 1MiB\na 4 300KiB\na 5 1MiB\nf 2\nf 4\na 6 256\na 7 256\n"
	const columns = `[...app.instant.bins.querySelectorAll(".vy-bins > li")].map((bin) =>
		[...bin.querySelectorAll("b, small, li")].map((e) => e.textContent).join(" | "))`
	p := visit(t, "replay", "--strategy", "bfc", "--device", "sim:48MiB", "--at", "6", traceFile(t, "f.trace", few))
	require.Equal(t, 6, ask[int](t, p, `app.state.event`))
	want := []string{"10 | 2: 600.00 KiB | 2 × 300.00 KiB", "17 | 1: 43.58 MiB | 43.58 MiB"}
	require.Equal(t, want, ask[[]string](t, p, columns))
	do(t, p, `app.instant.go(7)`) // rebuilt from the blocks, so the bins are those of event 6
	require.Equal(t, want, ask[[]string](t, p, columns))
	require.Contains(t, ask[string](t, p, `app.instant.bins.textContent`), "after event 6")
	none := visit(t, "replay", "--strategy", "direct", traceFile(t, "d.trace", few))
	require.Empty(t, ask[string](t, none, `app.instant.bins.textContent`))
}

// TestSizesStayOffTheStripes holds the words in blocks to the place that rounding leaves them.
func TestSizesStayOffTheStripes(t *testing.T) {
	var text strings.Builder
	for i := range 24 {
		fmt.Fprintf(&text, "a %d %dKiB\n", i, 1040+40*i)
	}
	p := visit(t, "replay", "--strategy", "buddy", traceFile(t, "f.trace", text.String()))
	type words struct{ Said, Over, Left int }
	got := ask[words](t, p, `(() => {
		const of = CanvasRenderingContext2D.prototype, write = of.fillText, ends = [];
		let from; // where the rows begin: addresses end six points before

		of.fillText = function (text, x, y) {
			if (this.textAlign === "right") from = x + 6;
			if (this.textAlign === "left") ends.push({ x: x - 4, end: x + this.measureText(text).width });
			return write.call(this, text, x, y);
		};
		app.instant.draw();
		of.fillText = write;
		const { layout, heap, scale } = app.instant, n = { Said: 0, Over: 0, Left: 0 };
		for (const piece of layout.pieces) for (const c of heap.chunks) {
			if (!app.instant.isBlock(c) || c.addr < piece.addr || c.addr >= piece.addr + piece.size) continue;
			const x = from + (piece.from + c.addr - piece.addr) * scale;
			const said = ends.find((e) => Math.abs(e.x - x) < 0.01);
			if (!said) n.Left++;
			else { n.Said++; if (said.end > x + c.requested * scale) n.Over++; }
		}
		return n;
	})()`)
	require.Positive(t, got.Said)
	require.Zero(t, got.Over)
}

// TestAxesCountWholeEvents opens a trace with a single event, whose axis has no room for even
// steps.
func TestAxesCountWholeEvents(t *testing.T) {
	p := visit(t, "replay", "--strategy", "caching", traceFile(t, "one.trace", "a 1 1MiB\n"))
	require.Equal(t, []string{"0", "1"}, ask[[]string](t, p, `app.timeline.charts[0].u.axes[0]._values`))
}
