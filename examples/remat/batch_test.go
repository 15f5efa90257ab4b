package remat

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/strategies"
)

// batched are the programs recorded at several batch sizes.
var batched = []string{"resnet50", "vit"}

// recordings returns the logs of a program at these batch sizes.
func recordings(t *testing.T, program string, sizes ...int) (all []remat.Recording) {
	t.Helper()
	for _, n := range sizes {
		all = append(all, remat.Recording{Batch: n, Schedule: schedule(t, fmt.Sprintf("batches/%s-b%d", program, n))})
	}
	return all
}

// TestBytesGrowLinearly predicts each recording from the other two, between them and beyond.
func TestBytesGrowLinearly(t *testing.T) {
	for _, program := range batched {
		all := recordings(t, program, 4, 8, 12)
		for i, left := range all {
			b, err := remat.NewBatches([]remat.Recording{all[(i+1)%3], all[(i+2)%3]})
			require.NoError(t, err)
			s, err := b.At(left.Batch)
			require.NoError(t, err)
			require.Equal(t, left.Schedule.Storages, s.Storages, "%s at batch size %d", program, left.Batch)
		}
	}
}

// rematPage returns the page with the section on batch sizes.
func rematPage(t *testing.T) (path, text string) {
	t.Helper()
	path = filepath.Join("..", "..", "docs", "remat.md")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return path, string(raw)
}

// TestPageStatesTheErrorOfThePrediction compares the page with the recordings that the prediction
// did not use.
func TestPageStatesTheErrorOfThePrediction(t *testing.T) {
	var step, each []any
	for _, program := range batched {
		b, err := remat.NewBatches(recordings(t, program, 4, 8, 12))
		require.NoError(t, err)
		d, err := b.Deviations()
		require.NoError(t, err)
		require.Len(t, d, 1)
		require.Zero(t, d[0].Bytes)
		step, each = append(step, 100*d[0].Step), append(each, 100*d[0].Time)
	}
	_, page := rematPage(t)
	require.Contains(t, strings.ReplaceAll(page, "\n", " "), fmt.Sprintf(
		"The time of a step differs by %.1f %% (ResNet-50) and %.1f %% (ViT), ", step...)+
		fmt.Sprintf("the times operator by operator by %.1f %% and %.1f %%.", each...))
}

// card is the memory of a GeForce RTX 2080 Ti.
const card = 11 * device.GiB

// batchRow is a row of the table of largest batches.
type batchRow struct {
	program, strategy, release, heuristic string
}

func batchRows() (all []batchRow) {
	for _, program := range batched {
		for _, strategy := range []string{grid.Counting, "bestfit", "caching"} {
			for _, h := range []string{"eq", "mge", "coop"} {
				if strategy != grid.Counting || h == "eq" { // coop acts as eq there
					all = append(all, batchRow{program, strategy, "", h})
				}
			}
		}
		for _, release := range grid.Releases() {
			all = append(all, batchRow{program, "bestfit", release.Name, release.Heuristic})
		}
	}
	return all
}

// fits searches a range for a row: without eviction and with it.
func (r batchRow) fits(t *testing.T, logs []grid.BatchLog, sizes grid.Sizes) []grid.Fit {
	t.Helper()
	o := grid.BatchOptions{Sizes: sizes, Budgets: []device.Size{card}}
	o.Settings, o.Ladders = grid.Settings{Liveness: "eager"}, []string{grid.Evict}
	if r.release != "" {
		release, err := grid.ReleaseOf(r.release)
		require.NoError(t, err)
		o.Settings, o.Ladders = release.Settings, []string{release.Ladder}
	}
	o.Limit, o.Heuristics = 2, []string{r.heuristic}
	var setups []setting.Setup
	if r.strategy != grid.Counting {
		s, err := strategies.All().Lookup(r.strategy, nil)
		require.NoError(t, err)
		setups = append(setups, s)
	}
	report, err := grid.LargestBatches(t.Context(), logs, setups, o)
	require.NoError(t, err)
	return report.Fits[len(report.Fits)-2:] // behind counting
}

// text returns the row of the page.
func (r batchRow) text(t *testing.T, fits []grid.Fit) string {
	t.Helper()
	ladder := r.strategy
	if r.release != "" {
		ladder += ", `--megengine " + r.release + "`"
	}
	largest := fmt.Sprint(*fits[1].Largest)
	if fits[1].FirstFailure == "" {
		largest = "the last of the range"
	}
	return fmt.Sprintf("| %s | %s | `%s` | %d | %d | %.2f | %s |\n", r.program, ladder, r.heuristic, *fits[0].EveryUpTo,
		*fits[1].EveryUpTo, *fits[1].Overhead, largest)
}

func TestBatchOf350NeedsMoreThanTheCard(t *testing.T) {
	s, err := remat.NewBatches(recordings(t, "resnet50", 4, 12))
	require.NoError(t, err)
	log, err := s.At(350)
	require.NoError(t, err)
	most := peak(t, log)
	require.Greater(t, most, 28*device.GiB)
	require.Less(t, most, 29*device.GiB)
}

// TestLargestBatchesOfThePage repeats a share of the runs behind the table of docs/remat.md: the
// largest batch size of a row, and the next one.
func TestLargestBatchesOfThePage(t *testing.T) {
	const begin, end = "<!-- batches: begin -->\n", "<!-- batches: end -->\n"
	path, page := rematPage(t)
	before, rest, ok := strings.Cut(page, begin)
	require.True(t, ok)
	table, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	sizes := grid.Sizes{From: 50, To: 1500, Step: 10}
	logs := map[string][]grid.BatchLog{}
	for _, program := range batched {
		for _, r := range recordings(t, program, 4, 12) {
			logs[program] = append(logs[program], grid.BatchLog{Log: grid.Log{Model: program, Schedule: r.Schedule},
				Batch: r.Batch})
		}
	}
	if *rewrite {
		table = "| program | strategy | heuristic | without eviction | with eviction | overhead | largest single one |\n" +
			"|---|---|---|--:|--:|--:|--:|\n"
		for _, r := range batchRows() {
			table += r.text(t, r.fits(t, logs[r.program], sizes))
		}
		require.NoError(t, os.WriteFile(path, []byte(before+begin+table+end+after), 0o644))
		return
	}
	lines := strings.SplitAfter(table, "\n")[2:]
	require.Len(t, lines, len(batchRows())+1)
	for i, r := range batchRows() {
		if i%3 != 0 {
			continue
		}
		cells := strings.Split(lines[i], " | ")
		for column, evicts := range map[int]int{3: 0, 4: 1} {
			n := 0
			_, err := fmt.Sscan(cells[column], &n)
			require.NoError(t, err)
			f := r.fits(t, logs[r.program], grid.Sizes{From: n, To: n + sizes.Step, Step: sizes.Step})[evicts]
			require.Equal(t, n, *f.EveryUpTo, "%s", lines[i])
			require.NotEmpty(t, f.FirstFailure, "%s", lines[i])
			if evicts == 1 {
				require.Equal(t, cells[5], fmt.Sprintf("%.2f", *f.Overhead))
			}
		}
	}
}
