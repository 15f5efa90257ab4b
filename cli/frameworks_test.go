package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/bfc"
)

const mib = 1 << 20

// xspaceOf writes a trace as the profiler of TensorFlow and JAX does: the memory events of a BFC
// allocator with a limit, and an event of another name.
func xspaceOf(t *testing.T, text, event string, limit uint64) string {
	t.Helper()
	tr, err := formats.Read(strings.NewReader(text), "t", formats.Options{})
	require.NoError(t, err)
	number := func(b []byte, field protowire.Number, n uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
	}
	nested := func(b []byte, field protowire.Number, inner []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), inner)
	}
	named := func(b []byte, field protowire.Number, names ...string) []byte {
		for i, name := range names {
			b = nested(b, field, nested(number(nil, 1, uint64(i+1)), 2, nested(nil, 2, []byte(name))))
		}
		return b
	}
	plane := named(nested(nil, 2, []byte("/host:CPU")), 4, "MemoryAllocation", "MemoryDeallocation", event)
	plane = named(plane, 5, "allocator_name", "bytes_allocated", "requested_bytes", "allocation_bytes", "addr",
		"bytes_available")
	var line []byte
	var live uint64
	sizes := map[uint64]uint64{}
	for i, e := range tr.Events {
		kind, size, requested := uint64(1), uint64(e.Size), uint64(e.Size)
		if e.Kind == trace.Free {
			kind, size, requested = 2, sizes[e.ID], 0
			live -= size
		} else {
			sizes[e.ID] = size
			live += size
		}
		ev := number(number(nil, 1, kind), 2, uint64(i+1)*1000)
		ev = nested(ev, 4, nested(number(nil, 1, 1), 5, []byte("GPU_0_bfc")))
		for k, v := range []uint64{live, requested, size, 1<<40 + e.ID*1<<32, limit - live} {
			ev = nested(ev, 4, number(number(nil, 1, uint64(k+2)), 3, v))
		}
		line = nested(line, 4, ev)
	}
	line = nested(line, 4, number(number(nil, 1, 3), 2, 500))
	return write(t, strings.ToLower(t.Name()[:6])+".xplane.pb", string(nested(nil, 1, nested(plane, 3, line))))
}

// pinned is a trace whose large blocks leave holes between small ones in one region. The driver's
// pool returns them.
func pinned(header string) string {
	var b strings.Builder
	b.WriteString(header)
	for i := range 3 {
		fmt.Fprintf(&b, "a %d 64MiB\na %d 1MiB\n", i, 10+i)
	}
	return b.String() + "f 0\nf 1\nf 2\na 20 190MiB\n"
}

// askWhatif returns the text of whatif, and the words of it.
func askWhatif(t *testing.T, args ...string) (text, words string) {
	t.Helper()
	text = succeed(t, append([]string{"whatif"}, args...)...)
	for _, foreign := range []string{"PYTORCH", "torch", "expandable_segments"} {
		require.NotContains(t, text, foreign)
	}
	return text, strings.Join(strings.Fields(text), " ")
}

// TestProfilesGetTheWordsOfTheirFramework asks about traces of the profiler.
func TestProfilesGetTheWordsOfTheirFramework(t *testing.T) {
	for _, c := range []struct{ event, text, device, first, export, sure string }{
		{"PjitFunction(train_step)", fragmenting(""), "sim:310MiB",
			"XLA_PYTHON_CLIENT_MEM_FRACTION=0.89 completes this run on a card of 310.00 MiB.",
			"XLA_PYTHON_CLIENT_MEM_FRACTION=0.89", "JAX"},
		{"PjitFunction(train_step)", pinned(""), "sim:256MiB",
			"XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async completes this run on a card of 256.00 MiB.",
			"XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async", "JAX"},
		{"EagerLocalExecute: MatMul", pinned(""), "sim:256MiB",
			"TF_GPU_ALLOCATOR=cuda_malloc_async completes this run on a card of 256.00 MiB.",
			"TF_GPU_ALLOCATOR=cuda_malloc_async", "TensorFlow"},
	} {
		path := xspaceOf(t, c.text, c.event, 300*mib)
		text, words := askWhatif(t, "--device", c.device, path)
		require.True(t, strings.HasPrefix(words, c.first), words)
		require.Contains(t, text, "\n    export "+c.export+"\n")
		require.Equal(t, 1, strings.Count(text, "export "))
		require.Contains(t, words, "The file does not have the settings of "+c.sure+", so its defaults are assumed.")
		require.Contains(t, words, "The recorded allocator had a limit of 300.00 MiB")
		require.Contains(t, words, "The defaults of "+c.sure+" make")
	}
}

