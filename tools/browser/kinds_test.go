package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// pressAll uses every control that a page has, and lets it draw.
func pressAll(t *testing.T, p *tab) {
	t.Helper()
	do(t, p,
		`for (const b of document.querySelectorAll("main .vy-controls button, main thead button, .vy-theme button")) b.click()`)
	do(t, p,
		`for (const s of document.querySelectorAll("main select")) for (const o of s.options) { s.value = o.value; s.dispatchEvent(new Event("change")); }`)
	do(t, p, `for (const c of document.querySelectorAll("main input[type=checkbox]")) c.click()`)
	do(t, p, `document.querySelectorAll("details").forEach((d) => d.open = true)`)
	do(t, p, `document.querySelectorAll("#vy-failures button, nav button").forEach((b) => b.click())`)
}

// TestEveryKindOfRun opens what every command writes of runs that are small, empty and failing, and
// uses every control of the page. Nothing may be logged or asked for, and the views are those that
// such a run has.
func TestEveryKindOfRun(t *testing.T) {
	dir := t.TempDir()
	few := traceFile(t, "few.trace", small)
	none := traceFile(t, "none.trace", "# name none\n")
	marks := traceFile(t, "marks.trace", "# name marks\nmark begin\nmark end\n")
	one := traceFile(t, "one.trace", "# name one\na 1 1MiB\n")
	full := traceFile(t, "full.trace", "# name full\na 1 8MiB tag=x\na 2 20MiB\nf 1\n")
	timed := filepath.Join("..", "..", "examples", "oom", "chat.pickle.gz")
	const timeline, instant, failures = "vy-timeline", "vy-instant", "vy-failures"
	for name, run := range map[string]struct {
		words []string
		views []string // that must be there and seen
	}{
		"compare, small": {[]string{"compare", "--strategies", "bfc,slab,buddy:xdl", few},
			[]string{timeline, "vy-map", instant, failures, "vy-latency"}},
		"compare, several traces": {[]string{"compare", "--strategies", "bfc,tlsf", few, none, full},
			[]string{timeline, "vy-map", instant}},
		"compare, failing": {[]string{"compare", "--strategies", "bfc,tlsf", "--capacity", "16MiB", full},
			[]string{timeline, instant, failures}},
		"compare, empty": {[]string{"compare", "--strategies", "bfc", none}, nil},
		"replay, small": {[]string{"replay", "--strategy", "caching", few},
			[]string{timeline, "vy-map", instant, "vy-latency"}},
		"replay, empty":       {[]string{"replay", "--strategy", "caching", none}, nil},
		"replay, marks alone": {[]string{"replay", "--strategy", "caching", marks}, nil},
		"replay, one event":   {[]string{"replay", "--strategy", "caching", one}, []string{timeline, "vy-map", instant}},
		"replay, failing": {[]string{"replay", "--strategy", "tlsf", "--device", "sim:16MiB", full},
			[]string{timeline, instant, failures}},
		"replay, stopped": {[]string{"replay", "--strategy", "tlsf", "--device", "sim:16MiB", "--stop-at-oom", full},
			[]string{timeline, instant, failures}},
		"replay, with times": {[]string{"replay", "--strategy", "caching:expandable", timed},
			[]string{timeline, "vy-map", instant}},
		"whatif, failing": {[]string{"whatif", timed}, []string{"vy-answer", timeline, failures}},
		"bench, one number": {[]string{"bench", "--strategies", "bfc", "--workloads", "w1", "--live", "20", "--pairs",
			"50", "--rounds", "1"}, []string{"vy-bench"}},
		"check, all holds": {[]string{"check", "--strategies", "tlsf", "--tests", "3"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := report(t.Context(), shared.program, dir, filepath.Base(t.Name()), run.words...)
			require.NoError(t, err)
			p := opened(t, path, desk, "")
			for _, id := range run.views {
				require.True(t, ask[bool](t, p, `document.getElementById("`+id+`")?.offsetHeight > 30`), id)
			}
			require.NotEmpty(t, ask[string](t, p, `document.querySelector("main table").innerText.trim()`), "there is a table")
			for range 2 {
				pressAll(t, p)
			}
		})
	}
}

// TestAnswersHaveAllTheirParts asks about a deployment, with a setting that holds for a phase, with
// one that a line of Python sets, and with one that does not suffice without other pools.
func TestAnswersHaveAllTheirParts(t *testing.T) {
	const copied = `document.querySelector("#vy-answer pre").textContent`
	trace := traceFile(t, "phase.trace", "# framework=PyTorch\n# torch=2.11.0\nmark load\na 1 100MiB\nf 1\na 2 61MiB\n"+
		"a 3 59MiB\nmark loaded\n")
	grid := traceFile(t, "phase.yaml", "- strategy: caching\n  conf: max_split_size_mb:64@load..loaded\n")
	p := visit(t, "whatif", "--device", "sim:130MiB", "--permit", "rdma", "--grid", grid, trace)
	require.Equal(t, `torch.cuda.memory._set_allocator_settings("max_split_size_mb:64")  # at the mark "load"`+"\n"+
		`torch.cuda.memory._set_allocator_settings("")  # at the mark "loaded"`, ask[string](t, p, copied))
	require.Contains(t, ask[string](t, p, `document.getElementById("vy-answer").innerText`),
		"The deployment\nThe settings must work with rdma (--permit).")

	trace = traceFile(t, "tf.trace", "# framework=TensorFlow\n# per_process_gpu_memory_fraction=0.5\na 1 100MiB\n")
	grid = traceFile(t, "tf.yaml", "- strategy: bfc\n  conf: per_process_gpu_memory_fraction=0.9\n")
	p = visit(t, "whatif", "--device", "sim:150MiB", "--grid", grid, trace)
	require.Regexp(t, `^session = .*per_process_gpu_memory_fraction=.*\nexport TF_ENABLE_GPU_GARBAGE_COLLECTION=false$`,
		ask[string](t, p, copied))

	trace = traceFile(t, "pools.trace", "# framework=PyTorch\n# torch=2.11.0\npool begin 1 stream=1\na 1 30MiB stream=1\nf 1\n"+
		"pool end 1\npool begin 2 stream=1\na 2 60MiB stream=1\nf 2\npool end 2\n")
	grid = traceFile(t, "pools.yaml", "- strategy: caching\n- strategy: caching\n  conf: expandable_segments:True\n")
	p = visit(t, "whatif", "--device", "sim:80MiB", "--permit", "rdma,graphs", "--grid", grid, trace)
	require.Equal(t, "Capturing in descending order of batch size into one pool completes this run on a card of 80.00 MiB; "+
		"no setting of PyTorch that was permitted does.", ask[string](t, p, `document.querySelector("#vy-answer p").textContent`))
	require.Contains(t, ask[string](t, p, copied), "shared = torch.cuda.graph_pool_handle()\nfor batch in sorted(")
	require.Equal(t, "Left out: caching expandable_segments:True", ask[string](t, p,
		`document.querySelector("#vy-answer li:has(ul)").firstChild.textContent`))
	require.Regexp(t, "^with rdma: ", ask[string](t, p,
		`document.querySelector("#vy-answer li li").textContent`))
	require.NotContains(t, ask[string](t, p,
		`[...document.querySelectorAll(".vy-label")].map((e) => e.textContent).join()`), " in the answer")
}
