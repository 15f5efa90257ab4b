package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/whatif"
)

// TestATraceOfPyTorchGetsSettingsOfPyTorch asks about traces of PyTorch 1.13. Of the first one,
// settings of TensorFlow need least of all that a framework can be set to.
func TestATraceOfPyTorchGetsSettingsOfPyTorch(t *testing.T) {
	paths := []string{write(t, "t.trace", fragmenting("# vramyard-trace 1\n# torch=1.13.0a0\n")), "cpu_gpt2_train_varlen",
		"cpu_resnet50_train"}
	if testing.Short() {
		paths = paths[:1]
	}
	for _, path := range paths {
		r := whatifJSON(t, path)
		require.Equal(t, "PyTorch", r.Recorded.Framework)
		require.Equal(t, "1.13.0a0", r.Recorded.Version)
		require.Empty(t, r.Answer.Before, "the version is known")
		words := strings.Join(append(r.Answer.Text, r.Answer.Environment...), " ")
		for _, newer := range []string{"TF_", "PYTORCH_ALLOC_CONF", "expandable_segments", "large_segment_size_mb",
			"backend:", "per_process_memory_fraction"} {
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
		require.Equal(t, version == "",
			strings.Contains(text, "  # PyTorch 2.10 and newer\n    export PYTORCH_CUDA_ALLOC_CONF="+setting+
				"  # before 2.10\n"), text)
	}
}

// TestSettingsFollowTheRecordedRelease asks about a recording of another release than the default
// one: all of PyTorch's settings are replayed under its rules, and have the same short names.
func TestSettingsFollowTheRecordedRelease(t *testing.T) {
	for version, rules := range map[string]string{"2.9.1": "2.6", "2.11.0": "2.11", "2.12.0": "2.12", "2.15.0": "2.13"} {
		path := write(t, "t.trace", fragmenting("# vramyard-trace 1\n# torch="+version+"\n# config={\"conf\":\"\"}\n"))
		r := whatifJSON(t, path, "--device", "sim:1GiB")
		settings := 0
		for _, p := range r.Runs {
			if p.Strategy != cachingName {
				continue
			}
			settings++
			require.Contains(t, string(p.Config), `"rules": "`+rules+`"`, p.Label)
			require.NotContains(t, p.Label, "rules", version)
		}
		require.Greater(t, settings, 5, version)
	}
}

// TestOwnGridsFollowTheRecordedRelease has a grid with settings that state rules, and a setting
// that releases before 2.10 refuse.
func TestOwnGridsFollowTheRecordedRelease(t *testing.T) {
	const entries = "- strategy: caching\n  conf: max_split_size_mb:64\n" +
		"- strategy: caching\n  conf: max_split_size_mb:128\n  config: {rules: \"2.12\"}\n- strategy: caching:2.13\n"
	grid := write(t, "g.yaml", entries)
	for header, args := range map[string][]string{
		"# torch=2.9.1\n": nil, "# torch=2.9.1\n# config={\"conf\":\"\"}\n": nil, "# torch=2.15\n": {"--torch", "2.9.1"},
	} {
		path := write(t, "t.trace", fragmenting("# vramyard-trace 1\n"+header))
		rules := map[string]int{}
		for _, command := range []string{"whatif", "fleet"} {
			var r whatif.Result
			out := succeed(t, append([]string{command, "--json", "-", "--grid", grid, path}, args...)...)
			if command == "fleet" {
				var f whatif.Fleet
				require.NoError(t, json.Unmarshal([]byte(out), &f))
				r = *f.All
			} else {
				require.NoError(t, json.Unmarshal([]byte(out), &r))
			}
			for _, p := range r.Runs {
				var c struct{ Rules string }
				require.NoError(t, json.Unmarshal(p.Config, &c))
				if !p.Recorded {
					rules[c.Rules]++
				}
			}
		}
		require.Equal(t, map[string]int{"2.6": 2, "2.12": 2, "2.13": 2}, rules, header)
	}
	grid = write(t, "new.yaml", "- strategy: caching\n  conf: max_split_size_mb:20\n")
	status, stdout, stderr := command(t, "whatif", "--grid", grid, write(t, "t.trace", fragmenting("# torch=2.9.1\n")))
	require.Equal(t, exitTrouble, status)
	require.Empty(t, stdout)
	require.Equal(t, "vramyard: --grid: "+grid+": under the rules 2.6 of PyTorch: line 1, column 13: caching: conf: "+
		"max_split_size_mb:20: want at least 21, more than a large segment\n", stderr)
}

// TestAnUnknownFrameworkGetsStrategies names settings under their framework, and exports nothing.
func TestAnUnknownFrameworkGetsStrategies(t *testing.T) {
	path := write(t, "t.trace", fragmenting(""))
	for strategy, want := range map[string]string{
		"- strategy: bfc:gc\n": "The strategy bfc:gc (under TensorFlow: TF_FORCE_GPU_ALLOW_GROWTH=true) completes this run " +
			"on a card of 1.00 GiB.",
		"- strategy: caching\n": "The strategy caching (PyTorch without any setting) completes this run on a card of " +
			"1.00 GiB.",
		"- strategy: slab\n": "The strategy slab completes this run on a card of 1.00 GiB.",
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

// TestFiguresAreMeasuredAtTheMinimum asks about a run that no card holds that died of it: on an
// ample device a strategy reserves more than it needs.
func TestFiguresAreMeasuredAtTheMinimum(t *testing.T) {
	r := whatifJSON(t, "../examples/oom/batches.pickle.gz")
	for _, p := range r.Runs {
		require.NotNil(t, p.MinCapacity, p.Label)
		require.Equal(t, *p.MinCapacity, p.Device, p.Label)
		require.LessOrEqual(t, p.PeakReserved, *p.MinCapacity, p.Label)
		require.NotNil(t, p.SafeFrom, p.Label)
		require.GreaterOrEqual(t, *p.SafeFrom, *p.MinCapacity, p.Label)
	}
	text := succeed(t, "whatif", "../examples/oom/batches.pickle.gz")
	require.Regexp(t, `│ caching +│ +16.25 GiB │ +16.25 GiB │ +fails │ +16.25 GiB │ +0.0 % │`, text)
	require.Contains(t, text, "│ safe from │")
}

// TestCardsHaveRoomForTheContext recommends a card with half a GiB to spare, and calls one that has
// not so much too tight.
func TestCardsHaveRoomForTheContext(t *testing.T) {
	const file = "../examples/oom/chat.pickle.gz"
	words := strings.Join(strings.Fields(succeed(t, "whatif", file)), " ")
	require.Contains(t, words, "It needs 14.48 GiB")
	require.NotContains(t, words, "Tesla T4")
	require.Contains(t, words, "With 512.00 MiB for the CUDA context and libraries, the smallest listed card large "+
		"enough is the Tesla V100 SXM2 16GB (15.78 GiB).")
	require.NotContains(t, words, "too tight", "the card that was recorded had its context")

	words = strings.Join(strings.Fields(succeed(t, "whatif", file, "--device", "sim:t4-16g")), " ")
	require.Contains(t, words, "completes this run on the Tesla T4 (14.75 GiB).")
	require.Contains(t, words, "That is too tight: it leaves 278.00 MiB for the CUDA context and libraries, which take "+
		"about 512.00 MiB.")
}

// TestCompareReportsTheSafeCapacity has the same figure in its table, in JSON and in CSV.
func TestCompareReportsTheSafeCapacity(t *testing.T) {
	path := write(t, "t.trace", fragmenting(""))
	require.Regexp(t, `│ +safe from │`, succeed(t, "compare", "--strategies", "bfc,caching", path))
	var report compare.Report
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "compare", "--strategies", "bfc,caching", "--json", "-", path)),
		&report))
	for _, r := range report.Runs {
		require.NotNil(t, r.SafeFrom, r.Strategy)
		require.GreaterOrEqual(t, *r.SafeFrom, *r.MinCapacity)
	}
	require.Contains(t, succeed(t, "compare", "--strategies", "bfc,caching", "--csv", "-", path), ",safe_from_bytes,")
}