// TestRecordedFailuresGetTheWordsOfTheirFramework asks about programs that died, with settings in
// the header of the trace.
func TestRecordedFailuresGetTheWordsOfTheirFramework(t *testing.T) {
	refused := func(header string) string {
		return strings.Replace(fragmenting("# vramyard-trace 1\n"+header), "a 99 130MiB", "refused 130MiB", 1)
	}
	for _, c := range []struct{ text, grid, first, lines, recorded string }{
		{refused("# framework=jax\n# XLA_PYTHON_CLIENT_MEM_FRACTION=.5\n"), "",
			"Yes: XLA_PYTHON_CLIENT_MEM_FRACTION=0.69 completes this run on a card of 400.00 MiB.",
			"    export XLA_PYTHON_CLIENT_MEM_FRACTION=0.69\n", "XLA_PYTHON_CLIENT_MEM_FRACTION=.5"},
		{refused("# framework=TensorFlow\n# per_process_gpu_memory_fraction=0.5\n"), "- strategy: bfc:tensorflow\n",
			"Yes: TensorFlow without any setting completes this run on a card of 400.00 MiB.", "",
			"per_process_gpu_memory_fraction=0.5"},
		{refused("# framework=TensorFlow\n# TF_GPU_ALLOCATOR=cuda_malloc_async\n# per_process_gpu_memory_fraction=0.5\n"),
			"- strategy: bfc:gc\n",
			"With the recorded settings the run completes on a card of 400.00 MiB: it needs 290.00 MiB.", "",
			"TF_GPU_ALLOCATOR=cuda_malloc_async per_process_gpu_memory_fraction=0.5"},
		{refused("# framework=TensorFlow\n# per_process_gpu_memory_fraction=0.5\n"), "- strategy: bfc:gc\n",
			"Yes: TF_FORCE_GPU_ALLOW_GROWTH=true completes this run on a card of 400.00 MiB.",
			"    export TF_FORCE_GPU_ALLOW_GROWTH=true\n", "per_process_gpu_memory_fraction=0.5"},
		{refused("# framework=TensorFlow\n# per_process_gpu_memory_fraction=0.5\n"),
			"- strategy: bfc:tensorflow\n  conf: [per_process_gpu_memory_fraction=0.9]\n",
			"Yes: per_process_gpu_memory_fraction=0.69 completes this run on a card of 400.00 MiB.",
			"    session = tf.compat.v1.Session(config=tf.compat.v1.ConfigProto(gpu_options=tf.compat.v1.GPUOptions(" +
				"per_process_gpu_memory_fraction=0.69)))\n", "per_process_gpu_memory_fraction=0.5"},
	} {
		args := []string{"--device", "sim:400MiB", write(t, "t.trace", c.text)}
		if c.grid != "" {
			args = append(args, "--grid", write(t, "g.yaml", c.grid))
		}
		text, words := askWhatif(t, args...)
		require.Contains(t, words, c.first)
		require.Contains(t, text, "\n"+c.lines)
		require.Equal(t, strings.Count(c.lines, "export"), strings.Count(text, "export "))
		require.Contains(t, words, " recorded "+c.recorded+" ")
		require.NotContains(t, words, "defaults are assumed")
	}
}

