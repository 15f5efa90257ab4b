package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/bench"
)

// quickly is a command line that takes no time to speak of.
func quickly(more ...string) []string {
	return append([]string{"--strategies", "tlsf", "--live", "20", "--pairs", "100", "--rounds", "1"}, more...)
}

func TestPeersFollowTheStrategies(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	var b strings.Builder
	require.NoError(t, run(quickly("--json", file), &b))
	require.Contains(t, b.String(), "memutils:mintime *")
	require.Contains(t, b.String(), "* frees by its own handle")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var r bench.Report
	require.NoError(t, json.Unmarshal(text, &r))
	require.Len(t, r.Runs, 4)
	require.False(t, r.Runs[0].Named)
	require.True(t, r.Runs[1].Named)

	b.Reset()
	require.NoError(t, run(quickly("--json", "-"), &b))
	require.NoError(t, json.Unmarshal([]byte(b.String()), &r))
}

func TestWrongUse(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--strategies bcf", `unknown strategy "bcf"`},
		{"--workloads w9", `workloads: unknown workload "w9"`},
		{"--live x", `live: "x"`},
		{"--rounds 0", "at least one round"},
		{"--colour", "not defined"},
		{"w1", `unexpected "w1"`},
	} {
		require.ErrorContains(t, run(strings.Fields(c.args), new(strings.Builder)), c.want)
	}
}

func TestHelp(t *testing.T) {
	var b strings.Builder
	require.NoError(t, run([]string{"-h"}, &b))
	require.Contains(t, b.String(), "-strategies commas")
}
