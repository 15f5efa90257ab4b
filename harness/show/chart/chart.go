package chart

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lengths in points.
const (
	boundWidth  vg.Length = 0.7 // lines of bounds
	lineWidth   vg.Length = 1   // lines of data
	dot         vg.Length = 1.9 // radius of a mark
	gap         vg.Length = 4   // between the parts of a chart
	sampleWidth vg.Length = 20  // width of a sample in the legend
)

// otherFont is the width of a text in a reader's own font, relative to the font it is measured in.
const otherFont = 1.2

// gridColor is the colour of the grid.
var gridColor = color.RGBA{0xe4, 0xe4, 0xe4, 0xff}

// Point is a point of a series in the values of the axes.
type Point = plotter.XY

// Chart is a chart under construction.
type Chart struct {
	plot     *plot.Plot
	x, y     Axis
	entries  []entry
	marks    []plot.Plotter // marks of lines, drawn last
	solid    [][]Point      // lines and marks, which labels do not cover
	labels   []label        // texts beside points
	rowTexts []string       // text to the right of each row
	rows     int            // rows of bars or marks; may be 0
}

// entry is a legend entry.
type entry struct {
	name  string
	look  Look
	lined bool
	mark  bool
}

// New returns an empty chart with two axes.
func New(x, y Axis) *Chart {
	c := &Chart{plot: plot.New(), x: x, y: y}
	x.set(&c.plot.X)
	y.set(&c.plot.Y)
	grid := plotter.NewGrid()
	grid.Vertical = draw.LineStyle{Color: gridColor, Width: 0.5}
	grid.Horizontal = grid.Vertical
	if y.Names {
		grid.Horizontal.Color = nil
		c.rows = len(y.Ticks)
	}
	c.plot.Add(grid)
	return c
}

// Line is a series of points joined by a line.
type Line struct {
	Name   string  // for the legend; "": no entry
	Look   Look    // style
	Points []Point // sorted by x
	Steps  bool    // each value holds until the next point
	Marks  int     // marks spread over the line; 0: none, -1: one at every point
	Shift  int     // offset of the first mark, to keep the marks of several lines apart
	Spans  []Span  // error bars
}

// Span is an error bar.
type Span struct {
	At        Point   // the point
	Low, High float64 // range of y
}

// Line adds a line. It ignores a line without points.
func (c *Chart) Line(l Line) {
	if len(l.Points) == 0 {
		return
	}
	drawn := &plotter.Line{XYs: l.Points, LineStyle: l.Look.style()}
	if l.Steps {
		drawn.StepStyle = plotter.PostStep
	}
	c.plot.Add(drawn)
	c.solid = append(c.solid, l.corners())
	if len(l.Spans) > 0 {
		c.plot.Add(errorBars(l))
	}
	points := l.Points
	if l.Marks >= 0 {
		points = c.spread(l)
	}
	if len(points) > 0 {
		c.marks = append(c.marks, &plotter.Scatter{XYs: points, GlyphStyle: l.Look.glyph()})
	}
	c.legend(entry{l.Name, l.Look, true, len(points) > 0})
}

func errorBars(l Line) *plotter.YErrorBars {
	bars := &plotter.YErrorBars{LineStyle: l.Look.style(), CapWidth: 2 * dot}
	bars.Dashes, bars.Width = nil, boundWidth
	for _, s := range l.Spans {
		bars.XYs = append(bars.XYs, s.At)
		bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{s.At.Y - s.Low, s.High - s.At.Y})
	}
	return bars
}

// spread returns the points nearest to l.Marks evenly spaced positions.
func (c *Chart) spread(l Line) (chosen []Point) {
	const shifts = 8 // possible offsets of the first mark
	at := 0
	for k := range l.Marks {
		share := (float64(k) + (float64(l.Shift%shifts)+0.5)/shifts) / float64(l.Marks)
		x := c.x.at(share)
		for at+1 < len(l.Points) && l.Points[at+1].X <= x {
			at++
		}
		if l.Points[at].X <= x && (l.Steps || at+1 < len(l.Points)) {
			p := l.Points[at]
			if l.Steps {
				p.X = x // the line is level until the next point
			}
			chosen = append(chosen, p)
		}
	}
	return chosen
}

// Marks adds points without a line.
func (c *Chart) Marks(name string, look Look, points []Point) {
	if len(points) == 0 {
		return
	}
	c.plot.Add(&plotter.Scatter{XYs: points, GlyphStyle: look.glyph()})
	for i := range points {
		c.solid = append(c.solid, points[i:i+1])
	}
	c.legend(entry{name, look, false, true})
}

