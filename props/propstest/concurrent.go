package propstest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/linear"
)

// concurrentRounds is how many histories of a strategy that promises thread safety are judged.
// Which calls overlap is the scheduler's choice, so one is not enough.
const concurrentRounds = 40

// serveConcurrently judges the promise of a strategy that is [power.Concurrent] by itself.
func serveConcurrently(t *testing.T, s props.Subject) {
	guarded(t, func(beat func()) {
		undecided, err := linear.Verify(s, concurrentRounds, uint64(*flagSeed), beat)
		require.NoError(t, err)
		if undecided > 0 {
			t.Logf("%d histories were undecided and others judged in their place", undecided)
		}
	})
}

// concurrent reports whether a subject promises thread safety.
func concurrent(t *testing.T, s props.Subject) bool {
	t.Helper()
	dev, err := sim.New(s.Device)
	require.NoError(t, err)
	a, err := s.New(dev)
	require.NoError(t, err)
	defer a.Close() // the device is thrown away with it
	return power.Has(a, power.PowerConcurrent)
}

// serveMany allocates and frees from many goroutines through one lock. Their blocks must be
// disjoint, and none may be left at the end. Run it with the race detector.
func serveMany(t *testing.T, s props.Subject, beat func()) {
	const callers, rounds = 4, 500
	dev, err := sim.New(s.Device)
	require.NoError(t, err)
	bare, err := s.New(dev)
	require.NoError(t, err)
	locked, err := wrap.Locked(bare)
	require.NoError(t, err)
	most := min(power.MaxRequest(locked), 64*max(s.Promises.Quantum, 256))
	var all sync.WaitGroup
	faults := make(chan error, callers)
	for caller := range uint64(callers) {
		all.Go(func() { faults <- call(locked, rand.New(rand.NewPCG(uint64(*flagSeed), caller)), rounds, most, beat) })
	}
	all.Wait()
	for range callers {
		require.NoError(t, <-faults)
	}
	require.NoError(t, locked.Check())
	require.Zero(t, locked.Stats().Live)
	require.NoError(t, locked.Close())
	require.True(t, dev.Usage().Empty())
}

// call is one of many callers. It frees everything it got before it returns.
func call(s alloc.Strategy, rng *rand.Rand, rounds int, most device.Size, beat func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	var mine []device.Addr
	for range rounds {
		beat()
		if len(mine) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(mine))
			if err := s.Free(mine[i]); err != nil {
				return err
			}
			mine[i] = mine[len(mine)-1]
			mine = mine[:len(mine)-1]
			continue
		}
		b, err := s.Alloc(alloc.Request{Size: 1 + device.Size(rng.Int64N(int64(most)))})
		switch {
		case err == nil:
			mine = append(mine, b.Addr)
		case !errors.Is(err, alloc.ErrOutOfMemory):
			return err
		}
	}
	for _, a := range mine {
		if err := s.Free(a); err != nil {
			return err
		}
	}
	return nil
}
