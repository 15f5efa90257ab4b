//go:build linux && (amd64 || arm64)

package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device/cuda"
	"github.com/vramyard/vramyard/device/cuda/cudatest"
)

// withDriver returns a function that runs a command in a process of its own, which finds the
// stand-in for the driver, and binds every symbol at its start, as hardened programs do.
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
	status, out, errs = run("bench", "--strategies", "bfc", "--workloads", "w1", "--live", "20", "--pairs", "200",
		"--rounds", "1", "--device", "cuda:0")
	assert.Zero(t, status, errs)
	assert.Contains(t, out, "device: cuda:0, Stand-in 0")
}

func TestSimulatorOnlyFeaturesAreRefusedOnAGPU(t *testing.T) {
	run := withDriver(t)
	status, _, errs := run("trace", "gen", "w1", "--live", "5", "--pairs", "10", "w.trace")
	require.Zero(t, status, errs)
	for _, args := range [][]string{
		{"replay", "--strategy", "bfc", "--check"}, {"replay", "--strategy", "bfc", "--html", "x.html"},
		{"replay", "--strategy", "bfc", "--explain", "-"}, {"replay", "--strategy", "bfc", "--snapshot", "x.pickle"},
		{"compare", "--html", "x.html"},
	} {
		status, _, errs = run(append(args, "--device", "cuda:0", "w.trace")...)
		assert.Equal(t, exitTrouble, status, args)
		assert.Contains(t, errs, "simulated devices only", args)
	}
}

// TestWrongDevicesAreNamed gives words that are no device to each command that takes a GPU.
func TestWrongDevicesAreNamed(t *testing.T) {
	run := withDriver(t)
	status, _, errs := run("trace", "gen", "w1", "--live", "5", "--pairs", "10", "w.trace")
	require.Zero(t, status, errs)
	form := `want "cuda", "cuda:1", or "cuda:0:24GiB" with a limit`
	kind := `want "sim", or "sim:24GiB" and the like, for a simulated device, or "cuda:0", or "cuda:0:24GiB", for a GPU`
	wrong := []struct{ device, want string }{
		{"cuda:", form}, {"cuda:x", form}, {"cuda:-1", form}, {"cuda:256", form}, {"cuda:0:1:1", form},
		{"cuda:0:0", "want more than 0 bytes"},
		{"cuda:99", "cuda:99: device: invalid call: the driver shows cuda:0 to cuda:1"},
		{"cuda:0:1PiB", "device: invalid call: cuda:0 has 1GiB"},
		{"cuda:0:", `size "": want bytes, as a number or with a unit such as "512KiB", "2MiB", "80GiB"`},
		{"gpu", kind}, {"CUDA:0", `did you mean "cuda:0"? ` + kind}, {"", kind},
	}
	for i, args := range [][]string{
		{"replay", "--strategy", "bfc", "w.trace"}, {"compare", "--strategies", "bfc", "w.trace"},
		{"bench", "--strategies", "bfc"},
		{"check", "--strategies", "bfc"},
	} {
		for j, c := range wrong {
			if i > 0 && j%4 != i { // all read them by the same function
				continue
			}
			status, out, errs := run(append(args, "--device", c.device)...)
			assert.Equal(t, exitTrouble, status, args)
			assert.Empty(t, out, args)
			assert.Equal(t, "vramyard: --device: device \""+c.device+"\": "+c.want+"\n", errs, args)
		}
	}
}

// TestUnusableDriversAreNamed has drivers without a GPU, and one that does not start.
func TestUnusableDriversAreNamed(t *testing.T) {
	for variable, want := range map[string]string{
		"STANDIN_GPUS=0": `vramyard: --device: device "cuda:0": cuda:0: device: invalid call: the driver shows no GPU` + "\n",
		"STANDIN_INIT=100": "vramyard: --device: cuda: no driver: libcuda.so.1 cannot be started: cuda: cuInit: " +
			"CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected\n",
		"STANDIN_PLAIN_MAPPINGS=1": "vramyard: vmm@12MiB/filled: cannot be built: vmm: the device has no virtual memory: " +
			"unsupported operation\n",
	} {
		t.Run(variable, func(t *testing.T) {
			name, value, _ := strings.Cut(variable, "=")
			t.Setenv(name, value)
			status, out, errs := withDriver(t)("check", "--strategies", "vmm", "--tests", "1", "--device", "cuda:0")
			assert.Equal(t, exitTrouble, status)
			assert.Empty(t, out)
			assert.Equal(t, want, errs)
		})
	}
}