// Bar adds a bar from the left edge in a row.
func (c *Chart) Bar(row int, look Look, value float64) {
	c.plot.Add(bar{Row(row, c.rows), value, look.Color})
}

// VerticalLine adds a vertical line at x.
func (c *Chart) VerticalLine(name string, look Look, x float64) {
	c.plot.Add(&plotter.Line{XYs: []Point{{X: x, Y: c.y.Low}, {X: x, Y: c.y.High}}, LineStyle: look.style()})
	c.legend(entry{name, look, true, false})
}

// HorizontalLine adds a horizontal line at y.
func (c *Chart) HorizontalLine(name string, look Look, y float64) {
	c.plot.Add(&plotter.Line{XYs: []Point{{X: c.x.Low, Y: y}, {X: c.x.High, Y: y}}, LineStyle: look.style()})
	c.legend(entry{name, look, true, false})
}

// RowTexts sets the text to the right of each row, from the first row on.
func (c *Chart) RowTexts(texts []string) { c.rowTexts = texts }

// LegendMark adds a legend entry for marks of several colours.
func (c *Chart) LegendMark(name string, look Look) { c.legend(entry{name, look, false, true}) }

// Note adds text to the legend.
func (c *Chart) Note(text string) { c.legend(entry{name: text}) }

// Span returns the length of the x axis.
func (c *Chart) Span() float64 { return c.x.High - c.x.Low }

func (c *Chart) legend(e entry) {
	if e.name != "" {
		c.entries = append(c.entries, e)
	}
}

func (l Look) style() draw.LineStyle {
	width := l.Width
	if width == 0 {
		width = lineWidth
	}
	return draw.LineStyle{Color: l.Color, Width: width, Dashes: l.Dashes}
}

func (l Look) glyph() draw.GlyphStyle {
	radius := dot
	if l.small {
		radius = dot / 2
	}
	return draw.GlyphStyle{Color: l.Color, Radius: radius, Shape: l.Shape}
}

type bar struct {
	row, value float64
	fill       color.Color
}

func (b bar) Plot(c draw.Canvas, p *plot.Plot) {
	const half = 0.34 // of the distance between rows
	trX, trY := p.Transforms(&c)
	left, right := c.Min.X, trX(b.value)
	low, high := trY(b.row-half), trY(b.row+half)
	c.FillPolygon(b.fill, []vg.Point{{X: left, Y: low}, {X: right, Y: low}, {X: right, Y: high}, {X: left, Y: high}})
}

// layout is the arrangement of a chart on a page.
type layout struct {
	*Chart
	text        text.Style // of titles and the legend
	ticks       text.Style // of axis labels
	spare       vg.Length  // factor of the width of texts that nothing may touch
	column      vg.Length  // width of a legend column
	columns     int        // columns of the legend
	lines       int        // lines of the legend
	left, right vg.Length  // margins beside the axes
}

// layout measures the parts of a chart for the width and font of a page.
func (c *Chart) layout(page Page) *layout {
	l := &layout{Chart: c, spare: 1}
	if page.Linked {
		l.spare = otherFont
	}
	l.text = text.Style{
		Color: color.Black, Handler: plot.DefaultTextHandler,
		Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: page.Font},
	}
	l.ticks = l.text
	l.ticks.Font.Size = page.Font * 0.9
	for _, e := range c.entries {
		l.column = max(l.column, l.spare*l.text.Width(e.name)+sampleWidth+3*gap)
	}
	if n := len(c.entries); n > 0 {
		l.columns = min(max(int((page.Width-gap)/l.column), 1), n)
		l.lines = (n + l.columns - 1) / l.columns
		l.columns = (n + l.lines - 1) / l.lines // balances the columns
	}
	l.left, l.right = gap, gap
	if c.y.Title != "" {
		l.left += l.line()
	}
	for _, s := range c.rowTexts {
		l.right = max(l.right, l.ticks.Width(s)+2*gap)
	}
	return l
}

func (l *layout) line() vg.Length { return l.text.Font.Size * 1.3 }

// legendHeight returns the height of the legend with its margins.
func (l *layout) legendHeight() vg.Length {
	if l.lines == 0 {
		return gap
	}
	return vg.Length(l.lines)*l.line() + 2*gap
}

// preferredHeight returns the preferred height for a width.
func (l *layout) preferredHeight(width vg.Length) vg.Length {
	if l.rows > 0 {
		return l.legendHeight() + vg.Length(l.rows)*l.text.Font.Size*1.5 + 4*l.line() + gap
	}
	const ratio = 0.62 // about the golden ratio
	return l.legendHeight() + max(min(width*ratio, 9*vg.Centimeter), l.text.Width(l.y.Title)+2*gap)
}

