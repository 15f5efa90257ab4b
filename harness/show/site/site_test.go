package site_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/show/site"
	"github.com/vramyard/vramyard/harness/study/board"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/strategies"
)

// committed returns results of docs/board.md: of traces and of logs.
func committed(t *testing.T) (all sweep.Results) {
	t.Helper()
	for _, name := range []string{"online", "remat", "remat-moves"} {
		path := "../../../benchmarks/results/board/" + name + ".parquet"
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		results, err := sweep.ReadResults(bytes.NewReader(text), int64(len(text)), path, budget.New(1<<30))
		require.NoError(t, err)
		all.Traces, all.Logs = append(all.Traces, results.Traces...), append(all.Logs, results.Logs...)
	}
	return all
}

func filesOf(t *testing.T, results sweep.Results) []site.File {
	t.Helper()
	b, err := board.Collect(results, "", strategies.All())
	require.NoError(t, err)
	b.Rank(1)
	files, err := site.Files(b, site.Options{Version: "9", Checked: "Nothing was checked.",
		Tables: []string{"a.parquet 12", "<b>.parquet 34"}})
	require.NoError(t, err)
	return files
}

// loads matches the attributes and rules that load a file.
var loads = regexp.MustCompile(`(?:src|href|action|data)\s*=\s*"([^"]*)"|url\(([^)]*)\)|@import`)

func TestPagesAreOfflineAndTheSameEveryTime(t *testing.T) {
	results := committed(t)
	files := filesOf(t, results)
	assert.Equal(t, files, filesOf(t, results))
	known := map[string]bool{}
	for _, f := range files {
		assert.False(t, known[f.Name], f.Name)
		known[f.Name] = true
	}
	for _, f := range files {
		text := string(f.Data)
		assert.NotContains(t, text, "<script")
		for _, m := range loads.FindAllStringSubmatch(text, -1) {
			assert.True(t, known[m[1]], "%s loads %q", f.Name, m[0])
		}
		limit := 64 << 10
		if strings.HasSuffix(f.Name, ".svg") {
			limit = 30 << 10
		}
		assert.Less(t, len(f.Data), limit, f.Name)
	}
	for _, r := range results.Traces {
		assert.Contains(t, page(t, files, "trace-"+r.Trace+".html"), r.Cell, "every cell is on the page of its trace")
	}
	const budgets = "Budgets tried, in peaks without a budget: 0.12 to 0.72 in steps of 0.01 and 0.75 to 1.1 in " +
		"steps of 0.05."
	assert.Contains(t, page(t, files, "rematerialization.html"), budgets+" Smaller differences are not seen.")
	for _, r := range results.Logs {
		text := page(t, files, "log-"+r.Model+".html")
		assert.Contains(t, text, budgets)
		name := strings.TrimSuffix(r.Strategy+" by "+r.Heuristic+" with "+r.Ladder, " with none")
		assert.Contains(t, text, "<code>"+name+"</code>")
	}
	assert.Contains(t, page(t, files, "pareto-virtual-memory.svg"), "above: slabbuddy:xdl, 1.676")
	front := page(t, files, "pareto-rematerialization.svg")
	assert.NotContains(t, front, "above: ")
	assert.Equal(t, 2, strings.Count(front, ">slabbuddy by eq<"), "in the legend and beside its point")
	assert.Equal(t, 1, strings.Count(front, ">bfc by coop<"), "not on the front")
	profile := page(t, files, "profile-rematerialization.svg")
	for i, color := range []string{"#006BBD", "#CA5422", "#14A178"} {
		assert.Contains(t, profile, fmt.Sprintf("fill:none;stroke:%s;stroke-width:%.3g", color, 2.4-0.22*float64(i)))
	}
}

