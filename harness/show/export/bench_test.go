package export_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/show/export"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// BenchmarkExport records a workload of a million events and writes it in both forms.
func BenchmarkExport(b *testing.B) {
	shape, err := workload.Lookup("w1")
	require.NoError(b, err)
	p := shape.Default
	p.Live, p.Pairs = 10_000, 495_000
	w, err := shape.New(p)
	require.NoError(b, err)
	tr, err := w.Trace()
	require.NoError(b, err)
	s, err := strategies.All().Lookup("caching", nil)
	require.NoError(b, err)
	record := func() *export.Run {
		dev, err := sim.New(sim.Config{Capacity: 64 * device.GiB})
		require.NoError(b, err)
		r, err := export.Replay(tr, s, dev, export.Options{})
		require.NoError(b, err)
		return r
	}
	r := record()
	b.Run("record", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			record()
		}
	})
	b.Run("snapshot", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			require.NoError(b, r.WriteSnapshot(io.Discard))
		}
	})
	b.Run("perfetto", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			require.NoError(b, r.WritePerfetto(io.Discard))
		}
	})
}
