package cli

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
)

// peakOf runs a command line in a process of its own and returns its largest resident set in bytes.
func peakOf(t *testing.T, args ...string) device.Size {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), exe, args...)
	c.Env = append(os.Environ(), asCommand+"=quiet")
	if out, err := c.CombinedOutput(); err != nil {
		require.Contains(t, string(out), "of memory: --memory", "%v", args)
	}
	return device.Size(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) * device.KiB
}

// TestPeakStaysNearTheBound measures commands on traces just below and far above a bound. Without a
// soft memory limit garbage, and replays side by side, took half as much again.
func TestPeakStaysNearTheBound(t *testing.T) {
	const bound, margin = 128 * device.MiB, 24 * device.MiB
	base := peakOf(t, "trace", "info", write(t, "one.trace", "a 1 1\n"))
	var live bytes.Buffer
	for i := range 230_000 {
		live.WriteString("a " + strconv.Itoa(i) + " 512\n")
	}
	blocks := write(t, "blocks.trace", live.String())
	events := write(t, "events.trace", strings.Repeat("a 1 1\nf 1\n", 400_000))
	for _, args := range [][]string{
		{"trace", "info", events},
		{"trace", "info", write(t, "bomb.trace", strings.Repeat("trim\n", 3_000_000))},
		{"compare", "--strategies", "caching,bestfit", blocks},
	} {
		peak := peakOf(t, append(args, "--memory", bound.String())...)
		t.Logf("%v: %v, and %v for the program", args[:2], peak, base)
		require.LessOrEqual(t, peak, base+bound+margin, "%v", args)
	}
}
