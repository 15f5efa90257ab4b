package board_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/study/board"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/strategies"
)

// runs returns the runs of an entry, "STRATEGY HEURISTIC LADDER", on n logs whose lower bound is
// half of the peak. The budgets are 0.6, 0.7 and so on, in base peaks. Each has a time in percent,
// 0 for a run that fails.
func runs(t *testing.T, entry string, n int, percent ...int) (all []sweep.RematResult) {
	t.Helper()
	names := strings.Fields(entry)
	setup, err := sweep.Lookup(strategies.All(), names[0], nil)
	require.NoError(t, err)
	config, err := json.Marshal(setup.Config)
	require.NoError(t, err)
	for log := range n {
		for i, time := range percent {
			r := sweep.RematResult{Cell: fmt.Sprint(entry, log, i), Semantics: setup.Semantics, Steps: 9, Config: config,
				Baseline: setup.Baseline, Settings: grid.Usual().Settings}
			r.Strategy, r.Heuristic, r.Ladder = names[0], names[1], names[2]
			r.Model, r.SHA256 = fmt.Sprint("log ", log), fmt.Sprint("hash ", log)
			r.Ratio, r.Budget = grid.Ratio(600_000+100_000*i), device.Size(60+10*i)*device.MiB
			r.BasePeak, r.LowerBound, r.Verdict = 100*device.MiB, 50*device.MiB, remat.Thrash
			if time > 0 {
				r.Verdict, r.TotalOverhead = remat.OK, new(float64(time)/100)
			}
			all = append(all, r)
		}
	}
	return all
}

// logs returns the ranked board of runs.
func logs(t *testing.T, rows ...[]sweep.RematResult) *board.Board {
	t.Helper()
	var all sweep.Results
	for _, r := range rows {
		all.Logs = append(all.Logs, r...)
	}
	b, err := board.Collect(all, "", strategies.All())
	require.NoError(t, err)
	require.NoError(t, b.Probe(t.Context()))
	b.Rank(1)
	return b
}

func TestLogsAreRankedByTheSmallestBudget(t *testing.T) {
	some := runs(t, "tlsf eq none", 6, 150, 140, 0)
	some[6].Verdict, some[7].Failed, some[7].Verdict = remat.OOMFragmentation, "no table", ""
	b := logs(t, runs(t, "counting eq none", 6, 150, 120, 110), runs(t, "bestfit eq none", 6, 0, 120, 0),
		runs(t, "bestfit eq defrag-first", 6, 180, 170, 160), runs(t, "bfc lru none", 6, 0, 0, 110),
		runs(t, "direct eq none", 6, 150, 120, 110), some)
	assert.Equal(t, "1 bestfit by eq with defrag-first, 2 bestfit by eq, 3 bfc by lru, 4 tlsf by eq, 0 counting by eq, "+
		"0 direct by eq", listed(b, "rematerialization"))
	track := b.Tracks[4]
	assert.Equal(t, "bestfit by eq with defrag-first needs the least memory with at most 2 times the operators' time:"+
		" 1.200 times the lower bound by the geometric mean over 6 logs (95 % interval 1.200 to 1.200). "+
		"Not distinguishable from it, because the 95 % intervals of the places overlap: tlsf by eq. It "+
		"takes 1.800 times the time without recomputation; with less, on the Pareto front: bestfit by eq "+
		"(1.400 times the bound, 1.200 times the time) and bfc by lru (1.600 times the bound, 1.100 times"+
		" the time).", track.Answer)
	assert.Equal(t, 1, track.Lines[3].Failures)
	assert.Nil(t, track.Lines[3].Cost)
	assert.InDelta(t, 1.5, *track.Lines[4].Cost, 1e-9)
	assert.Equal(t, "bestfit by eq with defrag-first for \"Rematerialization\" (not distinguishable from 1 other)",
		track.Short())
	for _, other := range b.Tracks[:4] {
		assert.Equal(t, "No result: there are no results of traces: a study with the key traces has.", other.Answer)
		assert.Empty(t, other.Short())
	}
}

// TestTracesAndLogsKeepToThemselves has a strategy on both.
func TestTracesAndLogsKeepToThemselves(t *testing.T) {
	b, err := board.Collect(sweep.Results{Traces: results(t, "bfc", 2, 110, 1), Logs: runs(t, "bfc eq none", 1, 150)}, "",
		strategies.All())
	require.NoError(t, err)
	require.NoError(t, b.Probe(t.Context()))
	b.Rank(1)
	assert.Equal(t, "1 bfc", listed(b, "plain"))
	assert.Equal(t, "1 bfc by eq", listed(b, "rematerialization"))
	assert.Empty(t, b.Tracks[4].Same)
}

