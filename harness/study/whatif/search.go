package whatif

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
)

// The budget of events. A setting costs one full replay, on the card if it is known, so that it
// also decides whether the trace completes on the card. Redundant points leave their share to
// others. Minimum capacities get an eighth of that again, about thirty-five replays for thirty-one
// settings (BenchmarkQuickGrid). Short traces get ten million events more, about a second,
// decreasing to none above 1.4 million events.
const (
	probeShare = 8          // settings per probe
	probeFloor = 10_000_000 // additional events ...
	probeFade  = 7          // ... minus this many per event of the trace
	mostAtOnce = 16         // concurrent probes, each of another setting
)

// budget returns the most events to replay of a trace of n events.
func budget(n, points uint64) uint64 {
	return n*points + max(n*points/probeShare, probeFloor-min(probeFloor, probeFade*n))
}

// economical bisects intervals and assumes monotony below a minimum. The remaining budget tries
// capacities up to a quarter above each minimum; --grid full looks further.
var economical = compare.Effort{Fan: 1, Safe: 4}

type search struct {
	*Result
	ctx     context.Context
	trace   *replay.Prepared
	demand  setting.Demand
	o       Options
	pool    *compare.Pool
	trials  []*compare.Trial
	minima  []*compare.Search // by point; nil: nothing to search
	counted []uint64          // by point: its events included in done
	done    atomic.Uint64     // events replayed, and those that earlier replays made unnecessary
	outlook
}

func (s *search) run() error {
	n := uint64(s.trace.Head().Events)
	if !s.o.Full {
		s.Budget = budget(n, uint64(s.Points))
	}
	at := s.measuredOn()
	for i := range s.Runs {
		s.trials = append(s.trials, s.trial(s.Runs[i].setup))
	}
	s.counted, s.minima = make([]uint64, len(s.Runs)), make([]*compare.Search, len(s.Runs))
	if ok, err := s.faithful(); err != nil || !ok {
		return err
	}
	if err := s.measureAll(at); err != nil {
		return err
	}
	if !s.o.Full {
		if err := s.probe(); err != nil {
			return err
		}
	}
	return s.measureAgain()
}

