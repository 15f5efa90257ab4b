package sweep_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/strategies"
)

// logStudy is a study of two op logs, which [files] has.
const logStudy = `
logs: [syn_unet4, syn_chain64]
strategies: [bestfit, bfc, bfc:growth]
remat: {heuristics: [eq, lru], ladders: [none], budgets: ["0.3:0.9:0.2", 1], limit: 3}
`

// TestLogsAreSweptAsTheGridRunsThem compares merged results with a grid of the same logs, which
// also finds all of its cells in the store.
func TestLogsAreSweptAsTheGridRunsThem(t *testing.T) {
	p, d := planOf(t, logStudy), storeIn(t)
	require.Len(t, p.Rows, 2*2*(1+3)*5)
	for i := range 3 {
		s, err := p.Run(t.Context(), sweep.Shard{Index: i, Count: 3}, worker(d))
		require.NoError(t, err)
		require.Equal(t, s.Cells, s.Computed)
	}
	m, err := p.Merge(t.Context(), d)
	require.NoError(t, err)
	require.Empty(t, m.Missing)
	require.Len(t, m.Times, len(p.Rows))
	for _, timed := range m.Times {
		require.Positive(t, *timed.Seconds)
	}
	names, err := d.Names(t.Context(), "cells/")
	require.NoError(t, err)
	require.Len(t, names, p.Distinct())

	var logs []grid.Log
	for _, name := range []string{"syn_unet4", "syn_chain64"} {
		l, err := files.Log(name)
		require.NoError(t, err)
		logs = append(logs, *l)
	}
	var setups []setting.Setup
	for _, name := range []string{"bestfit", "bfc", "bfc:growth"} {
		s, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		setups = append(setups, s)
	}
	o := grid.Usual()
	o.Heuristics, o.Ladders, o.Limit, o.Cells = []string{"eq", "lru"}, []string{"none"}, 3, cell.Over(d)
	o.Ratios, err = grid.ParseRatios("0.3:0.9:0.2,1")
	require.NoError(t, err)
	r, err := grid.Grid(t.Context(), logs, setups, o)
	require.NoError(t, err)
	require.Len(t, m.Logs, len(r.Runs))
	for i, run := range r.Runs {
		require.Equal(t, run, m.Logs[i].Run)
	}
	after, err := d.Names(t.Context(), "cells/")
	require.NoError(t, err)
	require.Equal(t, names, after)
}

// TestLogsSurviveTheirFiles writes plan and results of logs, and repeats them.
func TestLogsSurviveTheirFiles(t *testing.T) {
	p, d := planOf(t, logStudy), storeIn(t)
	var b bytes.Buffer
	require.NoError(t, p.Write(&b))
	got, err := sweep.ReadPlan(bytes.NewReader(b.Bytes()), int64(b.Len()), "plan.parquet", budget.New(0))
	require.NoError(t, err)
	require.Equal(t, p, got)

	_, err = got.Run(t.Context(), sweep.Shard{Count: 1}, worker(d))
	require.NoError(t, err)
	file := merged(t, got, d)
	results, err := sweep.ReadResults(bytes.NewReader(file), int64(len(file)), "results.parquet", budget.New(0))
	require.NoError(t, err)
	require.Equal(t, len(p.Rows), results.Len())
	found, err := sweep.Repeat(t.Context(), results, worker(storeIn(t)))
	require.NoError(t, err)
	require.Empty(t, found)
	chosen, cells := sweep.Sample(results, 0.1, 1)
	require.Equal(t, p.Distinct(), cells)
	require.Equal(t, (cells+9)/10, chosen.Len())
	bad := sweep.Results{Logs: slices.Clone(results.Logs)}
	bad.Logs[7].ComputeCalls++
	bad.Logs[9].Settings.Limit = 4
	bad.Logs[11].Swaps = &remat.Swaps{}
	bad.Logs[13].Baseline = true
	bad.Logs[14].Steps++
	opens, w := 0, worker(storeIn(t))
	w.Open.Log = func(spec string) (*grid.Log, error) {
		opens++
		return files.Log(spec)
	}
	found, err = sweep.Repeat(t.Context(), bad, w)
	require.NoError(t, err)
	require.Equal(t, 2, opens, "a difference does not begin anew")
	require.Len(t, found, 5)
	for i, want := range []string{"compute_calls is ", "cell is ", "swap is {", "is_baseline is true", "events is "} {
		require.ErrorContains(t, &found[i], want)
	}
}

// TestResultsKeepTheirKind merges a plan of logs none of whose cells exist.
func TestResultsKeepTheirKind(t *testing.T) {
	m, err := planOf(t, logStudy).Merge(t.Context(), storeIn(t))
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, m.Write(&b))
	results, err := sweep.ReadResults(bytes.NewReader(b.Bytes()), int64(b.Len()), "results.parquet", budget.New(0))
	require.NoError(t, err)
	require.True(t, results.OfLogs)
}

