package site

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/vramyard/vramyard/harness/show/chart"
	"github.com/vramyard/vramyard/harness/study/board"
	"github.com/vramyard/vramyard/internal/units"
)

// mostDrawn is the number of strategies that a picture names. The others are grey.
const mostDrawn = 16

// dot is a strategy in a picture of bytes against device calls.
type dot struct {
	name     string
	at       chart.Point
	front    bool
	baseline bool
}

// svg returns a chart as SVG.
func svg(c *chart.Chart) ([]byte, error) {
	var b bytes.Buffer
	err := c.Write(&b, chart.SVG, chart.Page{Width: chart.TwoColumns, Font: 9, Linked: true})
	return b.Bytes(), err
}

// pareto draws a track, or returns nil if there is nothing to draw.
func pareto(t *board.Track) ([]byte, error) {
	var dots []dot
	for _, l := range t.Lines {
		if l.Drawn() {
			dots = append(dots, dot{l.Entry.Setup.Name, chart.Point{X: *l.Calls, Y: *l.Mean}, l.Front, l.Place == 0})
		}
	}
	return scatter(dots)
}

// tracePicture draws the entries that plan by no earlier run on one trace.
func (s *site) tracePicture(i int) ([]byte, error) {
	var dots []dot
	for _, e := range s.b.Entries {
		n, ok := e.DeviceCalls(i)
		y := e.Multiple(i, s.b.Traces[i].LowerBound)
		if e.Unlisted == "" && !e.Learned && ok && !math.IsInf(y, 1) {
			dots = append(dots, dot{e.Setup.Name, chart.Point{X: float64(max(n, 1)), Y: y}, false, e.Setup.Baseline})
		}
	}
	for i := range dots {
		d := &dots[i]
		d.front = !slices.ContainsFunc(dots, func(o dot) bool {
			return o.at.X <= d.at.X && o.at.Y <= d.at.Y && o.at != d.at
		})
	}
	slices.SortStableFunc(dots, func(x, y dot) int {
		if x.at.Y < y.at.Y {
			return -1
		}
		return 1
	})
	return scatter(dots)
}

// scatter draws strategies, the most important first.
func scatter(dots []dot) ([]byte, error) {
	if len(dots) == 0 {
		return nil, nil
	}
	low, high := dots[0].at, dots[0].at
	var front []chart.Point
	for _, d := range dots {
		low = chart.Point{X: min(low.X, d.at.X), Y: min(low.Y, d.at.Y)}
		high = chart.Point{X: max(high.X, d.at.X), Y: max(high.Y, d.at.Y)}
		if d.front {
			front = append(front, d.at)
		}
	}
	y := chart.Between("minimum capacity / lower bound", min(low.Y, 1), high.Y)
	if high.Y > 4 {
		y = chart.Log(y.Title, min(low.Y, 1), high.Y)
	}
	c := chart.New(chart.Log("device calls", low.X, high.X), y)
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
		drawn++
	}
	c.Marks(units.Several(len(others), "other"), chart.Neutral(), others)
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
	c := chart.New(x, chart.Percent("share of the traces", 1))
	drawn := 0
	for _, l := range t.Lines {
		if l.Place == 0 || drawn >= mostDrawn/2 {
			continue
		}
		c.Line(chart.Line{Name: short(l.Entry.Setup.Name), Look: chart.LookOf(drawn), Points: stairs(l, x.High), Steps: true,
			Marks: 4, Shift: drawn})
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
	const most = 34
	if r := []rune(name); len(r) > most {
		name = string(r[:most-1]) + "…"
	}
	return units.Printable(name)
}
