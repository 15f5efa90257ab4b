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

// sum is a sum recorded over time.
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

var errNoSeries = errors.New("the result has no series of points over events")

// memory draws memory over events.
func (d *drawing) memory() (*Chart, error) {
	if len(d.traces) > 1 {
		return nil, fmt.Errorf("the results are on the traces %s: want one, by --trace", strings.Join(d.traces, ", "))
	}
	list := sums()
	which := slices.IndexFunc(list, func(s sum) bool { return s.name == d.metric })
	if which < 0 {
		return nil, fmt.Errorf("--metric %q: want requested, allocated or reserved", d.metric)
	}
	var events, high float64
	for _, r := range d.runs {
		if r.series == nil || len(r.series.Points) == 0 {
			return nil, errNoSeries
		}
		for _, p := range r.series.Points {
			events = max(events, float64(p.Event))
			high = max(high, float64(max(p.Requested, p.Allocated, p.Reserved)))
		}
	}
	alone := len(d.runs) == 1 && !d.metricChosen
	if least, ok := d.runs[0].value(bound); alone && ok {
		high = max(high, least) // a run that failed may stay below the bound
	}
	if d.card > 0 && d.card <= mostCardRatio*high {
		high = max(high, d.card)
	}
	c := New(Counts("event", events), Bytes("memory", high))
	if alone {
		d.oneRun(c)
	} else {
		d.severalRuns(c, list[which])
	}
	if d.card > 0 && d.card <= high {
		c.HorizontalLine("card, "+units.Bytes(device.Size(d.card)), Card(), d.card)
	}
	d.failures(c, list[which])
	return c, nil
}

// oneRun draws all sums of one run.
func (d *drawing) oneRun(c *Chart) {
	all := sums()
	slices.Reverse(all) // requested last, so that it stays visible where it equals allocated
	for i, s := range all {
		look := LookOf(i)
		if s.name == "requested" {
			look.Dashes = []vg.Length{2, 2}
		}
		c.Line(Line{Name: s.name, Look: look, Points: seriesPoints(d.runs[0].series, s), Steps: true, Marks: 5, Shift: 3 * i})
	}
	if least, ok := d.runs[0].value(bound); ok && least > 0 {
		c.HorizontalLine("lower bound", Neutral(), least)
	}
}

// severalRuns draws one sum of several runs, and requested bytes once.
func (d *drawing) severalRuns(c *Chart, s sum) {
	if s.name != "requested" {
		look := Neutral()
		look.Dashes = nil
		c.Line(Line{Name: "requested", Look: look, Points: seriesPoints(d.fewestFailures(), sums()[0]), Steps: true})
	}
	for i, r := range d.runs {
		c.Line(Line{Name: r.label, Look: r.look(), Points: seriesPoints(r.series, s), Steps: true, Marks: 5, Shift: 3 * i})
	}
}

// fewestFailures returns the series with the fewest failures: requests that fail do not count
// as requested bytes.
func (d *drawing) fewestFailures() *replay.Series {
	refusals := func(r run) (n uint64) {
		for _, p := range r.series.Points {
			n += uint64(p.OOMs)
		}
		return n
	}
	return slices.MinFunc(d.runs, func(a, b run) int { return cmp.Compare(refusals(a), refusals(b)) }).series
}

// mostPoints bounds the steps of a line: more than a journal column can show.
const mostPoints = 512

// seriesPoints returns the points of a sum, thinned to mostPoints by taking maxima, so that no peak
// is lost.
func seriesPoints(s *replay.Series, of sum) (points []Point) {
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

// mostFailures bounds the strokes that stay distinct in a journal column.
const mostFailures = 48

// failures marks the start of each series of failed requests, and merges marks of a run that would
// touch.
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
