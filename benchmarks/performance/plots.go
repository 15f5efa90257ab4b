package main

import (
	"bytes"
	"fmt"
	"math"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/chart"
	"github.com/vramyard/vramyard/harness/study/bench"
)

// page is what every plot is drawn on.
var page = chart.Page{Width: 480, Height: 310, Font: 10, Linked: true}

// drawing is one plot of the page.
type drawing struct {
	file string
	make func(*figures) (*chart.Chart, error)
}

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
		var b bytes.Buffer
		if err := c.Write(&b, chart.SVG, page); err != nil {
			return nil, fmt.Errorf("%s: %w", p.file, err)
		}
		files[p.file] = b.String()
	}
	return files, nil
}

// looks are the same on every plot; strategies have their colors of all figures. Peers share two
// colors and a gray.
var looks = map[string]chart.Look{
	"tlsf": chart.LookOf(3), "bfc": chart.LookOf(0), "bestfit": chart.LookOf(2), "buddy": chart.LookOf(4),
	"slab": chart.LookOf(6), "slabbuddy": chart.LookOf(9), "caching": chart.LookOf(1), "stitch": chart.LookOf(5),
	"vmm": chart.LookOf(8), "async": chart.LookOf(10), "recall": chart.LookOf(11),

	"offsetallocator": chart.LookOf(7), "galloc": chart.LookOf(15), "rmind": chart.LookOf(23), "vma": chart.LookOf(31),
	"memutils": chart.Neutral(),
}

// shownPeers are the peers that the plot of times has beside the strategies: more would hide them.
var shownPeers = []string{"offsetallocator", "galloc", "rmind", "vma", "memutils"}

// series is one line under construction.
type series struct {
	name   string
	look   chart.Look
	points []chart.Point
}

// lines are the lines of a plot with the bounds of their values.
type lines struct {
	all       []series
	low, high float64
}

func (l *lines) add(name string, look chart.Look, points []chart.Point) {
	if len(l.all) == 0 {
		l.low = math.Inf(1)
	}
	for _, p := range points {
		l.low, l.high = min(l.low, p.Y), max(l.high, p.Y)
	}
	l.all = append(l.all, series{name, look, points})
}

// over draws the lines over some axes.
func (l *lines) over(x, y chart.Axis) *chart.Chart {
	c := chart.New(x, y)
	for _, s := range l.all {
		c.Line(chart.Line{Name: s.name, Look: s.look, Points: s.points, Marks: -1})
	}
	return c
}

func liveAxis(of string) chart.Axis {
	return chart.Log("live blocks ("+of+")", float64(live[0]), float64(live[len(live)-1]))
}

func (l *lines) overLive(of comparison, t *timesFile, value func(*bench.Run) (float64, bool)) {
	for _, e := range of.entries {
		var points []chart.Point
		for _, n := range live {
			r := t.run(e.name, n)
			if r == nil {
				continue
			}
			if y, ok := value(r); ok {
				points = append(points, chart.Point{X: float64(n), Y: y})
			}
		}
		l.add(e.name, looks[e.name], points)
	}
}

// timesChart shows times over live blocks.
func (f *figures) timesChart() (*chart.Chart, error) {
	var l lines
	l.overLive(f.comparisons[0], &f.times[0], func(r *bench.Run) (float64, bool) { return r.Min, true })
	for _, name := range shownPeers {
		var points []chart.Point
		for _, r := range f.peers.Runs {
			if r.Allocator == name && r.Workload == "w1" {
				points = append(points, chart.Point{X: float64(r.Live), Y: r.Min})
			}
		}
		l.add(name, looks[name], points)
	}
	return l.over(liveAxis("W1"), chart.Log("ns per pair, minimum", l.low, l.high)), nil
}

// metadataChart shows metadata over live blocks.
func (f *figures) metadataChart() (*chart.Chart, error) {
	var l lines
	l.overLive(f.comparisons[0], &f.times[0], func(r *bench.Run) (float64, bool) {
		if r.MetadataPerBlock == nil {
			return 0, false
		}
		return *r.MetadataPerBlock, true
	})
	return l.over(liveAxis("W1"), chart.Log("metadata, bytes per live block", l.low, l.high)), nil
}

// mixesChart shows each strategy beside tlsf on its own mix.
func (f *figures) mixesChart() (*chart.Chart, error) {
	var l lines
	for i, mix := range f.comparisons[1:] {
		t := &f.times[i+1]
		l.overLive(comparison{entries: mix.entries[1:]}, t, func(r *bench.Run) (float64, bool) {
			return r.Min / t.run(mix.entries[0].name, r.Params.Live).Min, true
		})
	}
	c := l.over(liveAxis("each strategy's own mix"), chart.FromZero("minimum ns per pair / tlsf's", max(l.high, 1)))
	even := chart.Neutral()
	even.Color = looks["tlsf"].Color
	c.HorizontalLine("tlsf, same mix", even, 1)
	return c, nil
}

// lockedChart shows wrap.Locked over goroutines.
func (f *figures) lockedChart() (*chart.Chart, error) {
	var l lines
	var bare []series
	for _, name := range []string{"tlsf", "bfc"} {
		var locked []chart.Point
		for _, r := range f.locked.Reports[0].Threads {
			switch {
			case r.Strategy != name:
			case r.Locking == bench.NoLock:
				bare = append(bare, series{name + ", no lock", looks[name], []chart.Point{{X: 1, Y: r.Median}}})
			case r.Locking == bench.OneMutex:
				locked = append(locked, chart.Point{X: float64(r.Threads), Y: r.Median})
			}
		}
		l.add(name, looks[name], locked)
	}
	x := chart.Log(fmt.Sprintf("goroutines (%d CPUs)", f.locked.Machine.CPUs), 1,
		float64(lockedThreads[len(lockedThreads)-1]))
	x.Ticks = nil
	for _, n := range lockedThreads {
		x.Ticks = append(x.Ticks, chart.Tick{Value: float64(n), Label: fmt.Sprint(n)})
	}
	high := l.high
	for _, s := range bare {
		high = max(high, s.points[0].Y)
	}
	c := l.over(x, chart.FromZero("wall ns per pair, median", high))
	for i, s := range bare {
		s.look.Shape = chart.MarkOf(3 + i).Shape
		c.Marks(s.name, s.look, s.points)
	}
	return c, nil
}

func (f *figures) latencyChart() (*chart.Chart, error) {
	var serial, parallel []chart.Point
	var ticks []chart.Tick
	for i, l := range f.latency.Loads {
		x := float64(l.Bytes)
		serial = append(serial, chart.Point{X: x, Y: l.Serial.Min})
		parallel = append(parallel, chart.Point{X: x, Y: l.Parallel.Min})
		t := chart.Tick{Value: x}
		if i%3 == 0 {
			t.Label = device.Size(l.Bytes).String()
		}
		ticks = append(ticks, t)
	}
	var l lines
	l.add("one by one", chart.LookOf(0), serial)
	l.add("sixteen at once", chart.LookOf(1), parallel)
	x := chart.Log("bytes that are loaded from, at random", leastChase, mostChase)
	x.Ticks = ticks
	return l.over(x, chart.Log("ns per load, minimum", l.low, l.high)), nil
}
