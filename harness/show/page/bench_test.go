package page_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// BenchmarkRecord draws a workload of 200,000 events, and replays it once beside that.
func BenchmarkRecord(b *testing.B) {
	shape, err := workload.Lookup("w1")
	require.NoError(b, err)
	p := shape.Default
	p.Live, p.Pairs = 10_000, 90_000
	w, err := shape.New(p)
	require.NoError(b, err)
	tr, err := w.Trace()
	require.NoError(b, err)
	prepared, err := replay.Prepare(b.Context(), tr)
	require.NoError(b, err)
	on := func() (device.Device, error) { return sim.New(sim.Config{Capacity: 64 * device.GiB}) }
	for _, name := range []string{"bfc:growth", "tlsf:growth", "caching", "vmm"} {
		s, err := strategies.All().Lookup(name, nil)
		require.NoError(b, err)
		s = s.ForCapacity(64 * device.GiB)
		b.Run("strategy="+name+"/replay", func(b *testing.B) {
			for b.Loop() {
				dev, err := on()
				require.NoError(b, err)
				_, err = prepared.Run(s, dev, replay.Options{})
				require.NoError(b, err)
			}
		})
		b.Run("strategy="+name+"/picture", func(b *testing.B) {
			for b.Loop() {
				t, err := page.NewTrace(tr, page.Options{})
				require.NoError(b, err)
				_, err = t.Draw(prepared, s, on, page.Options{})
				require.NoError(b, err)
			}
		})
	}
}
