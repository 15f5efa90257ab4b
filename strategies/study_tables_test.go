package strategies_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/internal/units"
)

// text returns a generated part of the page by its name.
func (s *study) text(name string) string {
	switch name {
	case "answer":
		return s.answer()
	case "bars":
		return s.barTable()
	case "capacity":
		return s.unchanged(0, func(name string, c studyCase) string { return times3(s.capacity(name)(c)) })
	case "calls":
		return s.unchanged(3, func(name string, c studyCase) string {
			if !takesPart(name, c) {
				return "—"
			}
			return units.Count(s.of(name, c).late)
		})
	case "overlaps":
		return s.overlaps()
	case "rivals":
		return s.rivals()
	case "perturbed":
		return s.perturbed()
	case "spliced":
		return s.spliced()
	case "time":
		return s.times()
	}
	panic("strategies: no part " + name)
}

// markdown joins rows of cells; the first is the head. The first column is text.
func markdown(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|---|" + strings.Repeat("--:|", len(row)-1) + "\n")
		}
	}
	return b.String()
}

// spaced returns the name of a trace in words.
func spaced(trace string) string { return strings.ReplaceAll(trace, "_", " ") }

// in returns the cases of some groups.
func (s *study) in(groups ...studyGroup) (all []studyCase) {
	for _, c := range s.cases {
		if slices.Contains(groups, c.group) {
			all = append(all, c)
		}
	}
	return all
}

// perturbedBy returns the traces with a kind and rate of perturbation.
func (s *study) perturbedBy(kind string, rate float64) (all []studyCase) {
	for _, c := range s.in(groupPerturbed) {
		if c.kind == kind && c.rate == rate {
			all = append(all, c)
		}
	}
	return all
}

func (s *study) of(name string, c studyCase) studyResult { return s.results[resultKey{name, c.name}] }

// capacity is the minimum capacity over the lower bound.
func (s *study) capacity(name string) figure { return s.against(name, studyBound) }

// against is the ratio of the minimum capacities of two strategies.
func (s *study) against(a, b string) figure {
	return func(c studyCase) float64 {
		x, y := s.of(a, c).smallest, s.of(b, c).smallest
		if x == 0 || y == 0 {
			return math.NaN()
		}
		return float64(x) / float64(y)
	}
}

// growth is the capacity over the same on the unchanged trace.
func (s *study) growth(name string) figure {
	return func(c studyCase) float64 {
		return s.capacity(name)(c) / s.capacity(name)(studyCase{name: c.plain.Header.Name})
	}
}

// spread is a figure of several traces.
type spread struct{ least, middle, most float64 }

// spreadOf returns the spread of a figure; of two medians, the lower.
func spreadOf(cases []studyCase, of figure) spread {
	var all []float64
	for _, c := range cases {
		if x := of(c); !math.IsNaN(x) {
			all = append(all, x)
		}
	}
	if len(all) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	slices.Sort(all)
	return spread{all[0], all[(len(all)-1)/2], all[len(all)-1]}
}

// duel counts the traces on which a strategy needs less, as much and more than another one.
type duel struct {
	less, equal, more int
	least, most       float64
	on                string // trace with the highest ratio
}

func (d duel) of() int { return d.less + d.equal + d.more }

func (d duel) String() string {
	return fmt.Sprintf("on %d of %d, as much on %d and more on %d, from %s to %s times as much",
		d.less, d.of(), d.equal, d.more, times3(d.least), times3(d.most))
}

func (s *study) duel(ours, rival string, cases []studyCase) (d duel) {
	d.least = math.Inf(1)
	for _, c := range cases {
		x := s.against(ours, rival)(c)
		switch {
		case x < 1:
			d.less++
		case x == 1:
			d.equal++
		case x > 1:
			d.more++
		}
		if x > d.most {
			d.most, d.on = x, spaced(c.name)
		}
		if x < d.least {
			d.least = x
		}
	}
	return d
}

// barTable returns a row for each bar, with the traces that meet it.
func (s *study) barTable() string {
	rows := [][]string{{"bar", "holds", "traces that meet it", "worst"}}
	for _, b := range s.bars() {
		holds, worst := "no", "—"
		switch {
		case b.of == 0:
			holds = "—"
		case b.holds():
			holds = "yes"
		}
		if b.worst > 1 && !math.IsInf(b.worst, 1) {
			worst = fmt.Sprintf("%s on %s", times3(b.worst), b.on)
		}
		rows = append(rows, []string{b.bar, holds, fmt.Sprintf("%d of %d", b.met, b.of), worst})
	}
	return markdown(rows)
}

