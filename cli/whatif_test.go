package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/whatif"
)

// whatifJSON runs the command and reads its result.
func whatifJSON(t *testing.T, args ...string) *whatif.Result {
	t.Helper()
	var r whatif.Result
	require.NoError(t, json.Unmarshal([]byte(succeed(t, append([]string{"whatif", "--json", "-"}, args...)...)), &r))
	return &r
}

// TestWhatifReadsEverySample goes from each snapshot that ships to an answer.
func TestWhatifReadsEverySample(t *testing.T) {
	const dir = "../harness/trace/torch/testdata/vectors/"
	for _, name := range []string{"full", "full_protocol5", "skip_free_requested", "segment_free", "multi_stream_pending",
		"private_pool", "mid_start", "state_only"} {
		r := whatifJSON(t, dir+name+".pickle.xz")
		require.Equal(t, whatif.Schema, r.Schema)
		require.NotEmpty(t, r.Answer.Text, name)
		require.Equal(t, r.Cannot == "", len(r.Answer.Sure) > 0, name)
		require.Equal(t, name == "state_only" || name == "private_pool", r.Answer.Verdict == whatif.CannotTell, name)
		if name == "private_pool" {
			require.Less(t, r.Recorded.Predicted, r.Recorded.Allocs, "segments of a pool that is gone belong to none")
		} else {
			require.Equal(t, r.Recorded.Allocs, r.Recorded.Predicted, name)
		}
		require.Equal(t, name == "state_only", r.Recorded.Empty, name)
		for _, p := range r.Runs {
			if p.Recorded && name == "full" {
				require.Equal(t, r.Recorded.Peak, p.PeakReserved, name)
			}
			require.NotZero(t, p.Need()+p.PeakReserved, "%s: %s", name, p.Label)
		}
	}
}

// TestWhatifFindsASettingForEachExample takes recordings of programs that died.
func TestWhatifFindsASettingForEachExample(t *testing.T) {
	for file, want := range map[string]whatif.Verdict{
		"chat": whatif.Setting, "layouts": whatif.Setting, "leftovers": whatif.Strategy, "batches": whatif.TooLittle,
	} {
		r := whatifJSON(t, "../examples/oom/"+file+".pickle.gz")
		require.Equal(t, want, r.Answer.Verdict, file)
		require.True(t, r.Recorded.Failure.Fatal)
		require.Equal(t, r.Recorded.Capacity, r.Card)
		require.NotNil(t, r.Explained.Recorded, file)
		require.NotEmpty(t, r.Explained.Recorded.Requester.Stack, file)
		require.Equal(t, want == whatif.Setting, len(r.Answer.Before) > 0, file)
		require.NotNil(t, r.Offline, file)
		require.GreaterOrEqual(t, r.Offline.Best.Height, r.LowerBound)
	}
}

func TestWhatifTakesTheCardThatIsNamed(t *testing.T) {
	r := whatifJSON(t, "--device", "sim:h100-80g", "../examples/oom/batches.pickle.gz")
	require.Equal(t, whatif.Carried, r.Answer.Verdict)
	out := succeed(t, "whatif", "--device", "sim:16MiB", write(t, "t.trace", "a 1 12MiB\na 2 8MiB\n"))
	require.True(t, strings.HasPrefix(out, "None: the live bytes alone need 20.00 MiB, and the card has 16.00 MiB. "), out)
	require.Contains(t, out, "20.00 MiB in one piece, with every request known in advance, and no less\n                "+
		" 20.00 MiB if packed by size")
	out = succeed(t, "whatif", "--device", "sim:64MiB", "--grid", write(t, "g.yaml", "- strategy: bfc\n"),
		write(t, "t.trace", "a 1 12MiB\n"))
	require.Contains(t, out, "1 setting; ")
}

