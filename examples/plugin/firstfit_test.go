//go:build linux

package plugin_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/plugin"
)

// The names of the functions, as README.md has them.
const (
	plain    = "?alloc=ff_malloc&free=ff_free"
	streamed = plain + "&reset=ff_reset&record_stream=ff_record_stream"
)

// built compiles the example as README.md says and returns what names it.
func built(t *testing.T, query string) setting.Setup {
	t.Helper()
	if _, err := exec.LookPath("c++"); err != nil {
		t.Skip("the example is tested where there is a C++ compiler: ", err)
	}
	out := filepath.Join(t.TempDir(), "firstfit.so")
	text, err := exec.Command("cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", out,
		"firstfit/firstfit.c", "-pthread").CombinedOutput()
	require.NoError(t, err, string(text))
	s, err := append(strategies.All(), plugin.Spec()).Lookup("plugin:"+out+query, nil)
	require.NoError(t, err)
	return s
}

func TestFirstFitKeepsEveryInvariant(t *testing.T) {
	for _, query := range []string{plain, streamed} {
		s := props.SubjectOfSetup(built(t, query), sim.Config{Capacity: 256 * device.MiB})
		r, err := props.Verify(s, props.Options{Sequences: 30})
		require.NoError(t, err)
		require.Positive(t, r.OutOfMemory)
		r, err = props.VerifyFaults(s, props.Options{Sequences: 3, Faults: 20})
		require.NoError(t, err)
		require.Positive(t, r.Faults)
	}
}

func TestFirstFitCarriesATraining(t *testing.T) {
	src, err := workload.OpenRecording("cpu_resnet50_train")
	require.NoError(t, err)
	p, err := replay.Prepare(t.Context(), src)
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{Capacity: compare.Ample(p.LowerBound())})
	require.NoError(t, err)
	r, err := p.Run(built(t, plain), dev, replay.Options{Figures: true})
	require.NoError(t, err)
	require.Zero(t, r.OOMs)
	require.True(t, r.SelfTimed)
	require.GreaterOrEqual(t, r.Peak.Reserved, p.LowerBound())
	require.Less(t, r.ReservationWaste, .5)
}