// TestTheLeastShareCompletes tries the share that is named, and the next smaller one, on that card.
func TestTheLeastShareCompletes(t *testing.T) {
	path := write(t, "t.trace", fragmenting("# vramyard-trace 1\n# framework=JAX\n"))
	card := []string{"--device", "sim:330MiB", path}
	_, words := askWhatif(t, card...)
	require.Contains(t, words, "JAX takes 277.20 MiB of the card, the least share in steps of 0.01 that completes; the "+
		"CUDA context, libraries and other programs must fit into the other 52.80 MiB. That is too tight:")
	require.NotContains(t, words, "That is close")
	r := whatifJSON(t, card...)
	require.Equal(t, whatif.Setting, r.Answer.Verdict)
	require.Equal(t, []string{"XLA_PYTHON_CLIENT_MEM_FRACTION=0.84"}, r.Answer.Environment)
	require.LessOrEqual(t, r.Replayed, r.Budget)
	require.Empty(t, r.Answer.Constraints, "the answer is the same for each")
	least := 0
	for _, p := range r.Runs {
		if p.LeastShare {
			least++
			require.Equal(t, r.Answer.Label, p.Label)
		}
	}
	require.Equal(t, 1, least)

	grid := write(t, "g.yaml", "- strategy: bfc:jax\n  config: {memory_fraction: [0.83, 0.84]}\n")
	for _, p := range whatifJSON(t, append(card, "--grid", grid)...).Runs {
		switch {
		case strings.Contains(p.Label, "0.84"):
			require.True(t, *p.Carried)
			require.True(t, p.LeastShare, "the grid has it already")
		default:
			require.False(t, *p.Carried, p.Label)
		}
	}

	// The default completes on a larger card, and leaves less to others than is possible.
	_, words = askWhatif(t, "--device", "sim:1GiB", path)
	require.Contains(t, words, "With the defaults of JAX the run completes on a card of 1.00 GiB")
	require.Contains(t, words, "To share the card, XLA_PYTHON_CLIENT_MEM_FRACTION=0.27 is enough. JAX takes 276.48 MiB "+
		"of the card, the least share in steps of 0.01 that completes;")
}

// TestTensorFlowLeavesMemoryToLibraries has a block that needs the reserve of TensorFlow on a T4, a
// card of another capability, one without a name, and the same memory as the allocator of a
// recording had.
func TestTensorFlowLeavesMemoryToLibraries(t *testing.T) {
	const text = "a 1 14100MiB\n"
	for _, c := range []struct {
		header, device string
		completes      bool
	}{
		{"# framework=TensorFlow\n", "sim:t4-16g", false}, {"# framework=TensorFlow\n", "sim:l4-24g", true},
		{"# framework=TensorFlow\n", "sim:15900MiB", true}, {"# framework=TensorFlow\n", "sim:15899MiB", false},
		{"# framework=TensorFlow\n# recorded_capacity=15835594752\n", "", true},
	} {
		args := []string{write(t, "t.trace", c.header+text)}
		if c.device != "" {
			args = append(args, "--device", c.device)
		}
		r := whatifJSON(t, args...)
		require.Equal(t, c.completes, r.Answer.Verdict == whatif.Carried, "%+v: %q", c, r.Answer.Text)
		i := slices.IndexFunc(r.Runs, func(p whatif.Point) bool { return p.Recorded })
		require.Contains(t, string(r.Runs[i].Config), `"garbage_collection": true`, "as in the preset")
		require.Contains(t, strings.Join(r.Answer.Sure, " "), "leaves 225 to 1,800 MiB of the card to the libraries of CUDA")
	}
}

// TestFrameworksMayTakeEveryBlockFromTheDevice: the baseline is a setting of JAX and of TensorFlow.
func TestFrameworksMayTakeEveryBlockFromTheDevice(t *testing.T) {
	path := write(t, "t.trace", fragmenting("# vramyard-trace 1\n# framework=JAX\n"))
	_, words := askWhatif(t, "--device", "sim:256MiB", path)
	require.True(t, strings.HasPrefix(words, "No setting of JAX that was tried, except "+
		"XLA_PYTHON_CLIENT_ALLOCATOR=platform, which requests every block from the device, completes this run on a card "+
		"of 256.00 MiB. The strategy "), words)
	_, words = askWhatif(t, "--device", "sim:256MiB", path, "--grid", write(t, "g.yaml", "- strategy: direct\n"))
	require.Contains(t, words, "None: of the 2 settings that were tried, only the baseline direct "+
		"(XLA_PYTHON_CLIENT_ALLOCATOR=platform) completes this run on a card of 256.00 MiB")
	path = write(t, "t.trace", fragmenting("# vramyard-trace 1\n# framework=TensorFlow\n"+
		"# TF_GPU_ALLOCATOR=cuda_malloc\n"))
	_, words = askWhatif(t, "--device", "sim:256MiB", path)
	require.Contains(t, words, "With the recorded settings the run completes on a card of 256.00 MiB: it needs "+
		"162.00 MiB.")
}