// unchanged returns a row for each unchanged trace with enough steps, and a column for each
// strategy.
func (s *study) unchanged(steps int, cell func(name string, c studyCase) string) string {
	rows := [][]string{{"trace", "steps", "recurring"}}
	for _, name := range s.names {
		rows[0] = append(rows[0], "`"+name+"`")
	}
	for _, c := range s.in(groupPlain) {
		if c.steps.Count < steps {
			continue
		}
		recurring := "—"
		if c.steps.Compared > 0 {
			recurring = units.Fixed(100*float64(c.steps.Recurring)/float64(c.steps.Compared), 0) + " %"
		}
		row := []string{spaced(c.name), fmt.Sprint(c.steps.Count), recurring}
		for _, name := range s.names {
			row = append(row, cell(name, c))
		}
		rows = append(rows, row)
	}
	return markdown(rows)
}

// rivals returns a row for each rival, with the unchanged traces on which the subjects need less,
// as much and more, and the highest ratio.
func (s *study) rivals() string {
	rows := [][]string{{"rival"}}
	for _, ours := range []string{studySubject, studyPaged} {
		rows[0] = append(rows[0], "`"+ours+"`: less", "equal", "more", "worst")
	}
	for _, rival := range s.names {
		row := []string{"`" + rival + "`"}
		for _, ours := range []string{studySubject, studyPaged} {
			if rival == ours {
				row = append(row, "", "", "", "")
				continue
			}
			d := s.duel(ours, rival, s.in(groupPlain))
			row = append(row, fmt.Sprint(d.less), fmt.Sprint(d.equal), fmt.Sprint(d.more), times3(d.most)+" on "+d.on)
		}
		rows = append(rows, row)
	}
	return markdown(rows)
}

// perturbed returns a row for each kind and rate of perturbation.
func (s *study) perturbed() string {
	head := []string{
		"change", "`recall` / `bestfit`: best", "median", "worst", "growth", "worst", "growth of `bestfit`", "worst",
		"`recall:pages` / `stitch`", "worst",
	}
	rivals := []string{"compiler", "stalloc" + learnedSuffix, "pgmo" + learnedSuffix}
	for _, name := range rivals {
		head = append(head, "`"+name+"` / `recall`")
	}
	rows := [][]string{head}
	row := func(kind string, rate float64) {
		cases := s.perturbedBy(kind, rate)
		cells := []string{kind + " " + units.Fixed(100*rate, 1) + " %"}
		cells = append(cells, times3(spreadOf(cases, s.against(studySubject, studyFallback)).least))
		for _, of := range []figure{
			s.against(studySubject, studyFallback), s.growth(studySubject), s.growth(studyFallback),
			s.against(studyPaged, "stitch"),
		} {
			x := spreadOf(cases, of)
			cells = append(cells, times3(x.middle), times3(x.most))
		}
		for _, name := range rivals {
			cells = append(cells, times3(spreadOf(cases, s.against(name, studySubject)).middle))
		}
		rows = append(rows, cells)
	}
	for _, k := range studyKinds {
		for _, rate := range k.rates {
			row(k.name, rate)
		}
	}
	return markdown(rows)
}

// spliced returns a row for each deviation.
func (s *study) spliced() string {
	rows := [][]string{{
		"trace", "`recall` / `bestfit`", "`recall:pages` / `stitch`", "planned in the step before",
		"in the first step after", "in the second", "events to a planned place", "of a step", "recovered",
	}}
	for _, c := range s.in(groupSpliced) {
		r, back := s.of(studySubject, c), "never"
		if r.back > 0 {
			back = units.Count(r.back - 1)
		}
		row := []string{
			spaced(c.name), times3(s.against(studySubject, studyFallback)(c)), times3(s.against(studyPaged, "stitch")(c)),
		}
		for _, share := range r.planned {
			row = append(row, units.Percent(float64(share)/1000))
		}
		recovered := map[float64]string{0: "yes", 1: "no"}[s.lost(c)]
		rows = append(rows, append(row, back, units.Count(uint64(c.period)), cmp.Or(recovered, "no plan before")))
	}
	return markdown(rows)
}

// times returns the time of the subjects as multiples of the fallback's.
func (s *study) times() string {
	rows := [][]string{{"trace", "`recall`", "`recall:pages`"}}
	for _, c := range s.cases {
		if c.timed() {
			row := []string{spaced(c.name)}
			for _, name := range []string{studySubject, studyPaged} {
				row = append(row, units.Fixed(s.slower(name)(c), 1))
			}
			rows = append(rows, row)
		}
	}
	return markdown(rows)
}
