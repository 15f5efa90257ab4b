package cli

import (
	"bytes"
	cryptorand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/sweep"
)

// planned writes a study and its plan into a folder and returns the path of the plan.
func planned(t *testing.T, study string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "study.yaml"), []byte(study), 0o600))
	plan := filepath.Join(dir, "plan.parquet")
	status, _, stderr := command(t, "sweep", "plan", filepath.Join(dir, "study.yaml"), "-o", plan)
	require.Equal(t, exitDone, status, stderr)
	return plan
}

// study has 40 cells of some milliseconds.
const study = `
traces: [w1-live100-pairs2000, w1-live200-pairs1000-seed7]
strategies:
  - bfc
  - tlsf
  - strategy: caching
    conf: ["", "max_split_size_mb:64", "expandable_segments:True"]
searches: [minimum, replay]
devices: [sim, sim:l4-24g]
`

func TestSweep(t *testing.T) {
	plan := planned(t, study)
	dir := filepath.Dir(plan)
	store, results := filepath.Join(dir, "cells"), filepath.Join(dir, "results.parquet")
	sweeps := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		status, stdout, stderr := command(t, append([]string{"sweep"}, args...)...)
		require.Equal(t, want, status, stderr)
		return stdout, stderr
	}
	out, _ := sweeps(exitDone, "run", plan, "--store", store, "--shard", "1/2")
	require.Regexp(t, `^shard 1/2: \d+ cells: 0 in the store before, (\d+) computed, 0 failed, 0 left.\n$`, out)
	out, _ = sweeps(exitDone, "status", plan, "--store", store)
	require.Regexp(t, `^Done: \d+ of 40 cells, \d+\.\d % of the predicted time; 0 failed, \d+ missing.\n$`, out)
	_, said := sweeps(exitFailed, "merge", plan, "--store", store, "-o", results)
	require.Regexp(t, `\d+ of 40 cells are missing, the first is [0-9a-f]{12}: `, said)
	require.NoFileExists(t, results)
	out, _ = sweeps(exitDone, "merge", plan, "--store", store, "-o", results, "--allow-missing")
	require.Contains(t, out, "missing: ")

	t.Setenv("TEST_SHARD_INDEX", "1")
	t.Setenv("TEST_TOTAL_SHARDS", "2")
	sweeps(exitDone, "run", plan, "--store", store, "--shard", "auto")
	times := filepath.Join(dir, "times.parquet")
	out, _ = sweeps(exitDone, "merge", plan, "--store", store, "-o", results, "--times", times)
	require.Equal(t, "40 results, 0 failed, 0 missing.\n", out)
	rows, _ := readParquet(t, results)
	require.Len(t, rows, 41)
	timed := filepath.Join(dir, "timed.parquet")
	sweeps(exitDone, "plan", filepath.Join(dir, "study.yaml"), "-o", timed, "--times", times)
	out, _ = sweeps(exitDone, "run", timed, "--store", store)
	require.Contains(t, out, "40 in the store before, 0 computed")
}

// TestSweepPathsAreRelative plans a study in one folder into another one, and runs it from a third.
func TestSweepPathsAreRelative(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"study/runs", "plans"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, sub), 0o755))
	}
	for _, name := range []string{"a", "b"} {
		text := []byte("a 1 1MiB\na 2 3MiB tag=" + name + "\nf 1\n")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "study/runs", name+".trace"), text, 0o600))
	}
	file := filepath.Join(dir, "study", "study.yaml")
	require.NoError(t, os.WriteFile(file, []byte("traces: ['runs/*.trace', runs/a.trace]\nstrategies: [bfc]\n"), 0o600))
	plan := filepath.Join(dir, "plans", "plan.parquet")
	status, out, stderr := command(t, "sweep", "plan", file, "-o", plan)
	require.Equal(t, exitDone, status, stderr)
	require.Equal(t, "2 cells of 2 traces.\n", out)
	t.Chdir(t.TempDir())
	status, _, stderr = command(t, "sweep", "run", plan, "--store", filepath.Join(dir, "cells"))
	require.Equal(t, exitDone, status, stderr)
	require.NoError(t, os.Remove(filepath.Join(dir, "study/runs/b.trace")))
	status, _, stderr = command(t, "sweep", "run", plan, "--store", filepath.Join(dir, "other"))
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "b.trace: no such file")
}

