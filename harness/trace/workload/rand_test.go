package workload_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

func TestRandIsTheSameEverywhere(t *testing.T) {
	r := workload.NewRand(42)
	for _, want := range []uint64{0xbdd732262feb6e95, 0x28efe333b266f103, 0x47526757130f9f52} {
		require.Equal(t, want, r.Next())
	}
}

func TestBelowScalesTheUpperHalf(t *testing.T) {
	for _, n := range []uint64{1, 2, 13, 1000, 1<<32 - 1, 1 << 32} {
		r, plain := workload.NewRand(7), workload.NewRand(7)
		for range 1000 {
			got := r.Below(n)
			require.Equal(t, plain.Next()>>32*n>>32, got)
			require.Less(t, got, n)
		}
	}
	wide := uint64(1) << 50
	r := workload.NewRand(7)
	var most uint64
	for range 1000 {
		got := r.Below(wide)
		require.Less(t, got, wide)
		most = max(most, got)
	}
	require.Greater(t, most, wide/100*99, "a range of more than 32 bits is used whole")
	require.Zero(t, r.Below(0))
}

// TestLognormalHasItsMedianAndSpread holds the integer generator to the distribution it stands for.
func TestLognormalHasItsMedianAndSpread(t *testing.T) {
	const n = 100_000
	r, size := workload.NewRand(42), workload.Lognormal()
	var below, oneSigma int
	var most device.Size
	for range n {
		s := size(r)
		if s < 4*device.KiB {
			below++
		}
		// One sigma to either side of the median is a factor of e^1.5.
		if s >= 914 && s <= 18357 {
			oneSigma++
		}
		most = max(most, s)
	}
	require.InDelta(t, 0.5, float64(below)/n, 0.01, "share below the median")
	require.InDelta(t, 0.683, float64(oneSigma)/n, 0.01, "share within one sigma")
	require.LessOrEqual(t, most, 16*device.MiB)
}

func TestSizesStayWithinTheirBounds(t *testing.T) {
	for _, c := range []struct {
		name        string
		sizes       workload.Sizes
		least, most device.Size
	}{
		{"uniform", workload.Uniform(3, 9), 3, 9},
		{"uniform of one size", workload.Uniform(5, 5), 5, 5},
		{"uniform, wide", workload.Uniform(1, 512*device.GiB), 1, 512 * device.GiB},
		{"loguniform", workload.LogUniform(256, device.MiB), 256, device.MiB - 1},
		{"loguniform of one size", workload.LogUniform(256, 256), 256, 256},
		{"loguniform, wide", workload.LogUniform(1, 512*device.GiB), 1, 512*device.GiB - 1},
		{"lognormal", workload.Lognormal(), 2, 16 * device.MiB},
		{"rounded", workload.Uniform(1, 1000).RoundedUp(256), 256, 1024},
	} {
		r := workload.NewRand(1)
		for range 100_000 {
			s := c.sizes(r)
			require.True(t, s >= c.least && s <= c.most, "%s: %d", c.name, uint64(s))
		}
	}
}

// TestLogUniformMeetsEveryOctave counts draws between neighbouring powers of two.
func TestLogUniformMeetsEveryOctave(t *testing.T) {
	const n = 100_000
	r, size := workload.NewRand(42), workload.LogUniform(256, 4*device.KiB)
	var octaves [4]int
	for range n {
		s, k := size(r), 0
		for s >= 512 {
			s, k = s/2, k+1
		}
		octaves[k]++
	}
	for k, got := range octaves {
		require.InDelta(t, 0.25, float64(got)/n, 0.01, "octave %d", k)
	}
}

func TestDrawsTakeNothingFromTheHeap(t *testing.T) {
	r := workload.NewRand(42)
	for _, size := range []workload.Sizes{
		workload.Uniform(1, 100), workload.LogUniform(1, 64), workload.Lognormal().RoundedUp(256),
	} {
		require.Zero(t, testing.AllocsPerRun(100, func() { size(r) }))
	}
}
