package replay

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// subBits splits every power of two of nanoseconds into 32 buckets.
const subBits = 5

// Histogram counts durations in log-linear buckets: exact below 32 ns, then 32 buckets
// for each doubling, so that a bucket's upper edge is at most 1/32 above any of its values.
// The zero value is empty.
type Histogram struct {
	counts [(64 - subBits + 1) << subBits]uint64
	n      uint64
	max    int64
}

// Quantiles of a latency in nanoseconds, each at most 3.2 % above the true one; Max is exact.
type Quantiles struct {
	Count uint64 `json:"count"`   // calls
	P50   int64  `json:"p50_ns"`  // half of the calls took no longer
	P99   int64  `json:"p99_ns"`  // 99 % took no longer
	P999  int64  `json:"p999_ns"` // 99.9 % took no longer
	Max   int64  `json:"max_ns"`  // the longest
}

// Add counts one duration in nanoseconds; a clock that stepped back counts as 0.
func (h *Histogram) Add(ns int64) {
	ns = max(ns, 0)
	h.counts[bucket(uint64(ns))]++
	h.n++
	h.max = max(h.max, ns)
}

// Merge counts every duration that the other histogram counted.
func (h *Histogram) Merge(other *Histogram) {
	for b, n := range other.counts {
		h.counts[b] += n
	}
	h.n += other.n
	h.max = max(h.max, other.max)
}

// Quantiles returns the quantiles of the counted durations.
func (h *Histogram) Quantiles() Quantiles {
	return Quantiles{Count: h.n, P50: h.quantile(.5), P99: h.quantile(.99), P999: h.quantile(.999), Max: h.max}
}

// Buckets yields every non-empty bucket in order: the upper edge
// in nanoseconds, and the count.
func (h *Histogram) Buckets(yield func(upTo int64, count uint64) bool) {
	for b, n := range h.counts {
		if n > 0 && !yield(upper(b), n) {
			return
		}
	}
}

func bucket(v uint64) int {
	shift := max(bits.Len64(v)-subBits-1, 0)
	return shift<<subBits + int(v>>shift)
}

// upper returns the largest value of bucket b.
func upper(b int) int64 {
	shift := max(b>>subBits-1, 0)
	return (int64(b-shift<<subBits)+1)<<shift - 1
}

// quantile returns the smallest bucket edge that is not exceeded by at least the share q of the
// values.
func (h *Histogram) quantile(q float64) int64 {
	rank := uint64(q * float64(h.n))
	var seen uint64
	for b, n := range h.counts {
		if seen += n; seen > rank {
			return min(upper(b), h.max)
		}
	}
	return h.max
}

var errHistogram = errors.New("no histogram of latencies")

// GobEncode implements gob.GobEncoder: the longest duration, then the buckets that are not empty.
func (h *Histogram) GobEncode() ([]byte, error) {
	b := binary.AppendVarint(nil, h.max)
	for i, n := range h.counts {
		if n > 0 {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(i)), n)
		}
	}
	return b, nil
}

// GobDecode implements gob.GobDecoder.
func (h *Histogram) GobDecode(b []byte) error {
	*h = Histogram{}
	longest, n := binary.Varint(b)
	if n <= 0 {
		return errHistogram
	}
	h.max = longest
	for b = b[n:]; len(b) > 0; {
		i, n := binary.Uvarint(b)
		if n <= 0 || i >= uint64(len(h.counts)) {
			return errHistogram
		}
		count, m := binary.Uvarint(b[n:])
		if m <= 0 {
			return errHistogram
		}
		h.counts[i] += count
		h.n += count
		b = b[n+m:]
	}
	return nil
}
