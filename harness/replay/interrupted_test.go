package replay_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// impatient is a context that ends when it has been looked at so often.
type impatient struct {
	context.Context
	looks *int
}

func (c impatient) Err() error {
	if *c.looks == 0 {
		return context.Canceled
	}
	*c.looks--
	return nil
}

// pairs is a trace of so many pairs, which uses blocks on another stream.
func pairs(t *testing.T, n int) *trace.Trace {
	t.Helper()
	b := trace.NewBuilder(trace.Header{Name: "pairs", Format: "text"})
	for id := range uint64(n) {
		for _, e := range []trace.Event{
			{Kind: trace.Alloc, ID: id, Size: device.KiB}, {Kind: trace.Use, ID: id, Stream: 7}, {Kind: trace.Free, ID: id},
		} {
			e.Time = trace.NoTime
			require.NoError(t, b.Add(e))
		}
	}
	return b.Trace()
}

// TestPrepareEndsSoon interrupts the preparation of a trace at every look at its context. Between
// two looks are no more events than between two of a replay, which is some milliseconds.
func TestPrepareEndsSoon(t *testing.T) {
	const step = 1 << 16
	tr := pairs(t, step)
	for _, src := range []trace.Source{tr, pieces{tr, 2 * step}} {
		n := 0
		for ; ; n++ {
			left := n
			if _, err := replay.Prepare(impatient{t.Context(), &left}, src); err == nil {
				break
			} else {
				require.ErrorIs(t, err, context.Canceled)
			}
		}
		walks := 1
		if src == trace.Source(tr) {
			walks = 2 // it is laid out too
		}
		require.GreaterOrEqual(t, n, walks*len(tr.Events)/step)
	}
}

// TestAnInterruptedLayoutIsMadeAgain interrupts a replay while the trace is laid out for it. The
// next one is as if nothing was.
func TestAnInterruptedLayoutIsMadeAgain(t *testing.T) {
	p, err := replay.Prepare(t.Context(), pairs(t, 1<<16))
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("caching", nil)
	require.NoError(t, err)
	stop := errors.New("stop")
	run := func(looks int) (*replay.Result, error) {
		dev, err := sim.New(sim.Config{})
		require.NoError(t, err)
		return p.Run(setup, dev, replay.Options{Watch: func(int) error {
			if looks--; looks < 0 {
				return stop
			}
			return nil
		}})
	}
	for looks := range 3 { // three looks are one layout
		_, err := run(looks)
		require.ErrorIs(t, err, stop)
	}
	got, err := run(100)
	require.NoError(t, err)
	require.EqualValues(t, 3<<16, got.Replayed)
	require.EqualValues(t, 1<<16, got.Frees)
}
