package report_test

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/show/report"
)

// gridOf returns a report of a log that two strategies run: one as if bytes were counted, one that
// fails again within more and one that completes nowhere.
func gridOf() *grid.Report {
	const tenth = grid.Whole / 10
	r := &grid.Report{Settings: grid.Settings{Liveness: "eager", Defrag: "slide", Limit: 2},
		Logs: []grid.Base{{Model: "net\x1b", SHA256: "abc", Ops: 3, Time: 1500, Peak: 2048,
			Bounds: grid.Bounds{Constant: 512, LowerBound: 1024}}}}
	for _, s := range []struct {
		strategy string
		ends     [3]remat.Verdict
	}{
		{grid.Counting, [3]remat.Verdict{remat.OK, remat.OK, remat.OK}},
		{"worst", [3]remat.Verdict{remat.OOMRounding, remat.OOMCapacity, remat.Thrash}},
		{"odd", [3]remat.Verdict{remat.OK, remat.OOMFragmentation, remat.OK}},
	} {
		for i, v := range s.ends {
			x := 1.5 - float64(i)/4
			r.Runs = append(r.Runs, grid.Run{Model: "net\x1b", SHA256: "abc", Strategy: s.strategy, Ladder: grid.Evict,
				Heuristic: "eq", Ratio: grid.Half + tenth*grid.Ratio(i), Verdict: v, Overhead: &x, TotalOverhead: &x})
		}
	}
	r.Lines = grid.LinesOf(r.Runs)
	return r
}

func TestTheTableOfAGrid(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, report.RematTables(&b, gridOf()))
	require.Equal(t,
		`"net\x1b" completes within 0.5 × the base peak, the smallest budget that sufficed, with odd by eq (ladder none): `+
			`1.500 × the time of its operators, the least within that budget; it fails again within 0.6.

budgets are shares of the base peak: the peak of a run without a budget, liveness eager
recomputation may make a run take 2 times the time of its operators; moves (slide) come on top

"net\x1b" by eq: 3 operators of 1.50 µs, base peak 2.00 KiB, sha256 abc
┌─────────────┬────────┬──────────┬──────────┬────────────┬───────────────┬────────┬───────────────┬────────────┐
│ strategy    │ ladder │ feasible │ overhead │ infeasible │ because       │ at 0.5 │ fragmentation │ not moving │
├─────────────┼────────┼──────────┼──────────┼────────────┼───────────────┼────────┼───────────────┼────────────┤
│ lower bound │        │    0.500 │        — │          — │               │      — │             — │          — │
│ counting    │ none   │      0.5 │    1.500 │          — │               │  1.500 │             — │          — │
├─────────────┼────────┼──────────┼──────────┼────────────┼───────────────┼────────┼───────────────┼────────────┤
│ odd         │ none   │      0.5 │    1.500 │        0.6 │ fragmentation │  1.500 │           0.0 │          — │
│ worst       │ none   │        — │        — │        0.7 │ thrash        │      — │         > 0.2 │          — │
└─────────────┴────────┴──────────┴──────────┴────────────┴───────────────┴────────┴───────────────┴────────────┘
constants alone are 0.250 base peaks
odd, ladder none: completes within 0.5 and fails again within 0.6

`, b.String())
}

func TestEveryEndOfAGridIsShown(t *testing.T) {
	sheets := report.RematGrids(gridOf())
	require.Len(t, sheets, 1)
	var rows []string
	for _, r := range sheets[0].Rows {
		var cells []string
		for _, c := range r {
			cells = append(cells, c.Text)
		}
		rows = append(rows, strings.Join(cells, " "))
	}
	require.Equal(t, []string{"counting none 1.500 1.250 1.000", "odd none 1.500 frag. 1.000",
		"worst none round. cap. thrash"}, rows)
	require.Equal(t, "oom-fragmentation: 0 evictions, 0 B of them in vain; 0 recomputations, chains of up to 0; 0 B moved",
		sheets[0].Rows[1][3].Hint)
}

