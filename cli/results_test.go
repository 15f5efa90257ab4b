package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inputless are command lines whose input does not exist, up to the value of the flag that names
// their output. Each is done at once if the output is judged first.
func inputless(t *testing.T) map[string][]string {
	t.Helper()
	missing := filepath.Join(t.TempDir(), "no-input.json")
	all := map[string][]string{
		"bench --cpuprofile":   {"bench", "--cpuprofile"},
		"bench --csv":          {"bench", "--csv"},
		"bench --html":         {"bench", "--html"},
		"bench --json":         {"bench", "--json"},
		"check --html":         {"check", "--html"},
		"devices --json":       {"devices", "--json"},
		"version --json":       {"version", "--json"},
		"plot --out":           {"plot", missing, "--out"},
		"trace gen":            {"trace", "gen", "w1"},
		"trace convert":        {"trace", "convert", missing},
		"trace cut":            {"trace", "cut", "--steps", "0:1", missing},
		"corpus anonymize":     {"corpus", "anonymize", missing},
		"corpus list --json":   {"corpus", "list", "--json"},
		"diff --json":          {"diff", missing, missing, "--json"},
		"trace diff --json":    {"trace", "diff", missing, missing, "--json"},
		"verify --json":        {"verify", missing, "--json"},
		"tune --json":          {"tune", "--strategy", "bfc", missing, "--json"},
		"trace info --json":    {"trace", "info", missing, "--json"},
		"offline --offsets":    {"offline", missing, "--offsets"},
		"compare --json":       {"compare", missing, "--json"},
		"compare --csv":        {"compare", missing, "--csv"},
		"compare --parquet":    {"compare", missing, "--parquet"},
		"whatif --parquet":     {"whatif", missing, "--parquet"},
		"bench --parquet":      {"bench", "--parquet"},
		"remat --parquet":      {"remat", missing, "--parquet"},
		"sweep plan --output":  {"sweep", "plan", missing, "--output"},
		"sweep merge --output": {"sweep", "merge", missing, "--store", missing, "--output"},
		"sweep merge --times":  {"sweep", "merge", missing, "--store", missing, "-o", "x.parquet", "--times"},
		"tune --csv":           {"tune", "--strategy", "bfc", missing, "--csv"},
		"tune --parquet":       {"tune", "--strategy", "bfc", missing, "--parquet"},
		"top --json":           {"top", missing, "--json"},
		"top --folded":         {"top", missing, "--folded"},
		"gate --json":          {"gate", "--baseline", missing, missing, "--json"},
		"gate --markdown":      {"gate", "--baseline", missing, missing, "--markdown"},
		"gate --junit":         {"gate", "--baseline", missing, missing, "--junit"},
		"gate --sarif":         {"gate", "--baseline", missing, missing, "--sarif"},
		"traces --json":        {"traces", "--json"},
		"compare --html":       {"compare", missing, "--html"},
		"fleet --html":         {"fleet", missing, "--html"},
		"whatif --json":        {"whatif", missing, "--json"},
		"whatif --csv":         {"whatif", missing, "--csv"},
		"whatif --html":        {"whatif", missing, "--html"},
		"run --json":           {"run", "--device", "sim:t4-16g", missing, "--json"},
		"run --csv":            {"run", "--device", "sim:t4-16g", missing, "--csv"},
		"run --parquet":        {"run", "--device", "sim:t4-16g", missing, "--parquet"},
		"run --html":           {"run", "--device", "sim:t4-16g", missing, "--html"},
		"run --snapshot":       {"run", "--device", "sim:t4-16g", missing, "--snapshot"},
		"remat --json":         {"remat", missing, "--json"},
		"remat --csv":          {"remat", missing, "--csv"},
		"remat --html":         {"remat", missing, "--html"},
	}
	for _, flag := range []string{" --csv", " --json", " --parquet"} {
		all["fleet"+flag] = []string{"fleet", missing, flag[1:]}
		all["offline"+flag] = []string{"offline", missing, flag[1:]}
		all["stats"+flag] = []string{"stats", missing, flag[1:]}
	}
	for _, flag := range []string{
		"snapshot", "perfetto", "placements", "final", "oom-report", "explain", "memory-map", "bins", "chunks", "curve",
		"csv", "parquet", "json", "html",
	} {
		all["replay --"+flag] = []string{"replay", "--strategy", "bfc", missing, "--" + flag}
	}
	return all
}

// TestEveryFlagThatNamesAnOutputIsTried walks the commands, so that a new flag cannot be left out
// of the tests below.
func TestEveryFlagThatNamesAnOutputIsTried(t *testing.T) {
	tried := inputless(t)
	started := false
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !strings.HasPrefix(f.Usage, "write ") && !strings.HasPrefix(f.Usage, "also write ") {
				return
			}
			_, name, _ := strings.Cut(c.CommandPath(), " ")
			_, ok := tried[name+" --"+f.Name]
			assert.True(t, ok, "%s --%s", name, f.Name)
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(everything, &started))
}

