package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/strategies/caching"
)

const fleetFolder = "../examples/fleet/"

// fleetJSON runs the command and reads its result.
func fleetJSON(t *testing.T, args ...string) *whatif.Fleet {
	t.Helper()
	var f whatif.Fleet
	require.NoError(t, json.Unmarshal([]byte(succeed(t, append([]string{"fleet", "--json", "-"}, args...)...)), &f))
	return &f
}

// TestFleetOfOneFileAnswersAsWhatif asks both commands about every kind of answer.
func TestFleetOfOneFileAnswersAsWhatif(t *testing.T) {
	for _, file := range []string{
		"../examples/oom/chat.pickle.gz", "../examples/oom/layouts.pickle.gz", "../examples/oom/leftovers.pickle.gz",
		"../examples/oom/batches.pickle.gz", fleetFolder + "rank_2.trace",
		"../harness/trace/torch/testdata/vectors/private_pool.pickle.xz",
		"../harness/trace/torch/testdata/vectors/state_only.pickle.xz",
	} {
		f := fleetJSON(t, file)
		require.Equal(t, whatif.FleetSchema, f.Schema)
		require.Equal(t, whatifJSON(t, file).Answer, f.All.Answer, file)
		require.Empty(t, f.Text)
	}
}

// nsPerOp matches times of a replay, in a table.
var nsPerOp = regexp.MustCompile(`│ +\d+ │`)

// TestFleet asks about the four ranks of the example, in any order.
func TestFleet(t *testing.T) {
	files, err := filepath.Glob(fleetFolder + "*.trace")
	require.NoError(t, err)
	require.Len(t, files, 4)
	args := append([]string{"fleet", "--device", "sim:10GiB"}, files...)
	text := nsPerOp.ReplaceAllString(succeed(t, args...), "")
	head, _, _ := strings.Cut(text, "\nHow sure:")
	require.Contains(t, content(t, "../docs/whatif.md"), head)
	slices.Reverse(args[3:])
	require.Equal(t, text, nsPerOp.ReplaceAllString(succeed(t, args...), ""))

	permitted := succeed(t, append(slices.Clone(args), "--permit", "rdma")...)
	require.Contains(t, permitted, "PYTORCH_ALLOC_CONF=max_split_size_mb:64 completes")
	f := fleetJSON(t, args[1:]...)
	require.Equal(t, "rank_2", f.Decides)
	require.Equal(t, whatif.UnevenLive, f.Uneven)
	require.Equal(t, "with the recorded settings", f.Ranks[2].Setting)
	require.False(t, *f.Ranks[2].Carried)
	require.Equal(t, whatif.Setting, f.All.Answer.Verdict)
	for _, r := range f.Ranks {
		require.NotEmpty(t, r.Result.Runs)
		require.LessOrEqual(t, r.Need, f.Ranks[2].Need)
	}

	dir := t.TempDir()
	table, page := filepath.Join(dir, "f.csv"), filepath.Join(dir, "f.html")
	succeed(t, append(args, "--csv", table, "--html", page)...)
	rows := readCSV(t, table)
	require.Equal(t, "rank", rows[0][0])
	require.Equal(t, "rank_0", rows[1][0])
	require.Equal(t, "rank_3", rows[len(rows)-1][0])
	html := content(t, page)
	require.Contains(t, html, "Need of each rank")
	require.Contains(t, html, "rank_0.trace rank_1.trace rank_2.trace rank_3.trace")
}

// TestFleetNamesRanks has files with one name in two folders, and a file with two devices.
func TestFleetNamesRanks(t *testing.T) {
	a, b := write(t, "run.trace", fragmenting("")), write(t, "run.trace", fragmenting(""))
	f := fleetJSON(t, a, b)
	require.ElementsMatch(t, []string{a, b}, []string{f.Ranks[0].Name, f.Ranks[1].Name})
	require.Contains(t, f.Text[0], "No rank stands out: ")
	f = fleetJSON(t, write(t, "two.json", twoGPUs))
	require.Len(t, f.Ranks, 2)
	require.True(t, strings.HasSuffix(f.Ranks[0].Name, " cuda:0"), f.Ranks[0].Name)
	require.True(t, strings.HasSuffix(f.Ranks[1].Name, " cuda:1"), f.Ranks[1].Name)
}

