package recall

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// The bounds of the watch.
const (
	contextSteps = 12   // allocations of a context
	missingAhead = 16   // allocations that may be missing from a repetition
	mostMissed   = 32   // allocations without a counterpart until the place in the log is lost
	searchAfter  = 16   // allocations between two searches by context
	mostSimilar  = 64   // candidates of a search
	mostMatched  = 4096 // allocations that a search compares
	trusted      = 256  // allocations that must match before a forecast
	recentAge    = 64   // frees of older blocks are not part of the structure
	block        = 64   // allocations of one entry of the extremes
)

// past is an allocation in the log.
type past struct {
	size    device.Size
	live    device.Size // live bytes with it
	at      device.Addr // 0 if it was refused
	window  int32
	token   uint32 // relation to the allocation before it, and ages of the frees in between
	context uint32 // hash of the last tokens
	level   uint32 // hash of the size and the live bytes
	same    int32  // the last allocation before it with this context
}

// extreme has the lowest and the highest live bytes of a block of the log.
type extreme struct{ low, high device.Size }

// pageWatch finds the counterpart of an allocation: the one at the same position of an earlier
// repetition. It compares structure, because sizes differ between batches of different lengths.
type pageWatch struct {
	memory    int // allocations that the log holds at most
	log       []past
	extremes  []extreme
	byContext []int32 // last allocation of a context, plus one; by its low bits
	byLevel   []int32 // likewise of a level
	listed    int     // allocations of the log that are in byContext
	count     uint32  // allocations so far; the log has the last ones
	rolling   uint32  // context of the last allocation
	token     uint32  // frees since the last allocation

	counterpart int // of the last allocation that has one; lost if it is negative
	matched     int // allocations in a row that have one
	missed      int // allocations since then
	searched    uint32
	now, then   float64 // decaying sums of the sizes of matched allocations and their counterparts

	swing swing
}

const lost = -1

func newPageWatch(memory int) pageWatch {
	return pageWatch{memory: memory, byContext: make([]int32, 1), byLevel: make([]int32, 1), counterpart: lost}
}

// young reports whether the program has not repeated itself yet.
func (w *pageWatch) young() bool { return w.swing.rises < 2 }

// free enters a free of a block with born allocations before it.
func (w *pageWatch) free(born uint32) {
	if age := w.count - born; age < recentAge {
		w.token = mix(w.token, age)
	}
}

// factor is the base of the rolling hash of a context, and oldest its power that the token has that
// leaves it.
const factor = 1000003

var oldest = func() uint32 {
	p := uint32(1)
	for range contextSteps {
		p *= factor
	}
	return p
}()

// allocate enters an allocation of n bytes, after which the given bytes are live, and returns the
// position of its counterpart in the log, or lost.
func (w *pageWatch) allocate(n, live device.Size) int {
	if len(w.log) == w.memory {
		w.forget()
	}
	i := len(w.log)
	p := past{size: n, live: live, token: w.token, same: lost}
	if i > 0 {
		switch before := w.log[i-1].size; {
		case n < before:
			p.token = mix(p.token, recentAge+1)
		case n > before:
			p.token = mix(p.token, recentAge+2)
		}
	}
	w.token = 0
	w.rolling = w.rolling*factor + p.token
	if i >= contextSteps {
		w.rolling -= oldest * w.log[i-contextSteps].token
	}
	p.context, p.level = w.rolling, mix(mix(mix(uint32(n), uint32(n>>32)), uint32(live)), uint32(live>>32))
	w.log = append(w.log, p)
	w.count++
	w.observe(i, live)
	if 2*i >= len(w.byLevel) {
		w.rebuild()
	}
	if i%listEvery == 0 {
		w.list()
	}
	x := w.follow(i)
	if level := w.enter(i, x == lost); level != lost {
		x = w.jump(i, level, w.length(i, level))
	}
	if (x == lost || w.matched < 2*trusted) && w.count-w.searched >= searchAfter {
		if y := w.search(i); y != lost {
			x = y
		}
	}
	if x != lost {
		w.compare(i, x)
	}
	return x
}

// compare enters an allocation and its counterpart into the sums of sizes.
func (w *pageWatch) compare(i, x int) {
	w.now += float64(w.log[i].size) - w.now/block
	w.then += float64(w.log[x].size) - w.then/block
}

// observe enters the live bytes of allocation i.
func (w *pageWatch) observe(i int, live device.Size) {
	if i%block == 0 {
		w.extremes = append(w.extremes, extreme{live, live})
	}
	e := &w.extremes[i/block]
	e.low, e.high = min(e.low, live), max(e.high, live)
	w.swing.add(live)
}

// granted enters the place of the last allocation.
func (w *pageWatch) granted(at device.Addr, window int32) {
	p := &w.log[len(w.log)-1]
	p.at, p.window = at, window
}

// list makes the last allocations the last ones of their contexts.
func (w *pageWatch) list() {
	for ; w.listed < len(w.log); w.listed++ {
		p := &w.log[w.listed]
		c := &w.byContext[p.context&uint32(len(w.byContext)-1)]
		if y := *c - 1; y >= 0 && w.log[y].context == p.context {
			p.same = y
		}
		*c = int32(w.listed + 1)
	}
}