// TestRunsThatDecideARow has a log on which feasibility is not monotone, one that no budget tried
// suffices for, and a strategy that fails with an error.
func TestRunsThatDecideARow(t *testing.T) {
	setup, err := strategies.All().Lookup("bfc", nil)
	require.NoError(t, err)
	config, err := json.Marshal(setup.Config)
	require.NoError(t, err)
	settings := grid.Usual().Settings
	settings.Limit, settings.Quirks = 3, "a,b"
	var all sweep.Results
	for i, name := range []string{"<b>/../cnn", "none"} {
		for k, verdict := range []remat.Verdict{remat.OOMCapacity, remat.Thrash, remat.OK, remat.Thrash, remat.OK,
			remat.OOMFragmentation} {
			r := sweep.RematResult{Cell: fmt.Sprintf("cell %d%d", i, k), Semantics: setup.Semantics, Config: config,
				Settings: settings, Path: "secret/it's " + strconv.Itoa(i) + ".log.gz"}
			r.Model, r.SHA256, r.Strategy, r.Heuristic, r.Ladder = name, name, "bfc", "mge:size=2", "evict-first"
			r.Ratio, r.Budget, r.LowerBound = grid.Ratio(200_000+100_000*k), device.Size(2000+1000*k), 1000
			if r.Verdict = verdict; i == 1 {
				r.Verdict, r.Failed, r.Budget = "", "no <table>", 0
			} else if verdict == remat.OK {
				r.TotalOverhead = new(1.5)
			}
			all.Logs = append(all.Logs, r)
		}
	}
	files := filesOf(t, all)
	text := page(t, files, "log--b-..-cnn.html")
	const name, command = "<code>bfc by mge:size=2 with evict-first</code></td>",
		"<code>vramyard remat &#39;it&#39;\\&#39;&#39;s %d.log.gz&#39; --heuristics mge:size=2 --strategies bfc " +
			"--ladders evict-first --budgets %v --quirks=a,b --limit=3</code>"
	assert.Contains(t, text, name+`<td class="n">4,000</td><td class="n">4.000</td><td class="n">1.500</td><td>`+
		"<div>completes within 0.4 × the peak, but fails within 0.5 and 0.7</div><code>cell 02</code><br>"+
		fmt.Sprintf(command, 0, 0.4)+"<div>fails within 0.3 × the peak: thrash (3,000 bytes, 3.000 × bound)</div>"+
		"<code>cell 01</code><br>"+fmt.Sprintf(command, 0, 0.3)+"</td>")
	assert.Contains(t, text, "On this log bfc by mge:size=2 with evict-first needs the least memory, 4.000 times the ")
	assert.NotContains(t, text, "device calls")
	text = page(t, files, "log-none.html")
	assert.Contains(t, text, "No result: no strategy completes this log.")
	assert.Contains(t, text, name+`<td class="n">failed</td><td class="n">–</td><td class="n">–</td><td>`+
		"<div>fails within 0.7 × the peak: no &lt;table&gt;</div><code>cell 15</code><br>"+fmt.Sprintf(command, 1, 0.7))
	assert.NotContains(t, text, "secret")
	const footer = "<footer>Logs: liveness eager, "
	index := page(t, files, "index.html")
	assert.Contains(t, index, footer)
	assert.Contains(t, index, "Seed of the bootstrap: 1. ")
	assert.NotContains(t, index, "Not listed")
	assert.Contains(t, index, "Every strategy of the results passed its check and is listed.")
	assert.Contains(t, index, " Results, with SHA-256: <code>a.parquet 12</code> "+
		"<code>&lt;b&gt;.parquet 34</code></footer>")
	assert.Contains(t, index, "<code>secret/it&#39;s 0.log.gz</code>")
	assert.Contains(t, text, footer)
	assert.NotContains(t, page(t, files, "plain.html"), "Logs: ")
	assert.NotContains(t, page(t, files, "rematerialization.html"), "calls of the probes")
}

func page(t *testing.T, files []site.File, name string) string {
	t.Helper()
	for _, f := range files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	t.Fatalf("no page %s", name)
	return ""
}

func TestTheFirstSentenceIsTheAnswer(t *testing.T) {
	files := filesOf(t, committed(t))
	for _, f := range files {
		if strings.HasSuffix(f.Name, ".html") {
			first := regexp.MustCompile(`<p[^>]*>([^<]*)`).FindStringSubmatch(string(f.Data))
			require.Len(t, first, 2)
			assert.Regexp(t, "least memory|no single best|No result", first[1], f.Name)
		}
	}
}

// TestHostileNames passes names that a file may have.
func TestHostileNames(t *testing.T) {
	setup, err := strategies.All().Lookup("bfc", nil)
	require.NoError(t, err)
	config, err := json.Marshal(setup.Config)
	require.NoError(t, err)
	var results []sweep.Result
	for i, name := range []string{"<script>alert(1)</script>", "../../etc/passwd", "..  etc passwd", "a\x1b[2Jb",
		"it's; rm -rf $HOME", strings.Repeat("x", 5000)} {
		r := sweep.Result{Cell: fmt.Sprintf("%064d", i), Target: "sim", Search: sweep.Minimum, FreeAt: "requested",
			Semantics: setup.Semantics}
		r.Strategy, r.Config, r.Trace, r.TraceSHA256, r.Starts = "bfc", config, name, fmt.Sprint(i), true
		r.LowerBound, r.MinCapacity, r.DeviceCalls = 1<<20, new(device.Size(1<<21)), 1
		results = append(results, r)
	}
	files := filesOf(t, sweep.Results{Traces: results})
	for _, f := range files {
		assert.Regexp(t, `^[A-Za-z0-9_.-]{1,100}$`, f.Name)
		assert.NotContains(t, string(f.Data), "<script")
		assert.NotContains(t, string(f.Data), "\x1b")
	}
	assert.Contains(t, page(t, files, "trace-it-s-rm-rf-HOME.html"),
		"vramyard compare --strategies bfc --free-at requested &#39;it&#39;\\&#39;&#39;s; rm -rf $HOME&#39;")
}

// TestOutliersDoNotTakeTheHeight has six strategies that need much more memory than the others. One
// of them makes the fewest device calls.
func TestOutliersDoNotTakeTheHeight(t *testing.T) {
	var results []sweep.Result
	for i := range 32 {
		config := []byte(fmt.Sprintf(`{"conf":"max_split_size_mb:%d"}`, 100+i))
		setup, err := strategies.All().Lookup("caching", config)
		require.NoError(t, err)
		r := sweep.Result{Cell: fmt.Sprintf("%064d", i), Target: "sim", Search: sweep.Minimum, FreeAt: "completed",
			Semantics: setup.Semantics}
		r.Strategy, r.Config, r.Trace, r.Starts, r.Completed = fmt.Sprint("caching", string(config)), config, "w1", true, true
		r.LowerBound, r.MinCapacity, r.DeviceCalls = 1000, new(device.Size(1100+i)), 50
		if i < 7 {
			r.MinCapacity = new(device.Size(2000 - i))
		}
		if i == 6 {
			r.DeviceCalls = 1
		}
		results = append(results, r)
	}
	text := page(t, filesOf(t, sweep.Results{Traces: results}), "pareto-plain.svg")
	assert.Contains(t, text, "above: caching{&#34;conf&#34;:&#34;max_split_size_mb:105&#34;}, 1.995")
	assert.Contains(t, text, "2 more above the axis")
	assert.NotContains(t, text, "1.994", "the front is never outside")
}
