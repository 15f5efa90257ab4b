package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/offline"
	"github.com/vramyard/vramyard/harness/study/tune"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/units"
)

// died are the snapshots in examples/oom and their lower bounds: the most bytes that are live at
// once, the refused request included.
var died = map[string]device.Size{
	"chat": 15065182208, "layouts": 26277314560, "leftovers": 10223616000, "batches": 17448304640,
}

// outOfMemory returns the path of such a snapshot.
func outOfMemory(name string) string { return "../examples/oom/" + name + ".pickle.gz" }

// fromJSON runs a command and reads its result.
func fromJSON[T any](t *testing.T, args ...string) (r T) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(succeed(t, args...)), &r))
	return r
}

// bound is the lower bound in a result.
type bound struct {
	LowerBound device.Size `json:"lower_bound_bytes"`
}

// TestEveryCommandHasTheSameLowerBound takes the definition of docs/metrics.md to every command
// that shows one.
func TestEveryCommandHasTheSameLowerBound(t *testing.T) {
	for name, want := range died {
		t.Run(name, func(t *testing.T) {
			file := outOfMemory(name)
			require.Equal(t, want, fromJSON[[]trace.Info](t, "trace", "info", "--json", "-", file)[0].Peak, "trace info")
			require.Regexp(t, `lower bound +│ `+units.Bytes(want)+` at event `, succeed(t, "trace", "info", file))
			require.Equal(t, want, fromJSON[compare.Report](t, "compare", "--strategies", "caching", "--json", "-",
				file).Runs[0].LowerBound, "compare")
			require.Equal(t, want, fromJSON[bound](t, "replay", "--strategy", "caching", "--json", "-", file).LowerBound,
				"replay")
			require.Equal(t, want, whatifJSON(t, "--grid", write(t, "g.yaml", "- strategy: caching\n"), file).LowerBound,
				"whatif")
			require.Equal(t, want, fromJSON[offline.Report](t, "offline", "--steps", "1000", "--json", "-",
				file).Traces[0].LowerBound, "offline")
			r := fromJSON[tune.Result](t, "tune", "--strategy", "bestfit:strict", "--settings", "quantum", "--points", "1",
				"--json", "-", file)
			require.Equal(t, want, r.Preset.Runs[0].LowerBound, "tune")
		})
	}
}

func TestTraceInfoNamesTheLastRefusedRequest(t *testing.T) {
	out := strings.Join(strings.Fields(strings.ReplaceAll(succeed(t, "trace", "info", outOfMemory("chat")), "│", "")),
		" ")
	require.Contains(t, out, "1 request: 99.86 MiB at event 5128; it ended the program: no allocation follows. The "+
		"lower bound and every replay include it")
	file := write(t, "t.trace", "a 1 1MiB\nrefused 8MiB\nrefused 2MiB\na 2 1MiB\n")
	out = strings.Join(strings.Fields(strings.ReplaceAll(succeed(t, "trace", "info", file), "│", "")), " ")
	require.Contains(t, out, "2 requests, up to 8.00 MiB; the last is 2.00 MiB at event 2; the program went on. The "+
		"lower bound and every replay include them")
	require.Contains(t, out, "lower bound 9.00 MiB at event 1")
}

// TestFailedRunsStandLast measures on a card on which one of three strategies completes.
func TestFailedRunsStandLast(t *testing.T) {
	out := succeed(t, "compare", "--strategies", "caching,bfc,caching:expandable", "--capacity", "16GiB",
		outOfMemory("chat"))
	require.Regexp(t, `(?s)caching:expandable │    14.48 GiB │ .*`+
		`\n│ caching +│    16\.10 GiB │   1\.147 │[^\n]* +— │ +— │ +— │ +— │ +— │ +— │ FAILED: 1 OOM on 16\.00 GiB +│`+
		`\n│ bfc +│    16\.80 GiB │ .*FAILED: \d+ OOMs on 16\.00 GiB +│`, out)

	out = succeed(t, "whatif", "--grid",
		write(t, "g.yaml", "- strategy: caching\n  conf: [\"expandable_segments:True\"]\n"), outOfMemory("chat"))
	require.Regexp(t,
		`│ caching +│    16\.10 GiB │ [^\n]*fails │ +— │ +— │ +— │ +— │ +— │ FAILED: 1 OOM on 16\.00 GiB, as recorded `, out)

	file := write(t, "t.trace", "a 1 1MiB\na 2 3MiB align=4096\nf 2\nf 1\n")
	out = succeed(t, "tune", "--strategy", "slab:blaze", "--points", "1", file)
	require.Regexp(t, `slab:blaze +│ +— │ +— │`, out)
	require.Contains(t, out, "│ FAILED: refuses 1 request ")

	out = succeed(t, "offline", "--capacity", "9GiB", "--steps", "1000", outOfMemory("leftovers"))
	require.Contains(t, out, "│ FAILED: above 9.00 GiB, nothing fits in 9663676416 bytes │")
}