// TestCheckRunsOnAGPU checks a strategy of each way to take memory.
func TestCheckRunsOnAGPU(t *testing.T) {
	run := withDriver(t)
	for _, name := range []string{"caching", "vmm", "tlsf:growth"} {
		status, out, errs := run("check", "--strategies", name, "--device", "cuda:0", "--tests", "2")
		assert.Zero(t, status, errs)
		assert.Contains(t, out, "/filled")
		assert.Contains(t, out, "device: cuda:0, Stand-in 0 of 1GiB, driver for CUDA 12.4\n")
		assert.Regexp(t,
			`\non it: each device call of the checked instance, with answers compared: \d+ calls, .*\d+ of contents; .* written to blocks, .* read back\n`, out)
		assert.Contains(t, out, "\nnot on it: addresses, time and the order of work, because a card has no timeline")
		assert.Contains(t, out, "every invariant held")
	}
	status, _, errs := run("check", "--strategies", "slab", "--device", "cuda:0", "--tests", "1", "--ops", "20",
		"--faults", "--html", "c.html")
	assert.Zero(t, status, errs)
	status, _, errs = run("check", "--strategies", "caching", "--device", "cuda:0:100MiB")
	assert.Equal(t, exitTrouble, status)
	assert.Equal(t, "vramyard: --device: caching@160MiB is checked on a device of 160MiB, and cuda:0 has "+
		"100MiB free\n", errs)
}

// TestCheckRunsOnTheGPU checks strategies on a real one, where there is one.
func TestCheckRunsOnTheGPU(t *testing.T) {
	if list, err := cuda.List(""); err != nil || len(list.GPUs) == 0 {
		t.Skipf("no GPU: %v", err)
	}
	status, out, errs := command(t, "check", "--strategies", "caching,caching:expandable,vmm,stitch,async,tlsf:growth",
		"--device", "cuda:0", "--tests", "3")
	assert.Equal(t, exitDone, status, "%s\n%s", out, errs)
}

// TestPluginsRunOnAGPU runs allocators of others over the stand-in for the driver, by each command
// that takes a GPU.
func TestPluginsRunOnAGPU(t *testing.T) {
	name := misbehaving(t)
	run := withDriver(t)
	status, _, errs := run("trace", "gen", "w1", "--live", "10", "--pairs", "20", "w.trace")
	require.Zero(t, status, errs)
	for _, args := range [][]string{
		{"replay", "--contents", "w.trace", "--strategy"},
		{"compare", "w.trace", "--strategies"},
		{"bench", "--workloads", "w1", "--live", "5", "--pairs", "20", "--rounds", "1", "--strategies"},
		{"check", "--tests", "1", "--ops", "30", "--strategies"},
	} {
		status, out, errs := run(append(args, name+"direct_alloc", "--device", "cuda:0:512MiB")...)
		assert.Zero(t, status, errs)
		assert.Contains(t, out, "device: cuda:0, Stand-in 0 of 1GiB, driver for CUDA 12.4", args)
		status, _, errs = run(append(args, name+"crash", "--device", "cuda:0")...)
		assert.Equal(t, map[bool]int{true: exitFailed, false: exitTrouble}[args[0] == "check"], status, args)
		assert.Regexp(t, `^vramyard: .*(killed by SIGSEGV at 0x10|I35 \(no panic\))\n$`, errs, args)
	}
}

// TestCheckFindsABrokenCard has the stand-in answer wrongly, in each of its ways.
func TestCheckFindsABrokenCard(t *testing.T) {
	for lie, c := range map[string]struct{ strategy, want string }{
		"lost-write": {"tlsf:growth", `the contents written at 0x[0-9a-f]+ are lost on the card, at 0x[0-9a-f]+`},
		"granularity": {"vmm",
			`create-handle 65536: the model answers "done", the card "cuda: cuMemCreate: CUDA_ERROR_INVALID_VALUE`},
		"overlap": {"tlsf:growth",
			`reserve \d+: the card gives 0x[0-9a-f]+, which lies in \d+ bytes that it gave at 0x[0-9a-f]+`},
		"free": {"tlsf:growth",
			`release 0x[0-9a-f]+: the model answers "done", the card "cuda: cuMemFree_v2: CUDA_ERROR_UNKNOWN \(999\)`},
	} {
		t.Run(lie, func(t *testing.T) {
			t.Setenv("STANDIN_LIE", lie)
			run := withDriver(t)
			status, out, errs := run("check", "--strategies", c.strategy, "--device", "cuda:0", "--tests", "20")
			assert.Equal(t, exitFailed, status)
			assert.Regexp(t, `subjects broke an invariant, first .*: I63 \(card\)\n$`, errs)
			assert.Regexp(t, "invariant I63 \\(card\\): "+c.want, out)
			assert.Regexp(t, `\nshrunk from \d+ operations to [1-3]\n`, out)
			assert.Regexp(t, `\nagain: vramyard check --strategies \S+ --device cuda:0 --tests 1 --ops 100 --seed 1\n`, out)
		})
	}
}

func TestMissingDriverIsReported(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), exe, "devices")
	c.Env = append(os.Environ(), asCommand+"=quiet", "LD_BIND_NOW=1")
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "sim:h100-80g")
	assert.Regexp(t, "no GPU \\(cuda: no driver: |driver for CUDA ", string(out))
}
