package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExitStatus runs commands that succeed, find a failure, or cannot do their work.
func TestExitStatus(t *testing.T) {
	a, b := write(t, "a.trace", small), write(t, "b.trace", strings.Replace(small, "a 4 5000", "a 4 6000", 1))
	result := filepath.Join(t.TempDir(), "r.json")
	succeed(t, "compare", "--strategies", "bfc", "--json", result, a)
	requests := write(t, "run.csv", recordedCSV)
	addresses := write(t, "run.addr", recordedAddr)
	moved := write(t, "run.addr", strings.Replace(recordedAddr, "alloc,1,2097152", "alloc,1,2098688", 1))
	missing := filepath.Join(t.TempDir(), "missing")
	for _, c := range []struct {
		want int
		args []string
	}{
		{exitDone, []string{"trace", "diff", a, a}},
		{exitFailed, []string{"trace", "diff", a, b}},
		{exitTrouble, []string{"trace", "diff", a, missing}},
		{exitTrouble, []string{"trace", "diff", a}},
		{exitDone, []string{"diff", result, result, "--fail-if", "oom_count>0"}},
		{exitFailed, []string{"diff", result, result, "--fail-if", "min_capacity_bytes>=0"}},
		{exitTrouble, []string{"diff", result, result, "--fail-if", "min_capacity>0"}},
		{exitTrouble, []string{"diff", result, missing}},
		{exitDone, []string{"verify", requests, "--addresses", addresses}},
		{exitFailed, []string{"verify", requests, "--addresses", moved}},
		{exitTrouble, []string{"verify", requests, "--addresses", missing}},
		{exitDone, []string{"replay", "--strategy", "bfc", "--sim", `{"capacity":"4KiB"}`, a}},
		{exitDone, []string{"compare", "--strategies", "bfc", "--capacity", "4KiB", a}},
		{exitFailed, []string{"replay", "--strategy", "bfc", "--fail-on-oom", "--sim", `{"capacity":"4KiB"}`, a}},
		{exitFailed, []string{"trace", "info", missing, a}},
		{exitTrouble, []string{"replay", "--strategy", "bfc", missing}},
		{exitTrouble, []string{"check", "--tests", "0"}},
		{exitTrouble, []string{"compare", "--no-such-flag"}},
		{exitTrouble, []string{"no-such-command"}},
	} {
		status, _, stderr := command(t, c.args...)
		assert.Equal(t, c.want, status, "%q: %s", c.args, stderr)
		assert.Equal(t, c.want != exitDone, stderr != "", c.args)
	}
}

// TestTroubleHidesNoFailure joins errors of both kinds: the higher status wins.
func TestTroubleHidesNoFailure(t *testing.T) {
	no, trouble := failure{errors.New("a figure is too high")}, errors.New("a disk is full")
	require.Equal(t, exitFailed, exitOf(fmt.Errorf("run.json: %w", no)))
	require.Equal(t, exitFailed, exitOf(errors.Join(no, no)))
	require.Equal(t, exitTrouble, exitOf(fmt.Errorf("run.json: %w", errors.Join(no, trouble))))
	require.Equal(t, exitTrouble, exitOf(trouble))
}

// TestExitStatusIsDocumented holds the help to the list of commands whose exit status may be 1.
func TestExitStatusIsDocumented(t *testing.T) {
	assert.Contains(t, strings.Join(strings.Fields(succeed(t, "--help")), " "), "where that is a condition: verify, "+
		"check, replay --check, replay --fail-on-oom, trace info, trace diff, corpus verify, corpus lint, "+
		"diff --fail-if, gate, sweep run, sweep merge, sweep status")
}
