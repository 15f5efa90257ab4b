package page_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/strategies"
)

// TestWalkerMatchesAReplayFromTheStart goes from event to event, and stands still.
func TestWalkerMatchesAReplayFromTheStart(t *testing.T) {
	const events = 60_000
	tr := randomTrace(t, 1, events)
	ctx := context.Background()
	for _, name := range []string{"caching", "bfc", "slab"} {
		s, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		p, err := replay.Prepare(t.Context(), tr)
		require.NoError(t, err)
		drawn, err := page.NewTrace(tr, page.Options{})
		require.NoError(t, err)
		begin := func() *page.Walker {
			on := func() (device.Device, error) { return sim.New(sim.Config{Capacity: 192 * device.MiB}) }
			w := drawn.Walker(p, s.ForCapacity(192*device.MiB), on, page.Options{})
			t.Cleanup(w.Close)
			return w
		}
		w := begin()
		require.Equal(t, -1, w.Last())
		for _, e := range []int{0, 1, 2, 2, 17, 5000, 5001, 40_000} {
			got, err := w.To(ctx, e)
			require.NoError(t, err)
			require.Equal(t, e, w.Last())
			want, err := begin().To(ctx, e)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s, event %d", name, e)
		}
		_, err = w.To(ctx, 39_999)
		require.Error(t, err)

		over, stop := context.WithCancel(ctx) // it waits where it was interrupted, and goes on
		stop()
		_, err = w.To(over, len(tr.Events)-1)
		require.ErrorIs(t, err, context.Canceled)
		require.GreaterOrEqual(t, w.Last(), 40_000)
		require.Less(t, w.Last(), len(tr.Events)-1)
		got, err := w.To(ctx, len(tr.Events)-1)
		require.NoError(t, err)
		want, err := begin().To(ctx, len(tr.Events)-1)
		require.NoError(t, err)
		require.Equal(t, want, got)
		_, err = w.To(ctx, len(tr.Events))
		require.Error(t, err)
		w.Close()
		begin().Close() // one that never began
	}
}
