package grid_test

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/strategies"
)

const golden = "../testdata/"

// logOf reads a log of the golden tables.
func logOf(t *testing.T, model string) grid.Log {
	t.Helper()
	s, err := remat.ReadFile(golden+model+".log.gz", nil)
	require.NoError(t, err)
	return grid.Log{Model: model, Schedule: s}
}

// setupsOf looks strategies up.
func setupsOf(t *testing.T, names ...string) (setups []setting.Setup) {
	t.Helper()
	for _, name := range names {
		s, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		setups = append(setups, s)
	}
	return setups
}

// ratios reads ratios that make sense.
func ratios(t *testing.T, s string) []grid.Ratio {
	t.Helper()
	all, err := grid.ParseRatios(s)
	require.NoError(t, err)
	return all
}

// goldenRows returns the rows of the simulator, by model, heuristic and ratio.
func goldenRows(t *testing.T) map[string]map[string]string {
	t.Helper()
	f, err := os.Open(golden + "synthetic.csv.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	table, err := csv.NewReader(z).ReadAll()
	require.NoError(t, err)
	rows := map[string]map[string]string{}
	for _, cells := range table[1:] {
		r := map[string]string{}
		for i, name := range table[0] {
			r[name] = cells[i]
		}
		rows[r["model"]+" "+r["heuristic"]+" "+r["ratio"]] = r
	}
	return rows
}

// TestCountingMemoryReproducesTheSimulator compares all fields that a run and a row of the
// simulator have in common.
func TestCountingMemoryReproducesTheSimulator(t *testing.T) {
	want := goldenRows(t)
	r, err := grid.Grid(t.Context(), []grid.Log{logOf(t, "syn_chain64"), logOf(t, "syn_unet4")}, nil, grid.Options{
		Heuristics: []string{"eq", "lru"}, Settings: grid.Settings{Liveness: "eager", Limit: 2},
		Ratios: ratios(t, "0.1:1.0:0.1"),
	})
	require.NoError(t, err)
	require.Len(t, r.Runs, 2*2*10)
	for i := range r.Runs {
		text, err := json.Marshal(&r.Runs[i])
		require.NoError(t, err)
		var got map[string]any
		require.NoError(t, json.Unmarshal(text, &got))
		row := want[fmt.Sprint(r.Runs[i].Model, " ", r.Runs[i].Heuristic, " ", r.Runs[i].Ratio)]
		require.NotNil(t, row)
		if row["verdict"] == "oom" {
			row["verdict"] = string(remat.OOMCapacity)
		}
		for _, name := range []string{
			"liveness", "ratio", "budget_bytes", "verdict", "overhead", "clock_ns", "model_compute_ns", "remat_compute_ns",
			"max_memory_bytes", "evict_pressure", "evict_eager", "evict_bytes_pressure", "evict_bytes_eager", "remat_ops",
			"remat_collateral", "compute_calls", "make_room_calls", "evict_seq_sha256",
		} {
			if x, ok := got[name].(float64); ok {
				y, err := strconv.ParseFloat(row[name], 64)
				require.NoError(t, err)
				require.Equal(t, y, x, "%s of %v", name, row)
				continue
			}
			require.Equal(t, row[name], got[name], "%s of %v", name, row)
		}
	}
}

func TestBoundsMatchTheSimulator(t *testing.T) {
	text, err := os.ReadFile(golden + "baselines.json")
	require.NoError(t, err)
	var models []struct {
		Model      string      `json:"model"`
		Constant   device.Size `json:"const_memory"`
		Bottleneck device.Size `json:"bottleneck_memory"`
	}
	require.NoError(t, json.Unmarshal(text, &models))
	for _, m := range models {
		b := grid.BoundsOf(logOf(t, m.Model).Schedule)
		require.Equal(t, m.Constant, b.Constant, m.Model)
		require.Equal(t, m.Bottleneck, b.Bottleneck, m.Model)
		require.GreaterOrEqual(t, b.LowerBound, b.Constant, m.Model)
	}
}

// small is a grid that takes milliseconds.
func small(t *testing.T) ([]grid.Log, []setting.Setup, grid.Options) {
	t.Helper()
	return []grid.Log{logOf(t, "syn_unet4")}, setupsOf(t, "bfc", "bestfit", "buddy"), grid.Options{
		Heuristics: []string{"eq", "lru"}, Ladders: []string{grid.Evict},
		Settings: grid.Settings{Liveness: "eager", Limit: 2}, Ratios: ratios(t, "0.2:1.2:0.05"),
	}
}

// TestNothingCompletesBelowTheLowerBound also compares the lines with their runs.
func TestNothingCompletesBelowTheLowerBound(t *testing.T) {
	logs, setups, o := small(t)
	r, err := grid.Grid(t.Context(), logs, setups, o)
	require.NoError(t, err)
	require.Len(t, r.Lines, 2*4)
	unlike := 0
	for _, l := range r.Lines {
		require.Len(t, l.Runs, len(o.Ratios))
		for _, run := range l.Runs {
			ok := run.Verdict == remat.OK
			if ok {
				require.GreaterOrEqual(t, run.Budget, r.Logs[0].LowerBound, "%s %s", l.Strategy, run.Ratio)
				require.LessOrEqual(t, run.Peak, run.Budget)
				require.LessOrEqual(t, *l.SmallestFeasible, run.Ratio)
			} else {
				require.GreaterOrEqual(t, *l.LargestInfeasible, run.Ratio)
			}
		}
		if !l.Monotone() {
			unlike++
		}
		if l.Strategy == grid.Counting {
			require.Nil(t, l.PriceOfFragmentation)
		} else {
			require.NotNil(t, l.PriceOfFragmentation)
		}
	}
	require.Positive(t, unlike, "some strategy fails within a larger budget than its smallest feasible one")
}

// TestReportDoesNotDependOnTheWorkers compares reports byte for byte.
func TestReportDoesNotDependOnTheWorkers(t *testing.T) {
	var first []byte
	for _, workers := range []int{1, 5} {
		logs, setups, o := small(t)
		o.Workers = workers
		r, err := grid.Grid(t.Context(), logs, setups, o)
		require.NoError(t, err)
		text, err := json.Marshal(r)
		require.NoError(t, err)
		if first == nil {
			first = text
			again, err := grid.Parse(text)
			require.NoError(t, err)
			require.Equal(t, r, again, "a report is read as it was written")
		}
		require.Equal(t, string(first), string(text))
	}
}

// TestStoppedGridKeepsCompleteLines stops in the second line.
func TestStoppedGridKeepsCompleteLines(t *testing.T) {
	logs, setups, o := small(t)
	ctx, stop := context.WithCancel(t.Context())
	var done atomic.Int64
	o.Workers, o.Done = 1, func(float64) {
		if done.Add(1) == int64(len(o.Ratios))+3 {
			stop()
		}
	}
	r, err := grid.Grid(ctx, logs, setups, o)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, r.Lines, 1)
	require.Len(t, r.Runs, len(o.Ratios))
}