// TestSweepSurvivesKills kills the processes of eight shards at random moments until all cells are
// done. The merged file equals the file of a run without interruptions.
func TestSweepSurvivesKills(t *testing.T) {
	plan := planned(t, study)
	dir := filepath.Dir(plan)
	merge := func(t *testing.T, store string) []byte {
		t.Helper()
		out := filepath.Join(t.TempDir(), "results.parquet")
		succeed(t, "sweep", "merge", plan, "--store", store, "-o", out)
		body, err := os.ReadFile(out)
		require.NoError(t, err)
		return body
	}
	whole := filepath.Join(dir, "whole")
	succeed(t, "sweep", "run", plan, "--store", whole)
	want := merge(t, whole)
	t.Run("Folder", func(t *testing.T) {
		store := filepath.Join(dir, "killed")
		killShards(t, plan, store)
		require.Equal(t, want, merge(t, store))
	})
	t.Run("S3", func(t *testing.T) {
		bucket := os.Getenv("VRAMYARD_S3")
		if bucket == "" {
			t.Skip("needs a bucket in VRAMYARD_S3: bash .ci/s3 starts a server with one")
		}
		u, err := url.Parse(bucket)
		require.NoError(t, err)
		u.Path += "/" + strings.ToLower(cryptorand.Text())
		killShards(t, plan, u.String())
		require.Equal(t, want, merge(t, u.String()))
	})
}

// killShards runs each of eight shards until it succeeds, and kills it at random moments before.
func killShards(t *testing.T, plan, store string) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	var killed atomic.Int64
	var shards sync.WaitGroup
	for shard := 1; shard <= 8; shard++ {
		shards.Go(func() {
			for done, patience := false, 30*time.Millisecond; !done; patience *= 2 {
				c := exec.CommandContext(t.Context(), exe, "sweep", "run", plan, "--store", store,
					"--shard", strconv.Itoa(shard)+"/8", "--workers", "1")
				c.Env = append(os.Environ(), asCommand+"=quiet")
				assert.NoError(t, c.Start())
				timer := time.AfterFunc(time.Duration(rand.Int64N(int64(patience))), func() { _ = c.Process.Kill() })
				err := c.Wait()
				timer.Stop()
				if done = err == nil; !done {
					killed.Add(1)
				}
			}
		})
	}
	shards.Wait()
	require.Positive(t, killed.Load())
}

// TestSweepStopsAtSIGTERM stops a shard, which says how to go on.
func TestSweepStopsAtSIGTERM(t *testing.T) {
	plan := planned(t, "traces: [w1-live1000-pairs300000]\nsearches: [replay]\n"+
		"strategies: [bfc, tlsf, bestfit, caching, buddy, slab]\n")
	for signal, want := range map[os.Signal]int{syscall.SIGTERM: exitContinue, os.Interrupt: exitInterrupted} {
		status, out, stderr := interruptedBy(t, []os.Signal{signal}, "sweep", "run", plan, "--store",
			filepath.Join(t.TempDir(), "cells"), "--workers", "1")
		require.Equal(t, want, status, stderr)
		require.Regexp(t, `^shard 1/1: 6 cells: 0 in the store before, [0-5] computed, 0 failed, [1-6] left.\n$`, out)
		require.Contains(t, stderr, "left; the same command continues")
	}
}