// measureAll measures every point. Points that follow another one come last.
func (s *search) measureAll(at device.Size) error {
	followed := s.followed(at)
	for _, following := range [...]bool{false, true} {
		err := sideBySide(len(s.Runs), func(i int) (err error) {
			j, ok := followed[i]
			if ok != following {
				return nil
			}
			if ok {
				s.trials[i].Follow(s.trials[j], func(n, held device.Size) bool {
					return s.reduced(i, n, held) == s.reduced(j, 0, 0)
				})
			}
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
	}
	return s.badChange()
}

// followed returns the points that may decide like another one on a device of n bytes, with that
// one: they reduce to it if it holds little enough.
func (s *search) followed(n device.Size) map[int]int {
	leaders, followed := map[string]int{}, map[int]int{}
	for i := range s.Runs {
		key := s.reduced(i, 0, 0)
		if _, found := leaders[key]; !found && key == s.reduced(i, n, 1) {
			leaders[key] = i
		}
	}
	for i := range s.Runs {
		if j, found := leaders[s.reduced(i, n, 1)]; found && j != i {
			followed[i] = j
		}
	}
	return followed
}

// reduced returns the identity of a point's reduced setting on a device of n bytes, given the most
// bytes that this holds there, 0 if they are unknown.
func (s *search) reduced(i int, n, held device.Size) string {
	d := s.demand
	d.Capacity, d.Held = n, held
	return decisions(s.Runs[i].setup.Reduced(d))
}

// partial keeps the measured points of an interrupted search. It reports whether there are any.
func (s *search) partial() bool {
	if !s.o.Full {
		s.conclude()
	}
	s.Runs = slices.DeleteFunc(s.Runs, func(p Point) bool { return p.Trace == "" })
	s.Points = len(s.Runs)
	return len(s.Runs) > 0
}

func (s *search) onCard() bool { return s.Card >= s.LowerBound }

// measuredOn returns the capacity for the measuring replays: the card's if the live bytes fit,
// otherwise an ample one.
func (s *search) measuredOn() device.Size {
	if s.onCard() {
		return s.Card
	}
	return compare.Ample(s.LowerBound)
}

func (s *search) measure(i int, at device.Size) (r compare.Run, err error) {
	if s.o.Full {
		r, err = s.trials[i].Run(s.ctx)
	} else {
		r, err = s.trials[i].Measure(s.ctx, at)
	}
	if rejected, ok := errors.AsType[*replay.RejectedError](err); ok && !s.Runs[i].Recorded {
		return s.rejecting(i, at, rejected), nil
	}
	return r, err
}

// rejecting returns the row of a point that rejects a change of the settings in the trace.
func (s *search) rejecting(i int, at device.Size, err *replay.RejectedError) compare.Run {
	t, setup := s.trace.Head(), s.Runs[i].setup
	why := strings.Replace(err.Error(), alloc.ErrInvalidSettings.Error()+": ", "", 1)
	r := compare.Run{Figures: compare.Figures{
		Trace: t.Header.Name, TraceSHA256: t.Header.Hash, Gap: s.trace.Gap(), Strategy: setup.Name,
		Baseline: setup.Baseline, Events: t.Events, LowerBound: s.LowerBound, Device: at,
		Rejects: t.Place(err.Event) + ": " + why,
	}}
	r.Config, _ = json.Marshal(setup.ForCapacity(at).Config) // the replay encoded it before
	return r
}

// badChange returns an error if all points of a strategy reject a change of the settings: then the
// trace is at fault, and not a setting that was tried.
func (s *search) badChange() error {
	first, taken := map[string]*Point{}, map[string]bool{}
	for i := range s.Runs {
		p := &s.Runs[i]
		name := p.family()
		taken[name] = taken[name] || p.Rejects == ""
		if first[name] == nil {
			first[name] = p
		}
	}
	for i := range s.Runs {
		if p := &s.Runs[i]; first[p.family()] == p && !taken[p.family()] {
			return fmt.Errorf("%s on %s: %s", p.Label, p.Trace, p.Rejects)
		}
	}
	return nil
}

// sideBySide calls f(0) … f(n-1) concurrently and returns the error with the lowest index.
func sideBySide(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return cmp.Or(errs...)
}

// spend adds the events of a point's new replays. Those that earlier replays made unnecessary
// count too, so that the budget buys the same figures.
func (s *search) spend(i int) {
	now := s.trials[i].Replayed() + s.trials[i].Recalled()
	s.done.Add(now - s.counted[i])
	s.counted[i] = now
	s.showProgress()
}

// begin processes the measuring replay and returns the search for the minimum.
func (s *search) begin(i int) *compare.Search {
	p := &s.Runs[i]
	clean := p.Starts && p.OOMs == 0 && p.Refused == 0
	if s.Card != 0 {
		completed := clean && s.Card >= s.LowerBound
		p.Carried = &completed
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
	if p.Refused > 0 || p.Rejects != "" {
		return nil
	}
	return compare.NewSearch(s.bounds(i, clean), economical)
}

// bounds returns the known bounds of a point's minimum, and the first capacity to try: the bytes
// that the device charged for the reserved peak, enough for a strategy that ignores the capacity.
func (s *search) bounds(i int, clean bool) compare.Bounds {
	p := &s.Runs[i]
	at, first := p.Device, device.AlignUp(s.trials[i].PeakCharged(), compare.Grid)
	completesFrom := device.Size(0)
	if !clean {
		// Smaller capacities are known to fail.
		return compare.Bounds{Floor: at + compare.Grid, First: device.AlignUp(at+at/4, compare.Grid)}
	}
	if p.setup.Preallocates {
		first = device.AlignUp(s.LowerBound+s.LowerBound/8, compare.Grid)
	}
	if p.setup.Unbound() && !s.trace.Changes() {
		// It would behave the same on a device of this size or larger.
		at = min(first, at)
		completesFrom = at
	}
	if first >= at {
		first = 0
	}
	return compare.Bounds{Floor: s.LowerBound, First: first, Completes: at, CompletesFrom: completesFrom}
}

// probe searches minima within the budget. Probes are independent of concurrency: a round's size
// follows from the remaining budget, and rounds do not overlap.
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
			answers[k], err = s.trials[i].Completes(s.ctx, s.minima[i].Points()[0])
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
		s.pending = 0
	}
}

// round returns the points to probe next, within both bounds: first settings that users can select,
// and of these the most promising.
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

// rank is the priority of a point for probing.
type rank struct {
	part  int         // minima first, then capacities above them
	stage int         // points without probes first
	class int         // selectable and recorded settings first
	need  device.Size // estimated need; the largest size if unknown
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
			r.need = min(r.need, p.PeakReserved) // its likely need
		}
	} else if r.class == 0 {
		r.need-- // it exceeds the card by an unknown amount
	}
	return r
}

// conclude stores the results of the searches.
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
			p.CompletesAt = nil // an ample device does not show the need
		}
		if failed := p.Device; p.FailsAt == nil && (!p.Starts || p.OOMs > 0) {
			p.FailsAt = &failed
		}
		p.Probes, p.SearchedUpTo = m.Tried()
		p.SearchedUpTo = max(p.SearchedUpTo, p.Device)
	}
}

// again returns the points to measure again at their minima: on an ample device a strategy reserves
// more than it needs, and if it reserves all at once, it does so anywhere.
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

// measureAgain measures points at their minima, within the budget.
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
		row, err := s.trials[i].Measure(s.ctx, *p.MinCapacity)
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
