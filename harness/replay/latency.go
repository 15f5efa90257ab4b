package replay

import (
	"math/bits"
	"slices"
	"time"
)

// subBits splits every power of two of nanoseconds into 32 buckets.
const subBits = 5

// histogram counts durations in log-linear buckets: exact below 32 ns, then 32 buckets
// for each doubling, so that a bucket's upper edge is at most 1/32 above any of its values.
type histogram struct {
	counts [(64 - subBits + 1) << subBits]uint64
	n      uint64
	max    int64
}

// add counts one duration in nanoseconds; a clock that stepped back counts as 0.
func (h *histogram) add(ns int64) {
	ns = max(ns, 0)
	h.counts[bucket(uint64(ns))]++
	h.n++
	h.max = max(h.max, ns)
}

// bucket returns the bucket of v.
func bucket(v uint64) int {
	shift := max(bits.Len64(v)-subBits-1, 0)
	return shift<<subBits + int(v>>shift)
}

// upper returns the largest value of bucket b.
func upper(b int) int64 {
	shift := max(b>>subBits-1, 0)
	return (int64(b-shift<<subBits)+1)<<shift - 1
}

// quantile returns the smallest bucket edge that at least the share q of values do not exceed.
func (h *histogram) quantile(q float64) int64 {
	rank := uint64(q * float64(h.n))
	var seen uint64
	for b, n := range h.counts {
		if seen += n; seen > rank {
			return min(upper(b), h.max)
		}
	}
	return h.max
}

func (h *histogram) quantiles() Quantiles {
	return Quantiles{Count: h.n, P50: h.quantile(.5), P99: h.quantile(.99), P999: h.quantile(.999), Max: h.max}
}

// clockCost returns what an empty measurement takes: the median of many.
func clockCost() int64 {
	samples := make([]int64, 1001)
	for i := range samples {
		start := time.Now()
		samples[i] = int64(time.Since(start))
	}
	slices.Sort(samples)
	return samples[len(samples)/2]
}
