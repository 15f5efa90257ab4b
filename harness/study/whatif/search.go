package whatif

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
)

// How much is replayed. A setting costs one replay in which everything is measured, on the card if
// it is known, so that the same replay tells whether the card carries the trace; points that decide
// like others leave theirs. The rest is spent on minimum capacities: an eighth of that again, which
// makes about thirty-five replays of thirty-one settings (BenchmarkQuickGrid); and for short traces
// ten million events, about a second, which fade away until a trace has more than a million itself.
const (
	probeShare = 8          // one probe for so many settings
	probeFloor = 10_000_000 // events ...
	probeFade  = 7          // ... less so many for each of the trace
	mostAtOnce = 16         // probes that are made side by side, each of another setting
)

// budget returns the most events to replay of a trace of n when so many settings are asked for.
func budget(n, points uint64) uint64 {
	return n*points + max(n*points/probeShare, probeFloor-min(probeFloor, probeFade*n))
}

// economical cuts intervals in half and takes completing to be monotone below a minimum. In the
// quarter above it some capacities are tried when all minima are found and the budget has more;
// --grid full looks further.
var economical = compare.Effort{Fan: 1, Safe: 4}

// search is the state of a search.
type search struct {
	*Result
	ctx      context.Context
	trace    *replay.Prepared
	o        Options
	pool     *compare.Pool
	contests []*compare.Contest
	minima   []*compare.Search // by point; nil where there is none to look for
	counted  []uint64          // by point: events replayed, as far as they are in done
	done     atomic.Uint64     // events replayed
	outlook
}

func (s *search) run() error {
	n := uint64(s.trace.Head().Events)
	if !s.o.Full {
		s.Budget = budget(n, uint64(s.Points))
	}
	at := s.measuredOn()
	for i := range s.Runs {
		o := compare.Options{Device: replay.SimTarget(s.o.Device), FreeAt: s.o.FreeAt, Version: s.o.Version, Once: true}
		if s.o.Full && s.Card != 0 {
			o.Capacity = at
		}
		s.contests = append(s.contests, compare.NewContest(s.pool, s.trace, s.Runs[i].setup, o))
	}
	s.counted, s.minima = make([]uint64, len(s.Runs)), make([]*compare.Search, len(s.Runs))
	if ok, err := s.faithful(); err != nil || !ok {
		return err
	}
	err := sideBySide(len(s.Runs), func(i int) (err error) {
		if s.Runs[i].Run, err = s.measure(i, at); err != nil {
			return err
		}
		s.measured(i)
		s.spend(i)
		return nil
	})
	if err != nil {
		return err
	}
	if !s.o.Full {
		if err := s.probe(); err != nil {
			return err
		}
	}
	return s.measureAgain()
}

// partial leaves what is known of the points that were measured before the search was ended. It
// reports whether there are any.
func (s *search) partial() bool {
	if !s.o.Full {
		s.conclude()
	}
	s.Runs = slices.DeleteFunc(s.Runs, func(p Point) bool { return p.Trace == "" })
	s.Points = len(s.Runs)
	return len(s.Runs) > 0
}

func (s *search) onCard() bool { return s.Card >= s.LowerBound }

// measuredOn returns the capacity on which everything is measured: the card's if the trace can fit
// it at all, else one that no sensible strategy exhausts.
func (s *search) measuredOn() device.Size {
	if s.onCard() {
		return s.Card
	}
	return compare.Ample(s.LowerBound)
}

func (s *search) measure(i int, at device.Size) (compare.Run, error) {
	if s.o.Full {
		return s.contests[i].Run(s.ctx)
	}
	return s.contests[i].Measure(s.ctx, at)
}

// sideBySide calls f for 0 … n-1, each in a goroutine of its own, and returns the first error in
// their order.
func sideBySide(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return cmp.Or(errs...)
}

// spend books what a point has replayed since the last time.
func (s *search) spend(i int) {
	now := s.contests[i].Replayed()
	s.done.Add(now - s.counted[i])
	s.counted[i] = now
	s.tell()
}

// begin enters what the measuring replay has told and returns the search for the minimum.
func (s *search) begin(i int) *compare.Search {
	p := &s.Runs[i]
	clean := p.Starts && p.OOMs == 0 && p.Refused == 0
	if s.Card != 0 {
		carried := clean && s.Card >= s.LowerBound
		p.Carried = &carried
	}
	if s.o.Full {
		if p.MinCapacity != nil {
			p.CompletesAt = p.MinCapacity
			if below := *p.MinCapacity - compare.Grid; below >= s.LowerBound {
				p.FailsAt = &below
			}
		}
		return nil
	}
	if p.Refused > 0 {
		return nil
	}
	return compare.NewSearch(s.bounds(i, clean), economical)
}

// bounds returns what is known of a point's minimum capacity, and what to try first: what the
// device counted for the reserved bytes, with which a strategy that does not look at the capacity
// completes.
func (s *search) bounds(i int, clean bool) compare.Bounds {
	p := &s.Runs[i]
	at, first := p.Device, device.AlignUp(s.contests[i].PeakCharged(), compare.Grid)
	always := device.Size(0)
	if !clean {
		// Nothing up to here is tried again.
		return compare.Bounds{Floor: at + compare.Grid, First: device.AlignUp(at+at/4, compare.Grid)}
	}
	if p.setup.Preallocates {
		first = device.AlignUp(s.LowerBound+s.LowerBound/8, compare.Grid)
	}
	if p.setup.Unbound() {
		// The same would happen on a device of that size, and on every larger one.
		at = min(first, at)
		always = at
	}
	if first >= at {
		first = 0
	}
	return compare.Bounds{Floor: s.LowerBound, First: first, Completes: at, Always: always}
}