func TestLogsThatAreNotListed(t *testing.T) {
	old := runs(t, "tlsf eq none", 2, 0, 110, 110)
	old[1].Semantics = "0"
	most := runs(t, "bfc eq none", 2, 0, 110, 110)
	b := logs(t, runs(t, "bestfit eq none", 2, 0, 110, 110), old, most[:5], runs(t, "dlmalloc eq none", 1, 0, 0, 110),
		runs(t, "buddy eq none", 2, 110), runs(t, "counting eq none", 2, 110, 110, 110))
	assert.Equal(t, "1 bestfit by eq, 0 counting by eq", listed(b, "rematerialization"))
	for i, want := range []string{"", "its results are of version 0 of its placements, and this program has 1",
		"no result on log 1 at 0.8", "no result on log 1",
		"no result on log 0 at 0.7 and 1 other budget, log 1 at 0.7 and 1 other budget", ""} {
		assert.Equal(t, want, b.Entries[i].Unlisted, b.Entries[i].Name())
	}
	assert.Equal(t, "No result: no strategy with results of logs is listed.", logs(t, old).Tracks[4].Answer)
}

// front returns the names of the entries on the front of the track of logs.
func front(b *board.Board) (names []string) {
	for _, l := range b.Tracks[4].Lines {
		if l.Front {
			names = append(names, l.Entry.Name())
		}
	}
	return names
}

func TestTheFrontComparesWithinEqualBudgets(t *testing.T) {
	fast, counting := runs(t, "tlsf eq none", 2, 180, 110), runs(t, "counting eq none", 2, 101, 101)
	slow, other := runs(t, "bfc eq none", 2, 0, 120), runs(t, "bestfit eq none", 2, 0, 105)
	assert.Equal(t, []string{"tlsf by eq"}, front(logs(t, fast, slow, counting)))
	assert.Equal(t, []string{"tlsf by eq", "bestfit by eq"}, front(logs(t, fast, slow, other)))
	fast = runs(t, "tlsf eq none", 2, 180, 110, 110)
	for i := range fast[3:5] { // of the second log
		fast[3+i].Verdict, fast[3+i].TotalOverhead = remat.Thrash, nil
	}
	slow = runs(t, "bfc eq none", 2, 0, 120, 120)
	assert.Equal(t, []string{"tlsf by eq", "bfc by eq"}, front(logs(t, fast, slow)), "a larger budget on one log")
}

func TestEntriesThatMayCopyToTheHost(t *testing.T) {
	swapping := runs(t, "bfc eq:evict=swap none", 1, 110, 110) // with a budget that no other entry has
	for i := range swapping {
		swapping[i].Swaps, swapping[i].LowerBound = new(remat.Swaps), 10*device.MiB
	}
	b := logs(t, swapping, runs(t, "bfc eq none", 1, 110))
	assert.Equal(t, "1 bfc by eq", listed(b, "rematerialization"))
	assert.Equal(t, "it may keep tensors in the host's memory, which is another constraint", b.Entries[0].Unlisted)
	assert.Equal(t, 50*device.MiB, b.Logs[0].LowerBound)
	assert.Equal(t, "No result: no strategy with results of logs is listed.", logs(t, swapping).Tracks[4].Answer)
}

func TestCollectRefusesLogs(t *testing.T) {
	good := runs(t, "bfc eq none", 1, 110)
	for want, change := range map[string]func(r *sweep.RematResult){
		`results of logs with limit "2" and "10": want one of them`:         func(r *sweep.RematResult) { r.Settings.Limit = 10 },
		`results of logs with eager-in-remat "false" and "true"`:            func(r *sweep.RematResult) { r.Settings.EagerInRemat = true },
		"bfc by eq on log 0 at 0.6: lower bound 52428800, and":              func(r *sweep.RematResult) { r.LowerBound = 1 },
		"two results of bfc by eq on log 0 at 0.6: cells ":                  func(r *sweep.RematResult) { r.Cell = "1" },
		`bcf on log 0: unknown strategy "bcf": did you mean "bfc"?`:         func(r *sweep.RematResult) { r.Strategy = "bcf" },
		`bfc on log 0: configuration of bfc: json: unknown field "allow_g"`: func(r *sweep.RematResult) { r.Config = []byte(`{"allow_g":true}`) },
	} {
		bad := good[0]
		change(&bad)
		_, err := board.Collect(sweep.Results{Logs: []sweep.RematResult{good[0], bad}}, "", strategies.All())
		require.ErrorContains(t, err, want)
	}
	_, err := board.Collect(sweep.Results{Logs: good}, "sim:a100-80g", strategies.All())
	require.ErrorContains(t, err, `no result of the search "minimum" on the device "sim:a100-80g"`)
	b, err := board.Collect(sweep.Results{Logs: append(good, good...)}, "", strategies.All())
	require.NoError(t, err, "a repeated row is one cell")
	assert.Len(t, b.Entries[0].Runs[0], 1)
}
