package figure_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/figure"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/rematgrid"
	"github.com/vramyard/vramyard/harness/report"
)

// gridOf returns the runs of a strategy that completes within all budgets but the second of three.
func gridOf(model, strategy, heuristic, ladder string) (runs []rematgrid.Run) {
	for i := range 3 {
		x := 1.5 - float64(i)/10
		r := rematgrid.Run{Model: model, SHA256: "ab", Strategy: strategy, Heuristic: heuristic, Ladder: ladder, Verdict: remat.OK,
			Ratio: rematgrid.Half + rematgrid.Ratio(i)*rematgrid.Whole/10, Overhead: &x, Total: &x, BasePeak: 100, Lower: 40}
		if i == 1 {
			r.Verdict = remat.Thrash
		}
		runs = append(runs, r)
	}
	return runs
}

// grid returns runs as a result in JSON.
func grid(t *testing.T, runs ...[]rematgrid.Run) string {
	t.Helper()
	text, err := json.Marshal(&rematgrid.Report{Schema: rematgrid.Schema, Runs: slices.Concat(runs...)})
	require.NoError(t, err)
	return string(text)
}

func TestBudgetCurvesNameWhatTellsThemApart(t *testing.T) {
	const counting = rematgrid.Counting
	one := read(t, "a.json", grid(t, gridOf("m", counting, "eq", "none"), gridOf("m", "bfc", "eq", "none")))
	all := texts(svg(t, figure.Options{}, one))
	assert.Subset(t, all, []string{counting, "bfc", "lower bound", "budget / base peak (m)", "total overhead"})
	many := read(t, "a.json", grid(t, gridOf("m", counting, "eq", "none"), gridOf("m", counting, "lru", "none"),
		gridOf("m", "bfc", "eq", "none"), gridOf("m", "bfc", "eq", "defrag-first"), gridOf("m", "tlsf", "lru", "none")))
	all = texts(svg(t, figure.Options{}, many))
	assert.Subset(t, all, []string{"counting eq", "counting lru", "bfc eq none", "bfc eq defrag-first", "tlsf lru"})
	all = texts(svg(t, figure.Options{Strategies: []string{"bfc eq none", "tlsf"}}, many))
	assert.Contains(t, all, "tlsf lru")
	assert.NotContains(t, all, "bfc eq defrag-first")
}

// TestBudgetCurvesAreBrokenWhereARunDidNotComplete counts what joins points; marks are round.
func TestBudgetCurvesAreBrokenWhereARunDidNotComplete(t *testing.T) {
	runs := gridOf("m", "bfc", "eq", "none")
	joins := func() int { return strings.Count(svg(t, figure.Options{}, read(t, "a.json", grid(t, runs))), "L") }
	broken := joins()
	runs[1].Verdict = remat.OK
	assert.Equal(t, 2, joins()-broken)
}

func TestBudgetCurvesAreOfOneLogThatCompletes(t *testing.T) {
	two := read(t, "a.json", grid(t, gridOf("m", "bfc", "eq", "none"), gridOf("n", "bfc", "eq", "none")))
	_, err := figure.Draw([]*figure.Source{two}, figure.Options{})
	require.ErrorContains(t, err, "overhead: the results are on the logs m, n: want one, by --trace")
	require.Contains(t, texts(svg(t, figure.Options{Trace: "n"}, two)), "budget / base peak (n)")
	_, err = figure.Draw([]*figure.Source{read(t, "a.json", grid(t, gridOf("m", "bfc", "eq", "none")[1:2]))}, figure.Options{})
	require.ErrorIs(t, err, figure.ErrNothing)
}

func TestBudgetCurvesOfACSVAreThoseOfTheJSON(t *testing.T) {
	runs := gridOf("m", "bfc", "eq", "none")
	var b bytes.Buffer
	require.NoError(t, report.RematTable(&rematgrid.Report{Runs: runs}).WriteCSV(&b))
	require.Equal(t, svg(t, figure.Options{}, read(t, "a.json", grid(t, runs))), svg(t, figure.Options{}, read(t, "a.csv", b.String())))
}
