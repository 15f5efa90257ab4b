package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/whatif"
)

// TestATraceOfPyTorchGetsSettingsOfPyTorch asks about traces of PyTorch 1.13. Of the first one, settings of TensorFlow
// need least of all that a framework can be set to.
func TestATraceOfPyTorchGetsSettingsOfPyTorch(t *testing.T) {
	paths := []string{write(t, "t.trace", fragmenting("# vramyard-trace 1\n# torch=1.13.0a0\n")), "cpu_gpt2_train_varlen", "cpu_resnet50_train"}
	if testing.Short() {
		paths = paths[:1]
	}
	for _, path := range paths {
		r := whatifJSON(t, path)
		require.Equal(t, "PyTorch", r.Recorded.Framework)
		require.Equal(t, "1.13.0a0", r.Recorded.Version)
		require.Empty(t, r.Answer.Before, "the version is known")
		words := strings.Join(append(r.Answer.Text, r.Answer.Environment...), " ")
		for _, newer := range []string{"TF_", "PYTORCH_ALLOC_CONF", "expandable_segments", "large_segment_size_mb", "backend:", "per_process_memory_fraction"} {
			require.NotContains(t, words, newer, path)
		}
	}
}

// fragmenting is a trace of which PyTorch's defaults need more than other settings do.
func fragmenting(header string) string {
	var b strings.Builder
	b.WriteString(header)
	for i := range 40 {
		b.WriteString("a " + string(rune('0'+i/10)) + string(rune('0'+i%10)) + " 4MiB\n")
	}
	for i := range 40 {
		if i%5 != 0 {
			b.WriteString("f " + string(rune('0'+i/10)) + string(rune('0'+i%10)) + "\n")
		}
	}
	return b.String() + "a 99 130MiB\n"
}

// TestTheVersionDecidesTheVariable asks for releases before and after the new name of the variable.
func TestTheVersionDecidesTheVariable(t *testing.T) {
	const setting = "expandable_segments:True"
	grid := write(t, "g.yaml", "- strategy: caching\n  conf: [\""+setting+"\"]\n")
	for version, want := range map[string][2]string{
		"2.9.1+cu128": {"PYTORCH_CUDA_ALLOC_CONF=" + setting, ""},
		"2.11.0":      {"PYTORCH_ALLOC_CONF=" + setting, ""},
		"":            {"PYTORCH_ALLOC_CONF=" + setting, "PYTORCH_CUDA_ALLOC_CONF=" + setting},
	} {
		header := "# vramyard-trace 1\n# framework=PyTorch\n"
		if version != "" {
			header += "# torch=" + version + "\n"
		}
		path := write(t, "t.trace", fragmenting(header))
		r := whatifJSON(t, path, "--grid", grid, "--device", "sim:1GiB")
		require.Equal(t, want[0], strings.Join(r.Answer.Environment, " "), version)
		require.Equal(t, want[1], strings.Join(r.Answer.Before, " "), version)
		text := succeed(t, "whatif", path, "--grid", grid, "--device", "sim:1GiB")
		require.Contains(t, text, "\n    export "+want[0])
		require.Equal(t, version == "", strings.Contains(text, "  # PyTorch 2.10 and newer\n    export PYTORCH_CUDA_ALLOC_CONF="+setting+"  # before 2.10\n"), text)
	}
}

// TestAnUnknownFrameworkGetsStrategies names settings under their framework, and exports nothing.
func TestAnUnknownFrameworkGetsStrategies(t *testing.T) {
	path := write(t, "t.trace", fragmenting(""))
	for strategy, want := range map[string]string{
		"- strategy: bfc:gc\n":  "The strategy bfc:gc (under TensorFlow: TF_FORCE_GPU_ALLOW_GROWTH=true) carries this run on a card of 1.00 GiB.",
		"- strategy: caching\n": "The strategy caching (PyTorch without any setting) carries this run on a card of 1.00 GiB.",
		"- strategy: slab\n":    "The strategy slab carries this run on a card of 1.00 GiB.",
	} {
		args := []string{path, "--device", "sim:1GiB", "--grid", write(t, "g.yaml", strategy)}
		text := succeed(t, append([]string{"whatif"}, args...)...)
		require.True(t, strings.HasPrefix(strings.Join(strings.Fields(text), " "), want), text)
		require.NotContains(t, text, "export ")
		r := whatifJSON(t, args...)
		require.Equal(t, whatif.Strategy, r.Answer.Verdict)
		require.Empty(t, r.Answer.Environment)
	}
}
