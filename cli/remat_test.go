package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
)

// unet is a log that runs in milliseconds.
const unet = "../harness/remat/testdata/syn_unet4.log.gz"

func TestRematReportsTheSmallestBudget(t *testing.T) {
	out := succeed(t, "remat", unet, "--strategies", "bestfit,counting,bfc", "--budgets", "0.5:1.2:0.05")
	require.Contains(t, out, "syn_unet4 by eq: 152 operators of 43.46 ms, base peak 475.59 MiB, sha256 94a590c658f5\n")
	require.Contains(t, out, "liveness eager\n")
	counting, bfc := strings.Index(out, "│ counting "), strings.Index(out, "│ bfc ")
	require.True(t, counting > 0 && counting < bfc, out)
	require.Contains(t, out, "bestfit, ladder none: completes within 0.85 and fails again within 0.9\n")
}

func TestRematListsHeuristics(t *testing.T) {
	out := succeed(t, "remat", "--list-heuristics")
	for _, h := range remat.Heuristics() {
		entry := fmt.Sprintf("\n%-14s  %s\n%16s%s\n%16ssource: %s\n", h.Name, h.Formula(), "", h.Prefers, "", h.Source)
		require.Contains(t, out, entry)
	}
	symbol := strings.Index(out, "\ns  staleness: the clock now, minus t\n")
	require.Positive(t, symbol)
	require.Less(t, symbol, strings.Index(out, "\nestar "), "the symbols precede the scores that use them")
	for line := range strings.Lines(out) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 132, line)
	}
	for _, beside := range [][]string{{unet}, {"--json", "-"}} {
		status, _, stderr := command(t, append([]string{"remat", "--list-heuristics"}, beside...)...)
		require.Equal(t, exitTrouble, status)
		require.Contains(t, stderr, "--list-heuristics: want no LOG and no other flag beside it")
	}
}

func TestRematWritesJSONAndCSV(t *testing.T) {
	dir := t.TempDir()
	asJSON, asCSV := filepath.Join(dir, "a.json"), filepath.Join(dir, "a.csv")
	out := succeed(t, "remat", unet, "--heuristics", "eq,lru", "--strategies", "bfc", "--budgets", "0.6,0.9", "--json",
		asJSON, "--csv", asCSV)
	require.Contains(t, out, "syn_unet4 by lru")
	text, err := os.ReadFile(asJSON)
	require.NoError(t, err)
	var r struct {
		Schema string           `json:"schema"`
		Runs   []map[string]any `json:"runs"`
	}
	require.NoError(t, json.Unmarshal(text, &r))
	require.Equal(t, grid.Schema, r.Schema)
	require.Len(t, r.Runs, 2*3*2, "two heuristics, counting and bfc with two ladders, two budgets")
	for _, name := range []string{
		"model", "heuristic", "liveness", "ratio", "budget_bytes", "strategy", "verdict", "overhead", "clock_ns",
		"max_memory_bytes", "evict_pressure", "remat_ops", "evict_seq_sha256",
	} {
		require.Contains(t, r.Runs[0], name)
	}
	file, err := os.Open(asCSV)
	require.NoError(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+len(r.Runs))
	own := slices.IndexFunc(rows[0], func(name string) bool { return strings.HasPrefix(name, "swap.") })
	require.Len(t, rows[0][:own], len(r.Runs[0]), "nothing is swapped, and JSON leaves the last columns out")
	require.Equal(t, "syn_unet4", rows[1][slices.Index(rows[0], "model")])
}

// TestRematBehavesAsARelease gives one flag beside a release, which keeps its value.
func TestRematBehavesAsARelease(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a.json")
	succeed(t, "remat", unet, "--strategies", "bfc", "--budgets", "0.8", "--megengine", "1.4", "--liveness", "eager",
		"--json", out)
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	r, err := grid.Parse(text)
	require.NoError(t, err)
	want, err := grid.ReleaseOf("1.4")
	require.NoError(t, err)
	want.Settings.Liveness, want.Settings.Limit = "eager", 2
	require.Equal(t, want.Settings, r.Settings)
	require.Equal(t, "mge", r.Lines[1].Heuristic)
	require.Equal(t, "defrag", r.Lines[1].Ladder)
}

