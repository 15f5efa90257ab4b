package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARebuiltInstantSaysWhatItKnows looks at an event of which no state was recorded, and at one behind the end of a run.
func TestARebuiltInstantSaysWhatItKnows(t *testing.T) {
	p := visit(t, "compare", "--strategies", "slabbuddy", "meta_resnet50_b256")
	recorded := ask[int](t, p, `app.trace.runs[0].instants[0].event`)
	do(t, p, `app.instant.go(app.trace.runs[0].instants[0].event)`)
	require.Contains(t, ask[string](t, p, `app.instant.says.textContent`), "As recorded, chunk by chunk.")
	require.Contains(t, ask[string](t, p, `app.instant.side.innerText`), "By bin, order or size class")

	do(t, p, `app.instant.go(app.trace.runs[0].instants[0].event - 1)`)
	require.Equal(t, recorded-1, ask[int](t, p, `app.instant.heap.event`))
	require.Contains(t, ask[string](t, p, `app.instant.says.textContent`), "Rebuilt from the blocks of the map")
	side := ask[string](t, p, `app.instant.side.innerText`)
	require.Contains(t, side, "Blocks by bin, order or size class")
	require.Contains(t, side, "The class of free memory is known at recorded instants only.")
	require.Contains(t, side, "As of event")
	// The blocks that the first table counts are the live ones of a class, no free memory among them.
	sums := ask[[]int](t, p, `(() => {
		const table = [...app.instant.side.querySelectorAll("table")].find((t) => t.caption.textContent.startsWith("Blocks by"));
		const told = [...table.tBodies[0].rows].reduce((n, r) => n + Number(r.cells[1].textContent.replace(/\s/g, "")), 0);
		return [told, app.instant.heap.chunks.filter((c) => app.instant.isBlock(c) && c.class >= 0).length];
	})()`)
	require.Equal(t, sums[1], sums[0])
	require.Positive(t, sums[0])

	short := visit(t, "replay", "--strategy", "bfc", "--device", "sim:8MiB", "--stop-at-oom", traceFile(t, "o.trace", "a 1 4MiB\na 2 64MiB\nf 1\na 3 1MiB\n"))
	do(t, short, `app.instant.go(3)`)
	require.Contains(t, ask[string](t, short, `app.instant.says.textContent`), "The run ended there, before event 3.")
}

// TestColoursHaveSomethingToTell opens traces without tags.
func TestColoursHaveSomethingToTell(t *testing.T) {
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