func TestSweepRefuses(t *testing.T) {
	plan := planned(t, study)
	dir := filepath.Dir(plan)
	file := filepath.Join(dir, "study.yaml")
	table := filepath.Join(dir, "table.parquet")
	status, _, stderr := command(t, "compare", "--strategies", "direct", "--parquet", table, "w1-live10-pairs10")
	require.Equal(t, exitDone, status, stderr)
	wrong := filepath.Join(dir, "wrong.yaml")
	require.NoError(t, os.WriteFile(wrong, []byte("traces: ['*.csv']\nstrategies: [bfc]\n"), 0o600))
	unplanned := filepath.Join(dir, "unplanned.yaml")
	text := []byte("traces: [w1-live10]\nlearn: w1-live10-pairs10\nstrategies: [bfc]\n")
	require.NoError(t, os.WriteFile(unplanned, text, 0o600))
	for _, c := range []struct{ args, want string }{
		{"", "missing command: want plan, run, merge or status"},
		{"plan", `0 arguments: want "vramyard sweep plan STUDY.yaml -o PLAN.parquet`},
		{"plan " + file, `required flag(s) "output" not set`},
		{"plan " + file + " -o " + file, "--output: " + file + " is a file to read"},
		{"plan " + plan + " -o x.parquet", "plan.parquet: go-yaml load error"},
		{"plan " + wrong + " -o x.parquet", "wrong.yaml: traces: *.csv: no file matches"},
		{"plan " + unplanned + " -o x.parquet", "unplanned.yaml: learn: no strategy plans ahead: want one of "},
		{"plan " + file + " -o x.csv", "--output: x.csv: want a name that ends in .parquet"},
		{"plan " + file + " -o x.parquet --times " + table, "--times: " + table + ": "},
		{"run " + plan, `required flag(s) "store" not set`},
		{"run " + plan + " --store " + plan, "--store: "},
		{"run " + plan + " --store a --shard 0/4", `--shard: "0/4": want K/N with K from 1 to N`},
		{"run " + plan + " --store a --shard 5/4", `--shard: "5/4": want K/N`},
		{"run " + plan + " --store a --shard 3", `--shard: "3": want K/N`},
		{"run " + plan + " --store a --shard auto", "--shard: auto: this process is no task of an array"},
		{"run " + plan + " --store a --workers -1", "--workers: "},
		{"run " + file + " --store a", "study.yaml: "},
		{"run " + table + " --store a", "table.parquet: "},
		{"merge " + plan + " --store a -o " + plan, "--output: " + plan + " is a file to read"},
		{"merge " + plan + " --store a -o x.parquet --times x.parquet", "--times: x.parquet is where --output is written"},
		{"status none.parquet --store a", "none.parquet: no such file"},
		{"status " + plan + " --store typo", "--store: store: stat typo: no such file"},
		{"merge " + plan + " --store typo -o x.parquet", "--store: store: stat typo: no such file"},
		{"merge " + plan + " --store -o x.parquet", "want a folder or s3://BUCKET/PREFIX"},
	} {
		t.Chdir(t.TempDir())
		status, out, stderr := command(t, append([]string{"sweep"}, strings.Fields(c.args)...)...)
		require.Equal(t, exitTrouble, status, c.args)
		require.Empty(t, out, c.args)
		require.Contains(t, stderr, c.want, c.args)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		left, err := filepath.Glob("x*")
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// TestSweepReadsAStoreThatItCannotWrite also has a plan whose cell leads out of the store.
func TestSweepReadsAStoreThatItCannotWrite(t *testing.T) {
	plan := planned(t, "traces: [w1-live10-pairs10]\nsearches: [replay]\nstrategies: [bfc]\n")
	dir := filepath.Dir(plan)
	store := filepath.Join(dir, "cells")
	succeed(t, "sweep", "run", plan, "--store", store)
	require.NoError(t, os.Chmod(store, 0o500))
	require.Equal(t, "Done: 1 of 1 cell, 100.0 % of the predicted time; 0 failed, 0 missing.\n",
		succeed(t, "sweep", "status", plan, "--store", store))
	p, err := readTable(plan, 0, sweep.ReadPlan)
	require.NoError(t, err)
	p.Rows[0].Cell = "../" + strings.Repeat("./", 25) + "study.yaml0"
	require.Len(t, p.Rows[0].Cell, 64)
	var b bytes.Buffer
	require.NoError(t, p.Write(&b))
	evil := write(t, "evil.parquet", b.String())
	status, _, stderr := command(t, "sweep", "status", evil, "--store", store)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "evil.parquet: row 0: cell ")
	require.Contains(t, stderr, "want 64 hexadecimal digits")
}

// TestSweepOpensTracesOfTheProgramByName runs in a folder that has a folder of that name, and plans
// a pattern below a folder whose name looks like one.
func TestSweepOpensTracesOfTheProgramByName(t *testing.T) {
	plan := planned(t, "traces: [w1-live10-pairs10]\nsearches: [replay]\nstrategies: [bfc]\n")
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("w1-live10-pairs10", 0o700))
	succeed(t, "sweep", "run", plan, "--store", "cells")
	for _, sub := range []string{"d[1]", "d1"} {
		require.NoError(t, os.Mkdir(sub, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(sub, sub+".trace"), []byte(small), 0o600))
	}
	study := filepath.Join("d[1]", "study.yaml")
	require.NoError(t, os.WriteFile(study, []byte("traces: ['*.trace']\nstrategies: [bfc]\n"), 0o600))
	succeed(t, "sweep", "plan", study, "-o", "plan.parquet")
	p, err := readTable("plan.parquet", 0, sweep.ReadPlan)
	require.NoError(t, err)
	require.Equal(t, "d[1]/d[1].trace", p.Rows[0].Trace)
}