func TestReplayFailsOnOOM(t *testing.T) {
	file := write(t, "t.trace", "a 1 1MiB\na 2 2MiB\na 3 1MiB\n")
	args := []string{"replay", "--strategy", "bestfit:growth", "--device", "sim:2MiB", file}
	out := succeed(t, args...)
	require.True(t, strings.HasPrefix(out, "FAILED: 1 OOM, the first at event 1 of 3\n"), out)
	status, stdout, stderr := command(t, append(args, "--fail-on-oom")...)
	require.Equal(t, exitFailed, status)
	require.Equal(t, "vramyard: bestfit:growth on t: 1 OOM, the first at event 1 of 3\n", stderr)
	require.Contains(t, stdout, "the only failure: event 1, ")
	require.NotContains(t, succeed(t, "replay", "--strategy", "bestfit", "--device", "sim:8MiB", "--fail-on-oom", file),
		"FAILED")
}

// diesWith returns the snapshot of a program that dies of its last request on a device of 64 MiB,
// under a setting.
func diesWith(t *testing.T, conf string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "died.pickle")
	trace := write(t, "t.trace", "a 1 30MiB\nf 1\na 2 21MiB\na 3 12MiB\na 4 25MiB\n")
	succeed(t, "replay", "--strategy", "caching", "--config", `{"conf":"`+conf+`"}`, "--device", "sim:64MiB",
		"--stop-at-oom", "--snapshot", file, trace)
	return file
}

func TestCompareHasTheRecordedRun(t *testing.T) {
	out := succeed(t, "compare", "--strategies", "caching,bfc", outOfMemory("chat"))
	require.Contains(t, out, "\nMeasured on 16.00 GiB, the card of the recording.\n\"caching\" has the recorded "+
		"settings: {")
	require.NotContains(t, out, "caching, as recorded")

	file := diesWith(t, "max_split_size_mb:20")
	out = succeed(t, "compare", "--strategies", "caching,bfc", file)
	require.Regexp(t, `│ caching, as recorded │ .* │ FAILED: 1 OOM on 64\.00 MiB `, out)
	require.Contains(t, out, "\nMeasured on 64.00 MiB, the card of the recording; on its minimum capacity: bfc.\n"+
		"\"caching, as recorded\" has the recorded settings: {\"conf\":\"max_split_size_mb:20\"")
	require.NotContains(t, succeed(t, "compare", "--strategies", "bfc", file), "recorded settings")
	out = succeed(t, "compare", "--strategies", "caching", "--capacity", "1GiB", file)
	require.Contains(t, out, "\nMeasured on 1.00 GiB; the card of the recording has 64.00 MiB.\n")

	r := fromJSON[compare.Report](t, "compare", "--strategies", "caching,bfc", "--json", "-", file, outOfMemory("layouts"))
	require.Len(t, r.Runs, 3+2)
	require.Equal(t, "caching, as recorded", r.Runs[2].Strategy)
	require.True(t, r.Runs[2].AsRecorded)
	require.True(t, r.Runs[3].AsRecorded)
	require.Equal(t, 32*device.GiB, r.Runs[3].Device)
	page := filepath.Join(t.TempDir(), "page.html")
	succeed(t, "compare", "--strategies", "caching", "--html", page, file)
}

