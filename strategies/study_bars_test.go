package strategies_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/internal/units"
)

// The bars of the study.
const (
	barCapacity  = 1.02  // times the lower bound, on traces that repeat
	barStitch    = 1.005 // times the bytes of stitch
	barFallback  = 1.01  // times the bytes of the fallback
	barTime      = 2     // times the time of the fallback
	barSteps     = 4     // fewest steps of a trace that repeats
	barRecurring = 0.5   // share of recurring allocations of a trace whose sizes recur
	barReturned  = 0.9   // of the share of planned places before a deviation
	barGrowth    = 0.01  // growth that is no effect of a perturbation
)

// tally counts the traces that meet a bar, and remembers the highest figure.
type tally struct {
	bar     string
	met, of int
	worst   float64
	on      string
}

// holds reports whether there are traces, and all meet the bar.
func (t tally) holds() bool { return t.of > 0 && t.met == t.of }

// figure is a figure of a trace. It is not a number if it does not apply to the trace.
type figure func(c studyCase) float64

// judge counts the traces whose figure is at most the limit.
func judge(bar string, cases []studyCase, of figure, limit float64) (t tally) {
	t.bar = bar
	for _, c := range cases {
		x := of(c)
		if math.IsNaN(x) {
			continue
		}
		t.of++
		if x <= limit {
			t.met++
		}
		if t.of == 1 || x > t.worst {
			t.worst, t.on = x, spaced(c.name)
		}
	}
	return t
}

// bars returns all bars, in the order of the table.
func (s *study) bars() (all []tally) {
	var recurring, other, steps []studyCase
	plain, changed := s.in(groupPlain), s.in(groupPerturbed, groupSpliced)
	for _, c := range plain {
		if c.steps.Count >= 3 {
			steps = append(steps, c)
		}
		if c.steps.Count < barSteps {
			continue
		}
		if float64(c.steps.Recurring) >= barRecurring*float64(c.steps.Compared) {
			recurring = append(recurring, c)
		} else {
			other = append(other, c)
		}
	}
	stitch, calls := s.against(studyPaged, "stitch"), s.moreCalls(studyPaged, "caching:expandable")
	both := func(c studyCase) float64 { return stitch(c) / (1 - calls(c)) }
	all = append(all,
		judge("`recall`: at most 1.02 × bound, sizes recur", recurring, s.capacity(studySubject), barCapacity),
		judge("`recall`: at most 1.02 × bound, sizes do not recur", other, s.capacity(studySubject), barCapacity),
		judge("`recall:pages`: at most 1.005 × `stitch`", steps, stitch, barStitch),
		judge("`recall:pages`: no more calls than `caching:expandable`", steps, calls, 0),
		judge("`recall:pages`: both at once", steps, both, barStitch),
	)
	for _, g := range studyGroups {
		bar := fmt.Sprintf("`recall`: at most 1.01 × `bestfit`, %s", g)
		all = append(all, judge(bar, s.in(g), s.against(studySubject, studyFallback), barFallback))
	}
	all = append(all, judge("`recall`: growth at most linear in the rate", changed, s.linear, 1),
		judge("`recall`: plan recovered within one step", changed, s.lost, 0))
	for _, name := range []string{studySubject, studyPaged} {
		overlaps := func(c studyCase) float64 { return float64(s.of(name, c).overlaps) }
		all = append(all, judge("`"+name+"`: no overlap", s.cases, overlaps, 0),
			judge("`"+name+"`: at most 2 × the time of `bestfit`", s.cases, s.slower(name), barTime))
	}
	for _, rival := range s.names {
		if family, _, _ := strings.Cut(rival, " "); slices.Contains([]string{"stalloc", "compiler", "pgmo"}, family) {
			all = append(all, judge("`recall`: beats `"+rival+"`, unchanged", plain, s.unbeaten(rival), 0))
			if slices.Contains(studyChanged, rival) {
				all = append(all, judge("`recall`: beats `"+rival+"`, perturbed or spliced", changed, s.unbeaten(rival), 0))
			}
		}
	}
	return all
}