func TestWhatifRefuses(t *testing.T) {
	trace := write(t, "t.trace", "a 1 12MiB\n")
	jax := write(t, "j.trace", "# framework=JAX\na 1 12MiB\n")
	grid := write(t, "g.yaml", "- strategy: bfc\n- strategy: cfb\n")
	tag, deep := write(t, "tag.yaml", "! t"), write(t, "deep.yaml", strings.Repeat("[", 40000))
	for want, args := range map[string][]string{
		`--grid: slow: no such file: want quick, full or a file`:             {"--grid", "slow", trace},
		`--grid: want quick, full or a file`:                                 {"--grid", "", trace},
		`--grid: ` + grid + `: line 2, column 13: unknown strategy "cfb"`:    {"--grid", grid, trace},
		`--grid: ` + tag + `: line 1, column 1: want one list of strategies`: {"--grid", tag, trace},
		`--grid: ` + deep + `: line 1, column 17: exceeded max depth of 16`:  {"--grid", deep, trace},
		`--permit: unknown feature "rmda": did you mean "rdma"? want one of`: {"--permit", "graphs,rmda", trace},
		`"--permit" flag: want a value`:                                      {"--permit", "", trace},
		`"--torch" flag: want a value`:                                       {"--torch=", trace},
		`"--serving" flag: want a value`:                                     {"--serving", "", trace},
		`--serving: unknown profile "vlm": did you mean "vllm"? want one of`: {"--serving", "vlm", trace},
		`--torch: "latest": want a version of PyTorch, such as 2.9.1`:        {"--torch", "latest", trace},
		`--torch: "2.9" is a version of PyTorch, and the program is of TensorFlow`: {"--torch", "2.9", "--serving",
			"tensorflow", trace},
		jax + `: --torch: "2.9" is a version of PyTorch, and the program is of JAX`: {"--torch", "2.9", jax},
		`--across-releases: it compares all settings and releases: want no --pe`:    {"--across-releases", "--permit", "rdma", trace},
		`--across-releases: it compares all settings and releases: want no`:         {"--across-releases", "--serving", "jax", trace},
		`--across-releases: it compares all settings and releases`:                  {"--across-releases", "--torch", "2.9", trace},
		`--workers: want 0 or more`:               {"--workers", "-1", trace},
		`--device: device "cuda"`:                 {"--device", "cuda", trace},
		`--sim: capacity: this command sets it`:   {"--sim", `{"capacity":"1GiB"}`, trace},
		`--free-at: `:                             {"--free-at", "never", trace},
		`--json: ` + trace + ` is a file to read`: {"--json", trace, trace},
		`--csv: ` + grid + ` is a file to read`:   {"--csv", grid, "--grid", grid, trace},
		`--csv: - is where --json is written`:     {"--json", "-", "--csv", "-", trace},
		`the trace has no allocations`:            {write(t, "e.trace", "mark x\n")},
		`no/such/file`:                            {"no/such/file"},
		`has no part "cuda:7"`:                    {"--part", "cuda:7", "../examples/oom/chat.pickle.gz"},
	} {
		status, stdout, stderr := command(t, append([]string{"whatif"}, args...)...)
		require.Equal(t, exitTrouble, status, want)
		require.Contains(t, stderr, want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		require.Empty(t, stdout)
	}
	for _, args := range [][]string{{}, {trace, trace}, {"--grip", "quick", trace}} {
		status, _, _ := command(t, append([]string{"whatif"}, args...)...)
		require.Equal(t, exitTrouble, status)
	}
}

func TestWhatifWritesItsFiles(t *testing.T) {
	dir := t.TempDir()
	j, c := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.csv.gz")
	out := succeed(t, "whatif", "--json", j, "--csv", c, write(t, "t.trace", "a 1 12MiB\n"))
	require.Contains(t, out, "How sure:")
	for _, f := range []string{j, c} {
		info, err := os.Stat(f)
		require.NoError(t, err)
		require.NotZero(t, info.Size())
	}
}

// TestWhatifPermitsWhatTheDeploymentNeeds asks about a recording with the flags of a deployment.
func TestWhatifPermitsWhatTheDeploymentNeeds(t *testing.T) {
	const file = "../examples/oom/chat.pickle.gz"
	r := whatifJSON(t, "--permit", "rdma,graphs", "--torch", "2.9.1", file)
	require.Equal(t, []string{"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64"}, r.Answer.Environment)
	require.Empty(t, r.Answer.Constraints)
	for _, p := range r.Runs {
		if p.Label == "caching expandable_segments:True" {
			require.Equal(t, whatif.Fails, p.Permit)
			require.Contains(t, p.RuleIDs, "rdma-mooncake")
		}
	}
	text := succeed(t, "whatif", "--serving", "vllm-sleep", file)
	require.Contains(t, text, "\nThe deployment:\n- The settings must work with legacy-ipc (--serving), sleep (--serving)")
	require.Contains(t, text, "https://github.com/vllm-project/vllm/pull/14189\n")
	require.Contains(t, text, "not permitted with legacy-ipc, mempool, mempool-allocator, sleep")
	require.NotContains(t, text, "If it must also work with:")
	require.Contains(t, text, "- Left out: caching expandable_segments:True; caching\n"+
		"  expandable_segments:True,large_segment_size_mb:32; caching\n"+
		"  expandable_segments:True,roundup_power2_divisions:8\n"+
		"  - with legacy-ipc: Custom all-reduce cannot export")

	without := whatifJSON(t, file)
	require.Len(t, without.Answer.Constraints, 2)
	require.Equal(t, r.Answer.Label, without.Answer.Constraints[0].Label)
	require.Equal(t, r.Answer.Need, without.Answer.Constraints[0].Need)
	table := succeed(t, "whatif", "--permit", "rdma", "--csv", "-", file)
	require.Contains(t, table, ",permit,")
}

// TestWhatifRefusesASecondNeed gives each flag of a deployment twice.
func TestWhatifRefusesASecondNeed(t *testing.T) {
	for _, flag := range []string{"--permit", "--torch", "--serving"} {
		for _, name := range []string{"whatif", "fleet"} {
			status, stdout, stderr := command(t, name, flag, "a", flag, "b", "t.trace")
			require.Equal(t, exitTrouble, status)
			require.Equal(t, `vramyard: `+name+`: invalid argument "b" for "`+flag+`" flag: given twice: want the flag once: see `+
				`"vramyard `+name+` --help"`+"\n", stderr)
			require.Empty(t, stdout)
		}
	}
}

// TestWhatifReplaysTheNamedRelease asks for 2.12, which needs less than the recorded release.
func TestWhatifReplaysTheNamedRelease(t *testing.T) {
	const file = "../examples/oom/chat.pickle.gz"
	across := whatifJSON(t, "--across-releases", file).Releases
	r := whatifJSON(t, "--torch", "2.12.1", file)
	needs := map[string]device.Size{}
	for _, p := range r.Runs {
		needs[p.Label] = p.Need()
		require.Equal(t, p.Recorded, strings.Contains(p.Label, `"rules"`), p.Label)
	}
	require.Equal(t, "2.12", across[2].From)
	require.Equal(t, across[2].Need, needs["caching"])
	require.Equal(t, across[1].Need, needs[`caching {"conf":"","rules":"2.11"}`], "its rules fit the recording")
	require.Equal(t, r.Recorded.Allocs, r.Recorded.Predicted)
	const said = "The recorded settings are replayed under the rules 2.11 of PyTorch, as far as the file shows them, " +
		"others under the rules 2.12 for 2.12.1."
	require.Contains(t, r.Answer.Sure, said)
	for _, p := range whatifJSON(t, "--torch", "2.12.1", write(t, "t.trace", fragmenting(""))).Runs {
		if strings.HasPrefix(p.Label, "caching") {
			require.Contains(t, string(p.Config), `"rules": "2.12"`, "the trace has no recorded settings")
		}
	}
	trace := write(t, "t.trace", fragmenting("# config={\"conf\":\"\"}\n"))
	for _, p := range whatifJSON(t, "--torch", "2.12.1", trace).Runs {
		if strings.HasPrefix(p.Label, "caching") {
			require.Contains(t, string(p.Config), `"rules": "2.12"`, "the trace has no addresses to compare")
		}
	}
	require.NotContains(t, strings.Join(whatifJSON(t, "--torch", "2.11", file).Answer.Sure, " "), "under the rules")
}

// TestWhatifNamesTheCallsOfAPhase has a free block of 100 MiB that must not be split while weights
// are loaded.
func TestWhatifNamesTheCallsOfAPhase(t *testing.T) {
	trace := write(t, "t.trace", "# framework=PyTorch\nmark load\na 1 100MiB\nf 1\na 2 12MiB\nmark loaded\na 3 100MiB\n"+
		"f 3\na 4 60MiB\na 5 38MiB\n")
	grid := write(t, "grid.yaml", "- strategy: caching\n  conf: {max_split_size_mb: [\"\", 20@load..loaded]}\n")
	out := succeed(t, "whatif", "--grid", grid, "--device", "sim:112MiB", trace)
	require.Contains(t, out, `
    torch.cuda.memory._set_allocator_settings("max_split_size_mb:20")  # at the mark "load"
    torch.cuda.memory._set_allocator_settings("")                      # at the mark "loaded"
`)
	require.True(t, strings.HasPrefix(out, `max_split_size_mb:20 from the mark "load", then the defaults from the mark`), out)

	full := succeed(t, "whatif", "--grid", "full", "--device", "sim:112MiB", trace)
	require.Contains(t, full, "caching max_split_size_mb:20@load..loaded ")
	require.Contains(t, full, "caching max_split_size_mb:64@load..loaded ")
	require.Contains(t, succeed(t, "whatif", "--grid", "full", "--torch", "2.9.1", "--device", "sim:112MiB", trace),
		"caching max_split_size_mb:21@load..loaded ")
	grid = write(t, "wrong.yaml", "- strategy: caching\n  conf: max_split_size_mb:20@load..loded\n")
	status, stdout, stderr := command(t, "whatif", "--grid", grid, trace)
	require.Equal(t, exitTrouble, status)
	require.Equal(t, `vramyard: --grid: `+grid+`: a setting changes at the mark "loded": did you mean "loaded"? `+
		trace+" has no such mark\n", stderr)
	require.Empty(t, stdout)
	status, _, stderr = command(t, "fleet", "--grid", grid, trace)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, trace+" has no such mark\n")

	const reversed = `a setting begins at the mark "loaded" (event %d of %s) and ends at the mark "load" (event %d), ` +
		"which is earlier: want the earlier mark before the dots\n"
	grid = write(t, "reversed.yaml", "- strategy: caching\n  conf: max_split_size_mb:20@loaded..load\n")
	for _, name := range []string{"whatif", "fleet"} {
		status, stdout, stderr = command(t, name, "--grid", grid, trace)
		require.Equal(t, exitTrouble, status)
		require.Equal(t, "vramyard: --grid: "+grid+": "+fmt.Sprintf(reversed, 4, trace, 0), stderr)
		require.Empty(t, stdout)
	}
	for conf, want := range map[string]string{
		"@lod..loaded":  `a setting changes at the mark "lod": did you mean "load"? the trace has no such mark` + "\n",
		"@loaded..load": fmt.Sprintf(reversed, 2, "the trace", 0),
	} {
		file := write(t, "h.trace", `# config={"conf":"max_split_size_mb:20`+conf+`"}`+
			"\nmark load\na 1 1MiB\nmark loaded\n")
		status, _, stderr = command(t, "whatif", file)
		require.Equal(t, exitTrouble, status)
		require.Equal(t, "vramyard: "+file+":1: config: "+want, stderr)
	}
}

