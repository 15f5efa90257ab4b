package compare

import (
	"maps"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// safeShare is the divisor of a capacity that gives its window: a capacity is safe if no tried
// capacity from it up to a quarter above it fails.
const safeShare = 4

// mostMoves bounds how often the candidate for the safe capacity moves up.
const mostMoves = 16

// SafeFrom returns the smallest capacity in bytes at which the trace completes, as at every
// capacity that was tried from there up to 1.25 times it. It is nil before the search is over, if
// nothing above the minimum was tried, and if failures continue too far up.
func (s *Search) SafeFrom() *device.Size {
	if s.step != stepDone {
		return nil
	}
	return pointerTo(s.safe)
}

func (s *Search) completes(n device.Size) (ok, known bool) {
	if s.completesFrom != 0 && n >= s.completesFrom {
		return true, true
	}
	ok, known = s.results[n]
	return ok, known
}

// window returns the capacities to try above a candidate: 1, 2, 4, 8, … steps of the grid above
// it, and some spread over the quarter up to its end.
func (s *Search) window(n device.Size) []device.Size {
	end := n + n/safeShare
	points := spread(n, end, device.Size(s.effort.Safe))
	for step := Grid; n+step <= end; step *= 2 {
		points = append(points, n+step)
	}
	return points
}

// enqueue queues the capacities whose result is unknown and takes the first of them. It reports
// whether there are any.
func (s *Search) enqueue(points []device.Size) bool {
	slices.Sort(points)
	s.queue = slices.DeleteFunc(slices.Compact(points), func(n device.Size) bool {
		_, known := s.completes(n)
		return known
	})
	return s.next()
}

// next makes the queued capacities the points to try, one at a time if intervals are bisected.
func (s *Search) next() bool {
	n := len(s.queue)
	if s.effort.Fan == 1 {
		n = min(n, 1)
	}
	s.points, s.queue = s.queue[:n:n], s.queue[n:]
	return n > 0
}

// settle moves the candidate above the highest failure in its window, until the window has none.
func (s *Search) settle() {
	for {
		fails, above := s.failure()
		switch {
		case fails == 0:
			if !s.enqueue(s.window(s.safe)) {
				s.end()
			}
			return
		case above == 0 || s.moves == mostMoves:
			s.safe = 0
			s.end()
			return
		case above-fails > Grid:
			s.enqueue([]device.Size{fails + (above-fails)/Grid/2*Grid})
			return
		}
		s.safe = above
		s.moves++
	}
}

// failure returns the highest capacity that failed in the window of the candidate, 0 if none did,
// and the lowest that completes above it, 0 if none is known. No capacity between the two was
// tried.
func (s *Search) failure() (fails, completes device.Size) {
	end := s.safe + s.safe/safeShare
	tried := slices.Sorted(maps.Keys(s.results))
	for _, n := range tried {
		if ok, _ := s.completes(n); !ok && n > s.safe && n <= end {
			fails = n
		}
	}
	if fails == 0 {
		return 0, 0
	}
	known := s.top
	if s.completesFrom != 0 {
		known = min(known, s.completesFrom)
	}
	for _, n := range tried {
		switch ok, _ := s.completes(n); {
		case n <= fails:
		case ok && (known <= fails || n < known):
			return fails, n
		case ok:
			return fails, known
		default:
			fails = n
		}
	}
	if known <= fails {
		return fails, 0
	}
	return fails, known
}
