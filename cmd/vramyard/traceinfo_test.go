package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/report"
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
name one with --part, as in
  vramyard trace info --part cuda:0 `+report.ShellWord(path)+"\n\n", succeed(t, "trace", "info", path))
	require.Contains(t, succeed(t, "trace", "info", "--part", "cuda:0", path), "lower bound")

	_, _, stderr := command(t, "compare", path)
	require.Equal(t, "vramyard: "+path+`: holds several parts, name one of them: "cuda:0" (1 events), "cuda:1" (7 events): take one with --part cuda:0`+"\n", stderr)

	var all []map[string]any
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "trace", "info", "--json", "-", path, write(t, "a.trace", small))), &all))
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
	require.Regexp(t, `^vramyard: \S+bad.trace:2: .*\nvramyard: \S+missing: no such file or directory\nvramyard: 2 of 4 files cannot be read\n$`, stderr)

	status, stdout, _ = command(t, "trace", "info", "--json", "-", bad, good)
	require.Equal(t, exitFailed, status)
	var all []map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &all))
	require.Len(t, all, 1)

	large := write(t, "large.trace", strings.Repeat("a 1 1\nf 1\n", 10_000))
	_, _, stderr = command(t, "trace", "info", "--memory", "1MiB", good, large)
	require.Contains(t, stderr, "takes more than 1MiB of memory: --memory 2MiB allows twice as much\n", "the advice is that for one file")

	status, stdout, _ = command(t, "trace", "info", bad)
	require.Equal(t, exitTrouble, status)
	require.Empty(t, stdout)
}