// draw draws the chart. It returns false if there is not enough room.
func (l *layout) draw(all draw.Canvas) bool {
	p := l.plot
	p.BackgroundColor = nil
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Tick.Label.Font, a.Tick.Length, a.Padding = l.ticks.Font, 3, 2
		a.LineStyle.Width, a.Tick.Width = 0.5, 0.5
	}
	if l.y.Names {
		p.Y.Tick.Length = 0
	}
	all.SetColor(color.White) // readable on dark pages too
	all.Fill(all.Rectangle.Path())
	area := draw.Crop(all, l.left, -l.right, gap+l.line(), -l.legendHeight())
	if area.Size().X < 2*vg.Centimeter || area.Size().Y < vg.Centimeter {
		return false
	}
	inner := p.DataCanvas(area)
	if s := inner.Size(); !(s.X >= 1.5*vg.Centimeter && s.Y >= vg.Centimeter/2) || l.rows > 0 &&
		s.Y < vg.Length(l.rows)*l.ticks.Font.Size {
		return false
	}
	if l.text.Width(l.x.Title)+2*gap > all.Size().X || l.text.Width(l.y.Title)+2*gap > all.Size().Y-l.legendHeight() {
		return false
	}
	p.X.Tick.Marker = plot.ConstantTicks(l.thinLabels(inner))
	p.Add(l.marks...)
	p.Draw(area)
	l.drawLabels(inner)
	l.title(all, inner)
	l.drawRowTexts(inner)
	l.drawLegend(all)
	return true
}

// thinLabels returns the ticks of the x axis, with labels thinned out evenly until none overlap.
func (l *layout) thinLabels(inner draw.Canvas) []Tick {
	trX, _ := l.plot.Transforms(&inner)
	ticks := slices.Clone(l.x.Ticks)
	for every := 1; every < len(ticks); every++ {
		kept, n, apart := slices.Clone(ticks), 0, true
		right := -vg.Length(math.MaxFloat32)
		for i := range kept {
			if kept[i].Label == "" {
				continue
			}
			if n++; (n-1)%every != 0 {
				kept[i].Label = ""
				continue
			}
			half, at := l.ticks.Width(kept[i].Label)/2, trX(kept[i].Value)
			apart = apart && at-half >= right
			right = at + half + gap
		}
		if apart {
			return kept
		}
	}
	return ticks
}

// centerWithin returns the centre of an item of length long, moved as little as needed to fit
// between low and high.
func centerWithin(middle, long, low, high vg.Length) vg.Length {
	return max(min(middle, high-long/2), low+long/2)
}

// title writes the titles of the axes. The library would centre the title of a logarithmic axis
// near its end.
func (l *layout) title(all, inner draw.Canvas) {
	style := l.text
	style.XAlign, style.YAlign = draw.XCenter, draw.YBottom
	all.FillText(style, vg.Point{X: centerWithin(inner.Center().X, style.Width(l.x.Title), all.Min.X+gap, all.Max.X-gap),
		Y: gap}, l.x.Title)
	style.Rotation, style.YAlign = math.Pi/2, draw.YTop
	length := l.text.Width(l.y.Title)
	y := centerWithin(inner.Center().Y, length, all.Min.Y+gap, all.Max.Y-l.legendHeight())
	all.FillText(style, vg.Point{X: gap / 2, Y: y}, l.y.Title)
}

// drawRowTexts writes the text to the right of the rows.
func (l *layout) drawRowTexts(inner draw.Canvas) {
	style := l.ticks
	style.YAlign = draw.YCenter
	_, trY := l.plot.Transforms(&inner)
	for i, s := range l.rowTexts {
		inner.FillText(style, vg.Point{X: inner.Max.X + gap, Y: trY(Row(i, l.rows)) + style.FontExtents().Descent}, s)
	}
}

// drawLegend draws the legend, column by column.
func (l *layout) drawLegend(all draw.Canvas) {
	style := l.text
	style.YAlign = draw.YCenter
	for i, e := range l.entries {
		left := all.Min.X + gap + vg.Length(i/l.lines)*l.column
		y := all.Max.Y - gap - (vg.Length(i%l.lines)+0.5)*l.line()
		if e.lined {
			all.StrokeLine2(e.look.style(), left, y, left+sampleWidth, y)
		}
		if e.mark {
			all.DrawGlyph(e.look.glyph(), vg.Point{X: left + sampleWidth/2, Y: y})
		}
		if e.lined || e.mark {
			left += sampleWidth + gap
		}
		all.FillText(style, vg.Point{X: left, Y: y + style.FontExtents().Descent}, e.name)
	}
}
