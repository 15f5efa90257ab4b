package remat

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/internal/units"
)

var rewrite = flag.Bool("rewrite", false, "write the table of README.md; review the difference")

// programs are the logs, in the order of the table.
var programs = []string{"cnn", "transformer", "recurrent"}

// measured is what record.py measured of a step without the recorder, after it had recorded the
// log.
type measured struct {
	Torch string      `json:"torch"`
	Step  int64       `json:"step_ns"`
	Peak  device.Size `json:"peak_bytes"` // given out by PyTorch's allocator since the begin of the step, at most
	End   device.Size `json:"end_bytes"`  // and at its end
}

// facts reads measured.json.
func facts(t *testing.T) map[string]measured {
	t.Helper()
	raw, err := os.ReadFile("measured.json")
	require.NoError(t, err)
	all := map[string]measured{}
	require.NoError(t, json.Unmarshal(raw, &all))
	require.Len(t, all, len(programs))
	return all
}

// schedule reads a log.
func schedule(t *testing.T, name string) *remat.Schedule {
	t.Helper()
	s, err := remat.ReadFile(name+".log.gz", nil)
	require.NoError(t, err)
	return s
}

// text returns a log as it was before it was compressed.
func text(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(name + ".log.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	all, err := io.ReadAll(z)
	require.NoError(t, err)
	return all
}

// lines counts the lines of a log.
func lines(t *testing.T, name string) int {
	t.Helper()
	return bytes.Count(text(t, name), []byte("\n"))
}

// constants returns the bytes that are there for the whole of a log.
func constants(s *remat.Schedule) device.Size {
	sum := device.Size(0)
	for _, st := range s.Storages {
		if isConstant(s, st) {
			sum += st.Size
		}
	}
	return sum
}

func isConstant(s *remat.Schedule, st remat.Storage) bool {
	op := s.Ops[s.Tensors[st.Root].Op]
	return op.Fixed && op.Cost == 0 && len(op.Args) == 0
}

// left returns the bytes of what somebody refers to at the end of a log, without constants.
func left(s *remat.Schedule) device.Size {
	sum, seen := device.Size(0), map[int32]bool{}
	for _, step := range s.Steps {
		if step.Kind != remat.Pin {
			continue
		}
		i := s.Tensors[step.Of].Storage
		if st := s.Storages[i]; !seen[i] && !isConstant(s, st) {
			sum += st.Size
		}
		seen[i] = true
	}
	return sum
}

// peak returns the most bytes at once in a run without a budget.
func peak(t *testing.T, s *remat.Schedule) device.Size {
	t.Helper()
	res, err := remat.Run(s, &remat.Counter{Budget: remat.Unlimited}, remat.Config{Heuristic: "lru", Liveness: "eager"})
	require.NoError(t, err)
	require.Equal(t, remat.OK, res.Verdict)
	return res.Peak
}

func TestLogsHoldTheMemoryThatTheAllocatorGaveOut(t *testing.T) {
	all := facts(t)
	for _, name := range programs {
		s, m := schedule(t, name), all[name]
		require.Equal(t, m.End, left(s), "%s: the gradients", name)
		rest := float64(peak(t, s) - constants(s))
		// A log knows nothing of what operators need for themselves, and keeps a copy where the program
		// writes in place.
		require.InEpsilon(t, float64(m.Peak), rest, 0.02, name)
		require.Greater(t, rest, 2*float64(constants(s)), "%s: activations are what a budget is about", name)
	}
}

func TestLogsAreOfModerateSize(t *testing.T) {
	for _, name := range programs {
		info, err := os.Stat(name + ".log.gz")
		require.NoError(t, err)
		require.Less(t, info.Size(), int64(150_000), name)
		require.Greater(t, lines(t, name), 2000, name)
		require.Less(t, lines(t, name), 10_000, name)
	}
}

func TestPage(t *testing.T) {
	const begin, end = "<!-- logs: written by go test ./examples/remat -run TestPage -rewrite -->\n", "<!-- end -->\n"
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), begin)
	require.True(t, ok)
	table, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	var want strings.Builder
	want.WriteString("| log | lines | operators | time | constants | peak | the allocator's | time of a step |\n" +
		"|---|--:|--:|--:|--:|--:|--:|--:|\n")
	all := facts(t)
	for _, name := range programs {
		s, m := schedule(t, name), all[name]
		fmt.Fprintf(&want, "| `%s` | %d | %d | %d ms | %s | %s | %s | %d ms |\n", name, lines(t, name), len(s.Ops),
			s.Cost/1e6,
			units.Bytes(constants(s)), units.Bytes(peak(t, s)), units.Bytes(constants(s)+m.Peak), m.Step/1e6)
	}
	if *rewrite {
		require.NoError(t, os.WriteFile("README.md", []byte(before+begin+want.String()+end+after), 0o644))
		return
	}
	require.Equal(t, want.String(), table, "go test ./examples/remat -run TestPage -rewrite renews it")
}

// interpreter returns a Python that has PyTorch. Without one the test is skipped.
func interpreter(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), name, "-c", "import torch").Run() == nil {
			return name
		}
	}
	t.Skip("no python3 with PyTorch: the recorder cannot be run")
	return ""
}

// TestRecorder runs the recorder's own tests, and reads every log that they record.
func TestRecorder(t *testing.T) {
	// A kept result depends on the files that are read here.
	for _, file := range []string{"vramyard/dtrlog.py", "tests/dtrlog_test.py"} {
		_, err := os.ReadFile(filepath.Join("..", "..", "python", file))
		require.NoError(t, err)
	}
	python, dir := interpreter(t), t.TempDir()
	c := exec.CommandContext(t.Context(), python, "-m", "unittest", "tests.dtrlog_test")
	c.Dir = filepath.Join("..", "..", "python")
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "DTRLOG_KEEP="+dir)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	logs, err := filepath.Glob(filepath.Join(dir, "*.log*"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(logs), 15, "%s", out)
	for _, log := range logs {
		s, err := remat.ReadFile(log, nil)
		require.NoError(t, err)
		res, err := remat.Run(s, &remat.Counter{Budget: remat.Unlimited}, remat.Config{Heuristic: "eq", Liveness: "eager"})
		require.NoError(t, err)
		require.Equal(t, remat.OK, res.Verdict, log)
	}
}
