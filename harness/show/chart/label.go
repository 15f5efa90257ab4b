package chart

import (
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// label is a text beside a point.
type label struct {
	text string
	at   Point
}

// Label writes a text beside a point where it covers no mark, line or other label. Without such a
// place it is left out.
func (c *Chart) Label(text string, at Point) { c.labels = append(c.labels, label{text, at}) }

// corners returns the points of a line with the corners of its steps.
func (l *Line) corners() []Point {
	if !l.Steps {
		return l.Points
	}
	all := l.Points[:1:1]
	for i, p := range l.Points[1:] {
		all = append(all, Point{X: p.X, Y: l.Points[i].Y}, p)
	}
	return all
}

// sides are the places of a label around its point, the best first: below and to the left of a
// Pareto front there is no other point.
var sides = []vg.Point{{X: -1, Y: -1}, {X: 1, Y: 1}, {X: 1, Y: -1}, {X: -1, Y: 1}, {Y: -1}, {Y: 1}, {X: 1}, {X: -1}}

func overlap(r, s vg.Rectangle) bool {
	return r.Min.X < s.Max.X && s.Min.X < r.Max.X && r.Min.Y < s.Max.Y && s.Min.Y < r.Max.Y
}

// drawLabels writes the labels that have a place.
func (l *layout) drawLabels(inner draw.Canvas) {
	trX, trY := l.plot.Transforms(&inner)
	var taken []vg.Rectangle
	for _, line := range l.solid {
		for i, p := range line {
			q := line[max(i-1, 0)]
			taken = append(taken, vg.Rectangle{
				Min: vg.Point{X: trX(min(p.X, q.X)) - dot, Y: trY(min(p.Y, q.Y)) - dot},
				Max: vg.Point{X: trX(max(p.X, q.X)) + dot, Y: trY(max(p.Y, q.Y)) + dot},
			})
		}
	}
	style := l.ticks
	style.YAlign = draw.YCenter
	for _, t := range l.labels {
		half := vg.Point{X: l.spare * style.Width(t.text) / 2, Y: style.Font.Size / 2}
		for _, side := range sides {
			away := vg.Point{X: side.X * (half.X + 2*dot), Y: side.Y * (half.Y + 1.5*dot)}
			middle := vg.Point{X: trX(t.at.X), Y: trY(t.at.Y)}.Add(away)
			place := vg.Rectangle{Min: middle.Sub(half), Max: middle.Add(half)}
			covers := slices.ContainsFunc(taken, func(r vg.Rectangle) bool { return overlap(r, place) })
			if !covers && inner.Contains(place.Min) && inner.Contains(place.Max) {
				inner.FillText(style, vg.Point{X: place.Min.X, Y: middle.Y + style.FontExtents().Descent}, t.text)
				taken = append(taken, place)
				break
			}
		}
	}
}
