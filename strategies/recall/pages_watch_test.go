package recall

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
)

// period is a repetition of 500 blocks: they are freed in reverse order. Sizes are multiples of
// unit.
func period(w *pageWatch, unit device.Size) (counterparts []int) {
	rng := rand.New(rand.NewPCG(1, 2))
	live := 100 * unit
	var born []uint32
	for range 500 {
		n := unit * device.Size(1+rng.IntN(50))
		live += n
		counterparts = append(counterparts, w.allocate(n, live))
		born = append(born, w.count)
	}
	for i := len(born) - 1; i >= 0; i-- {
		w.free(born[i])
	}
	return counterparts
}

func TestWatchFindsCounterparts(t *testing.T) {
	w := newPageWatch(defaultMemory)
	for range 2 {
		period(&w, 1000)
	}
	for n := 2; n < 4; n++ {
		for i, x := range period(&w, 1000) {
			require.Equal(t, (n-1)*500+i, x, "allocation %d of repetition %d", i, n)
		}
		require.NoError(t, w.check())
	}
	missed := 0
	for i, x := range period(&w, 1500) { // a longer batch: structure finds it
		if x < 0 || x%500 != i {
			missed++
		}
	}
	require.Less(t, missed, 50)
}

func TestForecastScalesWithSizes(t *testing.T) {
	w := newPageWatch(defaultMemory)
	for range 2 {
		period(&w, 1000)
	}
	peak := w.log[len(w.log)-1].live
	rng := rand.New(rand.NewPCG(1, 2))
	live := device.Size(100 * 2000)
	for range 400 { // the same structure, twice the sizes, not at its peak yet
		n := 2000 * device.Size(1+rng.IntN(50))
		live += n
		w.allocate(n, live)
	}
	require.InEpsilon(t, float64(2*peak), float64(w.forecast(live, peak)), 0.02)
}

func TestWatchIsBounded(t *testing.T) {
	const memory = 1<<12 + 100
	w := newPageWatch(memory)
	for range 2*defaultMemory/500 + 3 {
		period(&w, 1000)
	}
	require.NoError(t, w.check())
	require.LessOrEqual(t, len(w.log), memory)
	require.Less(t, w.bytes(), device.Size(100*memory))
	for i, x := range period(&w, 1000) {
		require.Equal(t, len(w.log)-1000+i, x)
	}
}
