package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/diff"
)

// results writes two comparisons of which the second is worse in what it needs.
func results(t *testing.T) (a, b string) {
	t.Helper()
	head := `{"schema":"vramyard-compare/1","version":"1","device":{"capacity":0},"runs":[`
	run := func(strategy, capacity, peak, time string) string {
		return `{"trace":"llama","trace_sha256":"0123456789abcdef","strategy":"` + strategy +
			`","config":{"limit":` + capacity +
			`},"min_capacity_bytes":` + capacity + `,"peak_reserved_bytes":` + peak +
			`,"reservation_waste":0.25,"ns_per_op":` + time + `}`
	}
	a = write(t, "a.json", head+run("bfc", "17179869184", "18253611008", "50")+","+run("caching", "17179869184",
		"18253611008", "80")+","+run("tlsf", "1", "2", "3")+"]}")
	b = write(t, "b.json", strings.Replace(head, `"version":"1"`, `"provenance":{"version":"2"}`, 1)+
		run("bfc", "17179869184", "18253611008", "55.5")+","+run("caching", "null", "19327352832", "79")+","+
		run("slab", "1", "2", "3")+"]}")
	return a, b
}

func TestDiffShowsWhatDiffers(t *testing.T) {
	a, b := results(t)
	out := succeed(t, "diff", a, b)
	out = strings.ReplaceAll(strings.ReplaceAll(out, a, "a.json"), b, "b.json")
	require.Equal(t, `A a.json
B b.json
vramyard-compare/1, 2 runs compared
provenance.version: A "1", B "2"
only in A: tlsf on llama, sha256 0123456789ab
only in B: slab on llama, sha256 0123456789ab

bfc on llama, sha256 0123456789ab
┌───────────┬──────────┬──────────┬──────────┬──────────┬──────────┐
│ figure    │        A │        B │   change │ relative │          │
├───────────┼──────────┼──────────┼──────────┼──────────┼──────────┤
│ ns_per_op │ 50.00 ns │ 55.50 ns │ +5.50 ns │ +11.00 % │ measured │
└───────────┴──────────┴──────────┴──────────┴──────────┴──────────┘

caching on llama, sha256 0123456789ab; config changed: A {"limit":17179869184}, B {"limit":null}
┌─────────────────────┬───────────┬───────────┬───────────┬──────────┬──────────┐
│ figure              │         A │         B │    change │ relative │          │
├─────────────────────┼───────────┼───────────┼───────────┼──────────┼──────────┤
│ min_capacity_bytes  │ 16.00 GiB │         — │         — │        — │          │
│ peak_reserved_bytes │ 17.00 GiB │ 18.00 GiB │ +1.00 GiB │  +5.88 % │          │
│ ns_per_op           │  80.00 ns │  79.00 ns │  -1.00 ns │  -1.25 % │ measured │
└─────────────────────┴───────────┴───────────┴───────────┴──────────┴──────────┘
2 figures differ, and 2 measured times
`, out)
	require.Contains(t, succeed(t, "diff", a, a), "3 runs compared\nno figure differs\n")
	require.Contains(t, succeed(t, "diff", "--all", a, a), "same")
}

