package remat_test

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"flag"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
)

// row is a row of a golden table, by column.
type row map[string]string

// golden reads a table of the simulator's answers.
func golden(t testing.TB, name string) []row {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	lines, err := csv.NewReader(z).ReadAll()
	require.NoError(t, err)
	rows := []row{}
	for _, line := range lines[1:] {
		r := row{}
		for i, column := range lines[0] {
			r[column] = line[i]
		}
		rows = append(rows, r)
	}
	return rows
}

// int returns a whole number of a row.
func (r row) int(t testing.TB, column string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(r[column], 10, 64)
	require.NoError(t, err, column)
	return n
}

// logOf reads a log of the golden tables.
func logOf(t testing.TB, model string) *remat.Schedule {
	t.Helper()
	s, err := remat.ReadFile("testdata/"+model+".log.gz", nil)
	require.NoError(t, err)
	return s
}

// play runs a schedule with counted bytes.
func play(t testing.TB, s *remat.Schedule, budget device.Size, c remat.Config) remat.Result {
	t.Helper()
	res, err := remat.Run(s, &remat.Counter{Budget: budget}, c)
	require.NoError(t, err)
	return res
}

// liveness returns what our name for that of a row is.
func (r row) liveness() string {
	name, _, _ := strings.Cut(r["liveness"], "(")
	return name
}

// everyRow runs all rows of the golden tables, too: it takes some ten times as long as the rest.
var everyRow = flag.Bool("golden.all", false, "run every row of the golden tables")

// spared reports whether a row of the logs is left to -golden.all: all budgets but three, and of
// these two more of the heuristics with regions on the logs that have thousands of dead storages.
func (r row) spared(t testing.TB) bool {
	t.Helper()
	ratio, err := strconv.ParseFloat(r["ratio"], 64)
	require.NoError(t, err)
	regions := r["heuristic"] == "estar" || r["heuristic"] == "msps"
	large := slices.Contains([]string{"syn_lstm64", "syn_resnet110", "syn_transformer24"}, r["model"])
	tenths := int(math.Round(10 * ratio))
	return !*everyRow && (!slices.Contains([]int{3, 6, 9}, tenths) || regions && large && tenths != 6)
}

func TestLogsRunAsInTheSimulator(t *testing.T) {
	logs, ran := map[string]*remat.Schedule{}, 0
	for _, r := range golden(t, "synthetic.csv.gz") {
		if r.spared(t) {
			continue
		}
		s := logs[r["model"]]
		if s == nil {
			s = logOf(t, r["model"])
			logs[r["model"]] = s
		}
		got := play(t, s, device.Size(r.int(t, "budget_bytes")),
			remat.Config{Heuristic: r["heuristic"], Liveness: r.liveness(), Limit: s.Cost})
		require.Equal(t, remat.Result{
			Verdict: remat.Verdict(r["verdict"]), Clock: r.int(t, "clock_ns"), ModelTime: r.int(t, "model_compute_ns"),
			RematTime: r.int(t, "remat_compute_ns"), Peak: device.Size(r.int(t, "max_memory_bytes")),
			Evictions:    [5]int{int(r.int(t, "evict_pressure")), int(r.int(t, "evict_eager"))},
			EvictedBytes: [5]int64{r.int(t, "evict_bytes_pressure"), r.int(t, "evict_bytes_eager")},
			Runs:         int(r.int(t, "compute_calls")), Remats: int(r.int(t, "remat_ops")),
			DeepestChain: got.DeepestChain, Collateral: int(r.int(t, "remat_collateral")),
			EvictingRuns:  int(r.int(t, "make_room_calls")),
			VictimsSHA256: r["evict_seq_sha256"],
		}, got, "%s %s %s", r["model"], r["heuristic"], r["ratio"])
		ran++
	}
	require.GreaterOrEqual(t, ran, 720*3/10-3*2*2)
}