// TestFailuresOfLogsAreResults has a strategy that cannot start, and one that panics.
func TestFailuresOfLogsAreResults(t *testing.T) {
	c := append(strategies.All(), setting.SpecOf("broken", "", func(device.Source, struct{}) (alloc.Strategy, error) {
		return nil, errors.New("no table")
	}), setting.SpecOf("panics", "", func(device.Source, struct{}) (alloc.Strategy, error) { panic("no luck") }))
	s, err := sweep.ReadStudy(strings.NewReader("logs: [syn_unet4]\nstrategies: [broken, panics]\n"+
		"remat: {heuristics: [eq], ladders: [none], budgets: [0.5]}\n"), c)
	require.NoError(t, err)
	p, err := sweep.Make(t.Context(), s, files, nil)
	require.NoError(t, err)
	w := worker(storeIn(t))
	w.Catalogue = c
	for i := range 2 {
		s, err := p.Run(t.Context(), sweep.Shard{Count: 1}, w)
		require.NoError(t, err)
		require.Equal(t, []int{3, 2, 3 * (1 - i), 3 * i}, []int{s.Cells, s.Failed, s.Computed, s.Present})
	}
	m, err := p.Merge(t.Context(), w.Store)
	require.NoError(t, err)
	require.Equal(t, map[int]string{1: "in 237.79MiB: no table", 2: "panic: no luck"}, m.Failures)
	require.Equal(t, "panic: no luck", m.Logs[2].Failed)
	require.Equal(t, "panics", m.Logs[2].Strategy)
	l, err := files.Log("syn_unet4")
	require.NoError(t, err)
	o := s.Remat
	o.Cells = cell.Over(w.Store)
	_, err = grid.Grid(t.Context(), []grid.Log{*l}, s.Strategies[:1], o)
	require.ErrorContains(t, err, "broken on syn_unet4 by eq at 0.5: in 237.79MiB: no table")
	var b strings.Builder
	require.NoError(t, p.Status(&b, m))
	require.Contains(t, b.String(), ": broken on syn_unet4 by eq, none, at 0.5: in 237.79MiB: no table\n")
}

func TestStudiesOfLogsRefuse(t *testing.T) {
	for text, want := range map[string]string{
		"logs: [a]\ntraces: [b]\n":                     "line 1, column 1: want traces or logs, each in a study of its own",
		"logs: [a]\ndevices: [sim]\n":                  "line 2, column 1: devices is for traces, and the study has logs",
		"traces: [a]\nremat: {limit: 3}\n":             "line 2, column 1: remat is for logs, and the study has traces",
		"logs: [a]\nremat: eq\n":                       "line 2, column 8: want a mapping, such as {heuristics",
		"logs: [a]\nremat: {heuristic: [eq]}\n":        `line 2, column 9: unknown field "heuristic": did you mean "heuristics"?`,
		"logs: [a]\nremat: {heuristics: [lru, qe]}\n":  `line 2, column 27: heuristic "qe"`,
		"logs: [a]\nremat: {ladders: [steep]}\n":       `line 2, column 19: ladder "steep"`,
		"logs: [a]\nremat: {budgets: [0]}\n":           `line 2, column 19: ratio "0": want more than 0`,
		"logs: [a]\nremat: {limit: 1}\n":               "line 2, column 16: 1: want more than 1, at most 1000000",
		"logs: [a]\nremat: {limit: x}\n":               `line 2, column 16: "x": want a number`,
		"logs: [a]\nremat: {eager_in_remat: 7}\n":      `line 2, column 25: "7": want true or false`,
		"logs: [a]\nremat: {liveness: lazy}\n":         `line 2, column 19: liveness "lazy"`,
		"logs: [a]\nremat: {sampling: [1]}\n":          "line 2, column 19: want a text",
		"logs: [a]\nremat: {quirks: none, seed: -1}\n": `line 2, column 17: `,
	} {
		_, err := sweep.ReadStudy(strings.NewReader(text+"strategies: [bfc]\n"), strategies.All())
		require.ErrorContains(t, err, want, text)
	}
	_, err := sweep.ReadStudy(strings.NewReader("logs: [a]\nstrategies: [bfc, counting]\n"), strategies.All())
	require.ErrorContains(t, err, "line 2, column 19: counting always runs with logs")
}

// TestPlansOfLogsAreChecked changes rows so that a worker could not run them.
func TestPlansOfLogsAreChecked(t *testing.T) {
	for want, change := range map[string]func(p *sweep.Plan){
		"row 1: ratio ":                       func(p *sweep.Plan) { p.Rows[1].Case.Ratio = 1 << 60 },
		`row 1: heuristic "x"`:                func(p *sweep.Plan) { p.Rows[1].Case.Heuristic = "x" },
		"row 1: 0: want more than 1":          func(p *sweep.Plan) { p.Rows[1].Case.Settings.Limit = 0 },
		`search "quick" of a log`:             func(p *sweep.Plan) { p.Rows[1].Search = sweep.Quick },
		"row 1: strategy counting on a trace": func(p *sweep.Plan) { p.Rows[1].Case = nil },
		"row 1: a log with learn":             func(p *sweep.Plan) { p.Rows[1].Learn = "short" },
		"row 7: search \"remat\"":             func(p *sweep.Plan) { p.Rows[7].Case = nil },
		"row 1: want traces or logs":          func(p *sweep.Plan) { p.Rows[1] = planOf(t, study).Rows[1] },
	} {
		p := planOf(t, logStudy)
		change(p)
		var b bytes.Buffer
		require.NoError(t, p.Write(&b))
		_, err := sweep.ReadPlan(bytes.NewReader(b.Bytes()), int64(b.Len()), "plan.parquet", budget.New(0))
		require.ErrorContains(t, err, want)
	}
}
