package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/stats"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/harness/trace/parquet"
)

// tableOf writes runs of strategies on eight traces, whose minimum capacities are the given ones.
// 0 is a run that completes on no device.
func tableOf(t *testing.T, name string, strategies []string, least ...[8]device.Size) string {
	t.Helper()
	var rows []stats.Row
	for trace := range 8 {
		for i, s := range strategies {
			n := least[i][trace]
			r := stats.Row{
				Run:      stats.Run{Trace: fmt.Sprint("t", trace), TraceSHA256: fmt.Sprintf("%064d", trace)},
				Strategy: s, MinCapacity: &n, Probes: 3, PeakReserved: n, Starts: true, DeviceCalls: uint64(1 + 5000*i),
				DeviceTime: uint64(n), NsPerOp: new(50.5),
			}
			if n == 0 {
				r.MinCapacity, r.OOMs = nil, 1
			}
			rows = append(rows, r)
		}
	}
	var data bytes.Buffer
	require.NoError(t, parquet.WriteTable(&data, flat.Of(rows)))
	return write(t, name, data.String())
}

var (
	hundreds    = [8]device.Size{100, 200, 300, 400, 500, 600, 700, 800}
	lessOnSeven = [8]device.Size{98, 195, 295, 400, 480, 590, 690, 777}
	oneFails    = [8]device.Size{98, 195, 0, 400, 480, 590, 690, 777}
)

func TestStatsShowsAnswersAndFigures(t *testing.T) {
	path := tableOf(t, "r.parquet", []string{"bfc", "tlsf", "slab"}, hundreds, lessOnSeven, oneFails)
	out := strings.ReplaceAll(succeed(t, "stats", "--a", "bfc", "--b", "tlsf", path), path, "r.parquet")
	answers, _, _ := strings.Cut(out, "device time")
	require.Equal(t, `min capacity: tlsf needs less memory than bfc on 7 of 8 traces, equal on 1: 2.0 % less by the geometric mean (95 % interval 1.1 to 3.0 % less; sign test p = 0.016).
peak reserved: tlsf reserves less memory than bfc on 7 of 8 traces, equal on 1: 2.0 % less by the geometric mean (95 % interval 1.1 to 3.0 % less; sign test p = 0.016).
device calls: bfc makes fewer device calls than tlsf on 8 of 8 traces: 1/5001 of it by the geometric mean (no spread; sign test p = 0.0078).
`, answers)
	require.Contains(t, out, "\nA is bfc, B is tlsf in r.parquet.\n")
	require.Contains(t, out, "│ min capacity  │      8 │      7 │     1 │      0 │ 0.980 │ "+
		"0.970 to 0.989 │  0.982 │ 0.960 t4   │ 1.000 t3    │     0.016 │")
	require.NotContains(t, out, "ns/op")

	out = succeed(t, "stats", "--a", "bfc", "--b", "slab", "--time", path)
	require.Contains(t, out, "min capacity: no clear difference. slab needs less memory than bfc on 6 of "+
		"7 traces that both complete, equal on 1: 2.1 % less by the geometric mean "+
		"(95 % interval 0.92 to 3.2 % less; sign test p = 0.12). bfc completes 1 more.\n")
	require.Contains(t, out, "\npeak reserved: slab reserves less memory than bfc on 6 of 7 traces that both complete, "+
		"equal on 1: 2.1 % less by the geometric mean (95 % interval 0.92 to 3.2 % less; sign test p = 0.031). "+
		"Left out: slab fails on 1.\n")
	require.Contains(t, out, "\nB: slab fails on t2, sha256 000000000000\n")
	require.Contains(t, out, "\nns/op is measured and varies between equal runs")
	require.Contains(t, out, "ns/op: equal on all of 7 traces that both complete. Left out: slab fails on 1.\n")
}