// TestAnswersGiveTheSettingsOfAStrategy has a strategy with settings of its own, and the preset of
// the same.
func TestAnswersGiveTheSettingsOfAStrategy(t *testing.T) {
	t.Parallel()
	trace := write(t, "t.trace", "# framework=PyTorch\na 1 30MiB\nf 1\na 2 60MiB\nf 2\na 3 45MiB\na 4 25MiB\n")
	for entry, want := range map[string]string{
		"slab\n  config: {large_waste: 16}": `"slab", config='{"large_waste":16}'`, "slab:kept": `"slab:kept"`,
		"slab\n  config: {large_waste: 0}": `"slab"`,
	} {
		grid := write(t, "grid.yaml", "- strategy: caching\n- strategy: "+entry+"\n")
		text := succeed(t, "whatif", "--device", "sim:71MiB", "--grid", grid, trace)
		require.Contains(t, strings.Join(strings.Fields(text), " "), "To use it: vramyard.torch.use("+want+") before ")
	}
}

// TestSettingsOfPyTorchInTheHeaderAreChecked has settings that PyTorch refuses. A recording keeps
// them, because a newer release may accept them.
func TestSettingsOfPyTorchInTheHeaderAreChecked(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{"cnf":""}`:                       `json: unknown field "cnf": did you mean "conf"?`,
		`{"conf":5}`:                       "conf: 5: want a text",
		`{"conf":"max_split_size_mb:1"}`:   "caching: conf: max_split_size_mb:1: want at least 20, the size of a large segment",
		`{"conf":"max_split_size_mb:abc"}`: "caching: conf: max_split_size_mb:",
	} {
		text := "# torch=2.9.1\n# config=" + config + "\na 1 1MiB\n"
		file := write(t, "h.trace", text)
		status, stdout, stderr := command(t, "whatif", file)
		require.Equal(t, exitTrouble, status)
		require.Contains(t, stderr, "vramyard: "+file+":2: config: "+want)
		require.Empty(t, stdout)
		r := whatifJSON(t, write(t, "h.trace", "# recorded_reserved=5\n"+text))
		require.Contains(t, strings.Join(r.Answer.Sure, " "), "No strategy models the recorded settings, so they are "+
			"not replayed: "+want)
		require.NotContains(t, strings.Join(r.Answer.Sure, " "), "records neither the allocator nor its settings")
	}
	file := write(t, "h.trace", "# framework=jax\n# config={}\na 1 1MiB\n")
	status, _, stderr := command(t, "whatif", file)
	require.Equal(t, exitTrouble, status)
	require.Equal(t, "vramyard: "+file+":2: config: JAX does not read it, PyTorch does: want one of "+
		"XLA_PYTHON_CLIENT_ALLOCATOR, XLA_PYTHON_CLIENT_PREALLOCATE, XLA_PYTHON_CLIENT_MEM_FRACTION, "+
		"XLA_CLIENT_MEM_FRACTION\n", stderr)
}

// TestWhatifTriesOptionsOfMemPools has a request outside that fits into free memory of the pool,
// and a block whose split keeps the rest of its segment from a later request.
func TestWhatifTriesOptionsOfMemPools(t *testing.T) {
	grid := write(t, "grid.yaml", "- strategy: caching\n")
	for _, c := range []struct{ events, line, sentence string }{
		{"pool begin 1\na 1 90MiB\na 2 12MiB\nf 1\npool end 1\na 3 60MiB\n",
			"\n                 102.00 MiB with torch.cuda.MemPool(use_on_oom=True)\n",
			"If the private pools are made with torch.cuda.MemPool(use_on_oom=True), in PyTorch from 2.8 on, 102.00 MiB " +
				"suffice under caching. A CUDA graph may not use such a pool: a replay would overwrite "},
		{"pool begin 1\na 1 40MiB\nf 1\na 2 12MiB\na 3 12MiB\nf 2\na 4 40MiB\npool end 1\n",
			"\n                 52.00 MiB with torch.cuda.MemPool(no_split=True)\n",
			"made with torch.cuda.MemPool(no_split=True), in PyTorch from 2.10 on, 52.00 MiB suffice under caching."},
	} {
		text := succeed(t, "whatif", "--grid", grid, write(t, "t.trace", c.events))
		require.Contains(t, text, c.line)
		require.Contains(t, strings.Join(strings.Fields(text), " "), c.sentence)
		require.Equal(t, 1, strings.Count(text, "MiB with torch.cuda.MemPool("), "the other option saves nothing")
		old := succeed(t, "whatif", "--grid", grid, write(t, "old.trace", "# torch=2.7.1\n"+c.events))
		require.NotContains(t, old, "If the private pools", "the release has neither option")
	}
}

// TestOptionsOfMemPoolsNeedLessThanTheAnswer has pools that need less with no_split, but more than
// the answer.
func TestOptionsOfMemPoolsNeedLessThanTheAnswer(t *testing.T) {
	text := succeed(t, "whatif", "../examples/incidents/capture-ascending.trace.gz")
	require.Contains(t, text, "79.43 GiB with torch.cuda.MemPool(no_split=True)\n")
	require.NotContains(t, text, "If the private pools", "expandable segments need 73.42 GiB")
}

// TestWhatifComparesPools has two captures, each in a pool of its own. One pool serves both with
// the blocks that the first capture freed.
func TestWhatifComparesPools(t *testing.T) {
	capture := func(pool, first string) string {
		return "pool begin " + pool + " stream=1\na " + first + "1 90MiB stream=1\na " + first +
			"2 30MiB stream=1\nf " + first + "1\npool end " + pool + "\n"
	}
	file := write(t, "t.trace", capture("1", "1")+capture("2", "2"))
	grid := write(t, "grid.yaml", "- strategy: caching\n")
	require.Contains(t, succeed(t, "whatif", "--grid", grid, file), `
private pools    240.00 MiB suffice with the recorded ones, under caching
                 150.00 MiB if all captures share one
                 150.00 MiB if all share one, in which 120.00 MiB are allocated first
                 150.00 MiB if all requests go to the ordinary pool
`)
	for way, want := range map[string]string{
		"share": "pool begin 1 stream=1", "merge": "a 21 ",
		"prime": "pool begin 1\na 5 125829120 stream=1\nf 5\npool end 1\n",
	} {
		out := filepath.Join(t.TempDir(), "o.trace")
		succeed(t, "trace", "convert", "--pools", way, file, out)
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		require.Contains(t, string(text), want)
		require.NotContains(t, string(text), "pool begin 2")
	}
	status, _, stderr := command(t, "trace", "convert", "--pools", "halve", file, "-")
	require.Equal(t, exitTrouble, status)
	require.Equal(t, "vramyard: --pools: unknown way \"halve\" to change pools: want one of share, merge, "+
		"largest-first, prime, use_on_oom, no_split\n", stderr)
}