// TestShareOfDoneWeighsLogsByTheirSteps runs two logs of different lengths on one worker.
func TestShareOfDoneWeighsLogsByTheirSteps(t *testing.T) {
	logs := []grid.Log{logOf(t, "syn_chain64"), logOf(t, "syn_unet4")}
	_, _, o := small(t)
	var shares, want []float64
	o.Workers, o.Done = 1, func(share float64) { shares = append(shares, share) }
	_, err := grid.Grid(t.Context(), logs, nil, o)
	require.NoError(t, err)
	a, b := float64(len(logs[0].Schedule.Steps)), float64(len(logs[1].Schedule.Steps))
	require.NotEqual(t, a, b)
	each := len(shares) / 2
	for i := 1; i <= each; i++ {
		want = append(want, float64(i)*a/(float64(each)*(a+b)))
	}
	for i := 1; i <= each; i++ {
		want = append(want, (float64(each)*a+float64(i)*b)/(float64(each)*(a+b)))
	}
	require.InDeltaSlice(t, want, shares, 1e-9)
}

func TestErrorsNameThePointOfTheGrid(t *testing.T) {
	logs, setups, o := small(t)
	o.Heuristics = []string{"eq", "best"}
	_, err := grid.Grid(t.Context(), logs, setups, o)
	require.ErrorContains(t, err, `counting on syn_unet4 by best at 0.2: heuristic "best"`)
	_, err = grid.Grid(t.Context(), []grid.Log{{Model: "nothing", Schedule: &remat.Schedule{}}}, nil, grid.Options{
		Heuristics: []string{"eq"}, Settings: grid.Settings{Liveness: "eager", Limit: 2}, Ratios: o.Ratios,
	})
	require.ErrorContains(t, err, "nothing: the log allocates no memory")
}