// indicator is 1 if something holds, and else 0.
func indicator(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// moreCalls is 1 if a strategy makes more device calls than another.
func (s *study) moreCalls(ours, rival string) figure {
	return func(c studyCase) float64 { return indicator(s.of(ours, c).late > s.of(rival, c).late) }
}

// slower is the time of a strategy as a multiple of the fallback's.
func (s *study) slower(name string) figure {
	return func(c studyCase) float64 {
		if n := s.of(name, c).percent; c.timed() && n > 0 {
			return float64(n) / 100
		}
		return math.NaN()
	}
}

// unbeaten is 1 if the subject does not need fewer bytes than a rival, unless both need only the
// lower bound, or makes more device calls.
func (s *study) unbeaten(rival string) figure {
	return func(c studyCase) float64 {
		x := s.against(studySubject, rival)(c)
		if math.IsNaN(x) {
			return x
		}
		least := s.of(studySubject, c).smallest < s.of(studyBound, c).smallest+uint64(compare.Grid)
		return indicator(x > 1 || x == 1 && !least || s.moreCalls(studySubject, rival)(c) > 0)
	}
}

// lost is 0 if the subject uses its plan again after a deviation: a planned place within a step,
// and nearly as many in the second step as before. It applies if there was a plan before.
func (s *study) lost(c studyCase) float64 {
	r := s.of(studySubject, c)
	if r.planned[0] == 0 {
		return math.NaN()
	}
	return indicator(r.back == 0 || r.back > uint64(c.period) || float64(r.planned[2]) < barReturned*float64(r.planned[0]))
}

// linear is the growth of the subject at a rate over ten times the growth at a tenth of the rate,
// or over barGrowth if that is more. It applies to perturbations of all four kinds.
func (s *study) linear(c studyCase) float64 {
	for _, before := range s.in(groupPerturbed) {
		if c.kind == studyAll && before.kind == c.kind && before.plain == c.plain && before.seed == c.seed &&
			before.rate == c.rate/10 {
			grown := s.growth(studySubject)
			return (grown(c) - 1) / max(10*(grown(before)-1), barGrowth)
		}
	}
	return math.NaN()
}

// often describes a count of traces in words.
func often(count, of int) string {
	switch {
	case count == 0:
		return "never"
	case count == of:
		return "always"
	case 10*count < of:
		return "rarely"
	case 2*count < of:
		return "sometimes"
	}
	return "mostly"
}

// answer returns the first paragraphs of the page, which hold for any figures.
func (s *study) answer() string {
	unchanged, others := s.in(groupPlain), s.in(groupPerturbed, groupSpliced)
	plain, changed := s.duel(studySubject, studyFallback, unchanged), s.duel(studySubject, studyFallback, others)
	of, bars, held := plain.of()+changed.of(), s.bars(), 0
	for _, t := range bars {
		if t.holds() {
			held++
		}
	}
	return fmt.Sprintf("**Planning with re-synchronization after deviations %s saves memory and %s costs memory:\n"+
		"exact counts for these traces, weak evidence for others.** On unchanged traces `recall` needs\n"+
		"less than `bestfit`, which it is without a plan, %v.\nOn perturbed and spliced traces it needs less %v.\n"+
		"`recall:pages` needs less than `stitch` %v,\nand on perturbed and spliced traces %v.\n"+
		"Of the %d bars below they meet %d.\n\n"+
		"The evidence is weak because the traces are few and the strategy was developed with them.\n",
		often(plain.less+changed.less, of), often(plain.more+changed.more, of), plain, changed,
		s.duel(studyPaged, "stitch", unchanged), s.duel(studyPaged, "stitch", others), len(bars), held)
}

// overlaps returns a sentence about the strategies that granted overlapping blocks.
func (s *study) overlaps() string {
	var found []string
	for _, name := range s.names {
		var n uint64
		for _, c := range s.cases {
			n += s.of(name, c).overlaps
		}
		if n > 0 {
			found = append(found, fmt.Sprintf("%s by `%s`", units.Count(n), name))
		}
	}
	return "Overlaps on all traces together: " + cmp.Or(strings.Join(found, ", "), "none") + ".\n"
}