func TestShardOfATask(t *testing.T) {
	for _, c := range []struct {
		n    int
		env  string
		want string // a shard, or an error
	}{
		{0, "SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=64 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=63", "4/64"},
		{0, "SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=64 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=64", "1/64"},
		{0, "SLURM_ARRAY_TASK_ID=9 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=9 " +
			"SLURM_ARRAY_TASK_STEP=4", "3/3"},
		{0, "SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_MAX=7",
			"the 2 tasks of the array are not a range with equal steps"},
		{64, "SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_MAX=7", "8/64"},
		{8, "SLURM_ARRAY_TASK_ID=8 SLURM_ARRAY_TASK_COUNT=8", "SLURM_ARRAY_TASK_ID is 8: want 0 to 7"},
		{0, "JOB_COMPLETION_INDEX=2", "JOB_COMPLETION_INDEX does not come with the number of tasks: want it in --shard"},
		{5, "JOB_COMPLETION_INDEX=2", "3/5"},
		{5, "JOB_COMPLETION_INDEX=two", `variable JOB_COMPLETION_INDEX is "two": want a number`},
		{5, "JOB_COMPLETION_INDEX=-1", "JOB_COMPLETION_INDEX is -1: want 0 to 4"},
		{0, "AWS_BATCH_JOB_ARRAY_INDEX=0 AWS_BATCH_JOB_ARRAY_SIZE=2", "1/2"},
		{0, "TEST_SHARD_INDEX=3 TEST_TOTAL_SHARDS=4", "4/4"},
		{3, "HOME=/", "this process is no task of an array: want one of the variables SLURM_ARRAY_TASK_ID, JOB_"},
	} {
		env := map[string]string{}
		for _, pair := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		s, err := autoShard(c.n, func(name string) string { return env[name] })
		if err != nil {
			assert.ErrorContains(t, err, c.want, c.env)
		} else {
			assert.Equal(t, c.want, s.String(), c.env)
		}
	}
	_, err := parseShard("1/0")
	require.ErrorIs(t, err, errShard)
	s, err := parseShard("2/7")
	require.NoError(t, err)
	require.Equal(t, sweep.Shard{Index: 1, Count: 7}, s)
}

// TestCommandsUseAStore runs commands without a store, with an empty one, and again with the
// results of the first time.
func TestCommandsUseAStore(t *testing.T) {
	examples := filepath.Join("..", "examples")
	grid := write(t, "grid.yaml", "- bfc\n- strategy: caching\n  conf: ['', 'expandable_segments:True']\n")
	for _, args := range []string{
		"compare --strategies caching,bfc w1-live100-pairs300",
		"compare --strategies stalloc --learn " + write(t, "small.trace", small) + " w1-live100-pairs300",
		"whatif --grid " + grid + " " + filepath.Join(examples, "oom", "layouts.pickle.gz"),
		"whatif --grid full " + write(t, "full.trace", small),
		"whatif --grid full --device sim:160MiB " +
			write(t, "changing.trace", "a 1 100MiB\nconf max_split_size_mb:20\na 2 50MiB\n"), // some settings are rejected
		"remat --strategies tlsf --heuristics lru --budgets 0.8,0.9 " + filepath.Join(examples, "remat", "cnn.log.gz"),
	} {
		t.Run(args, func(t *testing.T) {
			store := filepath.Join(t.TempDir(), "cells")
			want := exactText(t, args)
			first := exactText(t, args+" --store "+store)
			files, err := filepath.Glob(filepath.Join(store, "cells", "*", "*.json"))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			again := exactText(t, args+" --store "+store)
			more, err := filepath.Glob(filepath.Join(store, "cells", "*", "*.json"))
			require.NoError(t, err)
			require.Equal(t, files, more)
			require.Equal(t, want, first)
			require.Equal(t, want, again)
		})
	}
}

