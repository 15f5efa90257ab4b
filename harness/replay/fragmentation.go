package replay

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// maxSamples bounds the samples of external fragmentation in a replay.
const maxSamples = 1 << 16

// sampleStride returns the power of two such that sampling after every stride-th event of n
// takes at most maxSamples samples.
func sampleStride(n int) int {
	stride := 1
	for n/stride > maxSamples {
		stride *= 2
	}
	return stride
}

// fragmentationSampler samples the external fragmentation of a strategy.
type fragmentationSampler struct {
	s     alloc.Inspector
	holes power.Holes // the strategy; nil if it lacks the power or is wrapped
	walks *stopwatch  // stopped while the strategy is walked; nil if it has [power.Holes]
	mask  int         // an event is sampled if its number has none of these bits

	peak           float64     // highest external fragmentation
	share          float64     // ratio of largest to free bytes below which the peak rises
	atPeak         float64     // external fragmentation when reserved bytes first were highest
	peakReserved   device.Size // highest sampled reserved bytes
	headroomAtPeak device.Size // headroom at that sample
}

// newFragmentationSampler returns the sampler for a replay of a number of events, timed by a clock.
func newFragmentationSampler(s alloc.Inspector, events int, clock *stopwatch) *fragmentationSampler {
	f := &fragmentationSampler{s: s, mask: sampleStride(events) - 1}
	if power.Has(s, power.PowerHoles) {
		f.holes, _ = s.(power.Holes)
	} else {
		f.walks = clock
	}
	f.raise(0)
	return f
}

// largestFree returns the size of the strategy's largest free chunk.
func (f *fragmentationSampler) largestFree() device.Size {
	if f.holes != nil {
		return f.holes.LargestFree() // as power.LargestFree does, without its search for the power
	}
	if f.walks != nil {
		f.walks.stop()
		defer f.walks.start()
	}
	return power.LargestFree(f.s)
}

// sampleAtPeak samples at a new peak of reserved bytes.
func (f *fragmentationSampler) sampleAtPeak(active, reserved device.Size) {
	x := f.external(active, reserved)
	f.peakReserved, f.atPeak, f.headroomAtPeak = reserved, x, min(f.largestFree(), power.MaxRequest(f.s))
	f.raise(x)
}

// raise raises the peak of external fragmentation to a new value.
func (f *fragmentationSampler) raise(x float64) {
	f.peak = max(f.peak, x)
	f.share = (1 - f.peak) * (1 + 1e-9) // the margin is a million times the rounding error
}

// external returns 1 - largest free chunk / free bytes. It is 0 while less than 1 % of the reserved
// bytes is free, because fragmentation of little memory is meaningless.
func (f *fragmentationSampler) external(active, reserved device.Size) float64 {
	free := reserved - active
	if free == 0 || free < reserved/100 {
		return 0
	}
	return 1 - float64(f.largestFree())/float64(free)
}

// ratio returns 1 - part/whole, or 0 if whole is 0.
func ratio(part, whole device.Size) float64 {
	if whole == 0 {
		return 0
	}
	return 1 - float64(part)/float64(whole)
}

// headroom returns the largest request that a free chunk would serve without new memory.
func headroom(s alloc.Inspector) device.Size {
	return min(power.LargestFree(s), power.MaxRequest(s))
}
