package recall

import (
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/packing"
)

// The conditions of a forecast.
const (
	leastPeriod = 32  // allocations
	sameLow     = 256 // part of the largest fall by which the low tides of a new period may differ
	leastSwing  = 10  // part of the most live bytes by which the live bytes must change in a period
	steadyShare = 4   // part of the swing by which they may differ at its end
	deadWindow  = 64  // allocations whose twins should be freed by now
	unsureShare = 20  // part of the bytes whose size may be unknown
	unsurePeak  = 50  // the same of the bytes that are live near the peak
	peakShare   = 8   // part of the peak that is near it
	smallShare  = 10  // a peak smaller by this part of the used bytes is no danger
)

// forecast is the expected next period. Times are positions of allocations.
type forecast struct {
	now     int32 // the last allocation
	period  int32
	end     int32 // the low tide after the peak
	buffers []packing.Buffer
	offsets []device.Size // of the obstacles; the others are not placed yet
	fixed   []int32       // obstacles: the live blocks
	list    []int32       // expected allocations, in order
	twins   []int32       // entries that they repeat, parallel to list
	start   device.Size   // live bytes now
	peak    device.Size   // the most live bytes expected
}

// lives returns the position at which a live block is expected to die, or none.
func (a *Allocator) lives(i, period int32) int32 {
	w := &a.watch
	e := w.of(i)
	if e.twin == none || !w.known(e.twin) || i-e.twin < period/2 {
		return none
	}
	if d := w.of(e.twin).death; d != none {
		return d + i - e.twin
	}
	return none
}

// expect makes a forecast at the allocation just placed, or returns false if the place in the past
// is not certain, or the next period needs no plan.
func (a *Allocator) expect(f *forecast) bool {
	w := &a.watch
	*f = forecast{now: w.next() - 1}
	f.period = f.now - w.at
	if f.period < leastPeriod || !a.periodic(f) || !a.dies(f) {
		return false
	}
	most := a.real.Live() + int(f.period)
	f.buffers, f.offsets = make([]packing.Buffer, 0, most), make([]device.Size, 0, most)
	f.list, f.twins = make([]int32, 0, f.period), make([]int32, 0, f.period)
	change := make([]int64, f.period+3) // of the live bytes
	doubt := make([]int64, f.period+3)  // of the bytes of unknown size
	a.addLive(f, change)
	bytes, unsure := a.addExpected(f, change, doubt)
	return a.judge(f, change, doubt, bytes, unsure)
}

// periodic reports whether the distance to the place in the past can be a period of the run, not
// one of the many layers in it: it spans half of all allocations, or it includes a large fall, is
// not much shorter than the periods so far, and its low tides are equal.
func (a *Allocator) periodic(f *forecast) bool {
	w := &a.watch
	if 2*f.period >= f.now {
		return true
	}
	if 4*f.period < a.period || !a.falls(w.at, f.now) {
		return false
	}
	if 2*f.period >= a.period && a.period > 0 {
		return true
	}
	at := a.tide.lowAt
	if at-f.period < w.base {
		return false
	}
	x, y := w.of(at).live, w.of(at-f.period).live
	return max(x, y)-min(x, y) <= a.tide.fall/sameLow
}

// falls reports whether the live bytes fell far between two positions.
func (a *Allocator) falls(from, to int32) bool {
	high := device.Size(0)
	for i := from; i < to; i++ {
		n := a.watch.of(i).live
		if high = max(high, n); high-n >= a.tide.fall/fallShare {
			return true
		}
	}
	return false
}

// dies reports whether most blocks that the last allocations repeat were freed again. The creation
// of a model looks alike in every run of layers, but is no part of a period.
func (a *Allocator) dies(f *forecast) bool {
	w := &a.watch
	var seen, dead device.Size
	for k := range min(deadWindow, w.at-w.base) {
		x := w.of(w.at - k)
		if w.of(f.now-k).twin != w.at-k {
			continue
		}
		seen += x.size
		if x.death != none {
			dead += x.size
		}
	}
	return 2*dead >= seen
}

