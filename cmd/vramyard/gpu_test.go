//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device/cuda/cudatest"
)

// withDriver returns a function that runs a command in a process of its own, which finds the stand-in for the driver, and
// binds every symbol at its start, as hardened programs do.
func withDriver(t *testing.T) func(args ...string) (status int, stdout, stderr string) {
	t.Helper()
	directory := filepath.Dir(cudatest.Build(t))
	exe, err := os.Executable()
	require.NoError(t, err)
	work := t.TempDir()
	return func(args ...string) (status int, stdout, stderr string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), exe, args...)
		c.Env = append(os.Environ(), asCommand+"=quiet", "LD_LIBRARY_PATH="+directory, "LD_BIND_NOW=1")
		c.Dir = work
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		err := c.Run()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode(), out.String(), errs.String()
		}
		require.NoError(t, err)
		return 0, out.String(), errs.String()
	}
}

func TestCommandsRunOnAGPU(t *testing.T) {
	run := withDriver(t)
	status, out, errs := run("devices")
	assert.Zero(t, status, errs)
	assert.Contains(t, out, "driver for CUDA 12.4")
	assert.Contains(t, out, "│ cuda:1   │ Stand-in 1")
	status, _, errs = run("trace", "gen", "w1", "--live", "50", "--pairs", "300", "w.trace")
	require.Zero(t, status, errs)
	for _, strategy := range []string{"bfc:growth", "caching", "caching:expandable", "vmm", "async"} {
		status, out, errs = run("replay", "--strategy", strategy, "--device", "cuda:0", "--contents", "w.trace")
		assert.Zero(t, status, errs)
		assert.Contains(t, out, "device: cuda:0, Stand-in 0 of 1GiB, driver for CUDA 12.4")
		assert.Contains(t, out, "driver (cuda): in use before")
		assert.Contains(t, out, "every block kept its contents")
	}
	status, out, errs = run("compare", "--strategies", "bfc,caching", "--device", "cuda:1:256MiB", "w.trace")
	assert.Zero(t, status, errs)
	assert.Contains(t, out, "device: cuda:1, Stand-in 1")
	status, out, errs = run("bench", "--strategies", "bfc", "--workloads", "w1", "--live", "20", "--pairs", "200", "--rounds", "1", "--device", "cuda:0")
	assert.Zero(t, status, errs)
	assert.Contains(t, out, "device: cuda:0, Stand-in 0")
}

func TestWhatAGPUCannotDoIsRefused(t *testing.T) {
	run := withDriver(t)
	status, _, errs := run("trace", "gen", "w1", "--live", "5", "--pairs", "10", "w.trace")
	require.Zero(t, status, errs)
	for _, args := range [][]string{
		{"replay", "--strategy", "bfc", "--check"}, {"replay", "--strategy", "bfc", "--html", "x.html"},
		{"replay", "--strategy", "bfc", "--explain", "-"}, {"replay", "--strategy", "bfc", "--snapshot", "x.pickle"},
		{"compare", "--html", "x.html"},
	} {
		status, _, errs = run(append(args, "--device", "cuda:0", "w.trace")...)
		assert.Equal(t, 1, status, args)
		assert.Contains(t, errs, "simulated devices only", args)
	}
	for _, device := range []string{"cuda:7", "cuda:x", "cuda:0:0"} {
		status, _, errs = run("replay", "--strategy", "bfc", "--device", device, "w.trace")
		assert.Equal(t, 1, status)
		assert.Contains(t, errs, device)
	}
}

func TestNoDriverIsSaid(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), exe, "devices")
	c.Env = append(os.Environ(), asCommand+"=quiet", "LD_BIND_NOW=1")
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "sim:h100-80g")
	assert.Regexp(t, "no GPU \\(cuda: no driver: |driver for CUDA ", string(out))
}