func TestRunsWithoutABudgetMatchTheSimulator(t *testing.T) {
	raw, err := os.ReadFile("testdata/baselines.json")
	require.NoError(t, err)
	var models []struct {
		Model   string
		Compute int64
		Final   int64       `json:"final_clock"`
		Banish  device.Size `json:"peak_memory"`
		Eager   device.Size `json:"peak_memory_eager"`
		None    device.Size `json:"peak_memory_norelease"`
		Ops     int
		Tensors int
	}
	require.NoError(t, json.Unmarshal(raw, &models))
	require.Len(t, models, 8)
	for _, m := range models {
		s := logOf(t, m.Model)
		require.Len(t, s.Ops, m.Ops)
		require.Len(t, s.Tensors, m.Tensors)
		require.Equal(t, m.Compute, s.Cost)
		for liveness, peak := range map[string]device.Size{"banish": m.Banish, "eager": m.Eager, "none": m.None} {
			got := play(t, s, remat.Unlimited, remat.Config{Heuristic: "lru", Liveness: liveness})
			require.Equal(t, peak, got.Peak, "%s %s", m.Model, liveness)
			require.Equal(t, m.Final, got.Clock, "%s %s", m.Model, liveness)
		}
	}
}

// chain returns the uniform chain of n operators and n of the way back.
func chain(t testing.TB, n int) *remat.Schedule {
	t.Helper()
	var b remat.Builder
	call := func(args ...remat.Tensor) remat.Tensor {
		out, err := b.Call(remat.Call{Cost: 1, Args: args, Outputs: []remat.Output{{Size: 1, Alias: remat.NoAlias}}})
		require.NoError(t, err)
		return out
	}
	f := []remat.Tensor{call()}
	for i := 1; i < n; i++ {
		f = append(f, call(f[i-1]))
	}
	require.NoError(t, b.Release(f[n-1]))
	back := call()
	for k := n - 2; k >= 0; k-- {
		require.NoError(t, b.Release(f[k]))
		args := []remat.Tensor{back}
		if k > 0 {
			args = []remat.Tensor{f[k-1], back}
		}
		next := call(args...)
		require.NoError(t, b.Release(back))
		back = next
	}
	return b.Schedule()
}

// victims writes down who is evicted for memory.
type victims struct {
	s    *remat.Schedule
	list []int
}

func (v *victims) OnRun(int32, remat.Tensor, bool) {}

func (*victims) OnReturn(int32, bool) {}

func (v *victims) OnForget(int32) {}

func (v *victims) OnEvict(storage int32, why remat.Cause) {
	if why == remat.Pressure {
		v.list = append(v.list, int(v.s.Storages[storage].Root))
	}
}

func TestUniformChainRunsAsInTheSimulator(t *testing.T) {
	sequences := sequences(t)
	for _, r := range golden(t, "linear.csv.gz") {
		n := r.int(t, "n")
		if n > 300 && !*everyRow {
			continue
		}
		s := chain(t, int(n))
		name := "n=" + r["n"] + "|B=" + r["budget"] + "|" + r["heuristic"]
		seen := &victims{s: s}
		got := play(t, s, device.Size(r.int(t, "budget")),
			remat.Config{Heuristic: r["heuristic"], Liveness: r.liveness(), Limit: 20 * n, Observer: seen})
		if list, ok := sequences[name]; ok {
			require.Equal(t, list, seen.list[:min(len(seen.list), 48)], name)
		}
		require.Equal(t, remat.Result{
			Verdict: remat.Verdict(r["verdict"]), Clock: r.int(t, "clock"), Remats: int(r.int(t, "remat_ops")),
			Peak: device.Size(r.int(t, "max_memory")), VictimsSHA256: r["evict_seq_sha256"],
			Evictions: [5]int{int(r.int(t, "evict_pressure")), int(r.int(t, "evict_eager"))},
		}, remat.Result{
			Verdict: got.Verdict, Clock: got.Clock, Remats: got.Remats, Peak: got.Peak, VictimsSHA256: got.VictimsSHA256,
			Evictions: [5]int{got.Evictions[remat.Pressure], got.Evictions[remat.Dead] + got.Evictions[remat.Banished]},
		}, name)
	}
}

// sequences returns the first victims of some rows of the chain.
func sequences(t testing.TB) map[string][]int {
	t.Helper()
	f, err := os.Open("testdata/linear_sequences.json.gz")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	all := map[string][]int{}
	require.NoError(t, json.NewDecoder(z).Decode(&all))
	return all
}
