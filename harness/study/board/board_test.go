package board_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/board"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/strategies"
)

// result returns a result whose minimum capacity is a percentage of its trace's bound, or a failure
// for 0.
func result(t *testing.T, strategy string, trace int, percent device.Size, calls uint64) sweep.Result {
	t.Helper()
	setup, err := strategies.All().Lookup(strategy, nil)
	require.NoError(t, err)
	config, err := json.Marshal(setup.Config)
	require.NoError(t, err)
	r := sweep.Result{Cell: fmt.Sprintf("%-60s%04d", strategy, trace), Target: "sim", Search: sweep.Minimum,
		FreeAt: replay.AtCompleted, Semantics: setup.Semantics}
	r.Strategy, r.Config = strategy, config
	r.Trace, r.TraceSHA256 = fmt.Sprint("trace ", trace), fmt.Sprint("hash ", trace)
	r.LowerBound, r.DeviceCalls, r.Starts, r.Completed, r.Probes = 100<<20, calls, true, true, 9
	if percent > 0 {
		r.MinCapacity = new(percent << 20)
	} else {
		r.OOMs = 1
	}
	return r
}

// results returns the same result on n traces.
func results(t *testing.T, strategy string, n int, percent device.Size, calls uint64) (all []sweep.Result) {
	t.Helper()
	for i := range n {
		all = append(all, result(t, strategy, i, percent, calls))
	}
	return all
}

func ranked(t *testing.T, rows ...[]sweep.Result) *board.Board {
	t.Helper()
	var all []sweep.Result
	for _, r := range rows {
		all = append(all, r...)
	}
	b, err := board.Collect(sweep.Results{Traces: all}, "", strategies.All())
	require.NoError(t, err)
	require.NoError(t, b.Probe(t.Context()))
	b.Rank(1)
	return b
}

// listed returns the places and names of a track.
func listed(b *board.Board, id string) string {
	var all []string
	for _, t := range b.Tracks {
		if t.ID == id {
			for _, l := range t.Lines {
				all = append(all, fmt.Sprint(l.Place, " ", l.Entry.Name()))
			}
		}
	}
	return strings.Join(all, ", ")
}

func TestTracksFollowFromTheProbes(t *testing.T) {
	learned := result(t, "stalloc", 0, 150, 3)
	learned.Learn = "earlier"
	b := ranked(t, results(t, "bfc", 1, 110, 1), results(t, "caching", 1, 120, 9),
		results(t, "caching:expandable", 1, 110, 30),
		results(t, "vmm", 1, 105, 40), results(t, "async", 1, 130, 4), results(t, "recall:pages", 1, 140, 5),
		results(t, "direct", 1, 100, 900), []sweep.Result{learned})
	assert.Equal(t, "1 bfc, 2 caching, 0 direct", listed(b, "plain"), "a rule forbids async")
	assert.Equal(t, "1 vmm, 2 bfc, 2 caching:expandable, 4 caching, 5 async, 6 recall:pages, 0 direct",
		listed(b, "virtual-memory"))
	assert.Equal(t, "1 bfc, 2 recall:pages", listed(b, "fixed"), "pages of recall stay mapped")
	assert.Equal(t, "1 stalloc", listed(b, "offline"))
	assert.Empty(t, listed(b, "rematerialization"))
	assert.Equal(t, "No result: there are no results of op logs: a study with the key logs has, see docs/sweep.md.",
		b.Tracks[4].Answer)
	assert.Equal(t, "vmm needs the least memory: 1.050 times the lower bound by the geometric mean over 1 trace. Fewer "+
		"than 6 traces have no interval: the order may be chance. Where memory is ample it makes 40 device calls; with "+
		"fewer, on the Pareto front: bfc (1.100 times the bound, 1 device call).", b.Tracks[1].Answer)
}