// addLive adds the live blocks as obstacles.
func (a *Allocator) addLive(f *forecast, change []int64) {
	w := &a.watch
	w.eras.widen()
	clear(w.eras.long)
	last := f.now + f.period + 1
	for b := range a.real.Blocks {
		end := last
		if i := a.of[b.Ref]; w.known(i) {
			if d := a.lives(i, f.period); d > f.now {
				end = min(d, last)
			}
			if i < f.now-f.period {
				w.eras.long[w.of(i).size] = true
			}
		}
		f.fixed = append(f.fixed, int32(len(f.buffers)))
		f.buffers = append(f.buffers, packing.Buffer{Lower: int64(f.now), Upper: int64(end), Size: b.Size})
		f.offsets = append(f.offsets, b.Addr.Sub(a.start))
		f.start += b.Size
		change[end-f.now] -= int64(b.Size)
	}
}

// predictions is a cache of predictions. Few histories of a period are distinct: all layers of a
// model have the same ones.
type predictions [1 << predictionBits]struct {
	of   history
	size device.Size
	how  certainty
}

const predictionBits = 8

// predict is [eras.predict] for the history of an entry. The eras must not change between calls.
func (p *predictions) predict(e *eras, h history) (device.Size, certainty) {
	hash := uint64(h[0]) ^ bits.RotateLeft64(uint64(h[1]), 21) ^ bits.RotateLeft64(uint64(h[2]), 42)
	s := &p[hash*0x9E3779B97F4A7C15>>(64-predictionBits)]
	if s.of != h { // no entry has the history of an empty slot, because no size is 0
		s.of = h
		s.size, s.how = e.predict(h)
	}
	return s.size, s.how
}

// addExpected adds the allocations of the next period. It returns their bytes, and those whose size
// is unknown.
func (a *Allocator) addExpected(f *forecast, change, doubt []int64) (bytes, unsure device.Size) {
	w := &a.watch
	last := f.now + f.period + 1
	var seen predictions
	for x := w.at + 1; x < f.now; x++ {
		e := w.of(x)
		birth, end := x+f.period, last
		switch d := a.lives(x, f.period); {
		case e.death != none:
			end = min(last, e.death+f.period)
		case d != none:
			end = min(last, d+f.period)
		case e.twin == none || x-e.twin < f.period/2:
			continue // kept for good, as the state of an optimizer, and not created again
		}
		if end <= birth {
			continue
		}
		n, how := e.size, exactly
		if e.era != w.eras.now {
			n, how = seen.predict(&w.eras, historyOf(w, x))
		}
		bytes += n
		if how == unknown && n > a.tide.most>>12 {
			unsure += n
			doubt[birth-f.now] += int64(n)
			doubt[end-f.now] -= int64(n)
		}
		f.list = append(f.list, int32(len(f.buffers)))
		f.twins = append(f.twins, x)
		f.buffers = append(f.buffers, packing.Buffer{Lower: int64(birth), Upper: int64(end), Size: n})
		f.offsets = append(f.offsets, 0)
		change[birth-f.now] += int64(n)
		change[end-f.now] -= int64(n)
	}
	return bytes, unsure
}

// judge completes a forecast by its live bytes, and reports whether a plan is worth a try.
func (a *Allocator) judge(f *forecast, change, doubt []int64, bytes, unsure device.Size) bool {
	levels := make([]int64, f.period+1)
	level := int64(f.start)
	for t := range levels {
		level += change[t]
		levels[t] = level
	}
	peak, low := max(slices.Max(levels), int64(f.start)), min(slices.Min(levels), int64(f.start))
	swing := peak - low
	f.end = f.now + f.period
	high := int64(f.start)
	for t, n := range levels {
		if high = max(high, n); high > low+swing/2 && n < low+swing/8 {
			f.end = f.now + int32(t)
			break
		}
	}
	drift := level - int64(f.start)
	if swing < int64(a.tide.most)/leastSwing || max(drift, -drift) > swing/steadyShare {
		return false
	}
	if a.period == 0 || 2*f.period < 3*a.period { // not a multiple of it
		a.period = f.period
		a.watch.least = f.period / 2
	}
	if a.broken {
		peak = max(int64(f.start), slices.Max(levels[:f.end-f.now+1]))
	} else if int64(f.start) > low+swing/2 {
		return false
	}
	if peak < int64(a.top)-int64(a.top)/smallShare {
		return false
	}
	var unknowns, most int64
	for t, n := range levels {
		if unknowns += doubt[t]; n > peak-peak/peakShare {
			most = max(most, unknowns)
		}
	}
	f.peak = device.Size(peak)
	return most*unsurePeak <= peak && unsure*unsureShare <= bytes
}
