package slab

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// SizeCount is how often a size was asked for.
type SizeCount struct {
	Size  device.Size // bytes
	Count uint64      // requests
}

// Learn returns at most k class sizes, ascending, with which the requests of a histogram lose the
// fewest bytes to rounding. The largest class is the largest size. The result is optimal. It is
// empty if k is not positive or the histogram is.
//
// Classes are sizes of the histogram: lowering a class to the largest size that it serves loses
// nothing. So the sorted sizes are cut into k runs. A run costs the bytes by which its members are
// smaller than its largest size. These costs obey the quadrangle inequality, so each of the k
// layers of the dynamic program is filled from the middle: O(k n log n) time for n sizes and 4 k n
// bytes. A hundred thousand sizes and 64 classes take about half a second.
//
// Precondition: the sum of all counts times the largest size is below 2^63.
func Learn(histogram []SizeCount, k int) []device.Size {
	l := newLearner(histogram)
	n := len(l.sizes)
	if n == 0 || k <= 0 {
		return nil
	}
	if k >= n {
		return l.sizes
	}
	before, now := make([]uint64, n+1), make([]uint64, n+1)
	for j := range n {
		before[j+1] = l.cost(0, j+1)
	}
	cuts := make([][]int32, k) // of every layer, where its last run starts
	for layer := 1; layer < k; layer++ {
		cuts[layer] = make([]int32, n+1)
		// With layer+1 runs there are at least as many sizes.
		l.fill(before, now, cuts[layer], layer+1, n, layer, n-1)
		before, now = now, before
	}
	classes := make([]device.Size, k)
	for layer, end := k-1, n; layer >= 0; layer-- {
		classes[layer] = l.sizes[end-1]
		if layer > 0 {
			end = int(cuts[layer][end])
		}
	}
	return classes
}

type learner struct {
	sizes  []device.Size // ascending
	counts []uint64      // requests below each, and in the end of all
	bytes  []uint64      // and their bytes
}

func newLearner(histogram []SizeCount) *learner {
	sorted := slices.Clone(histogram)
	slices.SortFunc(sorted, func(a, b SizeCount) int { return cmp.Compare(a.Size, b.Size) })
	l := &learner{counts: []uint64{0}, bytes: []uint64{0}}
	for _, h := range sorted {
		if h.Count == 0 || h.Size == 0 {
			continue
		}
		if n := len(l.sizes); n == 0 || l.sizes[n-1] != h.Size {
			l.sizes = append(l.sizes, h.Size)
			l.counts = append(l.counts, l.counts[n])
			l.bytes = append(l.bytes, l.bytes[n])
		}
		n := len(l.sizes)
		l.counts[n] += h.Count
		l.bytes[n] += h.Count * uint64(h.Size)
	}
	return l
}

// cost returns the bytes lost by the sizes from i to j-1 in a class of the last of them.
func (l *learner) cost(i, j int) uint64 {
	return uint64(l.sizes[j-1])*(l.counts[j]-l.counts[i]) - (l.bytes[j] - l.bytes[i])
}

// fill computes the layer now from the one before, for the first low to high sizes, whose last runs
// start from least to most.
func (l *learner) fill(before, now []uint64, cuts []int32, low, high, least, most int) {
	if low > high {
		return
	}
	middle := int(uint(low+high) / 2)
	best, at := ^uint64(0), least
	for i := least; i <= min(most, middle-1); i++ {
		if c := before[i] + l.cost(i, middle); c < best {
			best, at = c, i
		}
	}
	now[middle], cuts[middle] = best, int32(at)
	l.fill(before, now, cuts, low, middle-1, least, at)
	l.fill(before, now, cuts, middle+1, high, at, most)
}
