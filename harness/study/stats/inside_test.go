package stats

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSignTestIsThatOfSciPy compares with scipy.stats.binomtest(less, less + more).pvalue.
func TestSignTestIsThatOfSciPy(t *testing.T) {
	for _, c := range []struct {
		less, more int
		p          float64
	}{
		{0, 0, 1}, {0, 5, 0.0625}, {0, 6, 0.03125}, {3, 14, 0.012725830078125}, {5, 14, 0.063568115234375}, {9, 10, 1},
		{10, 10, 1}, {1, 20, 2.09808349609375e-05}, {40, 60, 0.05688793364098089}, {400, 600, 2.728464156065947e-10},
	} {
		require.InEpsilon(t, c.p, SignTest(c.less, c.more), 1e-9, "%d, %d", c.less, c.more)
		require.Equal(t, SignTest(c.less, c.more), SignTest(c.more, c.less))
	}
}

// TestSignTestIsExact compares with the sum of binomial coefficients.
func TestSignTestIsExact(t *testing.T) {
	for n := 1; n < 80; n++ {
		tail := new(big.Int)
		for k := 0; 2*k < n; k++ {
			tail.Add(tail, new(big.Int).Binomial(int64(n), int64(k)))
			want, _ := new(big.Rat).SetFrac(tail, new(big.Int).Lsh(big.NewInt(1), uint(n-1))).Float64()
			require.InEpsilon(t, want, SignTest(k, n-k), 1e-12, "%d of %d", k, n)
		}
	}
	require.Zero(t, SignTest(0, 1_000_000), "underflows")
}

// TestTailIsThatOfSciPy compares with scipy.stats.t.ppf(0.975, n - 1) and
// scipy.stats.norm.sf(t * sqrt(n / (n - 1))).
func TestTailIsThatOfSciPy(t *testing.T) {
	for _, c := range []struct {
		n       int
		student float64
	}{{6, 2.5705818356363146}, {7, 2.4469118511449786}, {8, 2.364624251592784}, {11, 2.228138851986274},
		{22, 2.0796138447276795}, {101, 1.9839715185235518}} {
		require.InDelta(t, c.student, student(c.n-1), 0.0004)
	}
	require.InEpsilon(t, 0.0024318031746115667, tail(6), 0.005)
	require.InEpsilon(t, 0.0057375205170298775, tail(8), 0.001)
	require.InEpsilon(t, 0.016645645571930285, tail(22), 0.001)
}

// TestIntervalsCoverTheTruth draws ratios whose true mean is known and counts the intervals that
// have it. Percentiles that are not expanded cover 88 % with 6 normal ratios. Skewed ratios are
// covered less often than normal ones, as with every bootstrap.
func TestIntervalsCoverTheTruth(t *testing.T) {
	normal := func(r *rand.Rand) float64 { return 0.1 * r.NormFloat64() }
	for _, c := range []struct {
		name        string
		draw        func(*rand.Rand) float64
		mean        float64
		n           int
		least, most float64 // of the coverage
	}{
		{"normal", normal, 0, 6, 0.91, 0.98},
		{"normal", normal, 0, 10, 0.92, 0.98},
		{"normal", normal, 0, 22, 0.92, 0.98},
		{"half are ties", func(r *rand.Rand) float64 { return float64(r.IntN(2)) * normal(r) }, 0, 22, 0.91, 0.98},
		{"skewed", func(r *rand.Rand) float64 { return 0.05 * r.ExpFloat64() }, 0.05, 10, 0.87, 0.96},
		{"skewed", func(r *rand.Rand) float64 { return 0.05 * r.ExpFloat64() }, 0.05, 22, 0.89, 0.97},
	} {
		t.Run(fmt.Sprint(c.name, " ", c.n), func(t *testing.T) {
			const trials, samples = 1000, 1000
			random := rand.New(rand.NewPCG(1, uint64(c.n)))
			covered := 0
			for seed := range uint64(trials) {
				logs := make([]int64, c.n)
				for i := range logs {
					logs[i] = logOf(math.Exp2(c.draw(random)))
				}
				low, high := interval(logs, seed, samples)
				if low <= c.mean*logUnit && c.mean*logUnit <= high {
					covered++
				}
			}
			share := float64(covered) / trials
			t.Logf("%.3f", share)
			require.GreaterOrEqual(t, share, c.least)
			require.LessOrEqual(t, share, c.most)
		})
	}
}