func TestTiesFailuresAndIntervals(t *testing.T) {
	some := results(t, "dlmalloc", 7, 100, 1)
	some[3].MinCapacity, some[3].OOMs, some[3].Completed = nil, 1, false
	b := ranked(t, results(t, "bfc", 7, 110, 1), results(t, "tlsf", 7, 110, 2), results(t, "bestfit", 7, 120, 1), some)
	plain := b.Tracks[0]
	assert.Equal(t, "1 bfc, 1 tlsf, 3 bestfit, 4 dlmalloc", listed(b, "plain"))
	assert.Equal(t, "bfc and tlsf tie for the least memory: 1.100 times the lower bound by the geometric mean over 7 "+
		"traces (95 % interval 1.100 to 1.100). Not distinguishable from it, because the 95 % intervals of the places "+
		"overlap: dlmalloc. Where memory is ample it makes 1 device call, and no strategy with fewer is on the Pareto "+
		"front.", plain.Answer)
	for i, l := range plain.Lines {
		assert.Equal(t, i == 0, l.Front, l.Entry.Setup.Name)
	}
	failing := plain.Lines[3]
	assert.False(t, failing.Drawn())
	assert.InDelta(t, 6.0/7, failing.Within(1), 1e-9)
	assert.InDelta(t, 6.0/7, failing.Within(1e9), 1e-9, "a failure never reaches 1")
	assert.InDelta(t, 1.1, plain.Lines[0].Profile[0], 1e-9)
	assert.True(t, math.IsInf(failing.Profile[3], 1))
	assert.Equal(t, plain.Title, b.Tracks[1].Same)
}

func TestAReferenceIsNeverOnTheFront(t *testing.T) {
	lines := ranked(t, results(t, "bfc", 1, 110, 9), results(t, "direct", 1, 100, 1)).Tracks[0].Lines
	assert.Equal(t, []bool{true, false}, []bool{lines[0].Front, lines[1].Front})
}

func TestWhoIsNotListed(t *testing.T) {
	old := results(t, "tlsf", 2, 101, 1)
	old[1].Semantics = "0"
	b := ranked(t, results(t, "bfc", 2, 110, 1), old, results(t, "bestfit", 1, 101, 1))
	assert.Equal(t, "1 bfc", listed(b, "plain"))
	assert.Contains(t, b.Entries[1].Unlisted, "its results are of version 0 of its placements, and this program has ")
	assert.Equal(t, "no result on trace 1", b.Entries[2].Unlisted)
}

func TestSettingsMakeAnEntry(t *testing.T) {
	all := results(t, "caching", 1, 110, 1)
	const name = `caching{"conf":"max_split_size_mb:128"}`
	setup, err := strategies.All().Lookup("caching", []byte(`{"conf":"max_split_size_mb:128"}`))
	require.NoError(t, err)
	config, err := json.Marshal(setup.Config)
	require.NoError(t, err)
	other := all[0]
	other.Cell, other.Strategy, other.Config = "1", name, config
	b := ranked(t, all, []sweep.Result{other})
	assert.Equal(t, "1 caching, 1 "+name, listed(b, "plain"))
}

func TestCollectRefuses(t *testing.T) {
	good := results(t, "bfc", 1, 110, 1)
	type change = func(r *sweep.Result)
	for want, change := range map[string]change{
		`results on the devices "sim" and "sim:a100-80g": choose one with --device`: func(r *sweep.Result) { r.Target = "sim:a100-80g" },
		`results with free_at "completed" and "requested"`:                          func(r *sweep.Result) { r.FreeAt = replay.AtRequested },
		"two results of bfc on trace 0: cells ":                                     func(r *sweep.Result) { r.Cell = "1" },
		`bcf on trace 0: unknown strategy "bcf": did you mean "bfc"?`:               func(r *sweep.Result) { r.Strategy = "bcf" },
		`bfc on trace 0: configuration of bfc: json: unknown field "allow_groth"`:   func(r *sweep.Result) { r.Config = []byte(`{"allow_groth":true}`) },
	} {
		bad := good[0]
		change(&bad)
		_, err := board.Collect(sweep.Results{Traces: []sweep.Result{good[0], bad}}, "", strategies.All())
		require.ErrorContains(t, err, want)
	}
	_, err := board.Collect(sweep.Results{Traces: good}, "sim:a100-80g", strategies.All())
	require.ErrorContains(t, err, `no result of the search "minimum" on the device "sim:a100-80g"`)
	quick := good[0]
	quick.Search = sweep.Quick
	_, err = board.Collect(sweep.Results{Traces: []sweep.Result{quick}}, "", strategies.All())
	require.ErrorContains(t, err, "no result of the search")
	b, err := board.Collect(sweep.Results{Traces: []sweep.Result{quick, good[0], good[0]}}, "", strategies.All())
	require.NoError(t, err, "a repeated row is one cell")
	assert.Equal(t, 1, b.Ignored)
	many := make([]sweep.Result, 0, 4097)
	for i := range 4097 {
		r := good[0]
		r.TraceSHA256, r.Cell = fmt.Sprint(i), fmt.Sprint(i)
		many = append(many, r)
	}
	_, err = board.Collect(sweep.Results{Traces: many}, "", strategies.All())
	require.ErrorContains(t, err, "1 strategies on 4097 traces and logs: want at most 256 on 4096")
}
