package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/internal/fileio"
)

// TestPageShowsAnExplanation holds the example in docs/postmortem.md to what the command writes.
func TestPageShowsAnExplanation(t *testing.T) {
	page, err := os.ReadFile("../docs/postmortem.md")
	require.NoError(t, err)
	_, example, found := strings.Cut(string(page), "\n```\n$ vramyard ")
	require.True(t, found)
	example, _, _ = strings.Cut(example, "\n```\n")
	line, want, _ := strings.Cut(example, "\n")
	args := strings.Fields(strings.ReplaceAll(line, "'", ""))
	require.Equal(t, want+"\n", succeed(t, args...))
}

func TestReplayExplainsTheFirstOOM(t *testing.T) {
	path := write(t, "t.trace", small)
	out := succeed(t, "replay", "--strategy", "bfc", "--config", `{"limit":"8KiB"}`, "--explain", "-", path)
	require.Contains(t, out, "bfc: event 4, allocation 4, the only failure\nno room for 4.88 KiB on stream 0: ")
	require.Equal(t, "bfc: no request ran out of memory\n", succeed(t, "replay", "--strategy", "bfc", "--explain",
		"-", path))

	file := filepath.Join(t.TempDir(), "why.json")
	out = succeed(t, "replay", "--strategy", "bfc", "--config", `{"limit":"8KiB"}`, "--explain", file, path)
	require.Contains(t, out, "reservation waste")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var v postmortem.Verdict
	require.NoError(t, json.Unmarshal(raw, &v))
	require.Equal(t, postmortem.Schema, v.Schema)
	require.Equal(t, 4, v.Event)
	require.NotEmpty(t, v.Report.Cause)

	for _, packed := range []string{".gz", ".zst"} {
		succeed(t, "replay", "--strategy", "bfc", "--config", `{"limit":"8KiB"}`, "--explain", file+packed, path)
		raw, err := os.ReadFile(file + packed)
		require.NoError(t, err)
		plain, err := fileio.NewReader(bytes.NewReader(raw))
		require.NoError(t, err)
		var same postmortem.Verdict
		require.NoError(t, json.NewDecoder(plain).Decode(&same), packed)
		plain.Close()
		require.Equal(t, v, same, packed)
	}

	status, _, stderr := command(t, "replay", "--strategy", "bfc", "--explain", path, path)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "--explain: "+path+" is a file to read")
	status, _, stderr = command(t, "replay", "--strategy", "bfc", "--explain", "-", "--json", "-", path)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "--json: - is where --explain is written")
}

// TestExplanationsShowPythonFirst explains a failure on a snapshot that was recorded with
// stacks="all", whose stacks begin with the frames of the unwinder and of the allocator.
func TestExplanationsShowPythonFirst(t *testing.T) {
	frame := func(file, function string, line int) map[string]any {
		return map[string]any{"filename": file, "name": function, "line": line}
	}
	frames := []any{
		frame("??", "torch::unwind::unwind()", 0), frame("??", "torch::CapturedTraceback::gather(bool, bool, bool)", 0),
		frame("CUDACachingAllocator.cpp",
			"c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(unsigned long)", 0),
		frame("??", "at::_ops::mul_Tensor::call(at::Tensor const&, at::Tensor const&)", 0), frame("model.py", "forward", 147),
		frame("??", "_PyEval_EvalFrameDefault", 0), frame("/venv/lib/python3.12/site-packages/torch/nn/modules/module.py",
			"_call_impl", 1790),
		frame("??", "_PyObject_Call_Prepend", 0), frame("train.py", "<module>", 9),
	}
	var entries []any
	for i := range 3 {
		entries = append(entries, map[string]any{"action": "alloc", "addr": 1<<32 + i<<28, "size": 20 << 20, "stream": 0,
			"frames": frames})
	}
	entries = append(entries, map[string]any{"action": "free_requested", "addr": 1 << 32, "size": 20 << 20, "stream": 0,
		"frames": []any{}},
		map[string]any{"action": "free_completed", "addr": 1 << 32, "size": 20 << 20, "stream": 0, "frames": []any{}},
		map[string]any{"action": "alloc", "addr": 1<<32 + 9<<28, "size": 60 << 20, "stream": 0, "frames": frames})
	text, err := json.Marshal(map[string]any{"segments": []any{}, "device_traces": []any{entries}})
	require.NoError(t, err)
	path := write(t, "snapshot.json", string(text))
	out := succeed(t, "replay", "--strategy", "bfc", "--device", "sim:80MiB", "--explain", "-", path)
	require.Contains(t, out, "allocated 3 events before: model.py:147 forward [aten::mul_Tensor] < "+
		"torch/nn/modules/module.py:1790 _call_impl")
	file := filepath.Join(t.TempDir(), "why.json")
	succeed(t, "replay", "--strategy", "bfc", "--device", "sim:80MiB", "--explain", file, path)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var v postmortem.Verdict
	require.NoError(t, json.Unmarshal(raw, &v))
	require.Equal(t, []string{
		"model.py:147 forward [aten::mul_Tensor]", "torch/nn/modules/module.py:1790 _call_impl", "train.py:9 <module>",
	}, v.Report.Pins[0].Stack)

	out = succeed(t, "replay", "--strategy", "caching", "--device", "sim:16GiB", "--explain", "-",
		"../examples/oom/chat.pickle.gz")
	require.Contains(t, out, "regions: chat:0 torch.cat\n", "stacks are known of a run that died, too")
}