func TestTheCSVOfAGridHasARowForEachRun(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, report.RematTable(gridOf()).WriteCSV(&b))
	rows, err := csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 10)
	require.Contains(t, rows[0], "evict_seq_sha256")
	require.Equal(t, "net\x1b", rows[1][0])
}

// TestTheHeadlineOfALogHasAColumnForEachHeuristic joins a grid with itself by another heuristic.
func TestTheHeadlineOfALogHasAColumnForEachHeuristic(t *testing.T) {
	r := gridOf()
	require.Len(t, report.RematSheets(r), 1, "one heuristic needs no headline")
	for _, run := range gridOf().Runs {
		if run.Heuristic = "lru"; run.Strategy != grid.Counting {
			run.Verdict = remat.Thrash
		}
		r.Runs = append(r.Runs, run)
	}
	r.Lines = grid.LinesOf(r.Runs)
	sheets := report.RematSheets(r)
	require.Len(t, sheets, 3)
	cells := [][]string{}
	for _, row := range sheets[0].Rows {
		texts := []string{}
		for _, c := range row {
			texts = append(texts, c.Text)
		}
		cells = append(cells, texts)
	}
	require.Equal(t, [][]string{
		{"lower bound", "", "0.500", "0.500"}, {"counting", "none", "0.5 (1.500)", "0.5 (1.500)"},
		{"odd", "none", "0.5 (1.500)", "—"}, {"worst", "none", "—", "—"},
	}, cells)
	require.Equal(t, "eq", sheets[0].Columns[2].Name)
	require.Equal(t, "lru", sheets[0].Columns[3].Name)
	r.Lines = r.Lines[:4] // an interrupted grid
	require.Equal(t, "—", report.RematSheets(r)[0].Rows[2][3].Text)
}

func TestGridsBeginWithTheWinner(t *testing.T) {
	for _, c := range []struct {
		change func(*grid.Run) bool // reports whether the run stays
		want   string
	}{
		{
			func(r *grid.Run) bool { r.Verdict = remat.OK; return true },
			`"net\x1b" completes within 0.5 × the base peak, the smallest budget that sufficed, with worst by eq (ladder none) and odd by eq (ladder none): ` +
				"1.500 × the time of its operators, the least within that budget.",
		},
		{
			func(r *grid.Run) bool { r.Verdict, r.TotalOverhead = remat.OK, nil; return r.Strategy != "odd" },
			`"net\x1b" completes within 0.5 × the base peak, the smallest budget that sufficed, with worst by eq (ladder none).`,
		},
		{
			func(r *grid.Run) bool { r.Baseline = r.Strategy == "odd"; return true },
			`No strategy but odd, the baseline, completes "net\x1b" within 0.5 × the base peak, the smallest budget that sufficed.`,
		},
		{
			func(r *grid.Run) bool { r.Baseline = true; return r.Strategy == "odd" },
			`odd, the baseline, completes "net\x1b" within 0.5 × the base peak, the smallest budget that sufficed.`,
		},
		{
			func(r *grid.Run) bool { r.Verdict, r.Baseline = remat.OK, r.Strategy == "odd"; return true },
			`"net\x1b" completes within 0.5 × the base peak, the smallest budget that sufficed, with worst by eq (ladder none): ` +
				"1.500 × the time of its operators, the least within that budget.",
		},
		{func(r *grid.Run) bool { return r.Strategy != "odd" },
			`No strategy completes "net\x1b" within any budget that was tried.`},
		{func(r *grid.Run) bool { return r.Strategy == grid.Counting }, "budgets are shares of the base peak: the " +
			"peak of a run without a budget, liveness eager"},
	} {
		r := gridOf()
		var runs []grid.Run
		for _, x := range r.Runs {
			if c.change(&x) {
				runs = append(runs, x)
			}
		}
		r.Runs, r.Lines = runs, grid.LinesOf(runs)
		var b bytes.Buffer
		require.NoError(t, report.RematTables(&b, r))
		first, _, _ := strings.Cut(b.String(), "\n")
		require.Equal(t, c.want, first)
	}
}
