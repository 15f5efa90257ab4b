package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProgramsOfThePage runs the quickest programs of examples/without-gpu, and compares their
// reserved peak and their number of allocations with the table of docs/without-gpu.md.
func TestProgramsOfThePage(t *testing.T) {
	python := python(t)
	page, err := os.ReadFile("../docs/without-gpu.md")
	require.NoError(t, err)
	columns := map[string]int{"2.6.0": 3, "2.15.0": 5}
	rules := map[string]string{"2.6.0": `{"rules":"2.6"}`, "2.15.0": `{"rules":"2.13"}`}
	for _, program := range []string{"lstm.py", "streams.py", "overlap.py"} {
		snapshot := filepath.Join(t.TempDir(), "run.pickle")
		out := launched(t, "--device", "sim:a100-80g", "--fast-init", "--snapshot", snapshot, "--", python,
			"../examples/without-gpu/"+program)
		release := regexp.MustCompile(`PyTorch ([\d.]+)`).FindStringSubmatch(out)
		require.NotNil(t, release, out)
		column, listed := columns[release[1]]
		if !listed {
			t.Skip("the page has no column for PyTorch " + release[1])
		}
		text := succeed(t, "verify", "--config", rules[release[1]], snapshot)
		found := regexp.MustCompile(`(?s)(\d+) of \d+ allocations predicted.*recorded .*\((\d+) bytes\)`).
			FindStringSubmatch(text)
		require.NotNil(t, found, text)
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(program) + "` .*$").FindString(string(page))
		cells := strings.Split(strings.ReplaceAll(row, ",", ""), " | ")
		require.Greater(t, len(cells), column, program)
		require.Equal(t, cells[column-1], found[2], program)
		require.Equal(t, strings.TrimSuffix(cells[column], " |"), "all "+found[1], program)
	}
}
