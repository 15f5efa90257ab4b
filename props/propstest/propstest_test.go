package propstest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// TestSteadySizesAreLognormal holds the integer generator to the distribution it stands for.
func TestSteadySizesAreLognormal(t *testing.T) {
	w := newSteady(nothing{}, 1, lognormal)
	const n = 100_000
	var below, oneSigma int
	for range n {
		s := w.size()
		if s < 4*device.KiB {
			below++
		}
		// One sigma to either side of the median is a factor of e^1.5.
		if s >= 914 && s <= 18357 {
			oneSigma++
		}
	}
	require.InDelta(t, 0.5, float64(below)/n, 0.01, "share below the median")
	require.InDelta(t, 0.683, float64(oneSigma)/n, 0.01, "share within one sigma")
}

func TestSteadyIsTheSameEverywhere(t *testing.T) {
	w := newSteady(nothing{}, 1, lognormal)
	require.Equal(t, uint64(0xbdd732262feb6e95), w.next())
	require.Equal(t, uint64(0x28efe333b266f103), w.next())
}

func TestSteadyReportsRunningOut(t *testing.T) {
	w := newSteady(nothing{}, 10, lognormal)
	require.ErrorIs(t, w.warm(), alloc.ErrOutOfMemory)
}

// nothing is a strategy that has no memory.
type nothing struct{ alloc.Strategy }

func (nothing) Alloc(alloc.Request) (alloc.Block, error) { return alloc.Block{}, alloc.ErrOutOfMemory }