// TestStatsSaysWhatDoesNotFit has a side that is lower on most traces and much higher on one, and
// sides of which none completes.
func TestStatsSaysWhatDoesNotFit(t *testing.T) {
	path := tableOf(t, "r.parquet", []string{"bfc", "tlsf", "slab", "buddy"}, hundreds,
		[8]device.Size{99, 199, 299, 399, 499, 599, 699, 1600}, [8]device.Size{}, [8]device.Size{})
	require.Contains(t, succeed(t, "stats", "--a", "bfc", "--b", "tlsf", path),
		"min capacity: no clear difference. tlsf needs less memory than bfc on 7 of 8 traces, but 8.7 % more by the ")
	out := succeed(t, "stats", "--a", "slab", "--b", "buddy", path)
	require.Contains(t, out, "min capacity: both fail on every trace.\n")
	require.Contains(t, out, "\nA: slab fails on t7, sha256 000000000000\nB: buddy fails on t7, sha256 000000000000\n")
	require.Contains(t, succeed(t, "stats", "--a", "slab", "--b", "tlsf", path),
		"min capacity: tlsf completes 8 of 8 traces, slab 0 (sign test p = 0.0078).\n"+
			"peak reserved: compared on no trace. Left out: slab fails on 8.\n")
	path = tableOf(t, "r.parquet", []string{"bfc", "tlsf"}, [8]device.Size{100, 100, 100},
		[8]device.Size{99, 99, 101, 9, 9, 9})
	out = succeed(t, "stats", path)
	require.Contains(t, out, "min capacity: no clear difference. tlsf needs less memory than bfc on 2 of 3 "+
		"traces that both complete: 0.34 % less by the geometric mean (no 95 % interval, which needs 6 traces; "+
		"sign test p = 0.22). tlsf completes 3 more. Left out: both fail on 2.\n")
	require.Contains(t, out, "\ndevice calls: too few traces to be sure. bfc makes fewer device calls than "+
		"tlsf on 3 of 3 traces that both complete: 1/5001 of it by the geometric mean (no 95 % interval, which needs "+
		"6 traces; sign test p = 0.25). Left out: bfc fails on 3, both fail on 2.\n")
}

func TestStatsOfTwoFiles(t *testing.T) {
	a := tableOf(t, "a.parquet", []string{"bfc"}, hundreds)
	b := tableOf(t, "b.parquet", []string{"bfc"}, lessOnSeven)
	require.Contains(t, succeed(t, "stats", a, b), "min capacity: B needs less memory than A on 7 of 8 traces")
	require.Contains(t, succeed(t, "stats", a, a), "min capacity: equal on all of 8 traces.\n")

	var few stats.Result
	data, err := os.ReadFile(b)
	require.NoError(t, err)
	rows, _, err := parquet.ReadTable[stats.Row](bytes.NewReader(data), int64(len(data)), b, nil, nil)
	require.NoError(t, err)
	rows[4].TraceSHA256 = "other"
	var short bytes.Buffer
	require.NoError(t, parquet.WriteTable(&short, flat.Of(rows[:5])))
	c := write(t, "c.parquet", short.String())
	out := succeed(t, "stats", a, c)
	require.Contains(t, out, "min capacity: too few traces to be sure. B needs less memory than A on 3 of 4 traces, "+
		"equal on 1: 1.5 % less by the geometric mean (no 95 % interval, which needs 6 traces; sign test p = 0.25).\n")
	require.Contains(t, out, "\nonly in A: t7, sha256 000000000000\nonly in B: t4, sha256 other\n")
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "stats", a, c, "--json", "-")), &few))
	require.Equal(t, stats.Schema, few.Schema)
	require.Equal(t, stats.TooFew, few.Figures[0].Verdict)
}

// TestStatsReadsTablesOfCompare has compare write a table.
func TestStatsReadsTablesOfCompare(t *testing.T) {
	dir := t.TempDir()
	table, csv := filepath.Join(dir, "t.parquet"), filepath.Join(dir, "s.csv")
	succeed(t, "compare", "--strategies", "bfc,slab:xdl", "--parquet", table, write(t, "t.trace", small))
	require.Contains(t, succeed(t, "stats", table, "--csv", csv), "too few traces")
	require.Len(t, readCSV(t, csv), 1+4)
}

