package grid_test

import (
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
)

var rewrite = flag.Bool("rewrite", false, "run the grid of docs/remat.md anew, which takes long, and write its rows "+
	"and tables")

// What the page is about.
const (
	rowsFile      = "testdata/page.csv.gz"
	pageFile      = "../../../docs/remat.md"
	pageRatios    = "0.1:1.0:0.1"
	pageBase      = "eq"      // the heuristic that strategies are compared by
	pageOneRegion = "bestfit" // the strategy that ways to move are compared by
)

var (
	pageHeuristics = []string{"eq", "eq-mended", "local", "lru", "msps", "dte", "dte-cap", "mge", "mge-nofrag", "oneflow",
		"coop", "belady"}
	pageStrategies = []string{
		"bestfit", "bfc", "tlsf", "buddy", "buddy:whole", "slab", "slabbuddy", "caching", "caching:expandable", "async",
		"vmm", "stitch",
	}
)

// pageRow is one run of the page: what it was, and what it came to.
type pageRow struct {
	model, heuristic, strategy, ladder, defrag string
	ratio                                      grid.Ratio
	verdict                                    remat.Verdict
	clock, moved, moving                       int64 // ns, bytes, ns
	evictions, wasted, remats, refusals        int64 // tensors, bytes, operators, requests
}

// pageRowOf returns the row of a run.
func pageRowOf(r *grid.Run, defrag string) pageRow {
	return pageRow{
		model: r.Model, heuristic: r.Heuristic, strategy: r.Strategy, ladder: r.Ladder, defrag: defrag, ratio: r.Ratio,
		verdict: r.Verdict, clock: r.Clock, moved: r.MovedBytes, moving: r.MoveTime, evictions: int64(r.EvictPressure),
		wasted: r.EvictBytesWasted, remats: int64(r.Remats), refusals: int64(r.Refusals),
	}
}

// cells returns the row as text. Its reverse is rowOf.
func (r pageRow) cells() []string {
	cells := []string{r.model, r.heuristic, r.strategy, r.ladder, r.defrag, r.ratio.String(), string(r.verdict)}
	for _, n := range []int64{r.clock, r.moved, r.moving, r.evictions, r.wasted, r.remats, r.refusals} {
		cells = append(cells, strconv.FormatInt(n, 10))
	}
	return cells
}

// rowOf returns the row that cells hold.
func rowOf(t *testing.T, c []string) pageRow {
	t.Helper()
	r := pageRow{model: c[0], heuristic: c[1], strategy: c[2], ladder: c[3], defrag: c[4], ratio: ratios(t, c[5])[0],
		verdict: remat.Verdict(c[6])}
	for i, n := range []*int64{&r.clock, &r.moved, &r.moving, &r.evictions, &r.wasted, &r.remats, &r.refusals} {
		var err error
		*n, err = strconv.ParseInt(c[7+i], 10, 64)
		require.NoError(t, err)
	}
	return r
}

// pageLogs returns all logs of the project, of programs first.
func pageLogs(t *testing.T) (logs []grid.Log) {
	t.Helper()
	for _, pattern := range []string{"../../../examples/remat/*.log.gz", golden + "*.log.gz"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			s, err := remat.ReadFile(path, nil)
			require.NoError(t, err)
			logs = append(logs, grid.Log{Model: strings.TrimSuffix(filepath.Base(path), ".log.gz"), Schedule: s})
		}
	}
	return logs
}

// runPage runs the grid of the page.
func runPage(t *testing.T, logs []grid.Log) (rows []pageRow) {
	t.Helper()
	every := grid.Options{
		Settings:   grid.Settings{Liveness: "eager", Limit: 2, Defrag: "slide"},
		Heuristics: pageHeuristics, Ladders: []string{grid.Evict}, Ratios: ratios(t, pageRatios),
	}
	slide, last := every, every
	slide.Heuristics, slide.Ladders = []string{pageBase}, []string{grid.DefragFirst}
	last.Heuristics, last.Ladders = slide.Heuristics, []string{"evict-first"}
	bounce, remap := slide, slide
	bounce.Defrag, remap.Defrag = "bounce", "remap"
	for _, part := range []struct {
		strategies []string
		o          grid.Options
	}{
		{pageStrategies, every}, {pageStrategies, slide}, {[]string{pageOneRegion}, last}, {[]string{pageOneRegion}, bounce},
		{[]string{pageOneRegion}, remap},
	} {
		r, err := grid.Grid(t.Context(), logs, setupsOf(t, part.strategies...), part.o)
		require.NoError(t, err)
		for i := range r.Runs {
			rows = append(rows, pageRowOf(&r.Runs[i], part.o.Defrag))
		}
	}
	key := func(r pageRow) string { return strings.Join(r.cells()[:6], " ") }
	slices.SortStableFunc(rows, func(a, b pageRow) int { return cmp.Compare(key(a), key(b)) })
	return slices.CompactFunc(rows, func(a, b pageRow) bool { return key(a) == key(b) }) // counting is in every part
}

