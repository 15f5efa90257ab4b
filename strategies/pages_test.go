package strategies_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

var (
	rewrite  = flag.Bool("rewrite", false, "write the tables of docs/strategies, and testdata/semantics.txt")
	allPages = flag.Bool("pages.all", false, "compare every row of the tables of settings, not only the first")
)

// table finds the table of a page.
var table = regexp.MustCompile(`(?s)(<!-- table: begin -->\n)(.*)(<!-- table: end -->)`)

// TestStrategyPages holds the table of each page under docs/strategies to testdata/pages.csv, and
// each line of that to what the strategy does on a recorded trace. The smallest capacity that a
// search found takes two replays to hold: it completes, and one step of the search below it fails.
// That nothing smaller completes either is what the search looks for, which runs when the tables
// are written. Host memory and times stand on the pages too, as they were then; the one depends on
// how Go lets slices grow, the other on everything, and both are left out of the comparison:
//
//	go test ./strategies -run TestStrategyPages -rewrite
func TestStrategyPages(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a run without -short: replays presets some thousand times")
	}
	var traces []*trace.Trace
	var prepared []*replay.Prepared
	for _, tr := range workload.EachRecording {
		p, err := replay.Prepare(t.Context(), tr)
		require.NoError(t, err)
		traces, prepared = append(traces, tr), append(prepared, p)
	}
	results := readResults(t)
	for _, spec := range strategies.All() {
		t.Run(spec.Name, func(t *testing.T) {
			path := filepath.Join("..", "docs", "strategies", spec.Name+".md")
			page, err := os.ReadFile(path)
			require.NoError(t, err, "every strategy has a page")
			parts := table.FindSubmatch(page)
			require.NotNil(t, parts, "%s has no table", path)
			setups := presets(t, spec)
			if *rewrite {
				metadata := search(t, traces, setups, results)
				text := pageTable(t, traces, setups, results, metadata, times(t, traces, setups))
				page = table.ReplaceAll(page, []byte("${1}"+strings.ReplaceAll(text, "$", "$$")+"${3}"))
				require.NoError(t, os.WriteFile(path, page, 0o644))
				return
			}
			written := string(parts[2])
			require.Equal(t, pageTable(t, traces, setups, results, column(written, 2), column(written, 1)), written,
				"%s: go test ./strategies -run TestStrategyPages -rewrite", path)
			for _, s := range setups {
				for _, p := range prepared {
					t.Run(s.Name+"/"+p.Head().Header.Name, func(t *testing.T) {
						t.Parallel()
						holdResult(t, p, s, results[resultKey{s.Name, p.Head().Header.Name}])
					})
				}
			}
		})
	}
	if *rewrite {
		writeResults(t, results)
	}
}

// presets returns the presets of a strategy.
func presets(t *testing.T, spec setting.Spec) (setups []setting.Setup) {
	for _, p := range spec.Presets {
		s, err := strategies.All().Lookup(strings.TrimSuffix(spec.Name+":"+p.Name, ":"), nil)
		require.NoError(t, err)
		setups = append(setups, s)
	}
	return setups
}

// pageTable returns the table of a page: a row for each preset, a column for each trace.
func pageTable(t *testing.T, traces []*trace.Trace, setups []setting.Setup, results pageResults, metadata,
	times []string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("|")
	head := []string{"preset"}
	for _, tr := range traces {
		head = append(head, strings.ReplaceAll(tr.Header.Name, "_", " "))
	}
	head = append(head, "mean", "2 MiB pages", "device calls", "metadata", "time")
	for _, h := range head {
		fmt.Fprintf(&b, " %s |", h)
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(head)-1) + "\n")
	for i, s := range setups {
		fmt.Fprintf(&b, "| `%s` |", s.Name)
		bytes, onPages, calls := 1.0, 1.0, uint64(0)
		for _, tr := range traces {
			r, ok := results[resultKey{s.Name, tr.Header.Name}]
			require.True(t, ok, "%s has no line for %s on %s", resultsFile, s.Name, tr.Header.Name)
			calls += r.calls
			bytes, onPages = bytes*timesOf(r.smallest, tr), onPages*timesOf(r.onPages, tr)
			fmt.Fprintf(&b, " %s |", times3(timesOf(r.smallest, tr)))
		}
		root := 1 / float64(len(traces))
		fmt.Fprintf(&b, " %s | %s | %d | %s | %s |\n",
			times3(math.Pow(bytes, root)), times3(math.Pow(onPages, root)), calls, at(metadata, i), at(times, i))
	}
	return b.String()
}

// timesOf returns a capacity over the lower bound of a trace, infinite for none.
func timesOf(n device.Size, t *trace.Trace) float64 {
	if n == 0 {
		return math.Inf(1)
	}
	return float64(n) / float64(t.LowerBound())
}

// factor returns minimum capacity over lower bound, infinite if there is no minimum.
func factor(run compare.Run) float64 {
	if run.MinCapacity == nil {
		return math.Inf(1)
	}
	return float64(*run.MinCapacity) / float64(run.LowerBound)
}

// mean returns the geometric mean of the factors of setup i of n.
func mean(r *compare.Report, i, n int) float64 {
	product := 1.0
	for j := i; j < len(r.Runs); j += n {
		product *= factor(r.Runs[j])
	}
	return math.Pow(product, float64(n)/float64(len(r.Runs)))
}

// times3 returns a factor with three decimals, a dash for none.
func times3(x float64) string {
	if math.IsInf(x, 1) || math.IsNaN(x) {
		return "—"
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

// at returns the text at a place, nothing beyond the end.
func at(texts []string, i int) string {
	if i < len(texts) {
		return texts[i]
	}
	return ""
}

// column returns a column of a table, counted from the right.
func column(table string, fromRight int) (cells []string) {
	for line := range strings.Lines(table) {
		row := strings.Split(strings.TrimSpace(line), "|")
		if len(row) > fromRight+1 && strings.Contains(row[1], "`") {
			cells = append(cells, strings.TrimSpace(row[len(row)-1-fromRight]))
		}
	}
	return cells
}

// times measures each setup against bfc in one run.
func times(t *testing.T, traces []*trace.Trace, setups []setting.Setup) (all []string) {
	bfc, err := strategies.All().Lookup("bfc", nil)
	require.NoError(t, err)
	ns, err := compare.Time(t.Context(), traces, append(setups[:len(setups):len(setups)], bfc), sim.Config{}, 5)
	require.NoError(t, err)
	base := ns[len(setups)]
	for i := range setups {
		product := 1.0
		for j := range traces {
			product *= ns[i][j] / base[j]
		}
		all = append(all, strconv.FormatFloat(math.Pow(product, 1/float64(len(traces))), 'f', 2, 64)+" ×")
	}
	return all
}
