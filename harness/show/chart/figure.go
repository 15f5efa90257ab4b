package chart

import (
	"errors"
	"fmt"
	"image/color"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/diff"
	"github.com/vramyard/vramyard/internal/nearest"
)

// Options say what to draw. The zero value draws what suits the results.
type Options struct {
	Kind       string   // name of a kind; "": the first that the results allow
	Metric     string   // name of a figure as in the results; "": the kind's own
	Trace      string   // trace or workload to draw; "": all
	Strategies []string // to draw, in this order; nil: all
	// Number returns the number of a strategy, which its colour goes by; nil: by their order.
	Number func(strategy string) int
}

// Kind is a kind of figure.
type Kind struct {
	Name   string   // as Options have it
	Doc    string   // what it shows
	Of     []string // commands whose results it can be drawn of
	Mixed  bool     // results of several of them can be drawn together
	Metric string   // that is drawn unless another is asked for
	draw   func(*drawing) (*Chart, error)
}

// Kinds returns all kinds. Of those that can be drawn of a result the first is its own.
func Kinds() []Kind {
	needs := []string{ofCompare, ofWhatif, ofOffline}
	return []Kind{
		{"memory", "memory over events: a run with what is requested, allocated and reserved, or one of them for " +
			"several runs",
			[]string{ofReplay}, false, "reserved", (*drawing).memory},
		{"capacity", "minimum capacity by strategy or placement: bars with the lower bound, or, on several traces, marks " +
			"in multiples of it",
			needs, true, "min_capacity_bytes", (*drawing).capacity},
		{"waste", "reservation waste and fragmentation by strategy; on several traces one of them",
			[]string{ofCompare, ofWhatif, ofReplay}, false, "reservation_waste", (*drawing).waste},
		{"budget", "share of the traces that complete on a device of a multiple of their lower bounds",
			needs, true, "min_capacity_bytes", (*drawing).budget},
		{"tradeoff", "memory against time, of strategies or of the settings that a search tried, and those that none " +
			"beats in both",
			[]string{ofTune, ofCompare}, false, "min_capacity_bytes", (*drawing).tradeoff},
		{"time", "time of a pair of a free and an allocation over live blocks, by strategy",
			[]string{ofBench}, false, "ns_per_pair_median", (*drawing).time},
		{"overhead", "time with recomputation over the budget, of one log, by strategy, heuristic and ladder",
			[]string{ofRemat}, false, "total_overhead", (*drawing).overhead},
	}
}

// run is one run to draw.
type run struct {
	diff.Run
	label   string      // in legends and at rows
	number  int         // that its look goes by
	hue     color.Color // nil for that of the number
	plain   bool        // no strategy, whose looks are coloured
	setting bool        // the label is a setting of the strategy
	point   int         // setting of a search; 0 is its preset
	of      string      // trace, or workload without its parameters
	series  *replay.Series
}

// value returns a figure as a number.
func (r *run) value(name string) (float64, bool) {
	n := r.Figure(name).Number()
	if n == nil {
		return 0, false
	}
	x, _ := n.Float64()
	return x, true
}

// drawing is a figure under construction.
type drawing struct {
	kind   Kind
	metric string
	asked  bool     // the metric was asked for
	runs   []run    // in the order to draw them
	traces []string // that they are of, in their order
	card   float64  // capacity in bytes of the card that the runs are of; 0: of none, or of several
}

// Draw makes the figure of some results.
//
// Precondition: there is at least one.
func Draw(sources []*Source, o Options) (*Chart, error) {
	k, err := kindFor(sources, o.Kind)
	if err != nil {
		return nil, err
	}
	d := &drawing{kind: k, metric: k.Metric, asked: o.Metric != ""}
	if d.asked {
		d.metric = o.Metric
	}
	if err := d.collect(sources, o); err != nil {
		return nil, err
	}
	c, err := k.draw(d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.Name, err)
	}
	return c, nil
}

// kindFor returns the kind to draw of some results.
func kindFor(sources []*Source, name string) (Kind, error) {
	var commands []string
	for _, s := range sources {
		if !slices.Contains(commands, s.of.Command) {
			commands = append(commands, s.of.Command)
		}
	}
	var names, possible []string
	for _, k := range Kinds() {
		names = append(names, k.Name)
		takes := len(commands) == 1 || k.Mixed
		for _, c := range commands {
			takes = takes && slices.Contains(k.Of, c)
		}
		if !takes {
			continue
		}
		if name == "" || k.Name == name {
			return k, nil
		}
		possible = append(possible, k.Name)
	}
	of := sources[0].name + " is a result of " + commands[0]
	if len(commands) > 1 {
		of = "the results are of " + strings.Join(commands, " and ")
	}
	switch {
	case !slices.Contains(names, name) && name != "":
		return Kind{}, fmt.Errorf("unknown kind %.60q: %swant %s", name, nearest.Hint(name, names), either(names))
	case len(possible) == 0:
		return Kind{}, fmt.Errorf("%s: no figure is of both", of)
	}
	return Kind{}, fmt.Errorf("%s: want the kind %s, not %s", of, either(possible), name)
}