// probe searches minima while the budget lasts. Which probes are made does not depend on how many
// there are side by side: a round has its number from what is left, and ends before the next.
func (s *search) probe() error {
	n := uint64(max(s.trace.Head().Events, 1))
	s.probing = s.done.Load()
	for {
		spent := s.done.Load() + n*uint64(len(s.again()))
		left := s.Budget - min(spent, s.Budget)
		round := s.round(int(min(left/n, mostAtOnce)), max(left/(4*n), 1))
		if len(round) == 0 {
			s.conclude()
			return nil
		}
		answers := make([]bool, len(round))
		err := sideBySide(len(round), func(k int) (err error) {
			i := round[k]
			answers[k], err = s.contests[i].Completes(s.ctx, s.minima[i].Points()[0])
			s.probed()
			s.spend(i)
			return err
		})
		if err != nil {
			return err
		}
		for k, i := range round {
			s.minima[i].Answer(answers[k : k+1])
		}
		s.answered = 0
	}
}

// round returns the points whose minima are probed next, no more than either bound: of those
// that users can choose first, and of these those that may be the best.
func (s *search) round(most int, many uint64) []int {
	var open []int
	for i, m := range s.minima {
		if m != nil && len(m.Points()) > 0 {
			open = append(open, i)
		}
	}
	slices.SortStableFunc(open, func(a, b int) int {
		x, y := s.rank(a), s.rank(b)
		return cmp.Or(cmp.Compare(x.part, y.part), cmp.Compare(x.class, y.class), cmp.Compare(x.stage, y.stage),
			cmp.Compare(x.need, y.need))
	})
	return open[:min(len(open), most, int(min(many, mostAtOnce)))]
}

// rank is how soon a point is probed.
type rank struct {
	part  int         // minima come first, then whether a point fails above its minimum
	stage int         // points of which only the measuring replay is known come first
	class int         // what users can choose comes first, and what was recorded
	need  device.Size // probably enough; the largest size if nothing is known to be
}

func (s *search) rank(i int) rank {
	p := &s.Runs[i]
	r := rank{class: 1, need: ^device.Size(0)}
	if p.Recorded || p.Export != nil && s.candidate(p) {
		r.class = 0
	}
	_, ok := s.minima[i].Bracket()
	switch {
	case s.minima[i].Exact():
		r.part = 1
	case ok == nil || *ok < p.Device:
		r.stage = 1
	}
	if ok != nil {
		r.need = *ok
		if !p.setup.Preallocates {
			r.need = min(r.need, p.PeakReserved) // what it is likely to do with
		}
	} else if r.class == 0 {
		r.need-- // it needs more than the card, but how much is asked for
	}
	return r
}

// conclude enters what the searches have found.
func (s *search) conclude() {
	for i, m := range s.minima {
		p := &s.Runs[i]
		if m == nil {
			continue
		}
		p.FailsAt, p.CompletesAt = m.Bracket()
		p.SafeFrom = m.SafeFrom()
		switch {
		case m.Exact():
			p.MinCapacity = p.CompletesAt
		case p.CompletesAt != nil && *p.CompletesAt == p.Device && !s.onCard():
			p.CompletesAt = nil // an ample device shows nothing of what is needed
		}
		if failed := p.Device; p.FailsAt == nil && (!p.Starts || p.OOMs > 0) {
			p.FailsAt = &failed
		}
		p.Probes, p.SearchedUpTo = m.Tried()
		p.SearchedUpTo = max(p.SearchedUpTo, p.Device)
	}
}

// again returns the points to be measured again, on their minima: on an ample device a strategy
// reserves more than it needs, and one that takes all it may at once does so on every device.
func (s *search) again() (list []int) {
	for i := range s.Runs {
		p := &s.Runs[i]
		least := p.MinCapacity
		if m := s.minima[i]; m != nil && m.Exact() {
			_, least = m.Bracket()
		}
		if least != nil && *least != p.Device && (p.setup.Preallocates || !s.onCard()) {
			list = append(list, i)
		}
	}
	return list
}

// measureAgain measures points on their minima, as far as the budget goes.
func (s *search) measureAgain() error {
	again, n := s.again(), uint64(max(s.trace.Head().Events, 1))
	if s.Budget != 0 {
		left := s.Budget - min(s.done.Load(), s.Budget)
		again = again[:min(len(again), int(min(left/n, uint64(len(again)))))]
	}
	s.enter(phaseAgain, len(again))
	return sideBySide(len(again), func(k int) error {
		i := again[k]
		p := &s.Runs[i]
		row, err := s.contests[i].Measure(s.ctx, *p.MinCapacity)
		if err != nil {
			return err
		}
		row.MinCapacity, row.FailsAbove, row.SafeFrom = p.MinCapacity, p.FailsAbove, p.SafeFrom
		row.Probes, row.SearchedUpTo = p.Probes, p.SearchedUpTo
		p.Run = row
		s.over()
		s.spend(i)
		return nil
	})
}
