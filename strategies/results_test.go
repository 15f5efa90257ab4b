package strategies_test

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/units"
)

// resultsFile holds what the tables of the pages are made from, a line for each preset and trace.
var resultsFile = filepath.Join("testdata", "pages.csv")

// resultKey names a line of the file.
type resultKey struct{ preset, trace string }

// pageResult is a line of the file: the smallest capacity in bytes, that on a device which charges
// whole pages of 2 MiB, 0 for none, and the calls that the device gets on an ample one.
type pageResult struct {
	smallest, onPages device.Size
	calls             uint64
}

// pageResults are all lines of the file.
type pageResults map[resultKey]pageResult

// devices are those of the two capacities.
var devices = [...]replay.Target{replay.SimTarget(sim.Config{}), replay.SimTarget(sim.Config{Charge: 2 * device.MiB})}

var resultsHead = []string{"preset", "trace", "min_capacity_bytes", "min_capacity_on_pages_bytes", "device_calls"}

// readResults reads the file; none is an empty one.
func readResults(t *testing.T) pageResults {
	t.Helper()
	raw, err := os.ReadFile(resultsFile)
	if err != nil && *rewrite {
		return pageResults{}
	}
	require.NoError(t, err)
	lines, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, resultsHead, lines[0])
	results := pageResults{}
	for _, line := range lines[1:] {
		var numbers [3]uint64
		for i := range numbers {
			numbers[i], err = strconv.ParseUint(line[i+2], 10, 64)
			require.NoError(t, err)
		}
		results[resultKey{line[0], line[1]}] = pageResult{device.Size(numbers[0]), device.Size(numbers[1]), numbers[2]}
	}
	return results
}

// writeResults writes the file, in the order of names.
func writeResults(t *testing.T, results pageResults) {
	t.Helper()
	var lines [][]string
	for k, r := range results {
		lines = append(lines, []string{
			k.preset, k.trace, strconv.FormatUint(uint64(r.smallest), 10), strconv.FormatUint(uint64(r.onPages), 10),
			strconv.FormatUint(r.calls, 10),
		})
	}
	slices.SortFunc(lines, slices.Compare)
	var b bytes.Buffer
	require.NoError(t, csv.NewWriter(&b).WriteAll(append([][]string{resultsHead}, lines...)))
	require.NoError(t, os.WriteFile(resultsFile, b.Bytes(), 0o644))
}

// search searches what the lines of some presets say, and returns their host memory.
func search(t *testing.T, traces []*trace.Trace, setups []setting.Setup, results pageResults) (metadata []string) {
	t.Helper()
	var reports [len(devices)]*compare.Report
	for i, on := range devices {
		r, err := compare.Compare(t.Context(), traces, setups, compare.Options{Device: on})
		require.NoError(t, err)
		reports[i] = r
	}
	for i, s := range setups {
		host := "—" // a strategy that does not measure its metadata
		for j, tr := range traces {
			run, paged := reports[0].Runs[j*len(setups)+i], reports[1].Runs[j*len(setups)+i]
			if run.MetadataBytes != nil && run.Trace == "meta_llama7b_fsdp8" {
				host = units.Bytes(*run.MetadataBytes)
			}
			results[resultKey{s.Name, tr.Header.Name}] = pageResult{valueOf(run.MinCapacity), valueOf(paged.MinCapacity),
				run.DeviceCalls}
		}
		metadata = append(metadata, host)
	}
	return metadata
}

// valueOf returns a size, 0 for none.
func valueOf(n *device.Size) device.Size {
	if n == nil {
		return 0
	}
	return *n
}

// holdResult holds a line to what the strategy does. No capacity is the smallest of a strategy that
// refuses a request however much there is.
func holdResult(t *testing.T, tr *replay.Prepared, s setting.Setup, want pageResult) {
	t.Helper()
	var refused uint64
	for i, smallest := range []device.Size{want.smallest, want.onPages} {
		trial := compare.NewTrial(compare.NewPool(1, 0), tr, s, compare.Options{Device: devices[i], Quick: true})
		ample := devices[i].Ample(compare.Ample(tr.LowerBound()))
		if i == 0 {
			at := ample
			if s.Preallocates && smallest != 0 {
				at = smallest
			}
			run, err := trial.Measure(t.Context(), at)
			require.NoError(t, err)
			require.Equal(t, want.calls, run.DeviceCalls, "calls of the device")
			refused = run.Refused
		}
		if smallest == 0 {
			require.True(t, refused > 0 || !completes(t, trial, ample),
				"a capacity completes, and the page says that none does")
			continue
		}
		require.True(t, completes(t, trial, smallest), "%v does not complete", smallest)
		if below := smallest - compare.Grid; below >= tr.LowerBound() {
			require.False(t, completes(t, trial, below), "%v completes too", below)
		}
	}
}

// completes reports whether a trace completes.
func completes(t *testing.T, c *compare.Trial, n device.Size) bool {
	t.Helper()
	ok, err := c.Completes(t.Context(), n)
	require.NoError(t, err)
	return ok
}