// TestDefragFirstGivesThePriceOfNotMoving runs one strategy with both ladders.
func TestDefragFirstGivesThePriceOfNotMoving(t *testing.T) {
	r, err := grid.Grid(t.Context(), []grid.Log{logOf(t, "syn_unet4")}, setupsOf(t, "bestfit"), grid.Options{
		Heuristics: []string{"eq"}, Ladders: []string{grid.Evict, grid.DefragFirst},
		Settings: grid.Settings{Liveness: "eager", Limit: 2},
		Ratios:   ratios(t, "0.6:1:0.1"),
	})
	require.NoError(t, err)
	require.Len(t, r.Lines, 3)
	require.Nil(t, r.Lines[2].PriceOfNotMoving)
	require.Equal(t, *r.Lines[1].SmallestFeasible-*r.Lines[2].SmallestFeasible, *r.Lines[1].PriceOfNotMoving)
	require.Positive(t, *r.Lines[1].PriceOfNotMoving)
	for _, run := range r.Lines[1].Runs {
		require.Zero(t, run.MovedBytes)
		require.Equal(t, *run.Overhead, *run.TotalOverhead)
	}
	first := r.Lines[2].Runs[0]
	require.Positive(t, first.MovedBytes)
	require.Greater(t, *first.TotalOverhead, *first.Overhead)
	require.Equal(t, float64(first.Clock+first.MoveTime)/float64(r.Logs[0].Time), *first.TotalOverhead)
}

func TestSettings(t *testing.T) {
	right := grid.Settings{Liveness: "eager", Trigger: "threshold:0.9", Defrag: "remap", Sampling: "5",
		MinEvictee: "1MiB,cut", Quirks: "q1,q7"}
	require.NoError(t, right.Check("mge", grid.DefragFirst))
	for want, s := range map[string]grid.Settings{
		`trigger "never": want room, `:      {Trigger: "never"},
		"more than 0, at most 1":            {Trigger: "budget:1.5"},
		`ratio "x"`:                         {Trigger: "budget:x"},
		`defrag "push"`:                     {Defrag: "push"},
		`"0": want none, stride, mge, or a`: {Sampling: "0"},
		`"-1%": want a size`:                {MinEvictee: "-1%"},
		`",cut": want a size`:               {MinEvictee: ",cut"},
		`order "up"`:                        {ParentOrder: "up"},
		`quirk "q0"`:                        {Quirks: "q0"},
	} {
		s.Liveness = "eager"
		require.ErrorContains(t, s.Check("mge", ""), want)
	}
}

// TestSettingsReachTheRuns checks that each setting changes the runs.
func TestSettingsReachTheRuns(t *testing.T) {
	runGrid := func(s grid.Settings) *grid.Report {
		s.Liveness, s.Limit = "eager", 2
		r, err := grid.Grid(t.Context(), []grid.Log{logOf(t, "syn_unet4")}, setupsOf(t, "bfc"), grid.Options{
			Settings: s, Heuristics: []string{"mge"}, Ladders: []string{grid.DefragFirst}, Ratios: ratios(t, "0.5,0.6,0.8"),
		})
		require.NoError(t, err)
		return r
	}
	usual := runGrid(grid.Settings{})
	for _, s := range []grid.Settings{
		{Trigger: "threshold:0.7"}, {Defrag: "bounce"}, {Sampling: "2"}, {MinEvictee: "20MiB"}, {Quirks: "all"},
		{Trigger: "reserve"}, {ParentOrder: "largest"},
		{EagerInRemat: true},
	} {
		r := runGrid(s)
		require.NotEqual(t, usual.Runs, r.Runs, "%+v", s)
		require.Equal(t, s.Quirks, r.Quirks)
	}
}

func TestInvalidReportsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                               "unexpected end",
		`{"schema":"vramyard-compare/1"}`: `want "vramyard-remat/1"`,
		`{"schema":"vramyard-remat/1","runs":[{"model":"m","ratio":1}]}`:                                                                                       "missing or out of order",
		`{"schema":"vramyard-remat/1","logs":[{"model":"m"}],"runs":[{"model":"m","ratio":1}]}`:                                                                "missing or out of order",
		`{"schema":"vramyard-remat/1","runs":[{"ratio":"half"}]}`:                                                                                              "cannot unmarshal",
		`{"schema":"vramyard-remat/1","logs":[{"model":"m","base_peak_bytes":1}],"runs":[{"model":"m","ratio":1},{"model":"m","ratio":0.5,"strategy":"bfc"}]}`: "ratios differ",
	} {
		_, err := grid.Parse([]byte(text))
		require.ErrorContains(t, err, want)
	}
}

func TestRatios(t *testing.T) {
	for _, c := range []struct {
		text, want string
	}{
		{"0.1:0.5:0.2", "[0.1 0.3 0.5]"},
		{"1, .5,0.25", "[0.25 0.5 1.0]"},
		{"0.9:1.0:0.3,0.9", "[0.9]"},
		{"0.000001", "[0.000001]"},
		{"2", "[2.0]"},
	} {
		all, err := grid.ParseRatios(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, fmt.Sprint(all))
	}
	for _, wrong := range []string{
		"", "0", "-1", "1e-1", "0.1:0.5", "0.5:0.1:0.1", "0.1:0.5:0", "11", "0.0000001", "0.1:10:0.001", "0.1,", "NaN",
		"1.0.0", ".",
		"0.1:1:0.1:2", "0.001:0.9:0.001,1.001:1.9:0.001",
	} {
		_, err := grid.ParseRatios(wrong)
		require.Error(t, err, wrong)
	}
	require.EqualValues(t, 3, grid.Half.Of(7))
	require.Equal(t, device.Size(1)<<60, grid.Whole.Of(1<<60))
}

// TestFieldsListEverySetting sets each field by its pointer and compares the names with those in
// JSON.
func TestFieldsListEverySetting(t *testing.T) {
	var s grid.Settings
	flags := map[string]any{}
	for _, f := range s.Fields() {
		switch v := f.Value.(type) {
		case *string:
			*v = f.Flag
		case *bool:
			*v = true
		case *float64:
			*v = 2.5
		case *uint64:
			*v = 7
		}
		flags[strings.ReplaceAll(f.Flag, "-", "_")] = f.String()
	}
	text, err := json.Marshal(&s)
	require.NoError(t, err)
	var inJSON map[string]any
	require.NoError(t, json.Unmarshal(text, &inJSON))
	for name, v := range inJSON {
		inJSON[name] = fmt.Sprint(v)
	}
	require.Equal(t, inJSON, flags)
}

func TestHeuristicsHaveABound(t *testing.T) {
	list := "0"
	for i := range 900 {
		list += fmt.Sprintf("/%d", i+1)
	}
	all, err := grid.ParseHeuristics([]string{"mge:size=" + list, "mge:size=" + list})
	require.NoError(t, err)
	require.Len(t, all, 901, "repetitions do not count")
	_, err = grid.ParseHeuristics([]string{"mge:size=" + list, "mge:stale=" + list})
	require.ErrorContains(t, err, "more than 1000 heuristics")
}