// TestFleetWithoutAnAnswer leaves a rank out.
func TestFleetWithoutAnAnswer(t *testing.T) {
	const lost = "../harness/trace/torch/testdata/vectors/state_only.pickle.xz"
	text := succeed(t, "fleet", lost, fleetFolder+"rank_1.trace")
	require.True(t, strings.HasPrefix(text, "1 of 2 ranks cannot answer and are left out: state_only."), text)
	require.Contains(t, text, "  state_only cannot answer: ")
}

// TestFleetOfSeveralReleases has ranks whose releases have different rules, in files of any name.
func TestFleetOfSeveralReleases(t *testing.T) {
	rank := func(release string) string {
		return fragmenting("# vramyard-trace 1\n# framework=PyTorch\n# torch=" + release + "\n# config={\"conf\":\"\"}\n")
	}
	text := func(first, second string) string {
		dir := t.TempDir()
		one, two := filepath.Join(dir, "a.trace"), filepath.Join(dir, "b.trace")
		require.NoError(t, os.WriteFile(one, []byte(rank(first)), 0o600))
		require.NoError(t, os.WriteFile(two, []byte(rank(second)), 0o600))
		f := fleetJSON(t, two, one)
		require.Equal(t, "2.6", rulesIn(t, f.All, "expandable_segments:True"), f.All.Runs)
		require.Equal(t, "2.6", rulesIn(t, f.Ranks[0].Result, "expandable_segments:True"))
		return strings.Join(f.Text, "\n")
	}
	want := "The ranks are recorded by releases of PyTorch with different rules, those of 2.6 and 2.13, so all settings " +
		"but the recorded ones are replayed under the rules of 2.6."
	require.Contains(t, text("2.9.1", "2.13.0"), want)
	require.Contains(t, text("2.13.0", "2.9.1"), want)
	require.NotContains(t, text("2.9.1", "2.8.0"), "different rules")
}

// rulesIn returns the rules under which a string was replayed.
func rulesIn(t *testing.T, r *whatif.Result, conf string) string {
	t.Helper()
	for i := range r.Runs {
		var c caching.Config
		if json.Unmarshal(r.Runs[i].Config, &c) == nil && c.Conf == conf {
			return c.Rules
		}
	}
	t.Fatal(conf)
	return ""
}

func TestFleetRefuses(t *testing.T) {
	good, bad := fleetFolder+"rank_0.trace", write(t, "bad.trace", "a 1 12MiB\nx\n")
	out := filepath.Join(t.TempDir(), "f.json")
	for want, args := range map[string][]string{
		"fleet: 0 arguments: want": {},
		bad + ":2: ":               {good, bad, fleetFolder + "rank_1.trace"},
		"no/such/file: ":           {good, "no/such/file"},
		good + ": named twice: want a file for each": {good, good},
		good + ": named twice: want a file for":      {"../cli/" + good, "../cli/" + fleetFolder + "rank_1.trace", good},
		"standard input can be read only once":       {"-", "-"},
		"--workers: want 0 or more":                  {"--workers", "-1", good},
		"--json: " + good + " is a file to read":     {"--json", good, good},
		"the trace has no allocations":               {good, write(t, "e.trace", "mark x\n")},
		"--device: device \"cuda\"":                  {"--device", "cuda", good},
	} {
		if !slices.Contains(args, "--json") {
			args = append(args, "--json", out)
		}
		status, stdout, stderr := command(t, append([]string{"fleet"}, args...)...)
		require.Equal(t, exitTrouble, status, want)
		require.Contains(t, stderr, want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		require.Empty(t, stdout)
		require.NoFileExists(t, out)
	}
	_, err := os.Stat(out)
	require.ErrorIs(t, err, os.ErrNotExist)
}
