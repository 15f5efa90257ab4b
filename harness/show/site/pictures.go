package site

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"

	"github.com/vramyard/vramyard/harness/show/chart"
	"github.com/vramyard/vramyard/harness/study/board"
	"github.com/vramyard/vramyard/internal/units"
)

// mostDrawn is the number of strategies that a picture names. The others are grey.
const mostDrawn = 16

// mostOutside is the number of strategies above the axis that a picture names.
const mostOutside = 4

// dot is a strategy in a picture of its two figures.
type dot struct {
	name     string
	at       chart.Point
	front    bool
	baseline bool
}

// svg returns a chart as SVG.
func svg(c *chart.Chart) ([]byte, error) {
	var b bytes.Buffer
	err := c.Write(&b, chart.SVG, chart.Page{Width: 22 * vg.Centimeter, Font: 9, Linked: true})
	return b.Bytes(), err
}

// pareto draws a track, or returns nil if there is nothing to draw.
func pareto(t *board.Track) ([]byte, error) {
	var dots []dot
	for _, l := range t.Lines {
		if l.Drawn() {
			dots = append(dots, dot{l.Entry.Name(), chart.Point{X: *l.Cost, Y: *l.Mean}, l.Front, l.Place == 0})
		}
	}
	return scatter(dots, t.Kind)
}

// inputPicture draws the entries that plan by no earlier run on one input.
func (s *site) inputPicture(i int, l link) ([]byte, error) {
	var dots []dot
	for _, e := range s.b.Entries {
		if e.Unlisted != "" || e.Kind != l.Kind || e.Learned {
			continue
		}
		cost, y := e.Figures[i].Cost, e.Multiple(i, l.Input.LowerBound)
		if cost != nil && !math.IsInf(y, 1) {
			dots = append(dots, dot{e.Name(), chart.Point{X: max(*cost, 1), Y: y}, false, e.Reference()})
		}
	}
	for i := range dots {
		d := &dots[i]
		d.front = !d.baseline && !slices.ContainsFunc(dots, func(o dot) bool {
			return !o.baseline && o.at.X <= d.at.X && o.at.Y <= d.at.Y && o.at != d.at
		})
	}
	slices.SortStableFunc(dots, func(x, y dot) int { return cmp.Compare(x.at.Y, y.at.Y) })
	return scatter(dots, l.Kind)
}

// ceiling returns the end of the vertical axis. It leaves out the few strategies that need far more
// memory than most, so that they do not take the height of the picture, but never the front.
func ceiling(dots []dot) float64 {
	const far = 3 // as far above 1 as the third quartile
	var all []float64
	most := 0.0
	for _, d := range dots {
		all = append(all, d.at.Y)
		if d.front {
			most = max(most, d.at.Y)
		}
	}
	slices.Sort(all)
	most = max(most, 1+far*(all[len(all)*3/4]-1))
	for all[len(all)-1] > most {
		all = all[:len(all)-1]
	}
	return all[len(all)-1]
}

// axis returns an axis for positive values with a margin, logarithmic if they span much or nothing.
func axis(title string, low, high float64) chart.Axis {
	const much, margin = 4, 0.05
	if high > much*low || high == low {
		factor := math.Pow(high/low, margin)
		return chart.Log(title, low/factor, high*factor)
	}
	return chart.Between(title, low-margin*(high-low), high+margin*(high-low))
}

// scatter draws strategies, the most important first.
func scatter(dots []dot, k *board.Kind) ([]byte, error) {
	if len(dots) == 0 {
		return nil, nil
	}
	end := ceiling(dots)
	outside := slices.DeleteFunc(slices.Clone(dots), func(d dot) bool { return d.at.Y <= end })
	dots = slices.DeleteFunc(dots, func(d dot) bool { return d.at.Y > end })
	low, high := dots[0].at, dots[0].at
	var front []chart.Point
	for _, d := range dots {
		low = chart.Point{X: min(low.X, d.at.X), Y: min(low.Y, d.at.Y)}
		high = chart.Point{X: max(high.X, d.at.X), Y: max(high.Y, d.at.Y)}
		if d.front {
			front = append(front, d.at)
		}
	}
	c := chart.New(axis(k.Axis, low.X, high.X), axis(k.Bytes+" / lower bound", low.Y, high.Y))
	slices.SortFunc(front, func(p, q chart.Point) int { return int(math.Copysign(1, p.X-q.X)) })
	if len(dots) > 1 {
		c.Line(chart.Line{Name: "Pareto front", Look: chart.Neutral(), Points: front, Steps: true})
	}
	var others []chart.Point
	drawn := 0
	for _, d := range dots {
		if drawn >= mostDrawn && !d.front {
			others = append(others, d.at)
			continue
		}
		name := d.name
		if d.baseline {
			name += " (reference)"
		}
		c.Marks(short(name), chart.LookOf(drawn), []chart.Point{d.at})
		if d.front {
			c.Label(short(name), d.at)
		}
		drawn++
	}
	c.Marks(units.Several(len(others), "other"), chart.Neutral(), others)
	for i, d := range outside {
		if i == mostOutside {
			c.Note(fmt.Sprintf("%d more above the axis", len(outside)-i))
			break
		}
		c.Note(fmt.Sprintf("above: %s, %s", short(d.name), board.Times(d.at.Y)))
	}
	return svg(c)
}

// profile draws the performance profile of a track, or returns nil if it has no ranked strategy.
func profile(t *board.Track) ([]byte, error) {
	most, ranked, others := 1.0, 0, 0
	for _, l := range t.Lines {
		if l.Place == 0 {
			continue
		}
		if ranked++; ranked > mostDrawn/2 {
			others++
			continue
		}
		for _, x := range l.Profile {
			if !math.IsInf(x, 1) {
				most = max(most, x)
			}
		}
	}
	if ranked == 0 {
		return nil, nil
	}
	most = min(most, 10)
	x := chart.Between("factor of the least memory in the track", 1, max(most, 1.01))
	x.Low = 1
	c := chart.New(x, chart.Percent(fmt.Sprintf("share of the %ss", t.Kind.Input), 1))
	drawn := 0
	for _, l := range t.Lines {
		if l.Place == 0 || drawn >= mostDrawn/2 {
			continue
		}
		look := chart.LookOf(drawn)
		look.Width = 2.4 - 0.22*vg.Length(drawn) // lines that coincide stay visible
		c.Line(chart.Line{Name: short(l.Entry.Name()), Look: look, Points: stairs(l, x.High), Steps: true, Marks: 4,
			Shift: drawn})
		drawn++
	}
	if others > 0 {
		c.Note(fmt.Sprintf("%d more in the table", others))
	}
	return svg(c)
}

// stairs returns the steps of a profile up to a factor.
func stairs(l *board.Line, end float64) []chart.Point {
	steps := slices.Sorted(slices.Values(l.Profile))
	all := []chart.Point{{X: 1, Y: l.Within(1)}}
	for _, x := range steps {
		if x > 1 && x < end {
			all = append(all, chart.Point{X: x, Y: l.Within(x)})
		}
	}
	return append(all, chart.Point{X: end, Y: l.Within(end)})
}

// short cuts a long name for a legend.
func short(name string) string {
	const most = 40
	if r := []rune(name); len(r) > most {
		name = string(r[:most-1]) + "…"
	}
	return units.Printable(name)
}
