package whatif

import (
	"math"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/internal/units"
)

// sharesOfCard is the number of shares that are tried: people write them with two decimals.
const sharesOfCard = 100

// replays returns the options of all replays.
func (s *search) replays() compare.Options {
	return compare.Options{Device: replay.SimTarget(s.o.Device), FreeAt: s.o.FreeAt, Once: true,
		Probes: s.o.Cells}
}

// trial returns a trial of a setup.
func (s *search) trial(setup setting.Setup) *compare.Trial {
	o := s.replays()
	if s.o.Full && s.Card != 0 {
		o.Capacity = s.measuredOn()
	}
	return compare.NewTrial(s.pool, s.trace, setup, o)
}

// leastShare finds the smallest share of the card with which the trace completes, and adds it as a
// point. It varies the best of the framework's settings that take a share and complete. The budget
// grows by its replays, at most eight.
func (s *search) leastShare() error {
	best := -1
	for i := range s.Runs {
		p := &s.Runs[i]
		if p.setup.Share() > 0 && s.ours(p) && p.Permitted() && p.Carried != nil && *p.Carried && p.Need() != 0 &&
			(best < 0 || s.holds(p) < s.holds(&s.Runs[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	base := s.Runs[best].setup
	const rounding = 1e-9 // 0.07 * 100 is above 7
	low := max(int(math.Ceil(float64(s.LowerBound)/float64(s.Card)*sharesOfCard-rounding)), 1)
	high := int(math.Ceil(base.Share()*sharesOfCard - rounding))
	for low < high {
		mid := (low + high) / 2
		share, _ := base.WithShare(float64(mid) / sharesOfCard)
		t := s.trial(share)
		ok, err := t.Completes(s.ctx, s.Card)
		if err != nil {
			return err
		}
		s.extend(t)
		if ok {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return s.addShare(base, float64(high)/sharesOfCard)
}

// extend adds the events of a trial beyond the budget.
func (s *search) extend(t *compare.Trial) {
	events := t.Replayed() + t.Recalled()
	if s.Budget != 0 {
		s.Budget += events
	}
	s.done.Add(events)
}

// addShare marks the point of a share of the card, and adds it if the grid does not have it.
func (s *search) addShare(base setting.Setup, share float64) error {
	setup, _ := base.WithShare(min(share, 1))
	for i := range s.Runs {
		if p := &s.Runs[i]; p.setup.Name == setup.Name && decisions(p.setup) == decisions(setup) {
			p.LeastShare = true
			return nil
		}
	}
	p := newPoint(s.Recorded.Framework, setup, s.Recorded.Setup)
	p.Label = labelAmong(s.Runs, setup)
	t := s.trial(setup)
	row, err := t.Measure(s.ctx, s.Card)
	if err != nil {
		return err
	}
	s.extend(t)
	completed := row.Starts && row.OOMs == 0 && row.Refused == 0
	if !completed { // a larger share than the one in the grid, rounded up
		return nil
	}
	card := s.Card
	p.Run, p.LeastShare, p.Carried, p.CompletesAt = row, true, &completed, &card
	s.Points++
	s.Runs, s.trials = append(s.Runs, p), append(s.trials, t)
	return nil
}

// holds returns the bytes with which a setting is compared: the sufficient bytes, of the whole card
// or of the share that the setting takes if it completes on the card.
func (r *Result) holds(p *Point) device.Size {
	if share := p.setup.Share(); share > 0 && p.Carried != nil && *p.Carried {
		return device.Size(share * float64(p.Need()))
	}
	return p.Need()
}

// share returns the share of the card that a setting of the recorded framework takes; 0 for none.
func (r *Result) share(p *Point) float64 {
	if !r.ours(p) {
		return 0
	}
	return p.setup.Share()
}

// shrunk returns the point with the smallest share of the card, in place of one with a larger
// share.
func (r *Result) shrunk(p *Point) *Point {
	if r.share(p) == 0 {
		return p
	}
	for i := range r.Runs {
		if r.Runs[i].LeastShare && r.Runs[i].Permitted() {
			return &r.Runs[i]
		}
	}
	return p
}

// spare returns the memory of the card that a setting leaves to others: beyond its share, or beyond
// its need.
func (r *Result) spare(p *Point) device.Size {
	takes := p.Need()
	if share := r.share(p); share > 0 {
		takes = device.Size(share * float64(r.Card))
	}
	return r.Card - min(r.Card, takes)
}

// room returns the memory of a card on which a setting completes beside the CUDA context.
func (r *Result) room(p *Point) device.Size {
	if share := r.share(p); share > 0 {
		return max(p.Need(), device.Size(share*float64(p.Need()))+r.context())
	}
	return p.Need() + r.context()
}

// beside describes the share of the card that a setting takes, and what the rest must hold.
func (t *answerWriter) beside(p *Point) {
	least := ""
	if p.LeastShare {
		least = ", the least share in steps of 0.01 that completes"
	}
	rest := "the CUDA context, libraries and other programs"
	if t.Context != 0 {
		rest = "other programs"
	}
	t.say("%s takes %s of the card%s; %s must fit into the other %s.", t.Recorded.Framework,
		units.Bytes(t.Card-t.spare(p)), least, rest, units.Bytes(t.spare(p)))
}

// sharing names the least share of the card if the recorded settings take more.
func (t *answerWriter) sharing() {
	for i := range t.Runs {
		p := &t.Runs[i]
		if p.LeastShare && p != t.chosen && p != t.recorded {
			t.say("To share the card, %s is enough.", t.name(p))
			t.beside(p)
		}
	}
}
