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

// Options select what to draw. The zero value chooses by the results.
type Options struct {
	Kind       string   // name of a [Kind]; "": the default of the results
	Metric     string   // name of a figure in the results; "": the default of the kind
	Trace      string   // trace or workload; "": all
	Strategies []string // strategies, in this order; nil: all
	// Number returns the palette index of a strategy; nil: by order.
	Number func(strategy string) int
}

// Kind is a kind of figure.
type Kind struct {
	Name     string   // as in Options.Kind
	Doc      string   // description
	Commands []string // commands whose results it can draw
	Mixed    bool     // can combine results of several of these commands
	Metric   string   // default figure
	draw     func(*drawing) (*Chart, error)
}

// Kinds returns all kinds. The first that can draw a result is its default.
func Kinds() []Kind {
	needs := []string{cmdCompare, cmdWhatif, cmdOffline}
	return []Kind{
		{"memory", "memory over events: requested, allocated and reserved of one run, or one of them for " +
			"several runs",
			[]string{cmdReplay}, false, "reserved", (*drawing).memory},
		{"capacity", "minimum capacity by strategy or placement: bars and the lower bound; on several traces, " +
			"multiples of it",
			needs, true, "min_capacity_bytes", (*drawing).capacity},
		{"waste", "reservation waste and fragmentation by strategy; on several traces, one of them",
			[]string{cmdCompare, cmdWhatif, cmdReplay}, false, "reservation_waste", (*drawing).waste},
		{"budget", "share of traces that complete, over device capacity in multiples of their lower bounds",
			needs, true, "min_capacity_bytes", (*drawing).budget},
		{"tradeoff", "memory against time of strategies, or of the settings of a search, with the Pareto " +
			"front",
			[]string{cmdTune, cmdCompare}, false, "min_capacity_bytes", (*drawing).tradeoff},
		{"time", "time of a free and an allocation over live blocks, by strategy",
			[]string{cmdBench}, false, "ns_per_pair_median", (*drawing).time},
		{"overhead", "time with recomputation over the budget of one log, by strategy, heuristic and ladder",
			[]string{cmdRemat}, false, "total_overhead", (*drawing).overhead},
	}
}

// run is one run to draw.
type run struct {
	diff.Run
	label   string      // for the legend and rows
	number  int         // determines its look
	hue     color.Color // nil: by number
	plain   bool        // a reference such as counting, drawn in grey
	setting bool        // label is a setting of the strategy
	point   int         // index in a search; 0 is its preset
	group   string      // trace, or workload without parameters
	series  *replay.Series
}

// value returns a numeric figure.
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
	kind         Kind
	metric       string
	metricChosen bool     // the user chose the metric
	runs         []run    // in drawing order
	traces       []string // distinct, in order
	card         float64  // capacity in bytes of the common card; 0: none or several
}

// Draw makes the figure of some results.
//
// Precondition: len(sources) > 0.
func Draw(sources []*Source, o Options) (*Chart, error) {
	k, err := kindFor(sources, o.Kind)
	if err != nil {
		return nil, err
	}
	d := &drawing{kind: k, metric: k.Metric, metricChosen: o.Metric != ""}
	if d.metricChosen {
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

// kindFor selects the kind for some results.
func kindFor(sources []*Source, name string) (Kind, error) {
	var commands []string
	for _, s := range sources {
		if !slices.Contains(commands, s.form.Command) {
			commands = append(commands, s.form.Command)
		}
	}
	var names, possible []string
	for _, k := range Kinds() {
		names = append(names, k.Name)
		takes := len(commands) == 1 || k.Mixed
		for _, c := range commands {
			takes = takes && slices.Contains(k.Commands, c)
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
		return Kind{}, fmt.Errorf("--kind %.60q: %swant %s", name, nearest.Hint(name, names), either(names))
	case len(possible) == 0:
		return Kind{}, fmt.Errorf("%s: no kind of figure combines them", of)
	}
	return Kind{}, fmt.Errorf("--kind %s: %s: want %s", name, of, either(possible))
}

var errNoRuns = errors.New("the results contain no run")

// collect selects the runs to draw.
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
		traces := distinct(all, func(r *run) string { return r.group })
		all = slices.DeleteFunc(all, func(r run) bool { return r.group != o.Trace })
		if len(all) == 0 {
			return fmt.Errorf("--trace %q: %sthe results are on %s", o.Trace, nearest.Hint(o.Trace, traces),
				strings.Join(traces, ", "))
		}
	}
	if err := d.choose(all, o.Strategies); err != nil {
		return err
	}
	disambiguate(d.runs, sources)
	d.traces = distinct(d.runs, func(r *run) string { return r.group })
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

// newRun returns a run, labelled with its strategy, or with its setting in the result of a search.
func newRun(s *Source, r diff.Run) run {
	out := run{Run: r, label: r.Strategy, group: r.Trace, series: s.series}
	if label := r.Figure("label").Text(); label != "" {
		out.label, out.setting = label, label != r.Strategy
	}
	switch s.form.Command {
	case cmdBench:
		out.group, _, _ = strings.Cut(r.Trace, " ") // without parameters
	case cmdOffline:
		out.plain = true
	case cmdTune:
		n, _ := out.value(fieldPoint)
		out.point = int(n)
	case cmdRemat:
		out.line(r.Strategy)
	}
	return out
}

// choose keeps the runs of the given strategies, in their order; nil keeps all.
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
			return fmt.Errorf("--strategies %q: %sthe results have %s", name, nearest.Hint(name, have), strings.Join(have, ", "))
		}
	}
	return nil
}

// disambiguate relabels runs with equal label and trace: with their file if each file has one run,
// otherwise with a number.
func disambiguate(runs []run, sources []*Source) {
	seen := map[string]int{}
	for i := range runs {
		r := &runs[i]
		key := fmt.Sprint(r.group, "\x00", r.Trace, "\x00", r.label, "\x00", r.point)
		seen[key]++
		if n := seen[key]; n > 1 {
			r.label = fmt.Sprintf("%s (%d)", r.label, n)
			if len(sources) == len(runs) {
				r.label = runs[i].Strategy + " (" + stem(sources[i].name) + ")"
			}
		}
	}
}

// stem returns the base name of a file without extensions.
func stem(path string) string {
	base := filepath.Base(path)
	name, _, _ := strings.Cut(base, ".")
	return name
}

// distinct returns the distinct values of a property, in order.
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

// mostSeries bounds the rows, lines or traces of a figure, generously.
const mostSeries = 256

// bounded returns an error if there are more than mostSeries names.
func bounded(names []string, what, flag string) error {
	if len(names) <= mostSeries {
		return nil
	}
	return fmt.Errorf("the results have %d %s: want at most %d in a figure; choose by --%s", len(names), what,
		mostSeries, flag)
}

// clip shortens the labels.
func clip(runs []run, names []string) {
	short := shortened(names)
	for i := range runs {
		runs[i].label = short[runs[i].label]
	}
}

// plainColor is the grey of bounds and references.
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
