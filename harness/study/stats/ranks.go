package stats

import (
	"math"
	"slices"

	"github.com/vramyard/vramyard/harness/trace/workload"
)

// rankSamples is the number of bootstrap samples of [Ranks]. With 6 traces the ends of an interval
// are the 27th smallest and the 27th largest rank.
const rankSamples = 10_000

// Rank is the result of a candidate among several on the same traces.
type Rank struct {
	Place    int // 1 and the number of candidates that are better; equal candidates have equal places
	Low      int // least place in the 95 % interval; 0: too few traces
	High     int // highest place in it; 0: too few traces
	Failures int // traces on which it failed

	Mean     *float64 // geometric mean of the figure over the other traces; nil: it failed on all
	MeanLow  *float64 // end of the 95 % interval of the mean; nil: too few traces, or a failure
	MeanHigh *float64 // the other end
}

// Overlaps reports whether the traces do not distinguish two ranks: their intervals overlap, or
// there are too few traces.
func (r *Rank) Overlaps(other *Rank) bool {
	return r.Low == 0 || other.Low == 0 || r.Low <= other.High && other.Low <= r.High
}

// Ranks ranks candidates by figures[candidate][trace], above 0, of which less is better.
// Infinity is a failure. Fewer failures are better, and then a lower geometric mean. The
// intervals of the places are a bootstrap over the traces with the percentiles of [Compare];
// all candidates have the same samples. They depend on the order of the traces, but not of the
// candidates.
func Ranks(figures [][]float64, seed uint64) []Rank {
	if len(figures) == 0 {
		return nil
	}
	ranks := make([]Rank, len(figures))
	logs := make([][]int64, len(figures)) // failed for a failure
	var all []int
	for c, of := range figures {
		logs[c] = make([]int64, len(of))
		var completed []int64
		for t, x := range of {
			if logs[c][t] = failed; math.IsInf(x, 1) {
				ranks[c].Failures++
				continue
			}
			logs[c][t] = logOf(x)
			completed = append(completed, logs[c][t])
		}
		ranks[c].summarize(completed, seed)
	}
	for t := range figures[0] {
		all = append(all, t)
	}
	p := places{logs: logs, scores: make([]score, len(logs)), order: make([]score, len(logs))}
	p.of(all, func(c, place int) { ranks[c].Place = place })
	if len(all) >= LeastTraces {
		p.intervals(ranks, seed)
	}
	return ranks
}

// failed is the logarithm of a failure.
const failed = math.MaxInt64

// summarize sets the mean of the logarithms of the traces without a failure.
func (r *Rank) summarize(completed []int64, seed uint64) {
	if len(completed) == 0 {
		return
	}
	r.Mean = new(ratioOf(mean(completed)))
	if r.Failures == 0 && len(completed) >= LeastTraces {
		low, high := interval(completed, seed, resamples)
		r.MeanLow, r.MeanHigh = new(ratioOf(low)), new(ratioOf(high))
	}
}

// score is a candidate's result over a sample of traces. Less is better.
type score struct {
	failures int
	sum      int64 // of the logarithms of the others; the failures fix their number
}

func (s score) compare(o score) int {
	if s.failures != o.failures {
		return s.failures - o.failures
	}
	switch {
	case s.sum < o.sum:
		return -1
	case s.sum > o.sum:
		return 1
	}
	return 0
}

// places ranks candidates over samples of traces.
type places struct {
	logs   [][]int64
	scores []score // by candidate
	order  []score // the same, sorted
}

// of calls set with the place of every candidate over a sample.
func (p *places) of(sample []int, set func(candidate, place int)) {
	for c, logs := range p.logs {
		var s score
		for _, t := range sample {
			if logs[t] == failed {
				s.failures++
			} else {
				s.sum += logs[t]
			}
		}
		p.scores[c] = s
	}
	copy(p.order, p.scores)
	slices.SortFunc(p.order, score.compare)
	for c, s := range p.scores {
		better, _ := slices.BinarySearchFunc(p.order, s, score.compare)
		set(c, better+1)
	}
}

// intervals sets the intervals of the places.
func (p *places) intervals(ranks []Rank, seed uint64) {
	n := len(p.logs[0])
	counts := make([][]int, len(ranks)) // of the samples, by place
	for c := range counts {
		counts[c] = make([]int, len(ranks)+1)
	}
	random := workload.NewRand(seed)
	sample := make([]int, n)
	for range rankSamples {
		for i := range sample {
			sample[i] = int(random.Below(uint64(n)))
		}
		p.of(sample, func(c, place int) { counts[c][place]++ })
	}
	k := max(1, int(tail(n)*float64(rankSamples+1)))
	for c := range ranks {
		ranks[c].Low, ranks[c].High = percentile(counts[c], k), percentile(counts[c], rankSamples+1-k)
	}
}

// percentile returns the k-th smallest place.
func percentile(counts []int, k int) int {
	for place, n := range counts {
		if k -= n; k <= 0 {
			return place
		}
	}
	return len(counts) - 1
}
