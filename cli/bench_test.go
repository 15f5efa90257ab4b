package cli

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/study/bench"
)

// quickly are flags for a benchmark that takes no time to speak of.
var quickly = []string{"bench", "--rounds", "2", "--pairs", "200", "--steps", "1", "--live", "20,30"}

// benching returns a command line of a quick benchmark.
func benching(args ...string) []string { return append(quickly[:len(quickly):len(quickly)], args...) }

func TestBenchPrintsAndWrites(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "bench.json")
	out := succeed(t, benching("--arena", "--json", file)...)
	for _, want := range []string{
		"2 interleaved rounds; clock: ", "w1: 20 blocks live, ", "w1: 30 blocks live, ", "w2: 773 blocks live, ",
		"w3: 257 blocks live, ",
		"│ (empty loop) │", "│ strategy     │ ns/pair │ ", "│ address │ reserved │ arena │",
		"│ slabbuddy    │", "│      all │",
	} {
		require.Contains(t, out, want)
	}
	var r bench.Report
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &r))
	require.Equal(t, bench.Schema, r.Schema)
	require.Equal(t, provenance.Read(), r.Provenance)
	require.Len(t, r.Loops, 4)
	require.Len(t, r.Runs, 4*len(everything.Default(setting.Timed)))
	require.EqualValues(t, 42, r.Runs[0].Params.Seed)
	require.NotNil(t, r.Runs[0].ArenaRatio)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing unfinished")
}

func TestBenchJSONAlone(t *testing.T) {
	out := succeed(t, benching("--strategies", "buddy:xdl", "--workloads", "lognormal,uniform,loguniform", "--seed", "7",
		"--capacity", "3GiB", "--json", "-")...)
	var r bench.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Len(t, r.Runs, 6)
	for _, run := range r.Runs {
		require.Equal(t, "buddy:xdl", run.Strategy)
		require.EqualValues(t, 3<<30, run.Device)
		require.EqualValues(t, 7, run.Params.Seed)
		require.Equal(t, 200, run.Pairs)
	}
}

// TestBenchCSVHasTheFiguresOfTheJSON holds every cell to the field of its name.
func TestBenchCSVHasTheFiguresOfTheJSON(t *testing.T) {
	dir := t.TempDir()
	asJSON, asCSV := filepath.Join(dir, "b.json"), filepath.Join(dir, "b.csv")
	out := succeed(t, benching("--strategies", "bfc,tlsf", "--workloads", "w1,w2", "--json", asJSON, "--csv", asCSV)...)
	require.Contains(t, out, "│ bfc", "tables are there too")
	raw, err := os.ReadFile(asJSON)
	require.NoError(t, err)
	var want map[string]any
	require.NoError(t, json.Unmarshal(raw, &want))
	file, err := os.Open(asCSV)
	require.NoError(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	runs, _ := want["runs"].([]any)
	require.Len(t, rows, 1+len(runs))
	for i, row := range rows[1:] {
		for k, name := range rows[0] {
			var found any = want
			if !strings.HasPrefix(name, "provenance.") && name != "clock" && name != "rounds" &&
				!strings.HasPrefix(name, "machine.") {
				found = runs[i]
			}
			for part := range strings.SplitSeq(name, ".") {
				found = found.(map[string]any)[part]
			}
			switch v := found.(type) {
			case nil: // null, or not so
				require.Contains(t, []string{"", "false"}, row[k], name)
			case string:
				require.Equal(t, v, row[k], name)
			default:
				text, err := json.Marshal(v)
				require.NoError(t, err)
				require.JSONEq(t, string(text), row[k], name)
			}
		}
	}
	alone := succeed(t, benching("--strategies", "bfc", "--workloads", "w1", "--csv", "-")...)
	require.True(t, strings.HasPrefix(alone, "strategy,config,"))
	require.NotContains(t, alone, "│")
	a, b := filepath.Join(dir, "a.svg"), filepath.Join(dir, "b.svg")
	succeed(t, "plot", "--trace", "w1", "--out", a, asJSON)
	succeed(t, "plot", "--trace", "w1", "--out", b, asCSV)
	first, err := os.ReadFile(a)
	require.NoError(t, err)
	second, err := os.ReadFile(b)
	require.NoError(t, err)
	require.Equal(t, string(first), string(second))
}

func TestBenchProfileCanBeRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpu.pprof")
	succeed(t, benching("--strategies", "bfc", "--workloads", "w1", "--live", "1000", "--pairs", "100000",
		"--cpuprofile", file)...)
	out, err := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-top", file).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "Type: cpu")
}