// TestSettingsInTheHeaderAreChecked has values that the frameworks do not accept.
func TestSettingsInTheHeaderAreChecked(t *testing.T) {
	for header, want := range map[string]string{
		"# framework=JAX\n# XLA_PYTHON_CLIENT_MEM_FRACTION=90\n": "bfc: conf: XLA_PYTHON_CLIENT_MEM_FRACTION=90: " +
			"want a share of the card above 0, at most 1",
		"# framework=JAX\n# XLA_PYTHON_CLIENT_ALLOCATOR=cuda_asynk\n": `XLA_PYTHON_CLIENT_ALLOCATOR=cuda_asynk: did you ` +
			`mean "cuda_async"? want one of default, bfc, cuda_async, platform, vmm`,
		"# framework=TensorFlow\n# TF_GPU_ALLOCATOR=bfc\n": "TF_GPU_ALLOCATOR=bfc: want one of cuda_malloc_async, " +
			"cuda_malloc, memory_guard",
		"# framework=TensorFlow\n# TF_FORCE_GPU_ALLOW_GROWTH=yes\n": "bfc: conf: TF_FORCE_GPU_ALLOW_GROWTH=yes: " +
			"want true or false",
		"# framework=TensorFlow\n# XLA_PYTHON_CLIENT_MEM_FRACTION=0.5\n": "XLA_PYTHON_CLIENT_MEM_FRACTION: TensorFlow does " +
			"not read it, JAX does: want one of TF_GPU_ALLOCATOR, ",
		"# framework=TensorFlow\n# XLA_PYTHON_CLIENT_ALLOCATOR=platform\n": "XLA_PYTHON_CLIENT_ALLOCATOR: TensorFlow does ",
		"# framework=JAX\n# allow_growth=true\n": "allow_growth: JAX does not read it, TensorFlow does: want one of " +
			"XLA_PYTHON_CLIENT_ALLOCATOR, ",
		"# framework=JAX\n# TF_GPU_ALLOCATOR=cuda_malloc\n": "TF_GPU_ALLOCATOR: JAX does not read it, TensorFlow does: ",
	} {
		path := write(t, "t.trace", "# vramyard-trace 1\n"+header+"a 1 12MiB\n")
		status, stdout, stderr := command(t, "whatif", path)
		require.Equal(t, exitTrouble, status)
		require.Contains(t, stderr, path+":3: "+want)
		require.Empty(t, stdout)
	}
	for header, want := range map[string]string{
		"# XLA_PYTHON_CLIENT_MEM_FRACTION=0.5\n": ":1: XLA_PYTHON_CLIENT_MEM_FRACTION: JAX reads it: want the line " +
			"framework=JAX too",
		"# framework=pytorch\n# TF_GPU_ALLOCATOR=cuda_malloc\n": ":2: TF_GPU_ALLOCATOR: PyTorch does not read it, " +
			"TensorFlow does",
		"# framework=JAX\n# XLA_CLIENT_MEM_FRACTION=0.5\n# XLA_PYTHON_CLIENT_MEM_FRACTION=0.5\n": ": bfc: conf: " +
			"XLA_PYTHON_CLIENT_MEM_FRACTION and XLA_CLIENT_MEM_FRACTION: want one of them, JAX refuses both",
	} {
		path := write(t, "t.trace", header+"a 1 12MiB\n")
		status, _, stderr := command(t, "whatif", path)
		require.Equal(t, exitTrouble, status)
		require.Equal(t, "vramyard: "+path+want+"\n", stderr)
	}
	_, words := askWhatif(t, write(t, "t.trace", fragmenting("# vramyard-trace 1\n# framework=JAX\n"+
		"# XLA_PYTHON_CLIENT_ALLOCATOR=vmm\n")))
	require.Contains(t, words, "No strategy models the recorded settings, so they are not replayed: "+
		"XLA_PYTHON_CLIENT_ALLOCATOR=vmm.")
}