// errNoRuns is what is wrong with results that hold none.
var errNoRuns = errors.New("the results hold no run")

// collect chooses the runs to draw.
func (d *drawing) collect(sources []*Source, o Options) error {
	var all []run
	for _, s := range sources {
		for _, r := range s.result.Runs {
			all = append(all, newRun(s, r))
		}
	}
	if len(all) == 0 {
		return errNoRuns
	}
	nameLines(all)
	if o.Trace != "" {
		traces := distinct(all, func(r *run) string { return r.of })
		all = slices.DeleteFunc(all, func(r run) bool { return r.of != o.Trace })
		if len(all) == 0 {
			return fmt.Errorf("no run on %q: %sthe results are on %s", o.Trace, nearest.Hint(o.Trace, traces),
				strings.Join(traces, ", "))
		}
	}
	if err := d.choose(all, o.Strategies); err != nil {
		return err
	}
	tellApart(d.runs, sources)
	d.traces = distinct(d.runs, func(r *run) string { return r.of })
	names := distinct(d.runs, func(r *run) string { return r.label })
	if err := errors.Join(bounded(names, "strategies or settings", "strategies"),
		bounded(d.traces, "traces", "trace")); err != nil {
		return err
	}
	d.card = cardOf(sources, d.runs)
	for i := range d.runs {
		r := &d.runs[i]
		r.number = slices.Index(names, r.label)
		switch {
		case o.Number == nil || r.plain:
		case r.label == r.Strategy:
			r.number = o.Number(r.Strategy)
		case r.setting:
			r.hue = LookOf(o.Number(r.Strategy)).Color
		}
	}
	clip(d.runs, names)
	return nil
}

// newRun returns a run of a source, named by its strategy, or by its setting where that is what was
// searched.
func newRun(s *Source, r diff.Run) run {
	out := run{Run: r, label: r.Strategy, of: r.Trace, series: s.series}
	if label := r.Figure("label").Text(); label != "" {
		out.label, out.setting = label, label != r.Strategy
	}
	switch s.of.Command {
	case ofBench:
		out.of, _, _ = strings.Cut(r.Trace, " ") // the rest is the parameters
	case ofOffline:
		out.plain = true
	case ofTune:
		n, _ := out.value(fieldPoint)
		out.point = int(n)
	case ofRemat:
		out.line(r.Strategy)
	}
	return out
}

// choose keeps the runs of some strategies, in their order; nil keeps all.
func (d *drawing) choose(all []run, strategies []string) error {
	if strategies == nil {
		d.runs = all
		return nil
	}
	for _, name := range strategies {
		found := false
		for _, r := range all {
			if r.label == name || r.Strategy == name {
				d.runs = append(d.runs, r)
				found = true
			}
		}
		if !found {
			have := distinct(all, func(r *run) string { return r.label })
			return fmt.Errorf("no run of %q: %sthe results have %s", name, nearest.Hint(name, have), strings.Join(have, ", "))
		}
	}
	return nil
}

// tellApart gives runs of one label and one trace labels of their own: those of their files where
// there is one from each, else numbers.
func tellApart(runs []run, sources []*Source) {
	seen := map[string]int{}
	for i := range runs {
		r := &runs[i]
		key := fmt.Sprint(r.of, "\x00", r.Trace, "\x00", r.label, "\x00", r.point)
		seen[key]++
		if n := seen[key]; n > 1 {
			r.label = fmt.Sprintf("%s (%d)", r.label, n)
			if len(sources) == len(runs) {
				r.label = runs[i].Strategy + " (" + stem(sources[i].name) + ")"
			}
		}
	}
}

// stem returns the name of a file without folder and ending.
func stem(path string) string {
	base := filepath.Base(path)
	name, _, _ := strings.Cut(base, ".")
	return name
}

// distinct returns what runs have, each once, in their order.
func distinct(runs []run, of func(*run) string) (all []string) {
	seen := map[string]bool{}
	for i := range runs {
		if s := of(&runs[i]); !seen[s] {
			seen[s] = true
			all = append(all, s)
		}
	}
	return all
}

// mostSeries is how many rows or lines, or traces, a figure has at most: several times what a page
// can show.
const mostSeries = 256

// bounded refuses more of something than a figure has room for.
func bounded(names []string, what, flag string) error {
	if len(names) <= mostSeries {
		return nil
	}
	return fmt.Errorf("the results have %d %s: want at most %d in a figure; choose by --%s", len(names), what,
		mostSeries, flag)
}

// clip makes the labels short.
func clip(runs []run, names []string) {
	short := shortened(names)
	for i := range runs {
		runs[i].label = short[runs[i].label]
	}
}

// plainColor is a grey on which a bound is seen.
var plainColor = color.Gray{0x88}

func (r *run) look() Look {
	l := LookOf(r.number)
	switch {
	case r.plain:
		l.Color = plainColor
	case r.hue != nil:
		l.Color = r.hue
	}
	return l
}
