package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/plugin"
)

// everything is the catalogue of cmd/vramyard.
var everything = append(strategies.All(), plugin.Spec())

// command runs one command line over an empty standard input.
func command(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), everything, args, strings.NewReader(""), &out, &errs)
	return status, out.String(), errs.String()
}

// succeed runs a command line that must work, and returns its standard output.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	status, stdout, stderr := command(t, args...)
	require.Equal(t, exitDone, status, stderr)
	require.Empty(t, stderr)
	return stdout
}

// write puts a file into a fresh folder and returns its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

const small = "a 1 1000\na 2 256\na 3 2000\nf 1\na 4 5000\nf 2\n"

func TestWrongInput(t *testing.T) {
	good := write(t, "good.trace", small)
	bad := write(t, "bad.trace", "a 1 100\na 2 -5\n")
	missing := filepath.Join(t.TempDir(), "missing.trace")
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"unknown command", []string{"compair"}, `unknown command "compair"`},
		{"unknown flag", []string{"compare", "--capcity", "1"},
			`vramyard: compare: unknown flag: --capcity: did you mean --capacity?: see "vramyard compare --help"`},
		{"flag without value", []string{"compare", "--capacity"}, "flag needs an argument"},
		{"replay without trace", []string{"replay", "--strategy", "bfc"}, `replay: 0 arguments: want "vramyard replay --strategy NAME [flags] TRACE"`},
		{"replay without strategy", []string{"replay", good}, `vramyard: replay: required flag(s) "strategy" not set`},
		{"trace without command", []string{"trace"},
			"missing command: want info, convert, cut, diff, gen, perturb or classes"},
		{"trace with unknown command", []string{"trace", "show"}, `unknown command "show"`},
		{"info without trace", []string{"trace", "info"}, `0 arguments: want "vramyard trace info TRACE... [flags]"`},
		{"convert without output", []string{"trace", "convert", good}, "1 argument: want"},
		{"two strategies to show", []string{"strategies", "bfc", "buddy"}, "2 arguments: want"},
		{"missing file", []string{"compare", missing}, missing + ": no such file or directory"},
		{"bad content", []string{"replay", "--strategy", "bfc", bad}, bad + ":2: "},
		{"unknown strategy", []string{"compare", good, "--strategies", "bcf"},
			`--strategies: unknown strategy "bcf": did you mean "bfc"? want one of bfc, `},
		{"unknown preset", []string{"compare", good, "--strategies", "bfc:fast"}, `unknown preset "fast" of bfc`},
		{"no strategies", []string{"compare", good, "--strategies", ""}, "want at least one"},
		{"bad capacity", []string{"compare", good, "--capacity", "-4GiB"}, `--capacity: size "-4GiB"`},
		{"unknown time of frees", []string{"compare", good, "--free-at", "once"},
			`--free-at: free at "once": want "requested" or "completed"`},
		{"the same for one", []string{"replay", "--strategy", "bfc", "--free-at", "once", good}, "--free-at: "},
		{"no capacity", []string{"compare", good, "--capacity", "0"}, "--capacity: want more than 0 bytes"},
		{"bad JSON", []string{"replay", "--strategy", "bfc", "--config", "{", good},
			`invalid argument "{" for "--config" flag: character 2: the JSON object does not end`},
		{"unknown field", []string{"replay", "--strategy", "bfc", "--config", `{"limt":1}`, good}, `unknown field "limt"`},
		{"bad value", []string{"replay", "--strategy", "bfc", "--config", `{"variant":"1999"}`, good}, "1999"},
		{"bad device", []string{"replay", "--strategy", "bfc", "--sim", `{"policy":"worst"}`, good},
			`--sim: simulated device: policy "worst"`},
		{"unknown device field", []string{"replay", "--strategy", "bfc", "--sim", `{"size":1}`, good},
			`unknown field "size"`},
		{"unknown dialect", []string{"replay", "--strategy", "bfc", "--dialect", "jemalloc", good}, `jemalloc`},
		{"unknown form", []string{"trace", "convert", "--to", "xml", good, "out"}, `--to: unknown form "xml"`},
		{"unknown strategy to show", []string{"strategies", "slob"}, `unknown strategy "slob"`},
		{"preset to show", []string{"strategies", "bfc:growth"}, "is a preset"},
		{"output folder missing", []string{"trace", "convert", good, filepath.Join(missing, "out")},
			"no such file or directory"},
		{"names on two lines", []string{"compare", good, "--strategies", "bfc\nslab:xdl"}, `unknown strategy "bfc\nslab"`},
		{"a quote in a name", []string{"compare", good, "--strategies", `"bfc`}, "unknown strategy"},
		{"two outputs in one file", []string{"compare", good, "--json", "same", "--csv", "./same"},
			"--csv: ./same is where --json is written"},
		{"two documents on one stream", []string{"replay", "--strategy", "bfc", "--json", "-", "--final", "-", good},
			"--json: - is where --final is written"},
		{"output over the input", []string{"replay", "--strategy", "bfc", "--json", good, good}, "is a file to read"},
		{"standard input twice", []string{"compare", "-", "-"}, "standard input can be read only once"},
		{"output is the trace", []string{"trace", "convert", good, good}, good + " is a file to read"},
		{"part of a trace", []string{"trace", "info", "--part", "cuda:0", good},
			`has no part "cuda:0": files of the form text hold one trace`},
		{"completion of an unknown shell", []string{"completion", "foo"}, `unknown command "foo" for "vramyard completion"`},
		{"a flag for a name", []string{"replay", "--strategy", "bfc", "--explain", "--fail-on-oom", good},
			"--explain: --fail-on-oom is a flag, not the name of a file"},
		{"no output name", []string{"trace", "convert", good, ""}, "want the name of a file"},
		{"a checkpoint", []string{"compare", write(t, "model.pt", "PK\x03\x04"+strings.Repeat("\x00", 22)+
			"\x0e\x00\x00\x00model/data.pkl")}, "model.pt: is a checkpoint of PyTorch (torch.save), not a trace: want a " +
			"memory snapshot"},
		{"a page", []string{"whatif", write(t, "page.html", "<!doctype html>")}, "page.html: is an HTML page, not a trace"},
		{"help of nothing", []string{"help", "nothing"}, `unknown command "nothing"`},
		{"name that drives the terminal", []string{"trace", "info", "x\x1b[31m"}, `x\x1b[31m: no such file`},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, stdout, stderr := command(t, c.args...)
			require.Equal(t, exitTrouble, status, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, c.want)
			require.True(t, strings.HasPrefix(stderr, "vramyard: "), stderr)
			require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		})
	}
}

func TestFailureLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	bad := write(t, "bad.csv", "seq,op,id,bytes,stream,time_us,tag\n0,a,0,5,0,0,x\n1,q,0,5,0,0,x\n")
	out := filepath.Join(dir, "out.txt")
	status, _, _ := command(t, "trace", "convert", bad, out)
	require.Equal(t, exitTrouble, status)
	status, _, _ = command(t, "replay", "--strategy", "bfc", "--placements", out, "--final", out, "--json", out, bad)
	require.Equal(t, exitTrouble, status)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)
}

func TestReplayWritesPlacementsAndFinalToOneStream(t *testing.T) {
	path := write(t, "t.trace", small)
	out := succeed(t, "replay", "--strategy", "bfc", "--config", `{"limit":"8KiB"}`, "--placements", "-",
		"--final", "-", path)
	require.True(t, strings.HasPrefix(out, "1 0 1024\n2 1024 256\n3 1280 2048\n4 OOM\nS num_allocs 3\n"), out)
	require.True(t, strings.HasSuffix(out, "C 3328 4864 0 0 4 0 -1\n"), out)
}

func TestReplayDialects(t *testing.T) {
	path := write(t, "t.trace", "a 1 1000\nf 9\na 2 300 512\np\n")
	out := succeed(t, "replay", "--strategy", "bfc:2026", "--config", `{"limit":"4KiB"}`, "--dialect", "bfc",
		"--placements", "-", path)
	require.Equal(t, "1 0 1024\n2 1024 512\nP 2 1536 1536 1024 4096 4096 2560 8192 0\n", out)
	status, _, stderr := command(t, "replay", "--strategy", "bfc", path)
	require.Equal(t, exitTrouble, status, "in the native form a free of nothing is an error")
	require.Contains(t, stderr, ":2: ")
}