// enter makes allocation i the last one of its level, and returns the one before if it is wanted.
func (w *pageWatch) enter(i int, wanted bool) (before int) {
	p := &w.log[i]
	l := &w.byLevel[p.level&uint32(len(w.byLevel)-1)]
	before = lost
	if wanted {
		before = int(*l) - 1
		if before >= 0 && (w.log[before].size != p.size || w.log[before].live != p.live) {
			before = lost
		}
	}
	*l = int32(i + 1)
	return before
}

// rebuild doubles the tables. They have at least two rows for each allocation of the log.
func (w *pageWatch) rebuild() {
	n := 2 * len(w.byLevel)
	w.byContext, w.byLevel, w.listed = make([]int32, n), make([]int32, n), 0
	for i := range w.log[:len(w.log)-1] {
		w.enter(i, false)
	}
}

// forget removes the older half of the log, in whole blocks of the extremes.
func (w *pageWatch) forget() {
	half := w.memory / 2 / block * block
	w.log = append(w.log[:0], w.log[half:]...)
	w.extremes = append(w.extremes[:0], w.extremes[half/block:]...)
	for i := range w.log {
		w.log[i].same = lost
	}
	clear(w.byContext)
	clear(w.byLevel)
	w.listed = 0
	for i := range w.log {
		w.enter(i, false)
	}
	if w.counterpart -= half; w.counterpart < 0 {
		w.counterpart, w.matched, w.missed = lost, 0, 0
	}
}

// follow returns the counterpart of allocation i after the counterpart of the last one, or lost.
func (w *pageWatch) follow(i int) int {
	next := w.counterpart + 1
	if w.counterpart == lost || next >= i {
		return lost
	}
	if w.log[next].token == w.log[i].token {
		return w.take(next)
	}
	for x := next + 1; x < min(i, next+missingAhead); x++ {
		if w.log[x].token == w.log[i].token && w.log[x].size == w.log[i].size {
			return w.take(x)
		}
	}
	if w.log[next].size == w.log[i].size {
		return w.take(next)
	}
	if w.missed++; w.missed > mostMissed {
		w.counterpart, w.matched, w.missed = lost, 0, 0
	}
	return lost
}

func (w *pageWatch) take(x int) int {
	w.counterpart, w.missed = x, 0
	w.matched++
	return x
}

// jump makes x the counterpart of allocation i, with the number of matching allocations up to it.
func (w *pageWatch) jump(i, x, matched int) int {
	w.counterpart, w.matched, w.missed = x, matched, 0
	w.now, w.then = 0, 0
	for k := min(matched, block) - 1; k > 0; k-- {
		w.compare(i-k, x-k)
	}
	return x
}

// length returns how many allocations up to i and x have the same tokens.
func (w *pageWatch) length(i, x int) (n int) {
	for n < mostMatched && x >= n && w.log[i-n].token == w.log[x-n].token {
		n++
	}
	return n
}

// search returns the position with the longest matching history, if it is longer than the
// history of the counterpart.
func (w *pageWatch) search(i int) int {
	w.searched = w.count
	w.list()
	best, most := lost, 0
	if w.counterpart != lost && w.missed == 0 {
		most = w.length(i, w.counterpart)
	}
	x := int(w.log[i].same)
	for n := 0; n < mostSimilar && x != lost; n, x = n+1, int(w.log[x].same) {
		if m := w.length(i, x); m >= contextSteps && m > most {
			best, most = x, m
		}
	}
	if best == lost {
		return lost
	}
	return w.jump(i, best, most)
}

// forecast returns the expected peak of the live bytes, 0 if nothing is known: as far above the
// valley between the counterpart and now as the peak behind the counterpart was, in proportion to
// the heights reached so far. most is the highest demand so far.
func (w *pageWatch) forecast(live, most device.Size) device.Size {
	if w.counterpart == lost || w.matched < trusted {
		return 0
	}
	then := w.log[w.counterpart].live
	low := min(then, live)
	for i := w.counterpart; i < len(w.log); {
		if i%block == 0 && i+block <= len(w.log) {
			low = min(low, w.extremes[i/block].low)
			i += block
			continue
		}
		low = min(low, w.log[i].live)
		i++
	}
	high := then
	for i := w.counterpart; i < len(w.log) && w.log[i].live >= low+(then-low)/2; i++ {
		high = max(high, w.log[i].live)
	}
	// Without a valley the counterpart is in the same rise, and its peak is yet to come.
	if (high-low)*16 < most || (then-low)*4 < high-low || live <= low {
		return 0
	}
	scale := float64(live-low) / float64(then-low)
	if ratio := w.now / w.then; scale > 1.25*ratio || ratio > 1.25*scale {
		return 0 // recent sizes contradict the rise so far
	}
	return low + device.Size(float64(high-low)*scale)
}

// bytes returns the host memory of the watch.
func (w *pageWatch) bytes() device.Size {
	return index.BytesOf(w.log) + index.BytesOf(w.extremes) + index.BytesOf(w.byContext) + index.BytesOf(w.byLevel)
}

// swing counts how often the live bytes rise out of a valley. A valley is an eighth of the peak
// before it deep.
type swing struct {
	low, high device.Size
	falling   bool
	rises     int
}

func (s *swing) add(live device.Size) {
	if !s.falling {
		if s.high = max(s.high, live); live < s.high-s.high/8 {
			s.falling, s.low = true, live
		}
		return
	}
	if s.low = min(s.low, live); live > s.low+(s.high-s.low)/2 {
		s.falling, s.high = false, live
		s.rises++
	}
}
