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

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/compare"
	"github.com/vramyard/vramyard/harness/place"
	"github.com/vramyard/vramyard/harness/recorded"
	"github.com/vramyard/vramyard/harness/report"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

var (
	rewrite  = flag.Bool("rewrite", false, "write the tables of docs/strategies")
	allPages = flag.Bool("pages.all", false, "compare every row of the tables, not only that of the bare name")
)

// table finds the table of a page.
var table = regexp.MustCompile(`(?s)(<!-- table: begin -->\n)(.*)(<!-- table: end -->)`)

// TestStrategyPages holds the table of each page under docs/strategies to what the strategy
// does on the recorded traces: the row of the bare name, or with -pages.all, which takes some
// minutes, every row. Host memory and times stand there too, as they were when they were last
// written; the one depends on how Go lets slices grow, the other on everything, and both are
// left out of the comparison:
//
//	go test ./strategies -run TestStrategyPages -rewrite
func TestStrategyPages(t *testing.T) {
	if testing.Short() {
		t.Skip("replays presets some thousand times")
	}
	var traces []*trace.Trace
	for _, tr := range recorded.All {
		traces = append(traces, tr)
	}
	for _, spec := range strategies.All() {
		t.Run(spec.Name, func(t *testing.T) {
			path := filepath.Join("..", "docs", "strategies", spec.Name+".md")
			page, err := os.ReadFile(path)
			require.NoError(t, err, "every strategy has a page")
			parts := table.FindSubmatch(page)
			require.NotNil(t, parts, "%s has no table", path)
			setups := presets(t, spec)
			if *rewrite {
				text := pageTable(t, traces, setups, nil, times(t, traces, setups))
				page = table.ReplaceAll(page, []byte("${1}"+strings.ReplaceAll(text, "$", "$$")+"${3}"))
				require.NoError(t, os.WriteFile(path, page, 0o644))
				return
			}
			written := string(parts[2])
			require.Equal(t, len(setups)+2, strings.Count(written, "\n"), "%s: a row for each preset", path)
			if !*allPages {
				setups = setups[:1]
			}
			for _, line := range strings.Split(pageTable(t, traces, setups, column(written, 2), column(written, 1)), "\n") {
				require.Contains(t, written, line, "%s: go test ./strategies -run TestStrategyPages -rewrite", path)
			}
		})
	}
}

// presets returns the presets of a strategy.
func presets(t *testing.T, spec alloc.Spec) (setups []alloc.Setup) {
	for _, p := range spec.Presets {
		s, err := strategies.All().Lookup(strings.TrimSuffix(spec.Name+":"+p.Name, ":"), nil)
		require.NoError(t, err)
		setups = append(setups, s)
	}
	return setups
}

// pageTable returns the table of a page: a row for each preset, a column for each trace.
// Metadata holds the host memory of each preset, nil to take it as it is.
func pageTable(t *testing.T, traces []*trace.Trace, setups []alloc.Setup, metadata, times []string) string {
	r, err := compare.Compare(t.Context(), traces, setups, compare.Options{})
	require.NoError(t, err)
	onPages, err := compare.Compare(t.Context(), traces, setups, compare.Options{Device: place.Of(sim.Config{Charge: 2 * device.MiB})})
	require.NoError(t, err)
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
		calls, host := uint64(0), at(metadata, i)
		for j := range traces {
			run := r.Runs[j*len(setups)+i]
			calls += run.DeviceCalls
			if metadata == nil && run.MetadataBytes != nil && run.Trace == "meta_llama7b_fsdp8" {
				host = report.Bytes(*run.MetadataBytes)
			}
			fmt.Fprintf(&b, " %s |", times3(factor(run)))
		}
		fmt.Fprintf(&b, " %s | %s | %d | %s | %s |\n",
			times3(mean(r, i, len(setups))), times3(mean(onPages, i, len(setups))), calls, host, at(times, i))
	}
	return b.String()
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
	if math.IsInf(x, 1) {
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
func times(t *testing.T, traces []*trace.Trace, setups []alloc.Setup) (all []string) {
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
