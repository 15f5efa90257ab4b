//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/cuda/cudatest"
	"github.com/vramyard/vramyard/device/sim"
)

var (
	whole   = flag.Bool("gpu.whole", false, "make a bundle and run it over the stand-in for the driver")
	rewrite = flag.Bool("rewrite", false, "write what is made of testdata/standin; with -gpu.whole its result, too")
)

// Files of a result that was recorded over the stand-in for the driver: its times say nothing of
// any card.
const (
	standinResult = "testdata/standin/result.json"
	standinPage   = "testdata/standin/result.md"
	standinTable  = "testdata/standin/measured.go.txt"
)

// golden compares a text with a file, or writes it there.
func golden(t *testing.T, path, text string) {
	t.Helper()
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), text, "go test ./benchmarks/gpu -rewrite")
}

// TestTheWholeOverTheStandIn makes a real bundle and runs all of it. It is asked for, because
// building takes minutes:
//
//	go test ./benchmarks/gpu -run TestTheWhole -gpu.whole
func TestTheWholeOverTheStandIn(t *testing.T) {
	if !*whole {
		t.Skip("wants -gpu.whole")
	}
	needsPython(t)
	driver := filepath.Dir(cudatest.Build(t))
	bundle, out := filepath.Join(t.TempDir(), "bundle"), t.TempDir()
	var log bytes.Buffer
	require.NoError(t, build(t.Context(), "../..", bundle, &log), log.String())
	require.NotContains(t, log.String(), "MISSING")
	c := exec.CommandContext(t.Context(), filepath.Join(bundle, "gpu"), "run", "-out", out, "-tests", "12", "-largest",
		"8MiB", "-python", interpreter())
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+driver, fakeTorch(t), "STANDIN_MEMORY=85899345920")
	said, err := c.CombinedOutput()
	require.NoError(t, err, "%s", said)
	r, err := readResult(filepath.Join(out, "result.json"))
	require.NoError(t, err)
	require.True(t, r.held())
	if *rewrite {
		require.NoError(t, r.save(standinResult))
	}
}

// TestResultsGivePageAndTables makes the page and the table of the result of the stand-in.
func TestResultsGivePageAndTables(t *testing.T) {
	r, err := readResult(standinResult)
	require.NoError(t, err)
	require.True(t, r.StandIn)
	var page, table bytes.Buffer
	require.NoError(t, r.markdown(&page))
	golden(t, standinPage, page.String())
	require.NoError(t, writeTables(&table, []*Result{r}))
	golden(t, standinTable, table.String())
}

// TestPublishedCostTableIsASimulatorTable compiles the table of the stand-in into the simulator,
// and asks that for it.
func TestPublishedCostTableIsASimulatorTable(t *testing.T) {
	r, err := readResult(standinResult)
	require.NoError(t, err)
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	here, err := filepath.Abs(standinTable)
	require.NoError(t, err)
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	text, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(root, filepath.FromSlash(tableFile)): here}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, text, 0o600))
	c := exec.CommandContext(t.Context(), "go", "run", "-overlay", overlay, "./testdata/asked", r.slug())
	said, err := c.Output()
	require.NoError(t, err)
	var got sim.Costs
	require.NoError(t, json.Unmarshal(said, &got))
	want, err := r.table()
	require.NoError(t, err)
	assert.Equal(t, want, got)
	_, ok := sim.CostTable(r.slug()).Costs()
	assert.False(t, ok, "a table of the stand-in is shipped")
}

// TestCostTablesMatchTheirResults holds what the repository has to the results that it names.
func TestCostTablesMatchTheirResults(t *testing.T) {
	all, err := published("../..")
	require.NoError(t, err)
	files := map[string][]byte{}
	require.NoError(t, derive(all, files))
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("../..", filepath.FromSlash(name)))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "%s: go run ./benchmarks/gpu publish", name)
	}
	assert.Len(t, sim.CostTables(), 2+strings.Count(string(files[tableFile]), "{name: "))
}

func TestCostFitIsCloseToTheMeasurements(t *testing.T) {
	line := func(sizes ...device.Size) (all []point) {
		for _, n := range sizes {
			pages := float64((n + page - 1) / page)
			all = append(all, point{n, pages, 70_000 + 500*pages})
		}
		return all
	}
	got := fit(line(512, device.MiB, 2*device.MiB, 32*device.MiB, device.GiB), false)
	assert.Equal(t, sim.Cost{Base: 70_000, Page: 500, Source: "medians of 512B to 1GiB, off by at most 0 %"}, got)
	odd := line(512, 2*device.MiB, 32*device.MiB, device.GiB)
	odd[1].ns *= 2
	got = fit(odd, false)
	assert.Equal(t, uint64(500), got.Page, "one point does not bend the line")
	assert.Equal(t, "medians of 512B to 1GiB, off by at most 100 %", got.Source)
	assert.Equal(t, sim.Cost{Base: 400, Source: "median"}, fit([]point{{ns: 400}}, false))
	assert.Equal(t, sim.Cost{Base: 5000, Moves: true, Source: "median of 512B"},
		fit([]point{{512, 1, 5000}, {device.GiB, 512, 9e6}}, true))
	falling := fit([]point{{512, 1, 900}, {device.GiB, 512, 100}}, false)
	assert.Zero(t, falling.Page)
	assert.NotZero(t, fit([]point{{512, 1, 0}}, false).Base)
}

func TestPublishRefusesStandInsAndMissingFiles(t *testing.T) {
	r, err := readResult(standinResult)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, r.save(filepath.Join(dir, "result.json")))
	assert.ErrorIs(t, publish(t.TempDir(), []string{dir}, &bytes.Buffer{}), errStandIn)
	r.StandIn, r.Machine.GPU = false, "NVIDIA Test Card"
	require.NoError(t, r.save(filepath.Join(dir, "result.json")))
	assert.ErrorContains(t, publish(t.TempDir(), []string{dir}, &bytes.Buffer{}), "no such file",
		"its snapshots are not there")
	r.Snapshots = nil
	require.NoError(t, r.save(filepath.Join(dir, "result.json")))
	root := t.TempDir()
	var log bytes.Buffer
	require.NoError(t, publish(root, []string{dir}, &log))
	name := "test-card-" + r.Started[:10]
	assert.Equal(t, "device/sim/measured.go\ndocs/results/gpu-"+name+".json\ndocs/results/gpu-"+name+".md\n", log.String())
	text, err := os.ReadFile(filepath.Join(root, tableFile))
	require.NoError(t, err)
	assert.Contains(t, string(text), `{name: "`+name+`"`)
	before := log.String()
	log.Reset()
	require.NoError(t, publish(root, nil, &log), "what is there is made again")
	assert.Equal(t, before, log.String())
	for what, broken := range map[string]string{
		"unknown field": `{"schema":"vramyard-gpu/1","colour":1}`, "is no vramyard-gpu/1": `{"schema":"x"}`, "EOF": "",
	} {
		path := filepath.Join(t.TempDir(), "result.json")
		require.NoError(t, os.WriteFile(path, []byte(broken), 0o600))
		_, err := readResult(path)
		assert.ErrorContains(t, err, what)
		assert.ErrorContains(t, err, path)
	}
}
