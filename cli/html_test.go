package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/study/whatif"
)

// TestPagesOfEveryCommand writes a page with each command that has one and reads it as a browser
// does.
func TestPagesOfEveryCommand(t *testing.T) {
	trace := write(t, "t.trace", "a 1 3MiB tag=\"</script><b>\"\na 2 5MiB\nf 1\na 3 60MiB\nf 2\n")
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"replay":  {[]string{"replay", "--strategy", "bfc", "--device", "sim:32MiB", trace}, "peak requested"},
		"compare": {[]string{"compare", "--capacity", "32MiB", "--strategies", "bfc,caching", trace}, "lower bound"},
		"whatif":  {[]string{"whatif", "--device", "sim:32MiB", trace}, "Answer"},
		"fleet":   {[]string{"fleet", "--device", "sim:32MiB", trace, "../examples/fleet/rank_0.trace"}, "decides the card"},
		"bench": {[]string{"bench", "--strategies", "bfc", "--workloads", "w1", "--live", "100", "--pairs", "1000",
			"--rounds", "1"}, "ns/pair"},
		"check": {[]string{"check", "--strategies", "bfc", "--tests", "1", "--ops", "10"}, "verdict"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "r.html")
			status, _, stderr := command(t, append(c.args, "--html", file)...)
			require.Equal(t, exitDone, status, stderr)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			scripts, shown := shownOn(t, string(text))
			require.Equal(t, 4, scripts)
			require.Equal(t, name != "bench" && name != "check" && name != "fleet", strings.Contains(string(text), `"grouped_by":"size"`),
				"who holds memory")
			require.Contains(t, shown, c.says)
			require.Contains(t, shown, "vramyard "+name)
			require.NotContains(t, shown, filepath.Dir(file), "a page is for others, who have other folders")

			status, stdout, stderr := command(t, append(c.args, "--html", "-")...)
			require.Equal(t, exitDone, status, stderr)
			require.True(t, strings.HasPrefix(stdout, "<!doctype html>"))
			require.True(t, strings.HasSuffix(stdout, "</html>\n"))
		})
	}
}

// shownOn reads a page as a browser does. It returns the number of scripts and the text outside of
// them.
func shownOn(t *testing.T, page string) (scripts int, shown string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	for n := range root.Descendants() {
		switch {
		case n.Type == html.ElementNode && n.Data == "script":
			scripts++
		case n.Type == html.TextNode && n.Parent.Data != "script":
			shown += n.Data
		}
	}
	return scripts, shown
}

// TestPagesSayThatTheFileHasOnlyAPart compares the sentence on pages with that of the verdict on
// terminals.
func TestPagesSayThatTheFileHasOnlyAPart(t *testing.T) {
	for _, file := range []string{"../harness/trace/torch/testdata/vectors/state_only.pickle.xz", wrappedSnapshot(t)} {
		for _, command := range []string{"compare --strategies caching", "replay --strategy caching"} {
			args := append(strings.Fields(command), "--device", "sim:1TiB", file)
			verdict, _, _ := strings.Cut(succeed(t, args...), "\n")
			sentence := verdict[:strings.Index(verdict, ". ")+1]
			require.True(t, strings.HasPrefix(sentence, "Only a part of the run is in "), verdict)
			_, shown := shownOn(t, succeed(t, append(args, "--html", "-")...))
			require.Contains(t, shown, sentence, command)
		}
	}
	_, shown := shownOn(t, succeed(t, "compare", "--strategies", "caching", "--html", "-", write(t, "t.trace", small)))
	require.NotContains(t, shown, "Only a part")
}

// TestThePageOfWhatif draws what is recorded, the answer, and the best allocator that is no
// setting.
func TestThePageOfWhatif(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.html")
	succeed(t, "whatif", "../examples/oom/chat.pickle.gz", "--html", file)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Less(t, len(raw), 5_000_000)
	var data struct {
		Whatif whatif.Result
		Traces []struct {
			Runs []struct {
				Strategy     string
				Color        int
				FailureCount int `json:"failure_count"`
				Device       struct {
					CapacityBytes device.Size `json:"capacity_bytes"`
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(pageData(t, string(raw))), &data))
	require.Len(t, data.Traces, 1)
	runs := data.Traces[0].Runs
	require.Len(t, runs, 3)
	require.Equal(t, "caching", runs[0].Strategy)
	require.Equal(t, data.Whatif.Answer.Label, runs[1].Strategy)
	other := slices.IndexFunc(data.Whatif.Runs, func(p whatif.Point) bool { return p.Export == nil && !p.Baseline })
	require.Equal(t, data.Whatif.Runs[other].Label, runs[2].Strategy)
	require.Positive(t, runs[0].FailureCount)
	colors := map[int]bool{}
	for i, r := range runs {
		require.Equal(t, data.Whatif.Card, r.Device.CapacityBytes)
		require.Equal(t, i > 0, r.FailureCount == 0)
		require.False(t, colors[r.Color], "colours differ")
		colors[r.Color] = true
	}
	require.Equal(t, runs[0].Color%paletteSize, runs[1].Color%paletteSize, "one strategy has one hue")
}

// TestThePageOfBench has every call that was timed.
func TestThePageOfBench(t *testing.T) {
	text := succeed(t, "bench", "--strategies", "bfc,tlsf", "--workloads", "w1", "--live", "100", "--pairs", "1000",
		"--rounds", "1", "--html", "-")
	var data struct {
		Bench bench.Report
		Calls []struct{ Alloc, Free map[string]struct{ N int } }
	}
	require.NoError(t, json.Unmarshal([]byte(pageData(t, text)), &data))
	require.Len(t, data.Calls, len(data.Bench.Runs))
	for _, c := range data.Calls {
		for _, h := range []map[string]struct{ N int }{c.Alloc, c.Free} {
			require.Positive(t, h["count"].N)
			require.Equal(t, h["count"].N, h["upto_ns"].N)
		}
	}
}

// TestPageRepeatsTheVerdict reads the command that a page of view names.
func TestPageRepeatsTheVerdict(t *testing.T) {
	c := newView(everything)
	require.NoError(t, c.ParseFlags([]string{"--port", "8080", "--cache", "none", "--for", "1m", "--no-browser",
		"--strategies", "bfc"}))
	require.Equal(t, "view --strategies bfc x.trace", commandLine(c, []string{"a/x.trace"}))
}

// pageData returns the JSON that the script of a page reads.
func pageData(t *testing.T, page string) string {
	t.Helper()
	_, text, found := strings.Cut(page, `id="vy-report">`)
	require.True(t, found)
	text, _, found = strings.Cut(text, "</script>")
	require.True(t, found)
	return text
}

func TestImpossiblePagesAreRefused(t *testing.T) {
	trace := write(t, "t.trace", "a 1 3MiB\n")
	for want, args := range map[string][]string{
		"--html: " + trace + " is a file to read":  {"compare", "--html", trace, trace},
		"--html: - is where --json is written":     {"compare", "--json", "-", "--html", "-", trace},
		"--html: there is no page of planted bugs": {"check", "--planted", "--html", "x.html"},
		"is a directory": {"replay", "--strategy", "bfc", "--html", t.TempDir(), trace},
	} {
		status, _, stderr := command(t, args...)
		require.Equal(t, exitTrouble, status)
		require.Contains(t, stderr, want)
	}
}
