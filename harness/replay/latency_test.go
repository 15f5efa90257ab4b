package replay

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBucketsAreNarrowAndAdjacent(t *testing.T) {
	for b := range (64 - subBits) << subBits {
		up := upper(b)
		require.Equal(t, b, bucket(uint64(up)), "upper edge of bucket %d", b)
		if up < 1<<62 {
			require.Equal(t, b+1, bucket(uint64(up)+1), "just above bucket %d", b)
		}
		if b > 0 {
			low := upper(b-1) + 1
			require.LessOrEqual(t, float64(up), float64(low)*(1+1./32))
		}
		if up >= 1<<62 {
			break
		}
	}
}

func TestQuantilesBoundTheTrueOnes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	h := new(Histogram)
	values := make([]int64, 10000)
	for i := range values {
		values[i] = int64(rng.ExpFloat64() * 300)
		h.Add(values[i])
	}
	slices.Sort(values)
	for _, q := range []float64{.5, .99, .999} {
		exact := values[int(q*float64(len(values)))]
		got := h.quantile(q)
		require.GreaterOrEqual(t, got, exact)
		require.LessOrEqual(t, float64(got), float64(exact)*(1+1./32)+1)
	}
	require.Equal(t, values[len(values)-1], h.Quantiles().Max)
	h.Add(-5) // a clock that stepped back
	require.Equal(t, uint64(10001), h.n)
}

func TestMergedIsAsIfCountedTogether(t *testing.T) {
	var one, other, both Histogram
	for i := range int64(1000) {
		one.Add(i)
		other.Add(i * i)
		both.Add(i)
		both.Add(i * i)
	}
	one.Merge(&other)
	require.Equal(t, both, one)
	require.Equal(t, Quantiles{}, new(Histogram).Quantiles())
	require.GreaterOrEqual(t, ClockCost(), int64(0))
}