// writeRows writes the rows of the page.
func writeRows(t *testing.T, rows []pageRow) {
	t.Helper()
	f, err := os.Create(rowsFile)
	require.NoError(t, err)
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	require.NoError(t, err)
	w := csv.NewWriter(z)
	require.NoError(t, w.Write([]string{"model", "heuristic", "strategy", "ladder", "defrag", "ratio", "verdict",
		"clock_ns", "moved_bytes",
		"move_ns", "evict_pressure", "evict_bytes_wasted", "remat_ops", "refused_count"}))
	for _, r := range rows {
		require.NoError(t, w.Write(r.cells()))
	}
	w.Flush()
	require.NoError(t, w.Error())
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
}

// readRows reads the rows of the page.
func readRows(t *testing.T) (rows []pageRow) {
	t.Helper()
	f, err := os.Open(rowsFile)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	table, err := csv.NewReader(z).ReadAll()
	require.NoError(t, err)
	for _, cells := range table[1:] {
		rows = append(rows, rowOf(t, cells))
	}
	return rows
}

// TestPageQuotesTheResults holds the tables of docs/remat.md to the rows beside this test,
// and a share of the rows to runs of now. All rows take half an hour on two cores:
//
//	go test ./harness/remat/grid -run TestPageQuotes -timeout 0 -rewrite
func TestPageQuotesTheResults(t *testing.T) {
	logs := pageLogs(t)
	var rows []pageRow
	if *rewrite {
		rows = runPage(t, logs)
		writeRows(t, rows)
	} else {
		rows = readRows(t)
	}
	raw, err := os.ReadFile(pageFile)
	require.NoError(t, err)
	page := string(raw)
	p := newPages(t, logs, rows)
	for _, table := range []struct {
		name string
		text string
	}{
		{"logs", p.logTable()}, {"strategies", p.strategyTable(grid.Evict)}, {"moved", p.strategyTable(grid.DefragFirst)},
		{"half", p.halfTable()}, {"heuristics", p.heuristicTable()}, {"spread", p.spreadTable()}, {"moves", p.moveTable()},
		{"kinds", p.kindTable()}, {"monotone", p.monotoneLine()},
	} {
		begin, end := fmt.Sprintf("<!-- %s: begin -->\n", table.name), fmt.Sprintf("<!-- %s: end -->", table.name)
		before, rest, ok := strings.Cut(page, begin)
		require.True(t, ok, "the page has no %s", table.name)
		written, after, ok := strings.Cut(rest, end)
		require.True(t, ok, "%s has no end", table.name)
		if *rewrite {
			page = before + begin + table.text + end + after
			continue
		}
		require.Equal(t, table.text, written, "%s: go test ./harness/remat/grid -run TestPageQuotes -timeout 0 -rewrite",
			table.name)
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(pageFile, []byte(page), 0o644))
	}
	holdRows(t, logs, rows)
}

// holdRows runs a few rows again, from all over the table.
func holdRows(t *testing.T, logs []grid.Log, rows []pageRow) {
	t.Helper()
	const held = 40
	step := max(len(rows)/held, 1) | 1
	for at := 0; at < len(rows); at += step {
		want := rows[at]
		i := slices.IndexFunc(logs, func(l grid.Log) bool { return l.Model == want.model })
		require.GreaterOrEqual(t, i, 0)
		o := grid.Options{
			Settings:   grid.Settings{Liveness: "eager", Limit: 2, Defrag: want.defrag},
			Heuristics: []string{want.heuristic}, Ladders: []string{want.ladder}, Ratios: []grid.Ratio{want.ratio},
		}
		names := []string{want.strategy}
		if want.strategy == grid.Counting {
			names = nil
		}
		r, err := grid.Grid(t.Context(), logs[i:i+1], setupsOf(t, names...), o)
		require.NoError(t, err)
		require.Equal(t, want, pageRowOf(&r.Runs[len(r.Runs)-1], want.defrag))
	}
}
