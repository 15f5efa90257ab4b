package whatif_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/whatif"
)

// TestHeadersAreChecked has the pairs that an answer depends on, and others, which are comments.
func TestHeadersAreChecked(t *testing.T) {
	const number = "want a whole number of bytes"
	for header, want := range map[string]string{
		"# framework=pytorch\n# torch=1.13.0a0\n# config={}\n# recorded_capacity=5\n":                "",
		"# note=x\n# note=y\n# not_in_file=a\n# not_in_file=b\n# Torch of 2.9\n# torch 2.9\n# t=2\n": "",
		"# torch=abc\n":                          ":1: torch=abc: want a version of PyTorch, such as 2.9.1",
		"# torch=\n":                             ":1: torch=: want a version of PyTorch, such as 2.9.1",
		"# torch=2.9.1\n# x=y\n# torch=2.10.0\n": ":3: torch=2.10.0: given twice: want one line",
		"# name=a\n# name=b\n# framework=PyTroch\n": `:3: framework=PyTroch: did you mean "PyTorch"? want one of PyTorch, ` +
			"TensorFlow, JAX",
		"\n# a comment\n# Torch=2.9.1\n": `:3: unknown key "Torch": did you mean "torch"?`,
		"# framwork=JAX\n":               `:1: unknown key "framwork": did you mean "framework"?`,
		"# SETING=1\n":                   `:1: unknown key "SETING": did you mean "SETTING"?`,
		"# SETTING=1\n# SETTING=2\n":     ":2: SETTING=2: given twice: want one line",
		"# PYTORCH_ALLOC_CONF=expandable_segments:True\n": `:1: unknown key "PYTORCH_ALLOC_CONF": want config=` +
			`{"conf":"expandable_segments:True"}`,
		"# PYTORCH_CUDA_ALLOC_CONF=\n":              `:1: unknown key "PYTORCH_CUDA_ALLOC_CONF": want config={"conf":""}`,
		"# config=expandable_segments:True":         ":1: config=expandable_segments:True: want a JSON object, such as ",
		"# config=null":                             ":1: config=null: want a JSON object, such as ",
		"# recorded_capacity=16GiB\n":               ":1: recorded_capacity=16GiB: " + number,
		"# recorded_reserved=-1\n":                  ":1: recorded_reserved=-1: " + number,
		"# limit_bytes=1e9\n":                       ":1: limit_bytes=1e9: " + number,
		"# opening_live=many\n":                     ":1: opening_live=many: want a whole number",
		"# limit_bytes=" + strings.Repeat("9", 100): ":1: limit_bytes=" + strings.Repeat("9", 60) + "...: " + number,
	} {
		err := whatif.CheckHeader(read(t, header+"\na 1 5\n").Head(), "path", []string{"SETTING"})
		if want == "" {
			require.NoError(t, err, header)
			continue
		}
		require.ErrorContains(t, err, "test.trace"+want, header)
	}
	head := read(t, "# torch=abc\n").Head()
	head.Header.Meta = append(head.Header.Meta[:0:0], head.Header.Meta[0], head.Header.Meta[0])
	head.Header.Meta[0].Value = "2.9"
	require.EqualError(t, whatif.CheckHeader(head, "path", nil), "path: torch=abc: given twice: want one line",
		"a pair without a line")
}
