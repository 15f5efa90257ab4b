package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// time draws a figure of a benchmark over live blocks.
func (d *drawing) time() (*Chart, error) {
	if len(d.traces) > 1 {
		return nil, fmt.Errorf("the results are on the workloads %s: want one, by --trace", strings.Join(d.traces, ", "))
	}
	if err := d.known(d.metric); err != nil {
		return nil, err
	}
	lines := map[string][]Point{}
	spans := map[string][]Span{}
	low, high, few, many := math.Inf(1), 0.0, math.Inf(1), 0.0
	for i := range d.runs {
		r := &d.runs[i]
		live, okLive := r.value("live")
		v, ok := r.value(d.metric)
		if !ok || !okLive || !(live > 0) || !(v > 0) { // not on a logarithmic axis
			continue
		}
		p := Point{X: live, Y: v}
		lines[r.label] = append(lines[r.label], p)
		low, high = min(low, v), max(high, v)
		if shortest, longest, ok := r.rounds(d.metric); ok {
			spans[r.label] = append(spans[r.label], Span{At: p, Low: shortest, High: longest})
			low, high = min(low, shortest), max(high, longest)
		}
		few, many = min(few, live), max(many, live)
	}
	if high == 0 {
		return nil, fmt.Errorf("no run has %q above 0", d.metric)
	}
	c := New(Log("live blocks ("+clipped(d.traces[0])+")", few, many), Log(timeTitle(d.metric), low, high))
	for _, name := range d.labels() {
		points := lines[name]
		slices.SortStableFunc(points, func(a, b Point) int { return int(math.Copysign(1, a.X-b.X)) })
		c.Line(Line{Name: name, Look: d.lookOf(name), Points: points, Marks: -1, Spans: spans[name]})
	}
	if len(spans) > 0 {
		c.Note("bars: shortest and longest round")
	}
	return c, nil
}

// rounds returns the shortest and the longest round of a benchmark metric.
func (r *run) rounds(metric string) (shortest, longest float64, ok bool) {
	if metric != "ns_per_pair_median" {
		return 0, 0, false
	}
	shortest, okLeast := r.value("ns_per_pair_min")
	longest, okMost := r.value("ns_per_pair_max")
	return shortest, longest, okLeast && okMost && shortest > 0 && longest > shortest
}

func timeTitle(figure string) string {
	if kind, ok := strings.CutPrefix(figure, "ns_per_pair_"); ok {
		return "time of a pair, " + kind + " (ns)"
	}
	if strings.HasSuffix(figure, "_ns") {
		return title(figure) + " (ns)"
	}
	if strings.HasSuffix(figure, "_bytes") {
		return title(figure) + " (B)"
	}
	return title(figure)
}
