package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/show/report"
)

func TestTraceInfoListsTheParts(t *testing.T) {
	path := write(t, "two.json", twoGPUs)
	require.Equal(t, `two (snapshot): 2 parts
┌────────┬────────┐
│ part   │ events │
├────────┼────────┤
│ cuda:0 │      1 │
│ cuda:1 │      7 │
└────────┴────────┘
choose one with --part, for example
  vramyard trace info --part cuda:0 `+report.ShellWord(path)+"\n\n", succeed(t, "trace", "info", path))
	require.Contains(t, succeed(t, "trace", "info", "--part", "cuda:0", path), "lower bound")

	_, _, stderr := command(t, "compare", path)
	require.Equal(t, "vramyard: "+path+
		`: holds several parts, name one of them: "cuda:0" (1 events), "cuda:1" (7 events): take one with --part cuda:0`+
		"\n", stderr)

	var all []map[string]any
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "trace", "info", "--json", "-", path, write(t, "a.trace", small))),
		&all))
	require.Len(t, all, 2)
	require.Equal(t, map[string]any{"name": "two", "format": "snapshot", "parts": []any{
		map[string]any{"part": "cuda:0", "events": 1.0}, map[string]any{"part": "cuda:1", "events": 7.0},
	}}, all[0])
	require.Equal(t, 6.0, all[1]["events"])
}

func TestTraceInfoGoesOnAfterABadFile(t *testing.T) {
	good, other := write(t, "good.trace", small), write(t, "other.trace", small)
	bad, missing := write(t, "bad.trace", "a 1 100\na 2 -5\n"), filepath.Join(t.TempDir(), "missing")
	status, stdout, stderr := command(t, "trace", "info", good, bad, missing, other)
	require.Equal(t, exitFailed, status)
	require.Contains(t, stdout, "good (text), sha256 ")
	require.Contains(t, stdout, "other (text), sha256 ")
	require.Regexp(t,
		`^vramyard: \S+bad.trace:2: .*\nvramyard: \S+missing: no such file or directory\nvramyard: 2 of 4 files cannot be read\n$`, stderr)

	status, stdout, _ = command(t, "trace", "info", "--json", "-", bad, good)
	require.Equal(t, exitFailed, status)
	var all []map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &all))
	require.Len(t, all, 1)

	large := write(t, "large.trace", strings.Repeat("a 1 1\nf 1\n", 10_000))
	_, _, stderr = command(t, "trace", "info", "--memory", "1MiB", good, large)
	require.Contains(t, stderr, "takes more than 1MiB of memory: --memory 2MiB allows twice as much\n",
		"the advice is that for one file")

	status, stdout, _ = command(t, "trace", "info", bad)
	require.Equal(t, exitTrouble, status)
	require.Empty(t, stdout)
}

func TestTraceInfoOfOneStateHasNoEventOfThePeak(t *testing.T) {
	text := succeed(t, "trace", "info", "../harness/trace/torch/testdata/vectors/state_only.pickle.xz")
	require.Regexp(t, `in use +│ 398 blocks, 2.79 GiB, when the file was written; it has no history `, text)
	require.NotContains(t, text, "at event")
	require.NotContains(t, text, "lower bound")
	require.NotContains(t, text, "lifetimes")
}

// TestCommandsAgreeOnTheHistory has traces of which some request memory and some only begin with
// live blocks.
func TestCommandsAgreeOnTheHistory(t *testing.T) {
	for text, history := range map[string]bool{
		"a 1 4096\nf 1\n": true, "live 1 4096\na 2 512\n": true, "live 1 4096\nrefused 512\n": true, "refused 512\n": true,
		"live 1 4096\n": false, "live 1 4096\nlive 2 512\nf 1\n": false,
	} {
		path := write(t, "t.trace", text)
		get := func(args ...string) (r struct {
			History  bool
			Lacks    string
			Runs     []struct{ Lacks string }
			Recorded struct {
				None bool `json:"no_history"`
			}
		}) {
			out := strings.Trim(strings.TrimSpace(succeed(t, append(args, "--json", "-", path)...)), "[]")
			require.NoError(t, json.Unmarshal([]byte(out), &r))
			return r
		}
		assert.Equal(t, history, get("trace", "info").History, text)
		assert.Equal(t, history, get("top").History, text)
		assert.Equal(t, history, !get("whatif").Recorded.None, text)
		assert.Equal(t, history, get("compare", "--strategies", "bfc").Runs[0].Lacks == "", text)
		assert.Equal(t, history, get("replay", "--strategy", "bfc").Lacks == "", text)
	}
}

// TestTraceInfoCutsLongNames has a tag, a mark and a key of the header of 100 KB each.
func TestTraceInfoCutsLongNames(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	text := succeed(t, "trace", "info", write(t, "t.trace", "# "+long+"=1\nmark step"+long+"\na 1 1 tag="+long+
		"\nmark step"+long+"\na 2 1\n"))
	require.Less(t, len(text), 20_000)
	require.Contains(t, text, " tag "+strings.Repeat("x", 99)+"… ")
	require.Contains(t, text, " # "+strings.Repeat("x", 99)+"… ")
}
