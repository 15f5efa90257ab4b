package sweep_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/internal/budget"
)

// audited returns merged results as a reader of their file gets them. Some have a forecast, some a
// limit, and one setup fails.
func audited(t *testing.T) sweep.Results {
	t.Helper()
	var all sweep.Results
	for _, text := range []string{
		"traces: [short, long]\nsearches: [quick]\nstrategies: [bestfit, bfc, slab:blaze]\n",
		"traces: [long]\nlearn: short\nsearches: [replay]\nstrategies: [stalloc]\n",
	} {
		p, d := planOf(t, text), storeIn(t)
		_, err := p.Run(t.Context(), sweep.Shard{Count: 1}, worker(d))
		require.NoError(t, err)
		m, err := p.Merge(t.Context(), d)
		require.NoError(t, err)
		all.Traces = append(all.Traces, m.Traces...)
	}
	var b bytes.Buffer
	require.NoError(t, all.Write(&b))
	read, err := sweep.ReadResults(bytes.NewReader(b.Bytes()), int64(b.Len()), "results.parquet", budget.New(0))
	require.NoError(t, err)
	require.Equal(t, 7, read.Len())
	return read
}

func TestRepeatReproducesResults(t *testing.T) {
	found, err := sweep.Repeat(t.Context(), audited(t), worker(storeIn(t)))
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestRepeatNamesTheDifference(t *testing.T) {
	good := audited(t)
	for name, c := range map[string]struct {
		change func(r *sweep.Result)
		want   string
	}{
		"a figure":      {func(r *sweep.Result) { *r.MinCapacity -= 1 }, "min_capacity_bytes is "},
		"a lost figure": {func(r *sweep.Result) { r.MinCapacity = nil }, "min_capacity_bytes is null in the results and "},
		"calls":         {func(r *sweep.Result) { r.DeviceCalls++ }, "device_calls is "},
		"a failure":     {func(r *sweep.Result) { r.Failed = "out of luck" }, `failed is "out of luck" in the results and "" now`},
		"a config":      {func(r *sweep.Result) { r.Config = []byte(`{"limit":"64MiB"}`) }, "cell is "},
		"a search":      {func(r *sweep.Result) { r.Search = sweep.Minimum }, "cell is "},
		"semantics":     {func(r *sweep.Result) { r.Semantics = "0" }, "semantics is 0 in the results and "},
	} {
		t.Run(name, func(t *testing.T) {
			bad := sweep.Results{Traces: slices.Clone(good.Traces)}
			bad.Traces[1].MinCapacity = new(*bad.Traces[1].MinCapacity)
			c.change(&bad.Traces[1])
			found, err := sweep.Repeat(t.Context(), bad, worker(storeIn(t)))
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.ErrorContains(t, &found[0], c.want)
			require.ErrorContains(t, &found[0], good.Traces[1].Cell[:12]+": bfc")
		})
	}
	bad := sweep.Results{Traces: slices.Clone(good.Traces)}
	bad.Traces[1].Strategy = "bcf"
	_, err := sweep.Repeat(t.Context(), bad, worker(storeIn(t)))
	require.ErrorContains(t, err, `unknown strategy "bcf"`)
}

func TestSample(t *testing.T) {
	var rows sweep.Results
	for i := range 400 {
		rows.Traces = append(rows.Traces, sweep.Result{Cell: fmt.Sprintf("%064d", i/2)}) // two names of each cell
	}
	for share, want := range map[float64]int{0: 1, 0.001: 1, 0.01: 2, 0.011: 3, 0.5: 100, 1: 200} {
		chosen, cells := sweep.Sample(rows, share, 3)
		assert.Equal(t, 200, cells)
		assert.Equal(t, want, chosen.Len())
		byCell := func(a, b sweep.Result) int { return strings.Compare(a.Cell, b.Cell) }
		assert.True(t, slices.IsSortedFunc(chosen.Traces, byCell))
		again, _ := sweep.Sample(rows, share, 3)
		assert.Equal(t, chosen, again)
	}
	a, _ := sweep.Sample(rows, 0.1, 3)
	b, _ := sweep.Sample(rows, 0.1, 4)
	assert.NotEqual(t, a, b)
}

func TestAuditSaysHowSureItIs(t *testing.T) {
	// With 59 of very many cells checked, 5 % may differ: 0.95^59 is just below 0.05.
	a := sweep.Audit{Cells: 1_000_000, Checked: 59}
	assert.InDelta(t, 50_000, a.Bound(), 600)
	assert.Equal(t, "59 of 1000000 cells checked, and none differs: with 95 % confidence at most 49506 of 1000000 "+
		"(4.95 %) do", a.String())
	assert.Equal(t, 19, (&sweep.Audit{Cells: 20, Checked: 1}).Bound(),
		"1 of 20 remains possible with a probability of 5 %")
	assert.Equal(t, 0, (&sweep.Audit{Cells: 20, Checked: 20}).Bound())
	assert.Equal(t, "all 20 cells are reproduced byte for byte", (&sweep.Audit{Cells: 20, Checked: 20}).String())
	a = sweep.Audit{Cells: 20, Checked: 3, Differences: make([]sweep.Difference, 1)}
	assert.Equal(t, "1 of 3 checked cells differ", a.String())
}

func TestReadResultsRefuses(t *testing.T) {
	for want, r := range map[string]sweep.Result{
		`row 0: cell "abc": want 64`:   {Cell: "abc"},
		`search "fast": want`:          {Cell: fmt.Sprintf("%064d", 1), Path: "a", Search: "fast"},
		`device "gpu"`:                 {Cell: fmt.Sprintf("%064d", 1), Path: "a", Search: sweep.Quick, Target: "gpu"},
		"row 0: the path of the trace": {Cell: fmt.Sprintf("%064d", 1), Search: sweep.Quick},
		"counting on a trace": {Cell: fmt.Sprintf("%064d", 1), Path: "a", Search: sweep.Quick,
			Figures: compare.Figures{Strategy: "counting"}},
	} {
		var b bytes.Buffer
		require.NoError(t, (&sweep.Results{Traces: []sweep.Result{r}}).Write(&b))
		_, err := sweep.ReadResults(bytes.NewReader(b.Bytes()), int64(b.Len()), "r.parquet", budget.New(0))
		require.ErrorContains(t, err, "r.parquet: ")
		require.ErrorContains(t, err, want)
	}
	var b bytes.Buffer
	require.NoError(t, planOf(t, study).Write(&b))
	_, err := sweep.ReadResults(bytes.NewReader(b.Bytes()), int64(b.Len()), "plan.parquet", budget.New(0))
	require.Error(t, err)
}
