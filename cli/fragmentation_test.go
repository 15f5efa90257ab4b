package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/internal/units"
)

// figureRow matches a row of the table of formulas in docs/fragmentation.md: what stands before the
// value, the project, the figure, the value.
var figureRow = regexp.MustCompile(`(?m)^(\| ([A-Z]\w+) \| (.*?) \| .*? \| )[^|]*\|$`)

// TestFragmentationPage computes the figures of other projects from the run that
// docs/fragmentation.md names. With -rewrite it writes them.
func TestFragmentationPage(t *testing.T) {
	const path = "../docs/fragmentation.md"
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(raw), " -rewrite -->\n")
	require.True(t, found)
	table, after, found := strings.Cut(rest, "<!-- /figures -->")
	require.True(t, found)
	values := figuresOfOthers(t)
	written := figureRow.ReplaceAllStringFunc(table, func(row string) string {
		part := figureRow.FindStringSubmatch(row)
		name := part[2] + " " + part[3]
		require.Contains(t, values, name)
		value := values[name]
		delete(values, name)
		return part[1] + value + " |"
	})
	require.Empty(t, values, "figures without a row")
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(before+" -rewrite -->\n"+written+"<!-- /figures -->"+after), 0o644))
	} else {
		require.Equal(t, written, table)
	}
}

// figuresOfOthers replays the run and returns the values by the names of the figures.
func figuresOfOthers(t *testing.T) map[string]string {
	t.Helper()
	run, heap := filepath.Join(t.TempDir(), "run.json"), filepath.Join(t.TempDir(), "heap.json")
	succeed(t, "replay", "--strategy", "caching", "--json", run, "--explain", heap, "../examples/oom/chat.pickle.gz")
	var r struct {
		replay.Peak
		replay.Now
		Counters map[string]int64 `json:"counters"`
	}
	var failure struct{ Report postmortem.Report }
	for file, to := range map[string]any{run: &r, heap: &failure} {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, to))
	}
	h := &failure.Report
	ratio := func(part, whole device.Size) float64 { return float64(part) / float64(whole) }
	counter := func(name string) device.Size { return device.Size(r.Counters[name]) }
	external := 1 - ratio(h.Largest, h.Free.Bytes)
	used := ratio(device.Size(h.Live.Count), device.Size(h.Live.Count+h.Free.Count))
	return map[string]string{
		`PyTorch "reserved by PyTorch but unallocated", in the error message`: units.Bytes(r.Now.Reserved - r.Now.Allocated),
		"PyTorch `inactive_split_bytes.all.current`": units.Bytes(
			counter("inactive_split_bytes.all.current")),
		"PyTorch `allocated_bytes` less `requested_bytes`, both `.all.current`": units.Bytes(
			counter("allocated_bytes.all.current") - counter("requested_bytes.all.current")),
		"RMM `Fragmentation`, in the log of the arena resource": units.Percent(external),
		"RMM `peak` of the statistics adaptor":                  units.Bytes(r.Peak.Requested),
		"GMLake utilization ratio":                              units.Percent(ratio(r.Peak.Active, r.Peak.Reserved)),
		"GMLake fragmentation ratio":                            units.Percent(1 - ratio(r.Peak.Active, r.Peak.Reserved)),
		"STAlloc `utilization`":                                 units.Percent(ratio(r.Peak.Allocated, r.Peak.Reserved)),
		"STAlloc `wasted_memory`":                               units.Bytes(r.Peak.Reserved - r.Peak.Allocated),
		"Mooncake utilization ratio":                            units.Percent(ratio(h.Wanted, h.Capacity)),
		"Paddle `Max Frag Rate` of `memory_summary`":            units.Percent(1 - ratio(r.Peak.Allocated, r.Now.Reserved)),
		"Paddle `external_frag` of `gpu_frag_profiler`":         units.Percent(external),
		"Paddle `internal_frag` of `gpu_frag_profiler`": units.Percent(
			1 - ratio(counter("requested_bytes.all.allocated"), counter("allocated_bytes.all.allocated"))),
		"Paddle `Frag Ratio`, first version of `memory_summary`": units.Percent(
			1 - ratio(h.Largest, h.Free.Bytes)*used),
	}
}
