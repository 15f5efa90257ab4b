package chart

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
)

// ErrNothing: no run completed, so there is nothing to draw.
var ErrNothing = errors.New("no run completes")

// lineFields identify a line of a remat result, in addition to the strategy.
var lineFields = []string{"heuristic", "ladder"}

// line turns a point of a line, which has a name of its own, into a run of its strategy.
func (r *run) line(point string) {
	r.Strategy, r.Trace = r.Figure("strategy").Text(), r.Trace+" "+point
	r.label, r.plain = r.Strategy, r.Strategy == grid.Counting
}

// nameLines adds the heuristic to the labels if there are several, and the ladder if the strategy
// has several.
func nameLines(all []run) {
	values := map[string]map[string]bool{} // by field and, for ladders, strategy
	key := func(r *run, field string) string {
		if field == lineFields[0] {
			return field
		}
		return field + " " + r.Strategy
	}
	for i := range all {
		for _, f := range lineFields {
			v, k := all[i].Figure(f).Text(), key(&all[i], f)
			if values[k] == nil {
				values[k] = map[string]bool{}
			}
			if v != "" {
				values[k][v] = true
			}
		}
	}
	for i := range all {
		for _, f := range lineFields {
			if len(values[key(&all[i], f)]) > 1 {
				all[i].label += " " + all[i].Figure(f).Text()
				all[i].setting = !all[i].plain
			}
		}
	}
}

// overhead draws a figure over the budget. Lines have gaps where a run did not complete.
func (d *drawing) overhead() (*Chart, error) {
	if len(d.traces) > 1 {
		return nil, fmt.Errorf("the results are on the logs %s: want one, by --trace", strings.Join(d.traces, ", "))
	}
	if err := d.known(d.metric); err != nil {
		return nil, err
	}
	lines := map[string][][]Point{} // contiguous feasible budgets
	left, right, low, high := math.Inf(1), 0.0, math.Inf(1), math.Inf(-1)
	least := 0.0
	for i := range d.runs {
		r := &d.runs[i]
		budget, okBudget := r.value("ratio")
		v, ok := r.value(d.metric)
		if !okBudget {
			continue
		}
		left, right = min(left, budget), max(right, budget)
		if bound, peak := r.bound(); peak > 0 {
			least = bound / peak
		}
		if r.Figure("verdict").Text() != string(remat.OK) || !ok {
			lines[r.label] = append(lines[r.label], nil)
			continue
		}
		if len(lines[r.label]) == 0 {
			lines[r.label] = append(lines[r.label], nil)
		}
		last := len(lines[r.label]) - 1
		lines[r.label][last] = append(lines[r.label][last], Point{X: budget, Y: v})
		low, high = min(low, v), max(high, v)
	}
	if math.IsInf(low, 1) {
		return nil, fmt.Errorf("%s: %w", d.traces[0], ErrNothing)
	}
	if least > 0 {
		left = min(left, least)
	}
	c := New(Between("budget / base peak ("+clipped(d.traces[0])+")", left, right),
		Between(timeTitle(d.metric), low, high))
	for _, label := range d.labels() {
		name := label // one legend entry per line
		for _, points := range lines[label] {
			if len(points) > 0 {
				c.Line(Line{Name: name, Look: d.lookOf(label), Points: points, Marks: -1})
				name = ""
			}
		}
	}
	if least > 0 {
		c.VerticalLine("lower bound", Neutral(), least)
	}
	return c, nil
}

func (r *run) bound() (least, peak float64) {
	least, _ = r.value(bound)
	peak, _ = r.value("base_peak_bytes")
	return least, peak
}