func TestBenchRefuses(t *testing.T) {
	dir := t.TempDir()
	same := filepath.Join(dir, "same")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"w1"}, `1 argument: want "vramyard bench [flags]"`},
		{[]string{"--rounds", "many"}, `invalid argument "many" for "--rounds" flag: want a whole number`},
		{[]string{"--rounds", "0"}, "--rounds: want at least 1"},
		{[]string{"--strategies", "bcf"}, `--strategies: unknown strategy "bcf"`},
		{[]string{"--strategies", ","}, "--strategies: want at least one"},
		{[]string{"--workloads", "w4"}, `--workloads: unknown workload "w4": want one of w1, `},
		{[]string{"--workloads", ""}, `--workloads: unknown workload ""`},
		{[]string{"--live", "1000,x"}, `--live: "x": want whole numbers, separated by commas`},
		{[]string{"--live", "0"}, "--live: w1: want 1 to 16777216"},
		{[]string{"--live", "-5"}, "--live: w1: want 1 to 16777216"},
		{[]string{"--pairs", "0"}, "--pairs: w1: want 1 to "},
		{[]string{"--steps", "0"}, "--steps: w2: want 1 to "},
		{[]string{"--capacity", "0"}, "--capacity: want more than 0 bytes"},
		{[]string{"--capacity", "1MiB"}, "tlsf on w1 live=20 pairs=200 seed=42: "},
		{[]string{"--strategies", "slab:blaze"}, "slab:blaze on w2 steps=1 seed=42: operation 530, allocate 425984000 " +
			"bytes into slot 434: "},
		{[]string{"--cpuprofile", "-"}, "--cpuprofile: a profile is binary"},
		{[]string{"--cpuprofile", "cpu.pb.gz"}, "--cpuprofile: a profile is compressed anyway"},
		{[]string{"--cpuprofile", same, "--json", same}, "--cpuprofile: " + same + " is where --json is written"},
		{[]string{"--json", filepath.Join(dir, "gone", "x")}, "no such file or directory"},
		{[]string{"--cpuprofile", filepath.Join(dir, "gone", "x")}, "no such file or directory"},
	} {
		args := benching("--json", filepath.Join(dir, "out.json"), "--cpuprofile", filepath.Join(dir, "out.pprof"))
		status, stdout, stderr := command(t, append(args, c.args...)...)
		require.Equal(t, exitTrouble, status, "%v: %s", c.args, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, "%v: nothing half written", c.args)
	}
}

func TestBenchThreads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bench.json")
	args := benching("--strategies", "tlsf,buddy", "--workloads", "w1", "--threads", "1,2", "--json", file)
	out := succeed(t, args...)
	require.Contains(t, out, "w1 by several threads: ")
	require.Contains(t, out, "│ strategy │ threads │ locks  │ ns/pair │")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var r bench.Report
	require.NoError(t, json.Unmarshal(raw, &r))
	require.Len(t, r.Threads, 2*2*(3+2), "two numbers of blocks, two strategies, and no lock for one thread alone")

	succeed(t, benching("--strategies", "tlsf", "--workloads", "w1", "--json", file)...)
	raw, err = os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(raw), `"threads"`)

	for _, bad := range []string{"0", "-1", "257", "1,", "x"} {
		status, _, stderr := command(t, benching("--threads", bad)...)
		require.Equal(t, exitTrouble, status)
		require.Contains(t, stderr, "--threads: ")
		require.Contains(t, stderr, "want whole numbers from 1 to 256, separated by commas")
	}
}