func TestDiffFailsOnFailIf(t *testing.T) {
	a, b := results(t)
	file := filepath.Join(t.TempDir(), "diff.json")
	status, out, errs := command(t, "diff", a, b, "--json", file,
		"--fail-if", "min_capacity_bytes > +2% @caching", "--fail-if", "peak_reserved_bytes>+2GiB@caching*", "--fail-if",
		"reservation_waste>0.2@bfc")
	require.Equal(t, exitFailed, status)
	require.Equal(t, "vramyard: "+b+" against "+a+": 2 of 3 conditions violated\n", errs)
	require.Contains(t, out, `
min_capacity_bytes>+2%@caching: VIOLATED, 1 of 1 run
  caching on llama: A 16.00 GiB, B —: A completes and B does not
peak_reserved_bytes>+2GiB@caching*: kept, 0 of 1 run
reservation_waste>0.2@bfc: VIOLATED, 1 of 1 run
  bfc on llama: A 0.25, B 0.25: beyond the limit
`)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var d struct {
		Schema   string
		Verdicts []struct {
			Condition  string
			Violations []struct{ Strategy, Why string }
		}
	}
	require.NoError(t, json.Unmarshal(raw, &d))
	require.Equal(t, diff.Schema, d.Schema)
	require.Equal(t, "min_capacity_bytes>+2%@caching", d.Verdicts[0].Condition)
	require.Equal(t, "caching", d.Verdicts[0].Violations[0].Strategy)
	out = succeed(t, "diff", a, b, "--json", "-", "--fail-if", "peak_reserved_bytes>+2GiB@caching")
	require.True(t, json.Valid([]byte(out)), out)
	_, out, _ = command(t, "diff", a, b, "--fail-if", "min_capacity_bytes>+2%")
	require.Contains(t, out, "tlsf on llama: A 1 B, B —: B has no such run")
	require.Contains(t, out, "2 of 3 runs, 1 without a figure in A to compare with")
}

// TestDiffReadsEveryResult has each command write its own result and compares it with itself.
func TestDiffReadsEveryResult(t *testing.T) {
	path := write(t, "t.trace", small)
	dir := t.TempDir()
	for name, args := range map[string][]string{
		"compare": {"compare", "--strategies", "bfc,caching", path},
		"replay":  {"replay", "--strategy", "caching", path},
		"tune":    {"tune", "--strategy", "bfc", "--settings", "mended", path},
		"offline": {"offline", path},
		"bench": {"bench", "--strategies", "tlsf", "--workloads", "w1", "--live", "100", "--pairs", "1000",
			"--rounds", "1"},
	} {
		file := filepath.Join(dir, name+".json.gz")
		succeed(t, append(args, "--json", file)...)
		require.Contains(t, succeed(t, "diff", file, file), "no figure differs\n", name)
	}
	// A placement that is higher is a figure like any other.
	taller := strings.ReplaceAll(small, "a 4 5000", "a 4 9000")
	low, high := filepath.Join(dir, "low.json"), filepath.Join(dir, "high.json")
	succeed(t, "offline", "--json", low, path)
	succeed(t, "offline", "--json", high, write(t, "t.trace", taller))
	_, out, _ := command(t, "diff", low, high, "--fail-if", "best.height_bytes>+2%")
	require.Contains(t, out, "1 of 1 run")
	// What a recording is compared with is written by replay.
	snapshot, file := filepath.Join(dir, "s.pickle"), filepath.Join(dir, "verify.json")
	succeed(t, "replay", "--strategy", "caching", "--snapshot", snapshot, path)
	succeed(t, "verify", "--json", file, snapshot)
	require.Contains(t, succeed(t, "diff", file, file, "--fail-if", "predicted_count<-0"),
		"predicted_count<-0: kept, 0 of 1 run\n")
}

func TestDiffRefuses(t *testing.T) {
	a, b := results(t)
	replayed := write(t, "r.json", `{"schema":"vramyard-replay/1","trace":"t","strategy":"s"}`)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{a}, `1 argument: want "vramyard diff A.json B.json [flags]"`},
		{[]string{"-", "-"}, "standard input can be read only once"},
		{[]string{a, a + ".gone"}, "no such file"},
		{[]string{a, write(t, "x.json", "{")}, "x.json: byte 1: JSON ends early"},
		{[]string{"-", a}, "stdin: byte 0: JSON ends early"},
		{[]string{a, write(t, "t.trace", small)}, `t.trace: not a result of this program but text that begins with "a 1 `},
		{[]string{a, replayed}, "want results of the same command"},
		{[]string{a, b, "--fail-if", "oom"}, `--fail-if: condition "oom": want a figure`},
		{[]string{a, b, "--fail-if", "oom>0"},
			`--fail-if: condition "oom>0": unknown figure "oom": want one of min_capacity_bytes, ns_per_op,`},
		{[]string{a, b, "--json", a}, "is a file to read"},
		{[]string{a, b, "--frobnicate"}, "unknown flag"},
	} {
		status, stdout, stderr := command(t, append([]string{"diff"}, c.args...)...)
		require.Equal(t, exitTrouble, status, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
	}
}

