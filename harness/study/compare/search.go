package compare

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// Grid is the step of the search for the minimum capacity.
const Grid = 2 * device.MiB

// doublings is how often the first capacity is doubled until a trace completes.
const doublings = 6

// Effort bounds the replays of a [Search].
type Effort struct {
	// Fan is how many points cut an interval at once. One takes the fewest replays, more can be
	// replayed side by side.
	Fan int
	// Below is how many capacities below a minimum are tried, because completing is not monotone.
	Below int
	// Above makes the search look for failures above the minimum, up to the first capacity that
	// completed.
	Above bool
	// Safe is how many capacities are spread over the quarter above a minimum, to find the safe
	// capacity: see [Search.SafeFrom]. 0: it is not searched.
	Safe int
}

// The efforts. A range of completing capacities below a minimum is missed only if it is narrower
// than the distance of the points tried there. With 8 points, three of fourteen minima of BFC on
// the recorded traces were missed, by 2 %.
var (
	thorough = Effort{Fan: 3, Below: 64, Above: true, Safe: 16}
	quick    = Effort{Fan: 3, Below: 8, Above: true}
)

// Bounds are what is known before a [Search] begins.
type Bounds struct {
	Floor         device.Size // bytes; nothing below is tried
	First         device.Size // bytes to try first; 0 with Completes set: nothing is tried first
	Completes     device.Size // bytes with which the trace is known to complete; 0: none are
	CompletesFrom device.Size // bytes from which on the trace is known to complete; 0: not known
}

// Search searches the minimum capacity step by step: [Search.Points] returns the capacities to try
// next and [Search.Answer] takes the results. Between two steps [Search.Bracket] returns the
// present bounds.
//
//  1. The first capacity is doubled, at most doublings times, until the trace completes, or
//     replaced by the capacity that is known to complete. This is the upper end; the floor, below
//     which nothing is tried, is the lower end.
//  2. Several points divide the interval. The lowest completing point becomes the upper end, the
//     highest failing one below it the lower end, until both are adjacent on the grid.
//  3. Because completing is not monotone, points spread between the floor and the minimum are
//     tried. If one completes, the search goes on below it.
//  4. Capacities 1, 2, 4, 8, … steps of the grid above the minimum are tried up to the upper end;
//     the largest that fails is remembered.
//  5. The safe capacity is the lowest one, from the minimum up, without a failure among the
//     capacities tried up to a quarter above it.
type Search struct {
	effort     Effort
	floor, top device.Size
	known      device.Size   // known to complete before the search; 0: none
	low, high  device.Size   // low fails or is below the floor; high completes, 0 before one did
	points     []device.Size // to try next
	step       searchStep
	doubled    int
	tried      int         // number of capacities tried
	highest    device.Size // largest capacity tried

	results       map[device.Size]bool // whether the trace completes, by capacity that was tried
	completesFrom device.Size          // bytes from which on it is known to complete; 0: not known
	queue         []device.Size        // to try after points
	safe          device.Size          // candidate for SafeFrom; 0 for none
	moves         int                  // how often the candidate moved up
}

// searchStep is a step of a [Search].
type searchStep uint8

const (
	stepUpper  searchStep = iota // look for an upper end
	stepNarrow                   // cut the interval between the ends
	stepBelow                    // look below a minimum for another
	stepAbove                    // look above the minimum for failures
	stepDone                     // the search is over
)

// NewSearch returns a search that has tried nothing.
func NewSearch(b Bounds, e Effort) *Search {
	s := &Search{
		effort: e, floor: device.AlignUp(max(b.Floor, 1), Grid), known: b.Completes, completesFrom: b.CompletesFrom,
		results: map[device.Size]bool{},
	}
	s.low = s.floor - Grid
	if b.First == 0 && b.Completes != 0 {
		s.found(b.Completes)
		return s
	}
	s.points = []device.Size{max(b.First, s.floor)}
	return s
}

// Points returns the capacities in bytes to try next, ascending; none when the search is over.
func (s *Search) Points() []device.Size { return s.points }

// Minimum returns the smallest capacity in bytes that is known to complete, nil if none is.
func (s *Search) Minimum() *device.Size { return pointerTo(cmp.Or(s.high, s.known)) }

// FailsAbove returns the largest capacity in bytes above the minimum that was seen to fail, nil if
// none was. It is known when the search is over.
func (s *Search) FailsAbove() *device.Size {
	var highest device.Size
	for n, ok := range s.results {
		if !ok && s.high != 0 && n > s.high {
			highest = max(highest, n)
		}
	}
	return pointerTo(highest)
}