// TestTuneUsesAStore searches a whole grid, so that times do not decide which points are tried.
func TestTuneUsesAStore(t *testing.T) {
	store := filepath.Join(t.TempDir(), "cells")
	var files []string
	for range 2 {
		succeed(t, "tune", "--strategy", "bfc", "--settings", "allow_growth", "--store", store, "w1-live100-pairs300")
		now, err := filepath.Glob(filepath.Join(store, "cells", "*", "*.json"))
		require.NoError(t, err)
		require.NotEmpty(t, now)
		if files != nil {
			require.Equal(t, files, now)
		}
		files = now
	}
}

// TestAStoreIsForSimulatedDevices also gives each command a store that cannot be one.
func TestAStoreIsForSimulatedDevices(t *testing.T) {
	file := write(t, "file", "")
	for _, args := range []string{
		"compare w1-live100-pairs300", "tune --strategy bfc w1-live100-pairs300",
		"whatif " + filepath.Join("..", "examples", "oom", "layouts.pickle.gz"),
		"remat " + filepath.Join("..", "examples", "remat", "cnn.log.gz"),
	} {
		for store, want := range map[string]string{file: "not a directory", "gs://bucket": `unknown scheme "gs"`, "": "--store"} {
			status, out, stderr := command(t, append(strings.Fields(args), "--store", store)...)
			require.Equal(t, exitTrouble, status, "%s --store %s", args, store)
			require.Empty(t, out)
			require.Contains(t, stderr, want)
		}
	}
}

// timesInJSON matches the measured figures in JSON.
var timesInJSON = regexp.MustCompile(`"ns_per_op\w*": [-+.0-9e]+`)

// exactText returns the result of a command as JSON without measured figures.
func exactText(t *testing.T, args string) string {
	t.Helper()
	return timesInJSON.ReplaceAllString(succeed(t, append(strings.Fields(args), "--json", "-")...), "")
}

// TestSweepOfLogs computes the runs of an op log, and remat then finds them in the store.
func TestSweepOfLogs(t *testing.T) {
	log, err := filepath.Abs(filepath.Join("..", "harness", "remat", "testdata", "syn_unet4.log.gz"))
	require.NoError(t, err)
	plan := planned(t, fmt.Sprintf("logs: [%q]\nstrategies: [bfc]\n", filepath.Dir(log)+"/syn_u*")+
		"remat: {heuristics: [eq], budgets: [\"0.4:1.0:0.2\"]}\n")
	store := filepath.Join(filepath.Dir(plan), "cells")
	require.Equal(t, "shard 1/1: 12 cells: 0 in the store before, 12 computed, 0 failed, 0 left.\n",
		succeed(t, "sweep", "run", plan, "--store", store))
	results := filepath.Join(filepath.Dir(plan), "results.parquet")
	succeed(t, "sweep", "merge", plan, "--store", store, "-o", results)
	require.Equal(t, "all 12 cells are reproduced byte for byte.\n",
		succeed(t, "board", "audit", results, "--sample", "100%"), "the log is found by its path")
	args := []string{"remat", log, "--heuristics", "eq", "--strategies", "bfc", "--budgets", "0.4:1.0:0.2"}
	alone := succeed(t, args...)
	require.Equal(t, alone, succeed(t, append(args, "--store", store)...))
	cells, err := filepath.Glob(filepath.Join(store, "cells", "*", "*.json"))
	require.NoError(t, err)
	require.Len(t, cells, 12, "remat computed none")

	named := write(t, "w1", "") // a path, though a workload has this name
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(named, text, 0o600))
	study := filepath.Join(filepath.Dir(named), "study.yaml")
	require.NoError(t, os.WriteFile(study, []byte("logs: [w1]\nstrategies: [bfc]\nremat: {budgets: [1]}\n"), 0o600))
	require.Equal(t, "9 cells of 1 log.\n", succeed(t, "sweep", "plan", study, "-o", plan))
	trace := write(t, "my.trace", "a 1 3MiB\n")
	study = write(t, "study.yaml", fmt.Sprintf("logs: [%q]\nstrategies: [bfc]\n", trace))
	status, _, stderr := command(t, "sweep", "plan", study, "-o", filepath.Join(t.TempDir(), "plan.parquet"))
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "my.trace: a trace of allocations")
	status, _, stderr = command(t, "stats", results)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, `metadata vramyard.schema "vramyard-sweep-remat/1": want `)
}
