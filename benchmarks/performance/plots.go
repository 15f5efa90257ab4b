package main

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/bench"
)

// The size of a plot, and of the legend at its right, which so never hides a line.
const (
	plotWidth   = 560 * vg.Length(1)
	plotHeight  = 330 * vg.Length(1)
	legendWidth = 130 * vg.Length(1)
	labelHeight = 20 * vg.Length(1)
	plotMargin  = 8 * vg.Length(1)
	fontSize    = 11
)

// drawing is one plot of the page.
type drawing struct {
	file string
	make func(*figures) (*chart, error)
}

// plots returns all of them.
func plots() []drawing {
	return []drawing{
		{"times-w1.svg", (*figures).timesChart}, {"metadata-w1.svg", (*figures).metadataChart},
		{"mixes.svg", (*figures).mixesChart}, {"locked.svg", (*figures).lockedChart},
		{"latency.svg", (*figures).latencyChart},
	}
}

// drawn returns the plots by their files.
func (f *figures) drawn() (map[string]string, error) {
	files := map[string]string{}
	for _, p := range plots() {
		c, err := p.make(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.file, err)
		}
		if files[p.file], err = c.svg(); err != nil {
			return nil, fmt.Errorf("%s: %w", p.file, err)
		}
	}
	return files, nil
}

// look is how a line is drawn. The colours are those of Okabe and Ito, which people with any
// vision tell apart; shapes and dashes tell the same again.
type look struct {
	color  color.RGBA
	shape  draw.GlyphDrawer
	dashes []vg.Length
}

var (
	blue      = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	vermilion = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
	green     = color.RGBA{0x00, 0x9e, 0x73, 0xff}
	purple    = color.RGBA{0xcc, 0x79, 0xa7, 0xff}
	orange    = color.RGBA{0xe6, 0x9f, 0x00, 0xff}
	sky       = color.RGBA{0x56, 0xb4, 0xe9, 0xff}
	grey      = color.RGBA{0x80, 0x80, 0x80, 0xff}
	black     = color.RGBA{0x00, 0x00, 0x00, 0xff}
	pale      = color.RGBA{0xe4, 0xe4, 0xe4, 0xff}
)

// looks are the same on every plot.
var looks = map[string]look{
	"tlsf":      {blue, draw.CircleGlyph{}, nil},
	"bfc":       {vermilion, draw.BoxGlyph{}, nil},
	"bestfit":   {green, draw.TriangleGlyph{}, nil},
	"buddy":     {purple, draw.PyramidGlyph{}, nil},
	"slab":      {orange, draw.RingGlyph{}, nil},
	"slabbuddy": {sky, draw.SquareGlyph{}, nil},

	"offsetallocator": {black, draw.PlusGlyph{}, []vg.Length{5, 2}},
	"galloc":          {black, draw.CrossGlyph{}, []vg.Length{2, 2}},
	"rmind":           {grey, draw.PlusGlyph{}, []vg.Length{5, 2}},
	"vma":             {grey, draw.CrossGlyph{}, []vg.Length{2, 2}},
	"memutils":        {grey, draw.RingGlyph{}, []vg.Length{8, 3}},
}

// shownPeers are the peers that the plot of times has beside the strategies: more would hide them.
var shownPeers = []string{"offsetallocator", "galloc", "rmind", "vma", "memutils"}

// chart is a plot under construction. The first thing that goes wrong is kept.
type chart struct {
	plot   *plot.Plot
	x, y   string // what the axes show
	legend plot.Legend
	err    error
}

// newChart returns a chart with its axes named.
func newChart(x, y string) *chart {
	c := &chart{plot: plot.New(), legend: plot.NewLegend(), x: x, y: y}
	p := c.plot
	for _, f := range []*font.Font{&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &c.legend.TextStyle.Font} {
		*f = font.Font{Typeface: "Liberation", Variant: "Sans", Size: fontSize}
	}
	p.X.Padding, p.Y.Padding = 4, 4
	c.legend.Top, c.legend.Left = true, true
	c.legend.Padding = 4
	c.legend.ThumbnailWidth = 26
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = pale, pale
	p.Add(grid)
	return c
}

// logarithmic makes an axis logarithmic between two values.
func logarithmic(a *plot.Axis, low, high float64, ticks []plot.Tick) {
	a.Scale, a.Min, a.Max = plot.LogScale{}, low, high
	a.Tick.Marker = plot.ConstantTicks(ticks)
}