func TestReplayTableAndJSON(t *testing.T) {
	path := write(t, "t.trace", small)
	file := filepath.Join(t.TempDir(), "r.json")
	out := succeed(t, "replay", "--strategy", "bfc", "--config", `{"limit":"8KiB"}`, "--json", file, path)
	require.Contains(t, out, "reservation waste")
	require.Contains(t, out, "the only failure: event 4, allocation 4 of 4.88 KiB: alloc: out of memory")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var r map[string]any
	require.NoError(t, json.Unmarshal(raw, &r))
	for _, key := range []string{"strategy", "config", "trace", "trace_sha256", "lower_bound_bytes", "peak_reserved_bytes",
		"final_reserved_bytes", "latency", "series", "device_calls"} {
		require.Contains(t, r, key)
	}
}

func TestReplayWritesTheStrategysReport(t *testing.T) {
	path := write(t, "t.trace", small)
	out := succeed(t, "replay", "--strategy", "bfc", "--config", `{"limit":"8KiB"}`, "--oom-report", "-", path)
	require.True(t, strings.HasPrefix(out, "refused 4.88KiB, rounded to 5KiB, "), out)
	require.Contains(t, out, "Bin")
	require.Contains(t, out, "256")
	out = succeed(t, "replay", "--strategy", "bfc", "--oom-report", "-", path)
	require.Equal(t, "no request ran out of memory\n", out)
}

// TestReplayReportsTheFirstOOMOfEveryStrategy replays a trace with many tags on devices that are
// too small.
func TestReplayReportsTheFirstOOMOfEveryStrategy(t *testing.T) {
	var text strings.Builder
	for i := range 14 {
		fmt.Fprintf(&text, "a %d 1000000 tag=layer%d\n", i, i)
	}
	fmt.Fprintf(&text, "a 99 1900000001 stream=3 tag=last\n")
	path := write(t, "t.trace", text.String())
	for _, name := range everything.Names() {
		out := succeed(t, "replay", "--strategy", name, "--device", "sim:1536MiB", path)
		_, report, found := strings.Cut(out, "at the first OOM:\n")
		if !found {
			require.Contains(t, out, "FAILED: refuses ", name) // never grants this size, which is no OOM
			continue
		}
		require.Regexp(t,
			`^refused 1\.77GiB, (rounded to [0-9.]+GiB|rounded size not known), alignment 0B, stream 3, tag "last": `,
			report, name)
		require.Regexp(t, `\nlive blocks 14: requested 13\.35MiB, rounded to `, report, name)
		require.Regexp(t, `\n  tag "layer0": requested 976\.56KiB, rounded to .*, blocks 1\n`, report, name)
		require.Contains(t, report, "\n  and 4 more tags\n", name)
		require.LessOrEqual(t, strings.Count(report, "\n"), 18, name)
	}
}

func TestReplayReadsStandardInput(t *testing.T) {
	var out, errs bytes.Buffer
	status := run(t.Context(), everything, []string{"replay", "--strategy", "buddy:xdl", "--placements", "-", "-"},
		strings.NewReader("a 1 1\n"), &out, &errs)
	require.Equal(t, exitDone, status, errs.String())
	require.Equal(t, "1 0 16384\n", out.String())
}

