package chart

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/diff"
	"github.com/vramyard/vramyard/internal/units"
)

// bound is the figure of the lower bound on the capacity.
const bound = "lower_bound_bytes"

func (d *drawing) capacity() (*Chart, error) {
	if diff.UnitOf(d.metric) != diff.UnitBytes {
		return nil, fmt.Errorf("--metric %q: want one of bytes, such as peak_reserved_bytes", d.metric)
	}
	if err := d.known(d.metric); err != nil {
		return nil, err
	}
	if len(d.traces) > 1 {
		return d.multiples()
	}
	d.sortBy(d.metric)
	high := 0.0
	for _, r := range d.runs {
		v, _ := r.value(d.metric)
		high = max(high, v)
	}
	least, bounded := d.runs[0].value(bound)
	for _, r := range d.runs {
		if other, ok := r.value(bound); bounded && ok && other != least {
			return nil, fmt.Errorf("the runs on %s have lower bounds of %.0f and %.0f bytes: want runs of one trace", r.group,
				least, other)
		}
	}
	inside := d.card > 0 && d.card <= mostCardRatio*max(high, least)
	if inside {
		high = max(high, d.card)
	}
	c := New(Bytes(title(d.metric), max(high, least)), Rows(d.labels()))
	var beside []string
	for i, r := range d.runs {
		v, ok := r.value(d.metric)
		if !ok {
			beside = append(beside, "none")
			continue
		}
		c.Bar(i, r.look(), v)
		text := units.Bytes(device.Size(v))
		if bounded && least > 0 {
			text = units.Fixed(v/least, 3) + "×"
		}
		beside = append(beside, text)
	}
	c.RowTexts(beside)
	if bounded && least > 0 {
		c.VerticalLine("lower bound, "+units.Bytes(device.Size(least)), Neutral(), least)
	}
	switch name := "card, " + units.Bytes(device.Size(d.card)); {
	case inside:
		c.VerticalLine(name, Card(), d.card)
	case d.card > 0:
		c.Note(name + ", is far to the right")
	}
	return c, nil
}

// mostCardRatio is the largest ratio of a card's capacity to the largest value at which the axis
// still includes the card.
const mostCardRatio = 2

// cardOf returns the capacity of the card common to all runs, or 0. It is in the settings of a
// result or in each run.
func cardOf(sources []*Source, runs []run) float64 {
	var cards []float64
	see := func(v diff.Value) {
		if n := v.Number(); n != nil {
			x, _ := n.Float64()
			cards = append(cards, x)
		}
	}
	for _, s := range sources {
		for _, f := range s.result.Settings {
			if f.Name == "card_bytes" || f.Name == "device.capacity" && s.form.Command != cmdWhatif {
				see(f.Value)
			}
		}
	}
	if !slices.ContainsFunc(cards, func(x float64) bool { return x > 0 }) {
		cards = nil
		for i := range runs {
			v := runs[i].Figure("card_bytes")
			if v.Number() == nil {
				v = runs[i].Figure("recorded_capacity_bytes")
			}
			see(v)
		}
	}
	if len(cards) == 0 || slices.Min(cards) != slices.Max(cards) {
		return 0
	}
	return cards[0]
}

// multiples draws capacities on several traces as multiples of their lower bounds.
func (d *drawing) multiples() (*Chart, error) {
	return d.marks(func(r *run) (float64, bool) { return r.multiple(d.metric) },
		func(low, high float64) Axis { return d.multipleAxis(low, high) },
		func(c *Chart) { c.VerticalLine("", Neutral(), 1) })
}

// multipleAxis returns an axis of multiples that includes 1. It is logarithmic if the values spread
// too far.
func (d *drawing) multipleAxis(low, high float64) Axis {
	const wide = 10
	name := title(d.metric) + " / lower bound"
	if high > wide && low > 0 {
		return Log(name, min(low, 1), high)
	}
	return Between(name, min(low, 1), max(high, 1.05))
}

// multiple returns a figure as a multiple of the lower bound.
func (r *run) multiple(figure string) (float64, bool) {
	v, ok := r.value(figure)
	least, bounded := r.value(bound)
	return v / least, ok && bounded && least > 0
}

// shares are the figures that waste draws for one trace.
var shares = [...]struct{ figure, name string }{
	{"reservation_waste", "reservation waste"},
	{"external_fragmentation_peak", "external fragmentation, peak"},
	{"internal_fragmentation_at_peak", "internal fragmentation, at peak"},
}

