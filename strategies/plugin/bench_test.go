//go:build linux

package plugin_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/plugin"
)

// benched returns the setup of the allocator whose every block is memory of the device's own.
func benched(tb testing.TB) setting.Setup {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), "plugin.so")
	if text, err := exec.Command("cc", "-shared", "-fPIC", "-O2", "-w", "-o", out, "testdata/loads.c", "-DASKS",
		"-pthread").CombinedOutput(); err != nil {
		tb.Skipf("plug-ins are timed where there is a C compiler: %v: %s", err, text)
	}
	s, err := setting.Catalogue{plugin.Spec()}.Lookup("plugin:"+out+"?alloc=take&free=give", nil)
	require.NoError(tb, err)
	return s
}

// BenchmarkPair is two round trips without a call of the device.
func BenchmarkPair(b *testing.B) {
	dev, err := sim.New(sim.Config{})
	require.NoError(b, err)
	s, err := benched(b).New(dev)
	require.NoError(b, err)
	defer func() { require.NoError(b, s.Close()) }()
	for b.Loop() {
		block, err := s.Alloc(alloc.Request{Size: 1000})
		if err == nil {
			err = s.Free(block.Addr)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	ns, err := power.WorkTime(s)
	require.NoError(b, err)
	b.ReportMetric(float64(ns)/float64(b.N), "worked-ns/op")
}

// BenchmarkInstance is what a fresh instance takes, and its end.
func BenchmarkInstance(b *testing.B) {
	setup := benched(b)
	for b.Loop() {
		dev, err := sim.New(sim.Config{})
		require.NoError(b, err)
		s, err := setup.New(dev)
		require.NoError(b, err)
		require.NoError(b, s.Close())
	}
}

func TestCallsTakeNothingFromTheHeap(t *testing.T) {
	dev, err := sim.New(sim.Config{Capacity: device.GiB})
	require.NoError(t, err)
	s, err := benched(t).New(dev)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b, err := s.Alloc(alloc.Request{Size: 1000})
		if err == nil {
			err = s.Free(b.Addr)
		}
		if err != nil {
			t.Fatal(err)
		}
	}))
}