func TestCompareWritesTablesJSONAndCSV(t *testing.T) {
	path := write(t, "t.trace", small)
	dir := t.TempDir()
	jsonFile, csvFile := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.csv")
	out := succeed(t, "compare", path, "--strategies", "bfc,slab:xdl", "--json", jsonFile, "--csv", csvFile)
	require.Contains(t, out, "lower bound")
	require.Contains(t, out, "slab:xdl")

	raw, err := os.ReadFile(jsonFile)
	require.NoError(t, err)
	var r struct {
		Schema     string
		Provenance provenance.Build
		Runs       []map[string]any
	}
	require.NoError(t, json.Unmarshal(raw, &r))
	require.Equal(t, provenance.Read(), r.Provenance)
	require.Len(t, r.Runs, 2)
	for _, key := range []string{
		"trace", "strategy", "config", "lower_bound_bytes", "min_capacity_bytes", "peak_requested_bytes",
		"peak_allocated_bytes", "peak_reserved_bytes", "reservation_waste", "external_fragmentation_peak",
		"oom_count", "refused_count", "device_calls", "ns_per_op", "trace_sha256",
	} {
		require.Contains(t, r.Runs[0], key)
	}

	f, err := os.Open(csvFile)
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 3)
	r.Runs[0]["self_timed"] = false                        // the JSON of a run that is not so has no such field
	r.Runs[0]["provenance.version"] = r.Provenance.Version // of the whole result
	r.Runs[0]["provenance.commit"] = r.Provenance.Commit
	for i, key := range rows[0] { // the same names and values as in JSON
		require.Contains(t, r.Runs[0], key)
		if v, ok := r.Runs[0][key].(string); ok {
			require.Equal(t, v, rows[1][i])
		}
	}
	require.Len(t, rows[0], len(r.Runs[0]))
}

func TestCompareToStandardOutputHoldsOneThing(t *testing.T) {
	path := write(t, "t.trace", small)
	out := succeed(t, "compare", path, "--strategies", "bfc", "--json", "-")
	require.True(t, json.Valid([]byte(out)), out)
}

func TestStrategiesListsEveryNameAndSetting(t *testing.T) {
	out := succeed(t, "strategies")
	for _, name := range []string{"bfc", "bfc:growth", "bfc:mended", "buddy:xdl", "slab:xdl", "slab:blaze",
		"slabbuddy:xdl"} {
		require.Contains(t, out, name)
	}
	out = succeed(t, "strategies", "bfc")
	for _, key := range []string{
		"variant", "limit", "allow_growth", "garbage_collection", "fragmentation_fraction", "coalesce_regions", "timing",
		"spatial", "mended",
	} {
		require.Contains(t, out, key)
	}
}

func TestTraceInfoAndConvert(t *testing.T) {
	dir := t.TempDir()
	name := workload.RecordingNames()[0]
	require.Contains(t, succeed(t, "trace", "info", name), "lower bound")
	require.True(t, json.Valid([]byte(succeed(t, "trace", "info", "--json", "-", name))))
	for _, out := range []string{"t.txt", "t.trace.gz", "t.csv", "t.csv.zst"} {
		path := filepath.Join(dir, out)
		succeed(t, "trace", "convert", name, path)
		want, err := workload.OpenRecording(name)
		require.NoError(t, err)
		got, err := trace.Open(path, trace.Options{})
		require.NoError(t, err)
		require.Equal(t, want.Events, got.Events, out)
	}
}

func TestHelpNeedsNoArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"compare", "--help"}, {"--version"}} {
		require.NotEmpty(t, succeed(t, args...))
	}
}

// TestVerdictsLeaveOutTheBaseline has a trace that no strategy serves with less than the baseline.
func TestVerdictsLeaveOutTheBaseline(t *testing.T) {
	path := write(t, "t.trace", "a 1 5242880\na 2 26214400\nf 1\na 3 26214400\n")
	first, _, _ := strings.Cut(succeed(t, "compare", "--strategies", "direct,caching", path), "\n")
	require.True(t, strings.HasPrefix(first, "caching completes "), first)
	first, _, _ = strings.Cut(succeed(t, "compare", "--strategies", "direct", path), "\n")
	require.Equal(t, "direct, the baseline, completes t.", first)
	first, _, _ = strings.Cut(succeed(t, "tune", "--strategy", "direct", path), "\n")
	require.True(t, strings.HasPrefix(first, "direct, the baseline, needs "), first)
}