func TestRematComparesSettingsOfAHeuristic(t *testing.T) {
	out := succeed(t, "remat", unet, "--strategies", "", "--budgets", "0.5,0.6", "--heuristics",
		"lru,mge:size=0/1:stale=0")
	require.Contains(t, out, "│   lru │ mge:size=0:stale=0 │ mge:size=1:stale=0 │")
}

// TestRematWritesOneThingToStandardOutput asks for each document there.
func TestRematWritesOneThingToStandardOutput(t *testing.T) {
	for flag, start := range map[string]string{"--json": "{\n", "--csv": "model,", "--html": "<!doctype html>"} {
		out := succeed(t, "remat", unet, "--strategies", "", "--budgets", "1", flag, "-")
		assert.True(t, strings.HasPrefix(out, start), "%s: %.40s", flag, out)
		assert.NotContains(t, out, "┌")
	}
}

func TestRematDrawsAPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.html")
	succeed(t, "remat", unet, "--strategies", "bfc,vmm", "--budgets", "0.7,0.8,1", "--html", path, "--workers", "1")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Less(t, len(text), 500_000)
	for _, part := range []string{
		"syn_unet4 by eq: overhead by budget, or the reason of the failure",
		"<figcaption>syn_unet4 by eq, ladder none: time " +
			"over budget<",
		"<figcaption>syn_unet4 by eq, ladder defrag-first: time over budget<", "<dt>liveness</dt><dd>eager</dd>",
		"<code>vramyard remat --budgets 0.7,0.8,1 --html a.html --strategies bfc,vmm syn_unet4.log.gz</code>",
	} {
		require.Contains(t, string(text), part)
	}
}

func TestRematReadsStandardInput(t *testing.T) {
	log := `{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}` + "\n" +
		`{"INSTRUCTION":"CONSTANT","NAME":"x"}` + "\n" + `{"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":"4096"}` + "\n"
	var out, errs strings.Builder
	require.Equal(t, exitDone, run(t.Context(), everything, []string{"remat", "-", "--strategies", ""},
		strings.NewReader(log), &out, &errs), errs.String())
	require.Contains(t, out.String(), "stdin by eq: 1 operators of 0 ns, base peak 4.00 KiB")
}

