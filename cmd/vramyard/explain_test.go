package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/postmortem"
)

// TestPageShowsAnExplanation holds the example in docs/postmortem.md to what the command writes.
func TestPageShowsAnExplanation(t *testing.T) {
	page, err := os.ReadFile("../../docs/postmortem.md")
	require.NoError(t, err)
	_, example, found := strings.Cut(string(page), "\n```\n$ vramyard ")
	require.True(t, found)
	example, _, _ = strings.Cut(example, "\n```\n")
	line, want, _ := strings.Cut(example, "\n")
	args := strings.Fields(strings.ReplaceAll(line, "'", ""))
	require.Equal(t, want+"\n", succeed(t, args...))
}

func TestReplayExplainsTheFirstOOM(t *testing.T) {
	path := write(t, "t.trace", small)
	out := succeed(t, "replay", "--strategy", "bfc", "--config", `{"limit":8192}`, "--explain", "-", path)
	require.Contains(t, out, "bfc: event 4, allocation 4\nno room for 4.88 KiB on stream 0: ")
	require.Equal(t, "bfc: no request ran out of memory\n", succeed(t, "replay", "--strategy", "bfc", "--explain", "-", path))

	file := filepath.Join(t.TempDir(), "why.json")
	out = succeed(t, "replay", "--strategy", "bfc", "--config", `{"limit":8192}`, "--explain", file, path)
	require.Contains(t, out, "reservation waste")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var v postmortem.Verdict
	require.NoError(t, json.Unmarshal(raw, &v))
	require.Equal(t, postmortem.Schema, v.Schema)
	require.Equal(t, 4, v.Event)
	require.NotEmpty(t, v.Report.Cause)

	status, _, stderr := command(t, "replay", "--strategy", "bfc", "--explain", path, path)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "--explain: "+path+" is a file to read")
	status, _, stderr = command(t, "replay", "--strategy", "bfc", "--explain", "-", "--json", "-", path)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "--json: - is where --explain is written")
}
