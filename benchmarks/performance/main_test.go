package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test program be the traced process too, which the program starts itself as.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == tracedCommand {
		main()
		return
	}
	os.Exit(m.Run())
}

// committed are the raw files and the page of this repository.
var committed = options{results: "../results", docs: "../../docs", log: io.Discard}

func TestPageAndPlotsMatchTheRawFiles(t *testing.T) {
	f, err := loadAll(committed)
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(committed.docs, "performance.md"))
	require.NoError(t, err)
	filled, err := f.filled(string(page))
	require.NoError(t, err)
	const renew = "go -C benchmarks/performance run . render"
	require.Equal(t, filled, string(page), renew)
	files, err := f.drawn()
	require.NoError(t, err)
	require.Len(t, files, len(plots()))
	for _, p := range plots() {
		got, err := os.ReadFile(filepath.Join(committed.docs, "performance", p.file))
		require.NoError(t, err)
		require.True(t, files[p.file] == string(got), "%s: %s", p.file, renew)
		require.Contains(t, string(page), "(performance/"+p.file+")")
	}
}

func TestRenderWritesWhatTheTestCompares(t *testing.T) {
	o := committed
	o.docs = t.TempDir()
	page, err := os.ReadFile(filepath.Join(committed.docs, "performance.md"))
	require.NoError(t, err)
	file := filepath.Join(o.docs, "performance.md")
	require.NoError(t, os.WriteFile(file, page, 0o600))
	require.NoError(t, runSteps([]string{"render"}, o))
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(page), string(got))
	plots, err := os.ReadDir(filepath.Join(o.docs, "performance"))
	require.NoError(t, err)
	require.Len(t, plots, 5)
}

func TestRenderNamesWhatIsMissing(t *testing.T) {
	o := committed
	o.results = t.TempDir()
	require.ErrorContains(t, runSteps([]string{"render"}, o), "run the steps before")
	f, err := loadAll(committed)
	require.NoError(t, err)
	_, err = f.filled("# no marks\n")
	require.ErrorContains(t, err, "<!-- begin answer -->")
}

func TestRunRefusesWhatItCannotDo(t *testing.T) {
	for line, want := range map[string]string{
		"":                             "no step: want one or more of times, locked, latency, files, lines, render, or all",
		"tims":                         `unknown step "tims"`,
		"--rounds 0 times":             "--rounds: want at least 1",
		"--most 10 times":              "--most: want at least 1000",
		"--wrong times":                "flag provided but not defined",
		"traced tlsf":                  "for this program only",
		"traced tlsf many":             "invalid syntax",
		"traced nothing 1000":          "nothing",
		"render --rounds 3":            `unknown step "--rounds"`,
		"--results /dev/null/x render": "not a directory",
	} {
		require.ErrorContains(t, run(strings.Fields(line), io.Discard), want, line)
	}
	var help strings.Builder
	require.NoError(t, run([]string{"--help"}, &help))
	require.Contains(t, help.String(), "-results directory")
}

func TestStepsWriteRawFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a million pairs of each strategy")
	}
	o := options{results: t.TempDir(), rounds: 1, most: live[0], log: io.Discard}
	require.NoError(t, runSteps([]string{"times", "locked"}, o))
	for _, c := range comparisons() {
		var f timesFile
		require.NoError(t, load(o, c.file(), &f))
		require.Len(t, f.Reports, 1)
		require.Equal(t, schema, f.Schema)
		for _, e := range c.entries {
			r := f.run(e.name, live[0])
			require.NotNil(t, r)
			require.Positive(t, r.Min)
		}
		require.Nil(t, f.run("tlsf", 7))
		require.NotNil(t, f.loop(live[0]))
	}
	var f lockedFile
	require.NoError(t, load(o, "locked.json", &f))
	require.Len(t, f.Reports[0].Threads, 2*(2*len(lockedThreads)+1), "a mutex, shards, and once no lock")
	for _, r := range f.Reports[0].Threads {
		require.Positive(t, r.Median)
		require.Positive(t, *r.MetadataPerBlock)
		require.Equal(t, lockedLive, r.Live)
		require.Equal(t, lockedPairs, r.Pairs)
	}
}

// TestDamagedRawFileIsNamed renders with each raw file emptied in turn, which is JSON still.
func TestDamagedRawFileIsNamed(t *testing.T) {
	for _, name := range []string{"times-w1.json", "times-buddy.json", "locked.json", "latency.json", "lines.json",
		"peers.json", "files.json"} {
		for _, text := range []string{"{}", "null", "[]", `{"runs":[]}`, "x", ""} {
			o := options{results: t.TempDir(), docs: t.TempDir(), log: io.Discard}
			require.NoError(t, os.CopyFS(o.results, os.DirFS("../results")))
			require.NoError(t, os.WriteFile(filepath.Join(o.results, name), []byte(text), 0o600))
			require.ErrorContains(t, render(o), name, text)
		}
	}
}

func TestLinesOfAFunctionAreAddedUp(t *testing.T) {
	got := byFunction([]farFrom{{"a", "f", 1, .5}, {"b", "g", 1, .4}, {"b", "g", 2, .2}})
	require.Len(t, got, 2)
	require.Equal(t, "b", got[0].Function)
	require.InDelta(t, .6, got[0].Far, 1e-9)
}