func TestOutputsAreJudgedBeforeTheWork(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	folder := filepath.Join(dir, "folder.svg")
	require.NoError(t, os.Mkdir(folder, 0o700))
	for name, args := range inputless(t) {
		flag := ""
		if i := strings.Index(name, "--"); i >= 0 {
			flag = name[i:] + ": "
		}
		ending := map[string]string{"plot --out": ".svg", "sweep plan --output": ".parquet",
			"sweep merge --output": ".parquet", "sweep merge --times": ".parquet", "replay --snapshot": ".pickle",
			"replay --memory-map": ".pb", "replay --curve": ".csv", "run --snapshot": ".pickle"}[name]
		for path, want := range map[string]string{
			filepath.Join(dir, "none", "x"+ending): "no such file or directory\n",
			filepath.Join(file, "x"+ending):        "not a directory\n",
			folder:                                 "folder.svg: is a directory\n",
		} {
			status, stdout, stderr := command(t, append(args, path)...)
			assert.Equal(t, exitTrouble, status, name)
			assert.Empty(t, stdout, name)
			assert.True(t, strings.HasPrefix(stderr, "vramyard: "+flag+"write "+path+": ") && strings.HasSuffix(stderr, want),
				"%s: %s", name, stderr)
		}
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2)
}

func TestEndingsThatPromiseAnotherFormAreRefused(t *testing.T) {
	dir := t.TempDir()
	for name, args := range inputless(t) {
		_, flag, _ := strings.Cut(name, "--")
		for _, ending := range map[string][]string{
			"json": {".csv", ".html", ".parquet", ".xlsx", ".json.xz"}, "csv": {".json", ".xlsx"}, "html": {".pdf", ".json"},
			"offsets": {".json"}, "parquet": {".csv", ".pq"}, "output": {".csv", ".json"}, "times": {".csv"},
		}[flag] {
			path := filepath.Join(dir, "x"+ending)
			_, _, stderr := command(t, append(args, path)...)
			assert.Regexp(t, `^vramyard: --`+flag+`: \S+: want a name that ends in \.`, stderr, name)
		}
	}
	path, result := write(t, "a.trace", small), filepath.Join(dir, "result.2026-11")
	succeed(t, "compare", "--strategies", "bfc", "--json", result, path)
	require.FileExists(t, result, "an ending that is not known promises nothing")
}

func TestTracesAreNotWrittenUnderEndingsOfOtherForms(t *testing.T) {
	dir, good := t.TempDir(), write(t, "a.trace", small)
	for _, ending := range []string{".xlsx", ".json", ".json.gz", ".pickle", ".parq", ".html", ".zip", ".trace.xz", ".foo",
		".v2", ".txt.bak"} {
		path := filepath.Join(dir, "x"+ending)
		for _, args := range [][]string{{"trace", "convert", good}, {"trace", "gen", "w1"},
			{"trace", "cut", "--events", "0:1", good}} {
			status, stdout, stderr := command(t, append(args, path)...)
			require.Equal(t, exitTrouble, status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, "vramyard: "+path+": no trace is written as ")
			require.Contains(t, stderr, "want a name that ends in .csv, .trace or .txt, each also with .gz or .zst, or in "+
				".parquet, or --to with one of text, csv, ")
		}
	}
	for _, name := range []string{"x.trace", "x.txt.gz", "x", "x.zst", "X.CSV.ZST"} {
		succeed(t, "trace", "convert", good, filepath.Join(dir, name))
	}
	succeed(t, "trace", "convert", "--to", "text", good, filepath.Join(dir, "x.json"))
	succeed(t, "trace", "convert", "--to", "text", good, filepath.Join(dir, "x.foo"))
}

// TestTablesAreShownThoughAFileCannotBeWritten has a device that is always full.
func TestTablesAreShownThoughAFileCannotBeWritten(t *testing.T) {
	const full = "/dev/full"
	if runtime.GOOS != "linux" {
		t.Skip("needs " + full)
	}
	good := write(t, "good.trace", small)
	result, written := filepath.Join(t.TempDir(), "r.json"), filepath.Join(t.TempDir(), "w.json")
	succeed(t, "compare", "--strategies", "bfc", "--json", result, good)
	snapshot := vector("segment_free")
	for _, args := range [][]string{
		{"compare", "--strategies", "bfc", good, "--csv", full, "--json", written},
		{"compare", "--strategies", "bfc", good, "--html", full, "--json", written},
		{"replay", "--strategy", "bfc", good, "--placements", full, "--json", written},
		{"replay", "--strategy", "bfc", good, "--final", full},
		{"replay", "--strategy", "bfc", good, "--snapshot", full},
		{"replay", "--strategy", "bfc", good, "--perfetto", full},
		{"replay", "--strategy", "bfc", good, "--html", full},
		{"whatif", "--device", "sim:64MiB", good, "--json", full, "--csv", written + ".csv"},
		{"tune", "--strategy", "slab", "--points", "3", "--settings", "quantum", good, "--json", full},
		{"offline", good, "--json", full, "--offsets", written + ".csv"},
		{"bench", "--strategies", "bfc", "--workloads", "w1", "--live", "10", "--pairs", "100", "--rounds", "1",
			"--json", full},
		{"bench", "--strategies", "bfc", "--workloads", "w1", "--live", "10", "--pairs", "100", "--rounds", "1",
			"--cpuprofile", full},
		{"check", "--strategies", "bfc", "--tests", "1", "--html", full},
		{"diff", result, result, "--json", full},
		{"trace", "diff", good, good, "--json", full},
		{"trace", "info", good, "--json", full},
		{"verify", snapshot, "--json", full},
		{"devices", "--json", full},
	} {
		status, stdout, stderr := command(t, args...)
		assert.Equal(t, exitTrouble, status, args)
		assert.NotEmpty(t, stdout, args)
		assert.Equal(t, "vramyard: write /dev/full: no space left on device\n", stderr, args)
		if i := len(args) - 1; strings.HasPrefix(args[i], written) {
			assert.FileExists(t, args[i])
			require.NoError(t, os.Remove(args[i]))
		}
	}
}
