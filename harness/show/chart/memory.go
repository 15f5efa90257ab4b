package chart

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/internal/units"
)

// sum is one of the sums that a course has.
type sum struct {
	name string
	of   func(replay.Point) device.Size
}

func sums() []sum {
	return []sum{
		{"requested", func(p replay.Point) device.Size { return p.Requested }},
		{"allocated", func(p replay.Point) device.Size { return p.Allocated }},
		{"reserved", func(p replay.Point) device.Size { return p.Reserved }},
	}
}

// errNoCourse is what is wrong with results of replays that were measured without figures.
var errNoCourse = errors.New("the result holds no course of its run")

// memory draws memory over events.
func (d *drawing) memory() (*Chart, error) {
	if len(d.traces) > 1 {
		return nil, fmt.Errorf("the results are of different traces, %s: want one, or --trace", strings.Join(d.traces, ", "))
	}
	list := sums()
	which := slices.IndexFunc(list, func(s sum) bool { return s.name == d.metric })
	if which < 0 {
		return nil, fmt.Errorf("metric %q: want requested, allocated or reserved", d.metric)
	}
	var events, high float64
	for _, r := range d.runs {
		if r.series == nil || len(r.series.Points) == 0 {
			return nil, errNoCourse
		}
		for _, p := range r.series.Points {
			events = max(events, float64(p.Event))
			high = max(high, float64(max(p.Requested, p.Allocated, p.Reserved)))
		}
	}
	alone := len(d.runs) == 1 && !d.asked
	if least, ok := d.runs[0].value(bound); alone && ok {
		high = max(high, least) // a run that found no memory may stay below it
	}
	if d.card > 0 && d.card <= farthest*high {
		high = max(high, d.card)
	}
	c := New(Counts("event", events), Bytes("memory", high))
	if alone {
		d.alone(c)
	} else {
		d.together(c, list[which])
	}
	if d.card > 0 && d.card <= high {
		c.Level("card, "+units.Bytes(device.Size(d.card)), Card(), d.card)
	}
	d.failures(c, list[which])
	return c, nil
}

// alone draws the three sums of one run.
func (d *drawing) alone(c *Chart) {
	all := sums()
	slices.Reverse(all) // what is requested last: where it is all that is allocated, it lies on top
	for i, s := range all {
		look := LookOf(i)
		if s.name == "requested" {
			look.Dashes = []vg.Length{2, 2}
		}
		c.Line(Line{Name: s.name, Look: look, Points: course(d.runs[0].series, s), Steps: true, Marks: 5, Shift: 3 * i})
	}
	if least, ok := d.runs[0].value(bound); ok && least > 0 {
		c.Level("lower bound", Neutral(), least)
	}
}

// together draws one sum of several runs, above what was requested.
func (d *drawing) together(c *Chart, s sum) {
	if s.name != "requested" {
		look := Neutral()
		look.Dashes = nil
		c.Line(Line{Name: "requested", Look: look, Points: course(d.served(), sums()[0]), Steps: true})
	}
	for i, r := range d.runs {
		c.Line(Line{Name: r.label, Look: r.look(), Points: course(r.series, s), Steps: true, Marks: 5, Shift: 3 * i})
	}
}

// served returns the course with the fewest refusals: what was refused is not among what it has as
// requested.
func (d *drawing) served() *replay.Series {
	refusals := func(r run) (n uint64) {
		for _, p := range r.series.Points {
			n += uint64(p.OOMs)
		}
		return n
	}
	return slices.MinFunc(d.runs, func(a, b run) int { return cmp.Compare(refusals(a), refusals(b)) }).series
}

// mostPoints is how many steps a line has at most: more than a column of a journal can show.
const mostPoints = 512

// course returns the points of a sum. Where they are too many, several become one that has their
// highest value, so that no peak is lost.
func course(s *replay.Series, of sum) (points []Point) {
	each := (len(s.Points) + mostPoints - 1) / mostPoints
	begin := 0
	for group := range slices.Chunk(s.Points, max(each, 1)) {
		var high device.Size
		for _, p := range group {
			high = max(high, of.of(p))
		}
		points = append(points, Point{X: float64(begin), Y: float64(high)})
		begin = group[len(group)-1].Event + 1
	}
	last := points[len(points)-1]
	return append(points, Point{X: float64(begin - 1), Y: last.Y})
}

// mostFailures is how many strokes fit beside each other in a column of a journal so that each can
// be seen.
const mostFailures = 48

// failures marks where requests find no memory: where such begin, if several follow each other.
// Those of one run that would touch are one.
func (d *drawing) failures(c *Chart, s sum) {
	var at []Point
	apart := c.Span() / mostFailures
	for _, r := range d.runs {
		before, last := false, math.Inf(-1)
		for _, p := range r.series.Points {
			if x := float64(p.Event); p.OOMs > 0 && !before && x >= last+apart {
				at = append(at, Point{X: x, Y: float64(s.of(p))})
				last = x
			}
			before = p.OOMs > 0
		}
	}
	c.Marks("memory runs out", Alarm(), at)
}