// line adds a line with a name in the legend.
func (c *chart) line(name string, l look, points plotter.XYs) {
	if c.err != nil || len(points) == 0 {
		return
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		c.err = err
		return
	}
	line.Color, line.Width, line.Dashes = l.color, 1.6, l.dashes
	marks.Color, marks.Shape, marks.Radius = l.color, l.shape, 3.2
	c.plot.Add(line, marks)
	c.legend.Add(name, line, marks)
}

// mark adds a single point with a name in the legend.
func (c *chart) mark(name string, l look, point plotter.XY) {
	marks, err := plotter.NewScatter(plotter.XYs{point})
	if err != nil {
		c.err = cmp.Or(c.err, err)
		return
	}
	marks.Color, marks.Shape, marks.Radius = l.color, l.shape, 4
	c.plot.Add(marks)
	c.legend.Add(name, marks)
}

// fromZero makes an axis linear, from 0 to beyond high, with round ticks.
func fromZero(a *plot.Axis, high float64) {
	step := math.Pow10(int(math.Floor(math.Log10(high))))
	for high/step < 4 {
		step /= 2
	}
	var ticks []plot.Tick
	top := math.Ceil(high/step*1.02) * step
	for v := 0.0; v <= top*1.001; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%g", v)})
	}
	a.Min, a.Max, a.Tick.Marker = 0, top, plot.ConstantTicks(ticks)
}

// svg returns the chart as a file.
func (c *chart) svg() (string, error) {
	if c.err != nil {
		return "", c.err
	}
	canvas := vgsvg.New(plotWidth, plotHeight)
	all := draw.New(canvas)
	all.SetColor(color.White) // or the lines would be hard to see on a dark page
	all.Fill(all.Rectangle.Path())
	area := draw.Crop(all, labelHeight, -legendWidth-plotMargin, labelHeight, -plotMargin)
	c.plot.Draw(area)
	c.label(all, area)
	c.legend.Draw(draw.Crop(all, plotWidth-legendWidth, 0, 0, -plotMargin))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", err
	}
	// Liberation Sans has the widths of Arial, so that either fits.
	return strings.ReplaceAll(b.String(), "font-family:Liberation Sans;", "font-family:Liberation Sans,Arial,Helvetica,sans-serif;"), nil
}

// label names the axes. The library would leave room for a name where the middle of a linear
// axis is, which is near the end of a logarithmic one.
func (c *chart) label(all, area draw.Canvas) {
	style := c.plot.X.Tick.Label
	style.XAlign, style.YAlign = draw.XCenter, draw.YBottom
	all.FillText(style, vg.Point{X: area.Center().X, Y: plotMargin / 2}, c.x)
	style.Rotation, style.YAlign = math.Pi/2, draw.YTop
	all.FillText(style, vg.Point{X: plotMargin / 2, Y: area.Center().Y}, c.y)
}

// liveAxis makes the axis of live blocks.
func (c *chart) liveAxis() {
	var ticks []plot.Tick
	for _, n := range live {
		ticks = append(ticks, plot.Tick{Value: float64(n), Label: exponent(n)})
	}
	logarithmic(&c.plot.X, float64(live[0])/1.4, float64(live[len(live)-1])*1.4, ticks)
}

// decades returns ticks at 1, 2 and 5 times the powers of ten between two values.
func decades(low, high float64) (ticks []plot.Tick) {
	for d := math.Pow10(int(math.Floor(math.Log10(low)))); d <= high; d *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if v := m * d; v >= low*0.999 && v <= high*1.001 {
				ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%g", v)})
			}
		}
	}
	return ticks
}

// overLive adds a line for each strategy of a contest.
func (c *chart) overLive(of contest, t *timesFile, value func(*bench.Run) (float64, bool)) (low, high float64) {
	low, high = math.Inf(1), 0
	for _, e := range of.entries {
		var points plotter.XYs
		for _, n := range live {
			r := t.run(e.name, n)
			if r == nil {
				continue
			}
			if y, ok := value(r); ok {
				points = append(points, plotter.XY{X: float64(n), Y: y})
				low, high = min(low, y), max(high, y)
			}
		}
		c.line(e.name, looks[e.name], points)
	}
	return low, high
}

