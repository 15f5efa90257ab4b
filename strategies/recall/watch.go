package recall

import (
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// The parameters of a watch. All count allocations.
const (
	contextLen   = 12   // allocations of a context
	contextFrees = 1    // allocations of a context with frees before them; without, too many are alike
	contextInfo  = 4    // changes of the token in a match that make it worth following
	youngAge     = 64   // frees of older blocks do not count, so that another state does no harm
	lookAhead    = 4    // allocations that may be missing
	windowLen    = 8    // allocations that show where the sequence goes on after a deviation
	windowScore  = 12   // points out of two for each of them
	windowReach  = 64   // how far it may have moved in all,
	reachEach    = 4    // and for each allocation without a match
	lostAfter    = 24   // more allocations in a row without a match lose the place,
	trustShare   = 16   // or more than this part of the allocations since it was found, and one
	briefMiss    = 4    // up to so few, only a longer match is followed instead
	searchEvery  = 16   // allocations between two searches
	doubtEvery   = 32   // the same while a match is young
	youngMatch   = 512  // a match up to this length is young
	longest      = 4096 // a match is not measured further
	candidates   = 64   // earlier contexts examined in a search
	nearLoss     = 1024 // bonus of a match near the place that was lost
	mostOdd      = 32   // recent deviations after which the place is lost
	recentLen    = 128  // allocations in which deviations are counted
	listEvery    = 64   // allocations that enter the table of contexts together, which hides its latency
)

const (
	none      int32 = -1
	forgotten int32 = -2
)

// entry is a remembered allocation. Positions of entries are counted from the first allocation of
// the allocator; those below watch.base are forgotten.
type entry struct {
	size  device.Size // rounded
	live  device.Size // live bytes then
	token uint32      // hash of the frees since the allocation before it, and of the order of their sizes
	death int32       // position of the next allocation after the free; none while live
	twin  int32       // the entry that it repeats, or none
	same  int32       // the last entry before with the same context, or none; until listed its place in contexts
	era   int32       // see eras
	freed bool        // the token has frees
}

// planned is what a plan says of an entry.
type planned struct {
	place device.Size // offset for the entry that repeats it
	room  device.Size // bytes there
	plan  int32       // the plan, or 0
	apart int32       // the plan outside of which it was placed, or 0
}

// partLen is the number of entries that get memory at a time, a power of two.
const partLen = 256

// watch remembers the sequence of allocations and finds the place in it that the present repeats.
// The place is a pointer into the past that moves on with each allocation.
type watch struct {
	parts   []*[partLen]entry   // a ring
	planned []*[partLen]planned // parallel to parts; nil if there is no plan
	mask    int32               // the length of the ring, less one
	base    int32               // position of the first entry
	end     int32               // of the next one
	memory  int32
	eras    eras

	contexts []int32 // by hash: the position after the last entry with the context, or 0
	listed   int32   // the entries before it are in contexts
	context  uint64  // hash of the last tokens,
	busy     int32   // and how many of them have frees
	token    uint32  // of the next allocation, so far
	frees    int32
	turns    [contextInfo]int32 // a ring: the last positions whose token differs from the one before,
	turned   uint32             // and how many there were

	at      int32 // the entry that the last matched allocation repeats, or none
	from    int32 // that allocation
	matched int32 // allocations since the place was found
	run     int32 // allocations since the last deviation
	missed  int32 // allocations without a match since
	lostAt  int32 // the place that was lost, and the allocation there
	lostBy  int32
	trust   int32 // the allocations since it was found
	looked  int32 // the last search
	low     int32 // only entries before it are candidates,
	least   int32 // and only at this distance
	odd     [recentLen / 64]uint64

	// While there was a place: allocations of another size than expected, after missing ones, and
	// without a match, the first in a row.
	deviated []int32
}

func newWatch(memory int) watch {
	w := watch{
		memory: int32(memory), mask: 1<<bits.Len(uint(memory-1)/partLen) - 1,
		contexts: make([]int32, 1<<bits.Len(uint(memory))), at: none, lostAt: none, looked: -searchEvery,
	}
	w.eras = newEras()
	return w
}

// next is the position of the next allocation.
func (w *watch) next() int32 { return w.end }

// of returns the entry at a position that is not forgotten.
func (w *watch) of(i int32) *entry { return &w.parts[i/partLen&w.mask][i%partLen] }

// placed returns what the plan says of an entry. There must be one.
func (w *watch) placed(i int32) *planned { return &w.planned[i/partLen&w.mask][i%partLen] }

// add returns the entry of the next allocation.
func (w *watch) add() *entry {
	if int(w.end/partLen) == len(w.parts) && len(w.parts) <= int(w.mask) {
		w.parts = append(w.parts, new([partLen]entry))
	}
	w.end++
	if w.planned != nil {
		w.makeRoom()
		*w.placed(w.end - 1) = planned{}
	}
	return w.of(w.end - 1)
}

// makeRoom makes room for a plan.
func (w *watch) makeRoom() {
	for len(w.planned) < len(w.parts) {
		w.planned = append(w.planned, new([partLen]planned))
	}
}

// known reports whether a position is remembered.
func (w *watch) known(i int32) bool { return i >= w.base }

// mix is a step of MurmurHash3.
func mix(h, v uint32) uint32 {
	return bits.RotateLeft32(h^v*0x9E3779B1, 13)*5 + 0xE6546B64
}

// free notes the free of an entry.
func (w *watch) free(i int32) {
	w.of(i).death = w.next()
	if age := w.next() - i; age < youngAge {
		w.token = mix(w.token, uint32(age))
		w.frees++
	}
}

// contextBase is the base of the hash of a context, and contextOut removes its oldest token.
const contextBase = 1000003

var contextOut = func() uint64 {
	p := uint64(1)
	for range contextLen {
		p *= contextBase
	}
	return p
}()

// step notes an allocation of n bytes and returns the entry that it repeats, or none.
func (w *watch) step(n device.Size) int32 {
	i := w.next()
	e := w.add()
	*e = entry{
		size: n, token: w.token, freed: w.frees > 0, death: none, twin: none, same: none, era: w.eras.now,
	}
	if i > w.base {
		last := w.of(i - 1)
		switch {
		case n < last.size:
			e.token = mix(e.token, 1001)
		case n > last.size:
			e.token = mix(e.token, 1002)
		}
		if e.token != last.token {
			w.turns[w.turned%contextInfo] = i
			w.turned++
		}
	}
	w.token, w.frees = 0, 0
	w.context = w.context*contextBase + uint64(e.token)
	if i-contextLen >= w.base {
		w.context -= contextOut * uint64(w.of(i-contextLen).token)
		w.busy -= int32(count(w.of(i - contextLen).freed))
	}
	if w.busy += int32(count(e.freed)); w.busy >= contextFrees {
		e.same = int32((w.context ^ w.context>>29) & uint64(len(w.contexts)-1))
	}
	if i%listEvery == 0 {
		w.list()
	}

	at := w.at
	twin := w.follow(i)
	odd := twin == none
	if twin != none {
		want, how := w.link(i, twin)
		odd = how == exactly && want != n || (how == byRatio || how == byPower) && !near(want, n)
	}
	w.count(i, odd)
	if w.at != none && (w.missed == 1 || odd && w.missed == 0 || twin > at+1) {
		w.deviated = append(w.deviated, i)
	}
	if odd && w.matched >= recentLen && w.deviations() > mostOdd {
		w.lose()
	}
	if w.due(i) {
		if found := w.search(i); found != none {
			twin = found
		}
	}
	return twin
}

// list enters the last allocations into contexts.
func (w *watch) list() {
	for ; w.listed < w.end; w.listed++ {
		if e := w.of(w.listed); e.same != none {
			at := &w.contexts[e.same]
			e.same, *at = *at-1, w.listed+1
		}
	}
}

// full reports whether the next allocation finds no room.
func (w *watch) full() bool { return w.end-w.base >= w.memory }

// forget drops the entries before a position.
func (w *watch) forget(from int32) {
	w.base = from
	w.deviated = append(w.deviated[:0], w.deviated[len(w.deviated)-w.deviatedSince(from):]...)
	if w.at != none && w.at < w.base {
		w.lose()
	}
}

// count notes whether an allocation deviates.
func (w *watch) count(i int32, odd bool) {
	word, bit := &w.odd[i%recentLen/64], uint64(1)<<(i%64)
	*word &^= bit
	if odd {
		*word |= bit
	}
}

// deviatedSince counts the deviations from a position on.
func (w *watch) deviatedSince(i int32) int {
	at, _ := slices.BinarySearch(w.deviated, i)
	return len(w.deviated) - at
}

// deviations counts the recent allocations that deviated, since the place was found.
func (w *watch) deviations() int {
	n, i := 0, w.next()-1
	for k := range min(recentLen, w.matched, i) {
		at := (i - k) % recentLen
		n += int(w.odd[at/64] >> (at % 64) & 1)
	}
	return n
}

// alike compares tokens.
func (e *entry) alike(b *entry) bool { return e.token == b.token && e.freed == b.freed }

// fits compares the size of an allocation with the prediction of the era for an entry that it may
// repeat.
func (w *watch) fits(x, i int32) (bool, certainty) {
	n := w.of(i).size
	want, how := w.eras.expect(w, x)
	return want == n || (how == byRatio || how == byPower) && near(want, n), how
}

// follow moves the pointer on to the entry that an allocation repeats, and returns it or none.
func (w *watch) follow(i int32) int32 {
	if w.at == none || w.at+1 >= i {
		return none
	}
	x := w.at + 1
	size, how := w.fits(x, i)
	b := w.of(i)
	token := w.of(x).alike(b)
	if size || token && (b.freed || how != exactly) {
		return w.take(x, i)
	}
	for y := x + 1; y < min(i, x+lookAhead); y++ {
		if !w.of(y).alike(b) {
			continue
		}
		if ok, _ := w.fits(y, i); ok {
			return w.take(y, i)
		}
	}
	if token { // a resize, or another era
		return w.take(x, i)
	}
	w.missed++
	w.run = 0
	if w.missed > 1 {
		if y := w.resume(i); y != none {
			return w.take(y, i)
		}
	}
	if w.missed > min(lostAfter, 1+w.matched/trustShare) {
		w.lose()
	}
	return none
}

func (w *watch) take(x, i int32) int32 {
	w.at, w.from = x, i
	w.matched++
	w.run++
	w.missed = 0
	return x
}

// lose gives the place up.
func (w *watch) lose() {
	w.lostAt, w.lostBy, w.trust = w.at, w.from, w.matched
	w.at, w.matched, w.missed = none, 0, 0
}

// resume finds where the sequence goes on after a deviation: the place around the expected one at
// which the last allocations agree best, the nearest of equals. It returns it, or none.
func (w *watch) resume(i int32) int32 {
	var last [windowLen]*entry
	for k := range last {
		last[k] = w.of(i - int32(k))
	}
	best, most, want := none, windowScore-1, w.at+i-w.from
	for d := range 2 * min(windowReach, reachEach*w.missed) {
		x := want + (d+1)/2
		if d%2 == 1 {
			x = want - (d+1)/2
		}
		if x < w.base+windowLen || x >= i || x < w.at-windowLen {
			continue
		}
		score := 0
		for k, b := range last {
			score += count(w.of(x - int32(k)).alike(b))
		}
		for k := int32(0); k < windowLen && score+int(windowLen-k) > most; k++ { // this takes longer
			ok, _ := w.fits(x-k, i-k)
			score += count(ok)
		}
		if score > most {
			best, most = x, score
		}
	}
	if best == none {
		return none
	}
	for k := int32(windowLen - 1); k > 0; k-- {
		if ok, _ := w.fits(best-k, i-k); ok && w.of(i-k).twin == none {
			w.link(i-k, best-k)
		}
	}
	return best
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// due reports whether a search is worth its cost.
func (w *watch) due(i int32) bool {
	since := i - w.looked
	return since >= searchEvery && (w.at == none || w.missed > 0 || since >= doubtEvery && w.matched < youngMatch)
}

// search looks for the longest match of the last allocations, and follows it if it is longer than
// the present one. It returns the entry that the allocation repeats by it, or none.
func (w *watch) search(i int32) int32 {
	w.looked = i
	if w.of(i).same == none {
		return none
	}
	w.list()
	best, n := w.find(i)
	if best == none {
		return none
	}
	w.matched = n
	if w.at != none || !w.moved(best, i) {
		w.eras.begin()
	} else {
		w.matched = max(n, min(n+w.trust, youngMatch))
	}
	w.at, w.from, w.missed, w.run = best, i, 0, min(n, steadyRun)
	clear(w.odd[:])                                        // the match explains them
	for k := min(w.matched, youngMatch) - 1; k >= 0; k-- { // before the match, those of the deviation
		if best-k >= w.base && w.of(i-k).token == w.of(best-k).token && (k < n || w.of(i-k).twin == none) {
			w.link(i-k, best-k)
		}
	}
	return best
}

// find returns the earlier allocation whose match with the last ones is worth following, and the
// length of that match, or none.
func (w *watch) find(i int32) (best, length int32) {
	best, most := none, int32(0)
	if w.at != none && w.missed <= briefMiss {
		most = w.matched
		if w.from == i {
			most = max(w.match(i, w.at, 1), most)
		}
		most = min(most, longest)
	}
	least := max(contextLen, i-w.turns[w.turned%contextInfo]+2) // includes contextInfo changes
	y := w.of(i).same
	for n := 0; n < candidates && y >= w.base; n, y = n+1, w.of(y).same {
		if y == w.at || y >= w.low || i-y < w.least {
			continue
		}
		bonus, more := int32(0), most+1
		switch {
		case w.at != none:
			more = 2*most + doubtEvery + 1
		case w.moved(y, i):
			bonus = nearLoss
		}
		if m := w.match(i, y, max(least, more-bonus)); m > 0 {
			best, most, length = y, m+bonus, m
		}
	}
	return best, length
}

// moved reports whether a match is near the place that was lost.
func (w *watch) moved(y, i int32) bool {
	d := (y - w.lostAt) - (i - w.lostBy)
	return w.lostAt > 0 && d > -windowReach && d < windowReach
}

// match returns how many allocations up to two positions have equal tokens, or 0 if fewer than
// least. The tokens at that distance are compared first, so that most candidates that are too short
// take one step.
func (w *watch) match(a, b, least int32) (n int32) {
	if least > longest || b-least+1 < w.base || w.of(b-least+1).token != w.of(a-least+1).token {
		return 0
	}
	for n < longest && b-n >= w.base && w.of(b-n).token == w.of(a-n).token {
		n++
	}
	if n < least {
		return 0
	}
	return n
}

// link notes that an allocation repeats an entry, and returns the size that was expected.
func (w *watch) link(i, x int32) (device.Size, certainty) {
	w.of(i).twin = x
	return w.eras.note(w, i, x)
}