func TestWrongInputOfRemat(t *testing.T) {
	cut := write(t, "cut.log", `{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}`+"\n"+`{"INSTRUCTION":"CONST`)
	empty := write(t, "empty.log", `{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}`+"\n")
	small, left := write(t, "small.trace", small), t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no log":                {nil, "0 arguments: want "},
		"no such file":          {[]string{"missing.log"}, "missing.log: no such file or directory"},
		"a log that ends early": {[]string{cut}, cut + ":2: "},
		"a log of nothing":      {[]string{empty}, "empty: the log allocates no memory"},
		"a trace of allocations": {[]string{small},
			small + ": a trace of allocations, for replay and compare: want a log of operators"},
		"heuristic":    {[]string{unet, "--heuristics", "eq,best"}, `--heuristics: heuristic "best": want estar, `},
		"no heuristic": {[]string{unet, "--heuristics", ""}, "--heuristics: want at least one"},
		"liveness":     {[]string{unet, "--liveness", "keen"}, `--liveness: liveness "keen": want none, eager, `},
		"ladder":       {[]string{unet, "--ladders", "none,up"}, `--ladders: ladder "up": want none, `},
		"no ladder":    {[]string{unet, "--ladders", ""}, "--ladders: want at least one"},
		"trigger": {[]string{unet, "--trigger", "threshold:2"},
			`--trigger: ratio "2": want more than 0, at most 1`},
		"sampling":     {[]string{unet, "--sampling", "few"}, `--sampling: "few": want none, stride, mge`},
		"least tensor": {[]string{unet, "--min-evictee", "tiny"}, `--min-evictee: "tiny": want a size`},
		"order": {[]string{unet, "--parent-order", "up"},
			`--parent-order: order "up": want argument, cheapest, largest`},
		"quirks":      {[]string{unet, "--quirks", "q1,q99"}, `--quirks: quirk "q99": want q1, `},
		"way to move": {[]string{unet, "--defrag", "push"}, `--defrag: defrag "push": want slide, `},
		"strategy":    {[]string{unet, "--strategies", "bcf"}, `--strategies: unknown strategy "bcf"`},
		"budget of nothing": {[]string{unet, "--budgets", "0:1:0.1"},
			`--budgets: ratio "0": want more than 0, at most 10`},
		"range":                 {[]string{unet, "--budgets", "1:0.5:0.1"}, `--budgets: "1:0.5:0.1": want FROM:TO:STEP`},
		"limit":                 {[]string{unet, "--limit", "1"}, ": want more than 1, at most 1000000"},
		"limit that is none":    {[]string{unet, "--limit", "NaN"}, ": want more than 1, at most 1000000"},
		"workers":               {[]string{unet, "--workers", "-1"}, "--workers: want 0 or more"},
		"output over the input": {[]string{cut, "--json", cut}, "is a file to read"},
		"standard input twice":  {[]string{"-", "-"}, "standard input can be read only once"},
		"two outputs":           {[]string{unet, "--json", "-", "--csv", "-"}, "--csv: - is where --json is written"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"remat", "--html", filepath.Join(left, "x.html")}, c.args...)
			status, stdout, stderr := command(t, args...)
			require.Equal(t, exitTrouble, status, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, c.want)
			require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		})
	}
	files, err := os.ReadDir(left)
	require.NoError(t, err)
	require.Empty(t, files, "nothing is written")
}

func TestAnInterruptedGridShowsWholeLines(t *testing.T) {
	status, out, errs := interruptedBy(t, once, "remat", mustAbs(t, "../harness/remat/testdata/syn_treelstm6.log.gz"),
		"--heuristics", "lru,estar", "--strategies", "", "--workers", "1", "--budgets", "0.5:1:0.001", "--json", "x.json")
	assert.Equal(t, 130, status)
	assert.Equal(t, strings.Contains(errs, "lines are finished"), strings.HasPrefix(out, "partial: "), errs)
}

// mustAbs returns a path that does not depend on the folder.
func mustAbs(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	require.NoError(t, err)
	return abs
}

// TestThePicturesOfRemat runs the lines below the pictures of docs/remat.md and holds the pictures
// to what they write.
func TestThePicturesOfRemat(t *testing.T) {
	t.Chdir("..")
	page, err := os.ReadFile("docs/remat.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(page), "<!-- pictures -->\n```\n")
	require.True(t, ok)
	lines, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	dir, drawn := t.TempDir(), 0
	for line := range strings.Lines(lines) {
		args := strings.Fields(line)[1:]
		for i, word := range args {
			if ending := filepath.Ext(word); ending == ".json" || ending == ".svg" {
				args[i] = filepath.Join(dir, word)
			}
		}
		succeed(t, args...)
		if args[0] != "plot" {
			continue
		}
		drawn++
		file, err := os.ReadFile(args[2])
		require.NoError(t, err)
		file = regexp.MustCompile(`(?s)<defs>.*?</defs>\n`).ReplaceAll(file, nil) // the font, half a MiB for each
		path := filepath.Join("docs", "remat", filepath.Base(args[2]))
		if *rewrite {
			require.NoError(t, os.WriteFile(path, file, 0o644))
		}
		kept, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(kept, file), "%s is not what the page writes: go test ./cli -run PicturesOfRemat -rewrite",
			path)
	}
	require.Equal(t, 3, drawn)
}