func TestReplayTakesTheRecordedRun(t *testing.T) {
	file := diesWith(t, "max_split_size_mb:20")
	out := succeed(t, "replay", "--strategy", "caching", file)
	require.True(t, strings.HasPrefix(out, "FAILED: 1 OOM, the first at event "), out)
	require.Contains(t, out, "\nsettings as recorded: {\"conf\":\"max_split_size_mb:20\"")
	require.Contains(t, out, "\ndevice: 64.00 MiB, the card of the recording\n")
	checked := succeed(t, "replay", "--check", "--strategy", "caching", file)
	verdict, _, _ := strings.Cut(out, "\n")
	require.True(t, strings.HasPrefix(checked, verdict+"\n"), checked)
	require.Contains(t, checked, "\nsettings as recorded: {\"conf\":\"max_split_size_mb:20\"")
	require.Contains(t, checked, "\ndevice: 64.00 MiB, the card of the recording\n")
	out = succeed(t, "replay", "--strategy", "caching", "--config", "{}", "--device", "sim", file)
	require.NotContains(t, out, "record")
	text := filepath.Join(t.TempDir(), "died.trace")
	succeed(t, "trace", "convert", file, text)
	require.Contains(t, succeed(t, "replay", "--strategy", "caching", text),
		"\nsettings as recorded: {\"conf\":\"max_split_size_mb:20\"")
}

// TestCommandsNumberEventsAlike has the requests of a recording with 29 refused requests under one
// number in every command.
func TestCommandsNumberEventsAlike(t *testing.T) {
	const file = "../harness/trace/torch/testdata/vectors/segment_free.pickle.xz"
	text := filepath.Join(t.TempDir(), "out.trace")
	succeed(t, "trace", "convert", file, text)
	raw, err := os.ReadFile(text)
	require.NoError(t, err)
	var refused []int
	event := 0
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "refused ") {
			refused = append(refused, event)
		}
		event++
	}
	require.Len(t, refused, 29)
	first, last := strconv.Itoa(refused[0]), strconv.Itoa(refused[28])

	require.Regexp(t, `29 requests, .* at event `+last+`;`, succeed(t, "trace", "info", file))
	out := succeed(t, "whatif", file)
	require.Contains(t, out, " refused at event "+last+"; ")
	require.Contains(t, out, "\nThe last of 29 failures, at event "+last+", in the recording:\n")
	require.Contains(t, out, "that request (event "+last+") would have been")
	out = succeed(t, "replay", "--strategy", "caching", "--explain", "-", file)
	require.Contains(t, out, "caching: event "+first+", allocation 176, the first of 29 failures\n")
	out = succeed(t, "replay", "--strategy", "caching", file)
	require.Contains(t, out, "FAILED: 29 OOMs, the first at event "+first+" of ")
	require.Contains(t, out, "\nfirst of 29 failures: event "+first+", ")

	page := filepath.Join(t.TempDir(), "page.html")
	succeed(t, "replay", "--strategy", "caching", "--html", page, file)
	var drawn struct {
		Traces []struct {
			Events int
			Runs   []struct {
				Failures []struct {
					Event  int
					Report struct {
						Event   int
						Refused int `json:"refused_count"`
					}
				}
			}
		}
	}
	raw, err = os.ReadFile(page)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(pageData(t, string(raw))), &drawn))
	require.Equal(t, event, drawn.Traces[0].Events)
	failures := drawn.Traces[0].Runs[0].Failures
	require.Equal(t, refused[0], failures[0].Event)
	require.Equal(t, refused[0], failures[0].Report.Event)
	require.Equal(t, 29, failures[0].Report.Refused)
	require.Equal(t, refused[28], failures[28].Event)
}

// TestRefusedRequestsAreJudged checks every invariant over requests that were refused, one that is
// granted and one that is not.
func TestRefusedRequestsAreJudged(t *testing.T) {
	file := write(t, "t.trace", "a 1 1MiB\nrefused 2MiB\nf 1\na 2 1MiB\nrefused 8MiB\na 3 1MiB\nf 2\nrefused 512KiB\n")
	for _, strategy := range []string{"bfc", "caching", "bestfit:growth", "slab"} {
		out := succeed(t, "replay", "--check", "--strategy", strategy, "--device", "sim:64MiB", file)
		require.Contains(t, out, "every invariant held after each of 8 events\n", strategy)
		out = succeed(t, "replay", "--check", "--strategy", strategy, "--device", "sim:6MiB", file)
		require.Contains(t, out, "every invariant held after each of 8 events\n", strategy)
	}
}
