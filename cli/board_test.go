package cli

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/internal/units"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/bestfit"
)

// TestThePageOfTheBoard builds the site of the committed results and holds docs/board.md to it.
func TestThePageOfTheBoard(t *testing.T) {
	tables, err := filepath.Glob("../benchmarks/results/board/*.parquet")
	require.NoError(t, err)
	require.Len(t, tables, 10)
	dir := filepath.Join(t.TempDir(), "site")
	args := append([]string{"board", "build", "-o", dir, "--tests", "1"}, tables...)
	said := succeed(t, args...)
	for _, name := range []string{"pareto-virtual-memory.svg", "profile-plain.svg", "pareto-fixed.svg",
		"pareto-rematerialization.svg"} {
		file, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.LessOrEqual(t, len(file), 30<<10)
		kept(t, filepath.Join("../docs/board", name), file)
	}
	page, err := os.ReadFile("../docs/board.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)(vramyard board build benchmarks.*?```text\n).*?(```\n)")
	require.True(t, block.Match(page))
	shown := said[:strings.LastIndex(strings.TrimSpace(said), "\n")+1] // without the sizes
	kept(t, "../docs/board.md", block.ReplaceAllFunc(page, func(old []byte) []byte {
		m := block.FindSubmatch(old)
		return []byte(string(m[1]) + shown + string(m[2]))
	}))

	// A command of the site gives the value beside it.
	cells, err := os.ReadFile(filepath.Join(dir, "trace-meta_resnet50_b256.html"))
	require.NoError(t, err)
	row := regexp.MustCompile(`<code>tlsf:growth</code></td><td class="n">([\d,]+)<.*<code>vramyard (.*)</code>`).FindSubmatch(cells)
	require.NotNil(t, row)
	require.Equal(t, strings.ReplaceAll(string(row[1]), ",", ""), figures(t, string(row[2]))[0]["min_capacity_bytes"])

	t.Chdir("../examples/remat")
	repeatsRuns(t, filepath.Join(dir, "log-transformer.html"), "bestfit by eq with defrag-first")
}

// repeatsRuns runs the two commands in the row of an entry on the page of a log.
func repeatsRuns(t *testing.T, page, entry string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	row := regexp.MustCompile(`<code>` + entry + `</code></td><td class="n">([\d,]+)</td><td class="n">([\d.]+)</td>` +
		`<td class="n">([\d.]+)</td><td>.*?<code>vramyard (.*?)</code>.*?: (\S+) \(([\d,]+) bytes, ([\d.]+).*?` +
		`<code>vramyard (.*?)</code>`).FindStringSubmatch(string(text))
	require.NotNil(t, row)
	for command, want := range map[string][]string{row[4]: {row[1], row[2], "ok"}, row[8]: {row[6], row[7], row[5]}} {
		runs := figures(t, command)
		require.Len(t, runs, 2, "counting always runs")
		budget, bound := parsed(t, runs[1]["budget_bytes"]), parsed(t, runs[1]["lower_bound_bytes"])
		got := []string{units.Count(uint64(budget)), units.Fixed(budget/bound, 3), runs[1]["verdict"]}
		require.Equal(t, want, got, command)
		if want[2] == "ok" {
			require.Equal(t, row[3], units.Fixed(parsed(t, runs[1]["total_overhead"]), 3))
		}
	}
}

func parsed(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return x
}