// timesChart shows times over live blocks.
func (f *figures) timesChart() (*chart, error) {
	c := newChart("live blocks (W1)", "ns per pair, minimum")
	c.liveAxis()
	low, high := c.overLive(f.contests[0], &f.times[0], func(r *bench.Run) (float64, bool) { return r.Min, true })
	for _, name := range shownPeers {
		var points plotter.XYs
		for _, r := range f.peers.Runs {
			if r.Allocator == name && r.Workload == "w1" {
				points = append(points, plotter.XY{X: float64(r.Live), Y: r.Min})
				low, high = min(low, r.Min), max(high, r.Min)
			}
		}
		c.line(name, looks[name], points)
	}
	logarithmic(&c.plot.Y, low/1.2, high*1.2, decades(low/1.2, high*1.2))
	return c, c.err
}

// metadataChart shows metadata over live blocks.
func (f *figures) metadataChart() (*chart, error) {
	c := newChart("live blocks (W1)", "metadata, bytes per live block (logarithmic)")
	c.liveAxis()
	low, high := c.overLive(f.contests[0], &f.times[0], func(r *bench.Run) (float64, bool) {
		if r.MetadataPerBlock == nil {
			return 0, false
		}
		return *r.MetadataPerBlock, true
	})
	logarithmic(&c.plot.Y, low/1.2, high*1.2, decades(low/1.2, high*1.2))
	return c, c.err
}

// mixesChart shows each strategy beside tlsf on its own mix.
func (f *figures) mixesChart() (*chart, error) {
	c := newChart("live blocks (each strategy's own mix)", "minimum ns per pair / tlsf's")
	c.liveAxis()
	high := 1.0
	for i, mix := range f.contests[1:] {
		t := &f.times[i+1]
		_, top := c.overLive(contest{entries: mix.entries[1:]}, t, func(r *bench.Run) (float64, bool) {
			return r.Min / t.run(mix.entries[0].name, r.Params.Live).Min, true
		})
		high = max(high, top)
	}
	even := plotter.XYs{{X: c.plot.X.Min, Y: 1}, {X: c.plot.X.Max, Y: 1}}
	line, err := plotter.NewLine(even)
	if err != nil {
		return nil, err
	}
	line.Color, line.Width, line.Dashes = blue, 1.2, []vg.Length{4, 3}
	c.plot.Add(line)
	c.legend.Add("tlsf, same mix", line)
	fromZero(&c.plot.Y, high)
	return c, c.err
}

// lockedChart shows alloc.Locked over goroutines.
func (f *figures) lockedChart() (*chart, error) {
	c := newChart(fmt.Sprintf("goroutines (%d CPUs)", f.locked.Machine.CPUs), "wall ns per pair, median")
	high := 0.0
	var ticks []plot.Tick
	for _, n := range lockedCounts[1:] {
		ticks = append(ticks, plot.Tick{Value: float64(n), Label: fmt.Sprint(n)})
	}
	logarithmic(&c.plot.X, 0.9, 18, ticks)
	for _, name := range []string{"tlsf", "bfc"} {
		var locked plotter.XYs
		var bare plotter.XY
		for _, r := range f.locked.Runs {
			switch {
			case r.Strategy != name:
			case r.Goroutines == 0:
				bare = plotter.XY{X: 1, Y: r.Median}
			default:
				locked = append(locked, plotter.XY{X: float64(r.Goroutines), Y: r.Median})
			}
			high = max(high, r.Median)
		}
		c.line(name, looks[name], locked)
		c.mark(name+", no lock", look{looks[name].color, draw.CrossGlyph{}, nil}, bare)
	}
	fromZero(&c.plot.Y, high)
	return c, c.err
}

// latencyChart shows what loads take.
func (f *figures) latencyChart() (*chart, error) {
	c := newChart("bytes that are loaded from, at random", "ns per load, minimum")
	var serial, parallel plotter.XYs
	var ticks []plot.Tick
	low, high := math.Inf(1), 0.0
	for i, l := range f.latency.Loads {
		x := float64(l.Bytes)
		serial = append(serial, plotter.XY{X: x, Y: l.Serial.Min})
		parallel = append(parallel, plotter.XY{X: x, Y: l.Parallel.Min})
		low, high = min(low, l.Parallel.Min), max(high, l.Serial.Min)
		t := plot.Tick{Value: x}
		if i%3 == 0 {
			t.Label = device.Size(l.Bytes).String()
		}
		ticks = append(ticks, t)
	}
	logarithmic(&c.plot.X, leastChase/1.3, mostChase*1.3, ticks)
	logarithmic(&c.plot.Y, low/1.3, high*1.3, decades(low/1.3, high*1.3))
	c.line("one by one", look{blue, draw.CircleGlyph{}, nil}, serial)
	c.line("sixteen at once", look{vermilion, draw.BoxGlyph{}, nil}, parallel)
	return c, c.err
}
