package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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
	columns := map[string]int{"2.6.0": 3, "2.15.0": 5} // of the cells of placed allocations
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
		text := succeed(t, "verify", snapshot)
		found := regexp.MustCompile(`(?s)(\d+) of \d+ allocations predicted.*recorded .*\((\d+) bytes\)`).
			FindStringSubmatch(text)
		require.NotNil(t, found, text)
		cells := rowsOf(string(page), program)[0]
		require.Equal(t, cells[column-1], found[2], program)
		require.Equal(t, cells[column], "all "+found[1], program)
	}
}

// TestMetaOnProgramsOfThePage records the quickest programs of examples/without-gpu by
// vramyard.meta, and compares their peaks with the second table of docs/without-gpu.md.
func TestMetaOnProgramsOfThePage(t *testing.T) {
	python := python(t)
	page, err := os.ReadFile("../docs/without-gpu.md")
	require.NoError(t, err)
	folder, err := filepath.Abs("../python")
	require.NoError(t, err)
	t.Setenv("PYTHONPATH", folder)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	for _, program := range []string{"lstm.py", "streams.py", "overlap.py"} {
		file := filepath.Join(t.TempDir(), "run.trace")
		_, _, text := command(t, "run", "--device", "sim:a100-80g", "--", python, "-m", "vramyard.meta",
			"--trace", file, "../examples/without-gpu/"+program)
		recorded, err := os.ReadFile(file)
		require.NoError(t, err, text)
		if !strings.Contains(string(recorded), "\n# torch=2.6.0\n") {
			t.Skip("the table is of PyTorch 2.6.0")
		}
		var peaks struct {
			Live     int `json:"peak_requested_bytes"`
			Reserved int `json:"peak_reserved_bytes"`
		}
		out := succeed(t, "replay", "--strategy", "caching", "--sim", `{"policy":"top-down"}`, "--json", "-", file)
		require.NoError(t, json.Unmarshal([]byte(out), &peaks), out)
		rows := rowsOf(string(page), program)
		cells := rows[len(rows)-1]
		require.Equal(t, cells[2], strconv.Itoa(peaks.Live), program)
		require.Equal(t, cells[5], strconv.Itoa(peaks.Reserved), program)
	}
}

// rowsOf returns the cells of the rows of a page that begin with a program, without the commas of
// numbers.
func rowsOf(page, program string) (rows [][]string) {
	lines := regexp.MustCompile("(?m)^\\| `"+regexp.QuoteMeta(program)+"` .*$").FindAllString(page, -1)
	for _, line := range lines {
		rows = append(rows, strings.Split(strings.ReplaceAll(strings.Trim(line, "| "), ",", ""), " | "))
	}
	return rows
}

// TestSweepExamples plans the study of examples/sweep and looks up every file that the README
// links. The script .ci/sweep runs the commands of the README.
func TestSweepExamples(t *testing.T) {
	dir := filepath.FromSlash("../examples/sweep")
	status, out, stderr := command(t, "sweep", "plan", filepath.Join(dir, "study.yaml"), "-o",
		filepath.Join(t.TempDir(), "plan.parquet"))
	require.Equal(t, exitDone, status, stderr)
	require.Equal(t, "32 cells of 4 traces.\n", out)

	page, err := os.ReadFile(filepath.Join(dir, "README.md"))
	require.NoError(t, err)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		require.True(t, f.Name() == "README.md" || strings.Contains(string(page), "]("+f.Name()+")"), f.Name())
	}
	for _, name := range regexp.MustCompile(`\b\w+\.(?:sh|py|yaml)\b`).FindAllString(string(page), -1) {
		require.FileExists(t, filepath.Join(dir, name))
	}
}