// TestResultsHaveTheDeviceAsUsed compares results on devices that are the same, named in different
// ways, and on another.
func TestResultsHaveTheDeviceAsUsed(t *testing.T) {
	path, dir, files := write(t, "t.trace", small), t.TempDir(), 0
	result := func(args ...string) string {
		files++
		file := filepath.Join(dir, strconv.Itoa(files)+".json")
		succeed(t, append(args, "--json", file, path)...)
		return file
	}
	const shape = `{"charge":2097152,"bandwidth":3350000000000}`
	for _, command := range [][]string{
		{"compare", "--strategies", "bfc"}, {"replay", "--strategy", "bfc"}, {"whatif"},
		{"tune", "--strategy", "slab", "--points", "2", "--settings", "quantum"},
	} {
		with := func(args ...string) string { return result(append(slices.Clone(command), args...)...) }
		plain, named := with(), with("--device", "sim")
		assert.NotContains(t, succeed(t, "diff", plain, named), "device", command)
		assert.Contains(t, succeed(t, "diff", plain, with("--device", "sim:h100-80g")), "device.bandwidth", command)
	}
	compare := []string{"compare", "--strategies", "bfc"}
	assert.NotContains(t, succeed(t, "diff", result(append(compare, "--capacity", "24GiB")...),
		result(append(compare, "--device", "sim:24GiB")...)), "device")
	assert.NotContains(t, succeed(t, "diff", result(append(compare, "--sim", shape, "--capacity", "81090MiB")...),
		result(append(compare, "--device", "sim:h100-80g")...)), "device")
	for _, args := range [][]string{compare, {"replay", "--strategy", "bfc"}, {"whatif"}} {
		var r struct {
			Device struct {
				Capacity, Granularity uint64
				Card                  string
			}
		}
		require.NoError(t, json.Unmarshal(
			[]byte(succeed(t, append(args, "--device", "sim:h100-80g", "--json", "-", path)...)), &r))
		assert.Equal(t, "h100-80g", r.Device.Card, args)
		assert.EqualValues(t, 81090<<20, r.Device.Capacity, args)
		assert.EqualValues(t, 2<<20, r.Device.Granularity, args)
	}
}

func TestDiffNamesTheKindOfAFileThatIsNoResult(t *testing.T) {
	path, missing := write(t, "t.trace", small), filepath.Join(t.TempDir(), "missing.json")
	status, _, stderr := command(t, "diff", path, path)
	require.Equal(t, exitTrouble, status)
	require.True(t, strings.HasPrefix(stderr, "vramyard: "+path+": not a result of this program but text "+
		"that begins with "+
		"\"a 1 1000\": "+
		"want --json output of schema vramyard-bench/1, vramyard-compare/1, "), stderr)
	result, table := filepath.Join(t.TempDir(), "a.json"), filepath.Join(t.TempDir(), "a.csv")
	succeed(t, "compare", "--strategies", "bfc", "--json", result, "--csv", table, path)
	_, _, stderr = command(t, "diff", result, table)
	require.Contains(t, stderr, table+": not a result of this program but CSV that begins with \"trace,trace_sha256,")
	for _, args := range [][]string{{"diff", missing, missing}, {"plot", "--out", filepath.Join(t.TempDir(), "x.svg"),
		missing}, {"verify", missing}} {
		_, _, stderr := command(t, args...)
		require.Equal(t, "vramyard: "+missing+": no such file or directory\n", stderr)
	}
}