// TestStatesOfTensorFlowGetItsProfiler takes TensorFlow's dump, which has no history.
func TestStatesOfTensorFlowGetItsProfiler(t *testing.T) {
	text, words := askWhatif(t, "../harness/trace/formats/testdata/gpu0.memorydump")
	require.True(t, strings.HasPrefix(words, "This file cannot answer that: it has no history of requests"), words)
	require.Contains(t, text, "\n    tf.profiler.experimental.start(\"profile\")  # before the first tensor is made\n")
	require.NotContains(t, text, "export ")
}

// TestAnUnknownProfileGetsNoExport: the events of the sample belong to both frameworks.
func TestAnUnknownProfileGetsNoExport(t *testing.T) {
	require.NotContains(t, succeed(t, "whatif", "../harness/trace/formats/testdata/step.xspace"), "export ")
}

// TestDocsNameEverySettingOfFrameworks looks for the variables and options that are accepted or
// exported, and holds docs/whatif.md to the answer that it quotes.
func TestDocsNameEverySettingOfFrameworks(t *testing.T) {
	names := bfc.ConfNames("")
	for _, s := range gridOf(t, "full") {
		for _, e := range s.Exports() {
			for _, text := range append(e.Environment, e.Options...) {
				name, _, _ := strings.Cut(text, "=")
				if e.Framework != "PyTorch" {
					names = append(names, name)
				}
			}
		}
	}
	for _, page := range []string{"whatif", "settings"} {
		raw, err := os.ReadFile("../docs/" + page + ".md")
		require.NoError(t, err)
		for _, name := range names {
			require.Contains(t, string(raw), name, page)
		}
	}
	raw, err := os.ReadFile("../docs/whatif.md")
	require.NoError(t, err)
	const file = "examples/incidents/grow-batch.trace.gz"
	quoted, _, _ := strings.Cut(succeed(t, "whatif", "../"+file), "It makes ")
	require.Contains(t, string(raw), "```\n"+strings.TrimSpace(quoted)+"\n```")
	require.Contains(t, string(raw), "`vramyard whatif "+file+"`")
}

// gridOf reads an embedded grid.
func gridOf(t *testing.T, name string) []setting.Setup {
	t.Helper()
	in, err := grids.Open("grids/" + name + ".yaml")
	require.NoError(t, err)
	defer in.Close()
	setups, err := whatif.ReadGrid(in, strategies.All())
	require.NoError(t, err)
	return setups
}

// TestGridsOfFrameworksAreTheirs holds the grids of TensorFlow and JAX to settings that these have,
// and the grid of a recording to settings that do not belong to another framework.
func TestGridsOfFrameworksAreTheirs(t *testing.T) {
	for _, f := range frameworks {
		for _, s := range gridOf(t, f.grid) {
			require.True(t, slices.ContainsFunc(s.Exports(), func(e setting.Export) bool { return e.Framework == f.name }), s)
		}
		flags := whatifFlags{catalogue: strategies.All(), grid: gridQuick}
		all, err := flags.withFramework(&whatif.Recorded{Framework: f.name}, nil)
		require.NoError(t, err)
		for _, s := range all {
			for _, e := range s.Exports() {
				require.NotEqual(t, "PYTORCH_ALLOC_CONF=expandable_segments:True", strings.Join(e.Environment, " "))
			}
		}
		require.Greater(t, len(all), 15)
	}
	flags := whatifFlags{catalogue: strategies.All(), grid: gridQuick}
	same := gridOf(t, gridQuick)
	for _, framework := range []string{"", "PyTorch", "Lua"} {
		all, err := flags.withFramework(&whatif.Recorded{Framework: framework}, same)
		require.NoError(t, err)
		require.Len(t, all, len(same))
	}
}
