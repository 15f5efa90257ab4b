package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/study/top"
)

// TestPageShowsWhoHoldsMemory holds the example in docs/top.md to what the command writes.
func TestPageShowsWhoHoldsMemory(t *testing.T) {
	t.Chdir("..")
	page, err := os.ReadFile("docs/top.md")
	require.NoError(t, err)
	_, example, found := strings.Cut(string(page), "\n```\n$ vramyard ")
	require.True(t, found)
	example, _, _ = strings.Cut(example, "\n```\n")
	line, want, _ := strings.Cut(example, "\n")
	require.Equal(t, want+"\n", succeed(t, strings.Fields(line)...))
}

// snapshotOfAll returns a snapshot recorded with stacks="all": weights, an activation that is
// freed, and a gradient. The last request is refused.
func snapshotOfAll(t *testing.T) string {
	t.Helper()
	frame := func(file, function string) map[string]any {
		return map[string]any{"filename": file, "name": function, "line": 7}
	}
	stack := func(frames ...map[string]any) []any {
		all := []any{
			frame("??", "torch::unwind::unwind()"), frame("??", "torch::CapturedTraceback::gather(bool, bool, bool)"),
			frame("CUDACachingAllocator.cpp",
				"c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(unsigned long)"),
		}
		for _, f := range frames {
			all = append(all, f, frame("??", "_PyEval_EvalFrameDefault"))
		}
		return all
	}
	const mib = 1 << 20
	entry := func(action string, addr, size int, frames []any) map[string]any {
		return map[string]any{"action": action, "addr": addr << 32, "size": size, "stream": 0, "frames": frames}
	}
	load, forward := stack(frame("load.py", "load_weights")),
		stack(frame("model.py", "forward"), frame("train.py", "<module>"))
	engine := stack(frame("??", "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)"),
		frame("??", "torch::autograd::Engine::thread_main()"))
	oom := map[string]any{"action": "oom", "device_free": 0, "size": 9 * mib, "stream": 0, "frames": forward}
	text, err := json.Marshal(map[string]any{"segments": []any{}, "device_traces": []any{[]any{
		entry("alloc", 1, 4*mib, load), entry("alloc", 2, 6*mib, forward),
		entry("free_requested", 2, 6*mib, nil), entry("free_completed", 2, 6*mib, nil), entry("alloc", 3, 2*mib, engine), oom,
	}}})
	require.NoError(t, err)
	return write(t, "snapshot.json", string(text))
}

func TestTopShowsWhoHoldsMemory(t *testing.T) {
	path := snapshotOfAll(t)
	out := succeed(t, "top", path)
	require.Contains(t, out, "snapshot: 10.00 MiB live in 2 blocks at the peak, after event 1\n")
	require.Contains(t, out, "last refused request: event 4 requested 9.00 MiB with 6.00 MiB live in 2 blocks\n")
	rows := tableRows(out)
	require.Contains(t, rows, "6.00 MiB 60.0 % 1 0 B activations model.py:7 forward")
	require.Contains(t, rows, "4.00 MiB 40.0 % 1 4.00 MiB weights load.py:7 load_weights")
	require.Contains(t, rows, "0 B 0.0 % 0 2.00 MiB gradients MmBackward0")
	require.NotContains(t, out, "unwind")
	require.Contains(t, succeed(t, "top", "--rows", "1", path), "by call site, the 1 largest of 3\n")
	require.Equal(t, "train.py:7 <module>;model.py:7 forward 6291456\nload.py:7 load_weights 4194304\n",
		succeed(t, "top", "--folded", "-", path))

	file := filepath.Join(t.TempDir(), "top.json")
	succeed(t, "top", "--json", file, path)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var r top.Report
	require.NoError(t, json.Unmarshal(raw, &r))
	require.Equal(t, provenance.Read(), r.Provenance)
	require.Equal(t, []string{"model.py:7 forward", "train.py:7 <module>"}, r.Peak.Stacks[0].Lines)
}

// tableRows returns the rows of all tables, their cells separated by single spaces.
func tableRows(out string) (rows []string) {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "│") {
			rows = append(rows, strings.Join(strings.Fields(strings.ReplaceAll(line, "│", " ")), " "))
		}
	}
	return rows
}

// TestTopAgreesWithTheTrace compares the peak with what trace info says of recorded traces.
func TestTopAgreesWithTheTrace(t *testing.T) {
	for _, name := range []string{"meta_resnet50_b256", "cpu_gpt2_train_varlen"} {
		var r top.Report
		require.NoError(t, json.Unmarshal([]byte(succeed(t, "top", "--json", "-", name)), &r))
		var infos []struct {
			Peak   uint64 `json:"peak_live_bytes"`
			PeakAt int    `json:"peak_event"`
		}
		require.NoError(t, json.Unmarshal([]byte(succeed(t, "trace", "info", "--json", "-", name)), &infos))
		require.EqualValues(t, infos[0].Peak, r.Peak.Bytes)
		require.Equal(t, infos[0].PeakAt, r.Peak.Event)
		require.Equal(t, top.ByTag, r.By)
	}
}

func TestTopShowsTheOnlyRequest(t *testing.T) {
	require.Equal(t, "t: nothing is allocated\nlast refused request: event 0 requested 3.00 MiB with 0 B live in "+
		"0 blocks\n",
		succeed(t, "top", write(t, "t.trace", "refused 3MiB\n")))
}

func TestTopRefusesWhatItCannotDo(t *testing.T) {
	path := write(t, "t.trace", small)
	for want, args := range map[string][]string{
		"--rows: want at least 1":                {"--rows", "0", path},
		"--json: " + path + " is a file to read": {"--json", path, path},
		"--folded: - is where --json is written": {"--json", "-", "--folded", "-", path},
		"2 arguments: want":                      {path, path},
	} {
		status, out, stderr := command(t, append([]string{"top"}, args...)...)
		require.Equal(t, exitTrouble, status)
		require.Empty(t, out)
		require.Contains(t, stderr, want)
	}
}