// Bracket returns the lowest completing capacity and the highest failing one below it, in bytes;
// nil if unknown. Capacities below the floor do not count as failing.
func (s *Search) Bracket() (fails, completes *device.Size) {
	if s.low >= s.floor {
		fails = pointerTo(s.low)
	}
	return fails, s.Minimum()
}

// Exact reports whether the minimum has its neighbour below it, which fails or is below the floor.
func (s *Search) Exact() bool { return s.high != 0 && s.high-s.low <= Grid }

// Tried returns how many capacities were tried, and the largest of them in bytes.
func (s *Search) Tried() (n int, highest device.Size) { return s.tried, s.highest }

// Left returns about how many capacities are still to be tried.
func (s *Search) Left() int {
	if s.step == stepDone {
		return 0
	}
	if s.step == stepBelow || s.step == stepAbove {
		return len(s.points) + len(s.queue)
	}
	high := s.high
	if s.step == stepUpper {
		high = s.points[0]
	}
	left := s.effort.Below
	if high > s.low {
		cuts := bits.Len64(uint64((high - s.low - 1) / Grid))
		left += s.effort.Fan * cuts / bits.Len(uint(s.effort.Fan))
	}
	if s.effort.Safe > 0 {
		for _, n := range s.window(high) {
			if _, known := s.completes(n); !known {
				left++
			}
		}
	}
	return left
}

func pointerTo(n device.Size) *device.Size {
	if n == 0 {
		return nil
	}
	return &n
}

// Answer takes for each of the [Search.Points] whether the trace completes there.
func (s *Search) Answer(completes []bool) {
	points := s.points
	s.tried += len(points)
	s.highest = max(s.highest, slices.Max(points))
	for i, n := range points {
		s.results[n] = completes[i]
	}
	first := slices.Index(completes, true)
	switch s.step {
	case stepUpper:
		s.upper(points[0], first == 0)
	case stepNarrow:
		s.cut(points, first)
	case stepBelow:
		if first >= 0 {
			s.low, s.high = s.floor-Grid, points[first]
			s.narrow()
		} else {
			s.above()
		}
	case stepAbove:
		if !s.next() {
			s.aboveTried()
		}
	case stepDone:
	}
}

func (s *Search) upper(n device.Size, ok bool) {
	if ok {
		s.found(n)
		return
	}
	s.low = max(s.low, n)
	switch {
	case s.known != 0:
		s.found(s.known)
	case s.doubled == doublings:
		s.end()
	default:
		s.doubled++
		s.points = []device.Size{2 * n}
	}
}

func (s *Search) found(n device.Size) {
	s.high, s.top = n, n
	if s.effort.Below > 0 {
		s.low = s.floor - Grid // a capacity below a failing one may complete
	}
	s.narrow()
}

// cut takes the points between the ends and the index of the first that completes, -1 if none does.
func (s *Search) cut(points []device.Size, first int) {
	if first >= 0 {
		s.high = points[first]
	} else {
		first = len(points)
	}
	if first > 0 {
		s.low = points[first-1]
	}
	s.narrow()
}

// narrow requests points between the ends, or proceeds if there are no more.
func (s *Search) narrow() {
	s.step = stepNarrow
	if s.high > s.low && s.high-s.low > Grid {
		s.points = spread(s.low+Grid, s.high, device.Size(s.effort.Fan))
		return
	}
	s.step = stepBelow
	if s.points = spread(s.floor, s.high, device.Size(s.effort.Below)); len(s.points) == 0 {
		s.above()
	}
}

func (s *Search) above() {
	s.step = stepAbove
	var points []device.Size
	for step := Grid; s.effort.Above && s.high+step <= s.top; step *= 2 {
		points = append(points, s.high+step)
	}
	if s.effort.Safe > 0 {
		s.safe = s.high
	}
	if !s.enqueue(points) {
		s.aboveTried()
	}
}

func (s *Search) aboveTried() {
	if s.safe == 0 {
		s.end()
		return
	}
	s.settle()
}

func (s *Search) end() { s.step, s.points = stepDone, nil }

// spread returns at most n multiples of the grid from low, ascending, that divide [low, high) into
// parts as equal as the grid allows. low is among them when the interval is short.
func spread(low, high device.Size, n device.Size) []device.Size {
	if high <= low {
		return nil
	}
	steps := (high - low) / Grid
	var points []device.Size
	for i := range n {
		p := low + (i+1)*steps/(n+1)*Grid
		if p < high && (len(points) == 0 || p > points[len(points)-1]) {
			points = append(points, p)
		}
	}
	return points
}
