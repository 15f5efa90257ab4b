package stats

import (
	"math"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/harness/trace/workload"
)

const (
	// LeastTraces is the smallest number of traces with an interval. With 5, even the most extreme
	// outcome, one side below the other on all of them, has a probability of 1/16 without any
	// difference.
	LeastTraces = 6
	// confidence is the confidence of the intervals.
	confidence = 0.95
	// resamples is the number of bootstrap samples. The ends of an interval are at least the 243rd
	// smallest and the 243rd largest of their means, so another seed changes them little.
	resamples = 100_000
	// logUnit is 1 in the fixed-point logarithms. Sums of integers are the same on every machine and
	// in any order. The sum of 2^20 logarithms of ratios between 64-bit integers fits.
	logUnit = 1 << 36
)

// logOf returns the binary logarithm of a ratio in units of 1/logUnit.
func logOf(ratio float64) int64 { return int64(math.Round(math.Log2(ratio) * logUnit)) }

// ratioOf is the inverse of logOf.
func ratioOf(log float64) float64 { return digits(math.Exp2(log / logUnit)) }

// digits rounds to nine significant digits, so that results do not depend on the last bits of
// functions that differ between processors.
func digits(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 9, 64), 64)
	if err != nil {
		return x // NaN and infinities only
	}
	return rounded
}

func sum(logs []int64) (s int64) {
	for _, x := range logs {
		s += x
	}
	return s
}

func mean(logs []int64) float64 { return float64(sum(logs)) / float64(len(logs)) }

// interval returns the bootstrap interval of the mean of some logarithms: percentiles of the means
// of samples with replacement. The percentiles are expanded (Hesterberg, "What Teachers Should Know
// about the Bootstrap", The American Statistician 69, 2015). Plain percentiles are too narrow for
// few traces: they divide the variance by n instead of n-1, and use the normal distribution instead
// of Student's.
func interval(logs []int64, seed uint64, samples int) (low, high float64) {
	random := workload.NewRand(seed)
	n := uint64(len(logs))
	sums := make([]int64, samples)
	for i := range sums {
		for range n {
			sums[i] += logs[random.Below(n)]
		}
	}
	slices.Sort(sums)
	k := max(1, int(tail(len(logs))*float64(samples+1)))
	return float64(sums[k-1]) / float64(n), float64(sums[samples-k]) / float64(n)
}

// tail returns the expanded percentile of the lower end for n values, as a fraction.
func tail(n int) float64 {
	t := student(n-1) * math.Sqrt(float64(n)/float64(n-1))
	return math.Erfc(t/math.Sqrt2) / 2
}

// student returns the 97.5 % quantile of Student's distribution, by the expansion 26.7.5 of
// Abramowitz and Stegun. It is 0.0004 too small with 5 degrees of freedom, and better with more.
func student(freedom int) float64 {
	const z = 1.959963984540054 // of the normal distribution
	terms := [...]float64{
		z * (z*z + 1) / 4,
		z * ((5*z*z+16)*z*z + 3) / 96,
		z * (((3*z*z+19)*z*z+17)*z*z - 15) / 384,
		z * ((((79*z*z+776)*z*z+1482)*z*z-1920)*z*z - 945) / 92160,
	}
	t, power := z, 1.0
	for _, x := range terms {
		power *= float64(freedom)
		t += x / power
	}
	return t
}

// SignTest returns the two-sided p-value of the sign test: the probability that one of two equally
// likely outcomes occurs at most min(less, more) times in less + more trials, or at least that
// often more. It is 1 without trials.
func SignTest(less, more int) float64 {
	n, k := less+more, min(less, more)
	if 2*k == n {
		return 1
	}
	// Terms of the binomial distribution, from the middle down, relative to the middle one: they do
	// not overflow. Both halves are equal.
	term, all, rare := 1.0, 0.0, 0.0
	for i := n / 2; i >= 0; i-- {
		if 2*i == n {
			all += term / 2
		} else {
			all += term
		}
		if i <= k {
			rare += term
		}
		term *= float64(i) / float64(n-i+1)
	}
	return rare / all
}
