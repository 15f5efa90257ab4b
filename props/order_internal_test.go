package props

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
)

// TestOrderAgreesWithDevice makes random calls, and after each asks the model and the simulated
// device, which knows nothing of it, what has finished and what comes after what.
func TestOrderAgreesWithDevice(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 0))
		dev, err := sim.New(sim.Config{})
		require.NoError(t, err)
		l := newCallLimiter(dev)
		var events []device.Event
		for range 6 {
			e, err := l.NewEvent()
			require.NoError(t, err)
			events = append(events, e)
		}
		region, err := l.Reserve(1, 0)
		require.NoError(t, err)
		for call := range 150 {
			e, s := events[rng.IntN(len(events))], device.Stream(rng.IntN(4))
			switch n := rng.IntN(100); {
			case n < 40:
				err = l.Record(e, s)
			case n < 70:
				err = l.Wait(s, e)
			case n < 85:
				err = l.Drain(s)
			case n < 92:
				err = l.SyncEvent(e)
			case n < 96:
				err = l.SyncStream(s)
			case n < 98:
				err = l.SyncDevice()
			case region.Size != 0:
				err = l.Release(region.Addr)
				region = device.Region{}
			}
			require.NoError(t, err)
			for _, e := range events {
				r, ok := l.order.events[e]
				done, err := dev.Done(e)
				require.NoError(t, err)
				require.Equal(t, done, !ok || l.order.finished(r.place), "seed %d, call %d: event %d", seed, call, e)
				for s := range device.Stream(4) {
					ordered, err := dev.Ordered(e, s)
					require.NoError(t, err)
					require.Equal(t, ordered, !ok || l.order.ordered(r.place, s), "seed %d, call %d: event %d, stream %d", seed,
						call, e, s)
				}
			}
		}
	}
}

// TestPlacesAreOrderedBeforeMoments takes places before an event is recorded and after.
func TestPlacesAreOrderedBeforeMoments(t *testing.T) {
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	l := newCallLimiter(dev)
	e, err := l.NewEvent()
	require.NoError(t, err)
	before := l.order.now().place(1)
	require.NoError(t, l.Record(e, 1))
	after := l.order.now().place(1)
	require.False(t, l.order.finished(before), "nothing was drained")
	require.NoError(t, l.Wait(2, e))
	require.True(t, l.order.ordered(before, 2), "the event was recorded behind it")
	require.False(t, l.order.ordered(after, 2))
	require.True(t, l.order.ordered(after, 1), "a stream comes after itself")
	require.NoError(t, l.SyncEvent(e))
	require.True(t, l.order.finished(before))
	require.False(t, l.order.finished(after))
	require.NoError(t, l.Drain(1))
	require.True(t, l.order.finished(after), "nothing was queued behind it")
}