// waste draws shares of wasted memory.
func (d *drawing) waste() (*Chart, error) {
	if d.metricChosen && !slices.ContainsFunc(shares[:], func(s struct{ figure, name string }) bool {
		return s.figure == d.metric
	}) {
		var names []string
		for _, s := range shares {
			names = append(names, s.figure)
		}
		return nil, fmt.Errorf("--metric %q: want one of %s", d.metric, strings.Join(names, ", "))
	}
	if err := d.known(d.metric); err != nil {
		return nil, err
	}
	if len(d.traces) > 1 || d.metricChosen {
		return d.marks(func(r *run) (float64, bool) { return r.value(d.metric) },
			func(_, high float64) Axis { return Percent(title(d.metric), high) }, nil)
	}
	d.sortBy(d.metric)
	high := 0.0
	points := make([][]Point, len(shares))
	for i := range d.runs {
		for k, s := range shares {
			if v, ok := d.runs[i].value(s.figure); ok {
				points[k] = append(points[k], Point{X: v, Y: Row(i, len(d.runs))})
				high = max(high, v)
			}
		}
	}
	c := New(Percent("share", high), Rows(d.labels()))
	for k, s := range shares {
		c.Marks(s.name, MarkOf(k), points[k])
	}
	return c, nil
}

// marks draws a row for each strategy, lowest mean first, with a mark for each trace.
func (d *drawing) marks(value func(*run) (float64, bool), axis func(low, high float64) Axis,
	more func(*Chart)) (*Chart, error) {
	names, low, high := d.ranked(value)
	c := New(axis(low, high), Rows(names))
	if more != nil {
		more(c)
	}
	missing := make([]int, len(names))
	short := shortened(d.traces)
	for k, t := range d.traces {
		var points []Point
		for i := range d.runs {
			r := &d.runs[i]
			if r.group != t {
				continue
			}
			row := slices.Index(names, r.label)
			if v, ok := value(r); ok {
				points = append(points, Point{X: v, Y: Row(row, len(names))})
			} else {
				missing[row]++
			}
		}
		c.Marks(short[t], MarkOf(k), points)
	}
	if slices.Max(missing) > 0 {
		c.RowTexts(notes(missing))
	}
	return c, nil
}

// ranked returns the labels, lowest mean first, and the range of all values.
func (d *drawing) ranked(value func(*run) (float64, bool)) (names []string, low, high float64) {
	names = d.labels()
	means := map[string]float64{}
	low = math.Inf(1)
	for _, name := range names {
		sum, n := 0.0, 0
		for i := range d.runs {
			if d.runs[i].label != name {
				continue
			}
			v, ok := value(&d.runs[i])
			if !ok {
				v = math.Inf(1) // strategies that fail on a trace come last
			} else {
				low, high = min(low, v), max(high, v)
			}
			sum, n = sum+v, n+1
		}
		means[name] = sum / float64(n)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(means[a], means[b]) })
	return names, low, high
}

// notes returns the number of missing marks in each row, as text.
func notes(missing []int) []string {
	texts := make([]string, len(missing))
	for i, n := range missing {
		if n > 0 {
			texts[i] = fmt.Sprintf("%d none", n)
		}
	}
	return texts
}

var errOneTrace = errors.New("want results on at least two traces")

// budget draws the share of traces that complete over the capacity.
func (d *drawing) budget() (*Chart, error) {
	if len(d.traces) < 2 {
		return nil, errOneTrace
	}
	if err := d.known(d.metric); err != nil {
		return nil, err
	}
	low, high := 1.0, 1.0
	needs := map[string][]float64{}
	for i := range d.runs {
		r := &d.runs[i]
		if v, ok := r.multiple(d.metric); ok {
			needs[r.label] = append(needs[r.label], v)
			low, high = min(low, v), max(high, v)
		}
	}
	x := d.multipleAxis(low, high)
	c := New(x, Percent("traces that complete", 0.98))
	for i, name := range d.labels() {
		all := slices.Sorted(slices.Values(needs[name]))
		points := []Point{{X: x.Low}}
		for k, v := range all {
			points = append(points, Point{X: v, Y: float64(k+1) / float64(len(d.traces))})
		}
		points = append(points, Point{X: x.High, Y: float64(len(all)) / float64(len(d.traces))})
		c.Line(Line{Name: name, Look: d.lookOf(name), Points: points, Steps: true, Marks: 4, Shift: 3 * i})
	}
	return c, nil
}

// known returns an error if no run has a numeric figure of this name.
func (d *drawing) known(figure string) error {
	for i := range d.runs {
		if _, ok := d.runs[i].value(figure); ok {
			return nil
		}
	}
	return fmt.Errorf("no run has a numeric %q", figure)
}

// sortBy sorts the runs by a figure, missing values last.
func (d *drawing) sortBy(figure string) {
	rank := func(r *run) float64 {
		if v, ok := r.value(figure); ok {
			return v
		}
		return math.Inf(1)
	}
	slices.SortStableFunc(d.runs, func(a, b run) int { return cmp.Compare(rank(&a), rank(&b)) })
}

// labels returns the distinct labels.
func (d *drawing) labels() []string { return distinct(d.runs, func(r *run) string { return r.label }) }

func (d *drawing) lookOf(label string) Look {
	return d.runs[slices.IndexFunc(d.runs, func(r run) bool { return r.label == label })].look()
}

// title returns a figure's name in words, without its unit.
func title(figure string) string {
	for _, unit := range []string{"_bytes", "_ns"} {
		figure = strings.TrimSuffix(figure, unit)
	}
	words := strings.NewReplacer("_", " ", ".", " ").Replace(figure)
	return strings.Replace(words, "min capacity", "minimum capacity", 1)
}
