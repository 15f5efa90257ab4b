package chart_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/show/chart"
	"github.com/vramyard/vramyard/harness/show/report"
)

// gridOf returns the runs of a strategy that completes within all budgets but the second of three.
func gridOf(model, strategy, heuristic, ladder string) (runs []grid.Run) {
	for i := range 3 {
		x := 1.5 - float64(i)/10
		r := grid.Run{Model: model, SHA256: "ab", Strategy: strategy, Heuristic: heuristic, Ladder: ladder, Verdict: remat.OK,
			Ratio: grid.Half + grid.Ratio(i)*grid.Whole/10, Overhead: &x, TotalOverhead: &x, BasePeak: 100, LowerBound: 40}
		if i == 1 {
			r.Verdict = remat.Thrash
		}
		runs = append(runs, r)
	}
	return runs
}

// grid returns runs as a result in JSON.
func gridSVG(t *testing.T, runs ...[]grid.Run) string {
	t.Helper()
	text, err := json.Marshal(&grid.Report{Schema: grid.Schema, Runs: slices.Concat(runs...)})
	require.NoError(t, err)
	return string(text)
}

func TestBudgetCurvesAreNamedByTheirDifferences(t *testing.T) {
	const counting = grid.Counting
	one := read(t, "a.json", gridSVG(t, gridOf("m", counting, "eq", "none"), gridOf("m", "bfc", "eq", "none")))
	all := texts(svg(t, chart.Options{}, one))
	assert.Subset(t, all, []string{counting, "bfc", "lower bound", "budget / base peak (m)", "total overhead"})
	many := read(t, "a.json", gridSVG(t, gridOf("m", counting, "eq", "none"), gridOf("m", counting, "lru", "none"),
		gridOf("m", "bfc", "eq", "none"), gridOf("m", "bfc", "eq", "defrag-first"), gridOf("m", "tlsf", "lru", "none")))
	all = texts(svg(t, chart.Options{}, many))
	assert.Subset(t, all, []string{"counting eq", "counting lru", "bfc eq none", "bfc eq defrag-first", "tlsf lru"})
	all = texts(svg(t, chart.Options{Strategies: []string{"bfc eq none", "tlsf"}}, many))
	assert.Contains(t, all, "tlsf lru")
	assert.NotContains(t, all, "bfc eq defrag-first")
}

// TestBudgetCurvesAreBrokenWhereARunDidNotComplete counts line segments. Marks are
// circles and add none.
func TestBudgetCurvesAreBrokenWhereARunDidNotComplete(t *testing.T) {
	runs := gridOf("m", "bfc", "eq", "none")
	joins := func() int { return strings.Count(svg(t, chart.Options{}, read(t, "a.json", gridSVG(t, runs))), "L") }
	broken := joins()
	runs[1].Verdict = remat.OK
	assert.Equal(t, 2, joins()-broken)
}

func TestBudgetCurvesAreOfOneLogThatCompletes(t *testing.T) {
	two := read(t, "a.json", gridSVG(t, gridOf("m", "bfc", "eq", "none"), gridOf("n", "bfc", "eq", "none")))
	_, err := chart.Draw([]*chart.Source{two}, chart.Options{})
	require.ErrorContains(t, err, "overhead: the results are on the logs m, n: want one, by --trace")
	require.Contains(t, texts(svg(t, chart.Options{Trace: "n"}, two)), "budget / base peak (n)")
	_, err = chart.Draw([]*chart.Source{read(t, "a.json", gridSVG(t, gridOf("m", "bfc", "eq", "none")[1:2]))},
		chart.Options{})
	require.ErrorIs(t, err, chart.ErrNothing)
}

func TestBudgetCurvesOfCSVAndJSONAgree(t *testing.T) {
	runs := gridOf("m", "bfc", "eq", "none")
	var b bytes.Buffer
	require.NoError(t, report.RematTable(&grid.Report{Runs: runs}).WriteCSV(&b))
	require.Equal(t, svg(t, chart.Options{}, read(t, "a.json", gridSVG(t, runs))),
		svg(t, chart.Options{}, read(t, "a.csv", b.String())))
}
