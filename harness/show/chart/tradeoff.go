package chart

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/vramyard/vramyard/harness/study/diff"
)

// costs are the geometric means over the traces of a strategy's or setting's time and memory.
type costs struct {
	label string // strategy
	point int    // index in a search; 0 is its preset
	at    Point
}

var errNoCosts = errors.New("no strategy or setting completes every trace and has a time")

// tradeoff draws memory against time.
func (d *drawing) tradeoff() (*Chart, error) {
	if diff.UnitOf(d.metric) != diff.UnitBytes {
		return nil, fmt.Errorf("--metric %q: want one of bytes, such as peak_reserved_bytes", d.metric)
	}
	if err := d.known(d.metric); err != nil {
		return nil, err
	}
	all, missing := d.costs()
	if len(all) == 0 {
		return nil, errNoCosts
	}
	low, high := all[0].at, all[0].at
	for _, c := range all {
		low = Point{X: min(low.X, c.at.X), Y: min(low.Y, c.at.Y)}
		high = Point{X: max(high.X, c.at.X), Y: max(high.Y, c.at.Y)}
	}
	x := Between("time of an operation (ns)", low.X, high.X)
	if high.X > 10*low.X {
		x = Log(x.Title, low.X, high.X)
	}
	c := New(x, d.multipleAxis(low.Y, high.Y))
	if d.searched() {
		d.fronts(c, all)
	} else {
		d.strategies(c, all)
	}
	if missing > 0 {
		c.Note(fmt.Sprintf("%d not drawn: they do not complete every trace", missing))
	}
	return c, nil
}

// searched reports whether the runs are settings of a search.
func (d *drawing) searched() bool {
	return slices.ContainsFunc(d.runs, func(r run) bool { return r.point > 0 })
}

// costs returns the costs of each strategy or setting, in run order, and how many could not be
// computed.
func (d *drawing) costs() (all []costs, missing int) {
	type key struct {
		label string
		point int
	}
	type sum struct {
		x, y float64 // sums of logarithms
		n    int
	}
	sums := map[key]*sum{}
	var keys []key
	for i := range d.runs {
		r := &d.runs[i]
		k := key{r.label, r.point}
		if sums[k] == nil {
			sums[k] = &sum{}
			keys = append(keys, k)
		}
		ns, timed := r.value("ns_per_op")
		times, ok := r.multiple(d.metric)
		if timed && ok && ns > 0 && times > 0 {
			s := sums[k]
			s.x, s.y, s.n = s.x+math.Log(ns), s.y+math.Log(times), s.n+1
		}
	}
	for _, k := range keys {
		s := sums[k]
		if n := float64(s.n); s.n == len(d.traces) {
			all = append(all, costs{k.label, k.point, Point{X: math.Exp(s.x / n), Y: math.Exp(s.y / n)}})
		} else if k.point > 0 || !d.searched() { // the preset is one of the tried settings
			missing++
		}
	}
	return all, missing
}

// strategies draws a mark for each strategy, and their Pareto front.
func (d *drawing) strategies(c *Chart, all []costs) {
	var points []Point
	for _, s := range all {
		points = append(points, s.at)
	}
	if len(all) > 1 {
		c.Line(Line{Name: "Pareto front", Look: Neutral(), Points: front(points), Steps: true})
	}
	for i, s := range all {
		c.Marks(s.label, d.lookOf(s.label), points[i:i+1])
	}
}

// fronts draws the settings of each strategy, their Pareto front, and the preset the search started
// from.
func (d *drawing) fronts(c *Chart, all []costs) {
	var presets []Point
	for _, name := range d.labels() {
		var points []Point
		for _, s := range all {
			switch {
			case s.label == name && s.point == 0:
				presets = append(presets, s.at)
			case s.label == name:
				points = append(points, s.at)
			}
		}
		if len(points) == 0 {
			continue
		}
		look := d.lookOf(name)
		c.Marks("", look.Small(), points)
		c.Line(Line{Name: name + ", Pareto front", Look: look, Points: front(points), Steps: true, Marks: -1})
	}
	tried := Neutral()
	tried.Shape = LookOf(0).Shape
	c.LegendMark("settings tried", tried.Small())
	c.Marks("preset", Neutral(), presets)
}

// front returns the Pareto front, fastest first.
func front(points []Point) (best []Point) {
	sorted := slices.Clone(points)
	slices.SortFunc(sorted, func(a, b Point) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y)) })
	for _, p := range sorted {
		if len(best) == 0 || p.Y < best[len(best)-1].Y {
			best = append(best, p)
		}
	}
	return best
}