// figures runs a command and returns the rows of its table.
func figures(t *testing.T, command string) (rows []map[string]string) {
	t.Helper()
	text := succeed(t, append(strings.Fields(command), "--csv", "-")...)
	table, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	for _, cells := range table[1:] {
		row := map[string]string{}
		for i, name := range table[0] {
			row[name] = cells[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// kept compares a committed file with its content, or writes it.
func kept(t *testing.T, path string, want []byte) {
	t.Helper()
	if *rewrite {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, want, 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "%s: go test ./cli -run PageOfTheBoard -rewrite", path)
}

// swept computes a study and returns the path of its results.
func swept(t *testing.T, study string) string {
	t.Helper()
	plan := planned(t, study)
	dir := filepath.Dir(plan)
	store, results := filepath.Join(dir, "cells"), filepath.Join(dir, "results.parquet")
	succeed(t, "sweep", "run", plan, "--store", store)
	succeed(t, "sweep", "merge", plan, "--store", store, "-o", results)
	return results
}

// boardStudy has a strategy that may not be listed, and results that a board ignores.
const boardStudy = `
traces: [w1-live100-pairs2000, w1-live200-pairs1000-seed7]
strategies: [bfc, tlsf, "stalloc:unchecked", direct]
searches: [minimum, replay]
`

func TestBoardBuild(t *testing.T) {
	results := swept(t, boardStudy)
	dir, again := filepath.Join(t.TempDir(), "site"), filepath.Join(t.TempDir(), "site")
	args := []string{"board", "build", results, "--tests", "3", "--seed", "18446744073709551615", "-o"}
	out := succeed(t, append(args, dir)...)
	require.Equal(t, out, succeed(t, append(args, again)...))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		a, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		b, err := os.ReadFile(filepath.Join(again, f.Name()))
		require.NoError(t, err)
		require.True(t, bytes.Equal(a, b), f.Name())
	}
	assert.Contains(t, out, "Fewer than 6 traces have no interval: the order may be chance.")
	assert.Contains(t, out, "not listed: stalloc:unchecked: it declares that blocks may overlap\n")
	index, err := os.ReadFile(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	assert.Contains(t, string(index), "<li>stalloc:unchecked: it declares that blocks may overlap</li>")
	assert.Contains(t, string(index), "Ignored: 8 results of other searches or devices.")
	plain, err := os.ReadFile(filepath.Join(dir, "plain.html"))
	require.NoError(t, err)
	assert.NotContains(t, string(plain), "unchecked")
	assert.Contains(t, string(plain), `<td class="w">reference</td><td><code>direct</code></td>`)
}

// TestBoardOfLogs has logs only, settings that the commands must repeat, and a strategy that fails
// its check on every log.
func TestBoardOfLogs(t *testing.T) {
	folder, err := filepath.Abs("../harness/remat/testdata")
	require.NoError(t, err)
	results := swept(t, fmt.Sprintf("logs: [%q]\nstrategies: [bestfit, \"stalloc:unchecked\"]\n"+
		"remat: {heuristics: [eq, lru], ladders: [none], budgets: [\"0.3:0.9:0.1\"], limit: 1.25, eager_in_remat: true, "+
		"min_evictee: 1MiB, sampling: stride, seed: 7}\n", filepath.Join(folder, "syn_unet4.log.gz")))
	dir := filepath.Join(t.TempDir(), "site")
	out := succeed(t, "board", "build", results, "--tests", "3", "-o", dir)
	assert.Contains(t, out, "Plain device memory: No result: there are no results of traces: a study with the key traces "+
		"has.\n")
	assert.Contains(t, out, "Rematerialization: bestfit by ")
	assert.Contains(t, out, "not listed: stalloc:unchecked by eq: it declares that blocks may overlap\n"+
		"not listed: stalloc:unchecked by lru: it declares that blocks may overlap\n")
	index, err := os.ReadFile(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	assert.Contains(t, string(index), "<footer>Logs: liveness eager, trigger ")
	t.Chdir(folder)
	repeatsRuns(t, filepath.Join(dir, "log-syn_unet4.html"), "bestfit by eq")
}

// lenient is a best fit that accepts every free.
type lenient struct{ *bestfit.Allocator }

func (l lenient) Free(a device.Addr) error {
	_ = l.Allocator.Free(a) // the defect
	return nil
}

func TestABoardListsOnlyWhatPassesItsCheck(t *testing.T) {
	build := func(d device.Source, o bestfit.Config) (alloc.Strategy, error) {
		a, err := bestfit.New(d, o)
		return lenient{a}, err
	}
	c := append(strategies.All(), setting.SpecOf("lenient", "", build))
	dir := t.TempDir()
	study, plan := filepath.Join(dir, "study.yaml"), filepath.Join(dir, "plan.parquet")
	const text = "traces: [w1-live100-pairs500]\nstrategies: [bestfit, lenient]\n"
	require.NoError(t, os.WriteFile(study, []byte(text), 0o600))
	over(t, c, "sweep", "plan", study, "-o", plan)
	over(t, c, "sweep", "run", plan, "--store", dir)
	results := filepath.Join(dir, "r.parquet")
	over(t, c, "sweep", "merge", plan, "--store", dir, "-o", results)
	out := over(t, c, "board", "build", results, "-o", filepath.Join(dir, "site"), "--tests", "20")
	require.Regexp(t, `not listed: lenient: its check broke I\d+ \(.*\)\n`, out)
	require.Contains(t, out, "Plain device memory: bestfit needs")
}

func TestBoardRefuses(t *testing.T) {
	good := swept(t, "traces: [w1-live100-pairs2000]\nstrategies: [bfc]\n")
	plan := filepath.Join(filepath.Dir(good), "plan.parquet")
	full := filepath.Dir(write(t, "old.html", "old"))
	out := filepath.Join(t.TempDir(), "site")
	for want, args := range map[string][]string{
		"missing command: want build or audit":                               {},
		`unknown command "biuld"`:                                            {"biuld"},
		"board build: 0 arguments: want ":                                    {"build", "-o", out},
		`required flag(s) "output" not set`:                                  {"build", good},
		"--output: " + full + ": it has files, such as old.html: want a new": {"build", good, "-o", full},
		"--output: ":                    {"build", good, "-o", good},
		"--tests: want 1 to 1000000000": {"build", good, "-o", out, "--tests", "0"},
		`no result of the search "minimum" on the device "sim:l4-24g"`: {"build", good, "-o", out, "--device", "sim:l4-24g"},
		"plan.parquet: ":                {"build", plan, "-o", out},
		"no-such.parquet: no such file": {"build", "no-such.parquet", "-o", out},
		`"--sample" flag: want a percentage above 0 and at most 100`:          {"audit", good, "--sample", "0%"},
		`invalid argument "2" for "--sample" flag: want a percentage above 0`: {"audit", good, "--sample", "2"},
		`invalid argument "101%"`:         {"audit", good, "--sample", "101%"},
		"board audit: 0 arguments: want ": {"audit"},
	} {
		status, stdout, stderr := command(t, append([]string{"board"}, args...)...)
		require.Equal(t, exitTrouble, status, "%v", args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, want, "%v", args)
		require.NoFileExists(t, filepath.Join(out, "index.html"))
	}
}

func TestBoardAudit(t *testing.T) {
	results := swept(t, boardStudy)
	out := succeed(t, "board", "audit", results, "--sample", "100%")
	require.Equal(t, "all 16 cells are reproduced byte for byte.\n", out)
	out = succeed(t, "board", "audit", results, "--seed", "5")
	require.Equal(t, "1 of 16 cells checked, and none differs: with 95 % confidence at most 15 of 16 (93.8 %) do.\n", out)

	rows, err := readTable(results, budget.Default, sweep.ReadResults)
	require.NoError(t, err)
	*rows.Traces[2].MinCapacity += device.MiB
	rows.Traces[4].DeviceCalls++
	forged := filepath.Join(t.TempDir(), "forged.parquet")
	var b bytes.Buffer
	require.NoError(t, rows.Write(&b))
	require.NoError(t, os.WriteFile(forged, b.Bytes(), 0o600))
	status, out, stderr := command(t, "board", "audit", forged, "--sample", "100%")
	require.Equal(t, exitFailed, status)
	first := fmt.Sprintf("cell %.12s: %s", rows.Traces[2].Cell, rows.Traces[2].Strategy)
	require.Contains(t, stderr, first)
	require.Regexp(t, `^cell .*: min_capacity_bytes is (\d+) in the results and (\d+) now\ncell .*: device_calls is (\d+) in the `+
		`results and (\d+) now\n2 of 16 checked cells differ\.\n$`, out)
}

// TestBoardAuditFindsFiles repeats cells of a trace in a file, and of one to learn from.
func TestBoardAuditFindsFiles(t *testing.T) {
	file := write(t, "mine.trace", strings.Repeat("a 1 3MiB\na 2 5MiB\nf 1\nf 2\n", 50))
	results := swept(t, fmt.Sprintf("traces: [%q]\nlearn: %q\nstrategies: [bfc, stalloc]\n", file, file))
	succeed(t, "board", "audit", results, "--sample", "100%")
	moved := filepath.Join(t.TempDir(), filepath.Base(file))
	require.NoError(t, os.Rename(file, moved))
	file = moved
	succeed(t, "board", "audit", results, "--sample", "100%", "--traces", filepath.Dir(file))
	status, _, stderr := command(t, "board", "audit", results, "--sample", "100%")
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "file mine: none of this name in "+filepath.Dir(results)+": --traces names its folder")
	twin := filepath.Join(filepath.Dir(file), "mine.csv")
	require.NoError(t, os.WriteFile(twin, nil, 0o600))
	succeed(t, "board", "audit", results, "--sample", "100%", "--traces", filepath.Dir(file))
	other := filepath.Join(filepath.Dir(file), "mine.txt")
	require.NoError(t, os.Rename(file, other))
	status, _, stderr = command(t, "board", "audit", results, "--sample", "100%", "--traces", filepath.Dir(file))
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "file mine: mine.csv and mine.txt in "+filepath.Dir(file)+
		": want one of this name, or mine.trace")
	require.NoError(t, os.WriteFile(file, []byte("a 1 4MiB\n"), 0o600))
	status, _, stderr = command(t, "board", "audit", results, "--sample", "100%", "--traces", filepath.Dir(file))
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "the file has changed")
}