// TestStatsReadsTablesOfSweep has a sweep with two devices and two searches, one of which has no
// minimum.
func TestStatsReadsTablesOfSweep(t *testing.T) {
	plan := planned(t, study)
	store, results := filepath.Join(filepath.Dir(plan), "cells"), filepath.Join(t.TempDir(), "results.parquet")
	for _, args := range [][]string{{"run", plan}, {"merge", plan, "-o", results}} {
		status, _, stderr := command(t, append([]string{"sweep", "--store", store}, args...)...)
		require.Equal(t, exitDone, status, stderr)
	}
	var r stats.Result
	out := succeed(t, "stats", "--a", "bfc", "--b", "tlsf", "--json", "-", results)
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, 2, r.Traces)
	require.Len(t, r.Figures[0].Pairs, 8)
	require.Equal(t, 2, r.Figures[0].Traces, "by the search for the minimum")
	require.Equal(t, 2, r.Figures[1].Traces)
	require.Equal(t, 6, r.Figures[1].WholeB, "all but the minimum on sim")
	out = succeed(t, "stats", "--a", "bfc", "--b", "tlsf", "--search", "minimum", results)
	require.Contains(t, out, " Left out: bfc holds its whole device on 2, "+
		"tlsf holds its whole device on 2 of 4 pairs of runs.\n")
	out = succeed(t, "stats", "--a", "bfc", "--b", "tlsf", "--search", "minimum", "--device", "sim:l4-24g", results)
	require.Contains(t, out, "\npeak reserved: compared on no trace. Left out: bfc holds its whole device on 2, ")
	for _, c := range []struct{ args, want string }{
		{"stats --time --a bfc --b tlsf " + results, "--time: " + results + " has no column ns_per_op: want a"},
		{"stats " + plan, plan + `: metadata vramyard.schema "vramyard-sweep-plan/1": want "vramyard-sweep-results/1" or a table `},
		{"sweep run --store x " + results, results + `: metadata vramyard.schema "vramyard-sweep-results/1": want "vramyard-sweep-plan/1"`},
		{"sweep plan -o x.parquet --times " + results + " " + filepath.Join(filepath.Dir(plan), "study.yaml"),
			`"vramyard-sweep-results/1": want "vramyard-sweep-times/1"`},
	} {
		status, _, stderr := command(t, strings.Fields(c.args)...)
		require.Equal(t, exitTrouble, status)
		require.Contains(t, stderr, c.want)
	}
}

func TestStatsRefuses(t *testing.T) {
	path := tableOf(t, "r.parquet", []string{"bfc", "tlsf", "slab"}, hundreds, lessOnSeven, oneFails)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, `0 arguments: want "vramyard stats A.parquet [B.parquet] [flags]"`},
		{[]string{path, path, path}, `3 arguments: want "vramyard stats A.parquet [B.parquet] [flags]"`},
		{[]string{path + ".gone"}, "no such file"},
		{[]string{"-"}, "-: no such file"},
		{[]string{write(t, "t.csv", "trace,strategy\na,b\n")}, "t.csv: no Parquet file"},
		{[]string{path}, "r.parquet has 3 strategies: choose one with --a: bfc, tlsf, slab"},
		{[]string{path, "--a", "bfc", "--b", "tslf"}, `has no strategy "tslf": did you mean "tlsf"?`},
		{[]string{path, "--a", "bfc", "--b", "bfc"}, "A and B are both the runs of bfc"},
		{[]string{path, "--device", "sim"}, `--device "sim": ` + path + " has no column device: want a table of sweep merge"},
		{[]string{path, "--search", "quick"}, "has no column search"},
		{[]string{path, "--seed", "-1"}, `invalid argument "-1" for "--seed"`},
		{[]string{path, "--a", "bfc", "--b", "tlsf", "--csv", path}, "is a file to read"},
		{[]string{path, "--memory", "1"}, "--memory"},
	} {
		status, out, errs := command(t, append([]string{"stats"}, c.args...)...)
		require.Equal(t, exitTrouble, status, "%v", c.args)
		require.Empty(t, out)
		require.Contains(t, errs, c.want)
		require.Equal(t, 1, strings.Count(errs, "\n"))
	}
}
