package figure

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/harness/chart"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/report"
	"github.com/vramyard/vramyard/harness/resultdiff"
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
	Name    string   // as Options have it
	Doc     string   // what it shows
	Schemas []string // results that it can be drawn of
	Metric  string   // that is drawn unless another is asked for
	draw    func(*drawing) (*chart.Chart, error)
}

// Kinds returns all kinds. Of those that can be drawn of a result the first is its own.
func Kinds() []Kind {
	compared := []string{schemaCompare, schemaWhatif}
	return []Kind{
		{"memory", "memory over events: a run with what is requested, allocated and reserved, or one of them for several runs",
			[]string{schemaReplay}, "reserved", (*drawing).memory},
		{"capacity", "minimum capacity by strategy: bars with the lower bound, or, on several traces, marks in multiples of it",
			compared, "min_capacity_bytes", (*drawing).capacity},
		{"waste", "reservation waste and fragmentation by strategy; on several traces one of them",
			[]string{schemaCompare, schemaWhatif, schemaReplay}, "reservation_waste", (*drawing).waste},
		{"budget", "share of the traces that complete on a device of a multiple of their lower bounds",
			compared, "min_capacity_bytes", (*drawing).budget},
		{"time", "time of a pair of a free and an allocation over live blocks, by strategy",
			[]string{schemaBench}, "ns_per_pair_median", (*drawing).time},
	}
}

// run is one run to draw.
type run struct {
	resultdiff.Run
	label  string // in legends and at rows
	number int    // that its look goes by
	of     string // trace, or workload without its parameters
	series *replay.Series
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
}

// Draw makes the figure of some results.
//
// Precondition: there is at least one.
func Draw(sources []*Source, o Options) (*chart.Chart, error) {
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
	first := sources[0]
	for _, s := range sources[1:] {
		if s.result.Schema != first.result.Schema {
			return Kind{}, fmt.Errorf("%s is %s and %s is %s: a figure is of one kind of result",
				first.name, first.result.Schema, s.name, s.result.Schema)
		}
	}
	var names, possible []string
	for _, k := range Kinds() {
		names = append(names, k.Name)
		if !slices.Contains(k.Schemas, first.result.Schema) {
			continue
		}
		if name == "" || k.Name == name {
			return k, nil
		}
		possible = append(possible, k.Name)
	}
	switch {
	case len(possible) == 0:
		return Kind{}, fmt.Errorf("%s: there is no figure of %s", first.name, first.result.Schema)
	case !slices.Contains(names, name):
		return Kind{}, fmt.Errorf("unknown kind %q: want one of %s", name, strings.Join(names, ", "))
	}
	return Kind{}, fmt.Errorf("%s is %s: it can be drawn as %s, not as %s", first.name, first.result.Schema, strings.Join(possible, " or "), name)
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
	if o.Trace != "" {
		traces := distinct(all, func(r *run) string { return r.of })
		all = slices.DeleteFunc(all, func(r run) bool { return r.of != o.Trace })
		if len(all) == 0 {
			return fmt.Errorf("no run on %q: the results are on %s", o.Trace, strings.Join(traces, ", "))
		}
	}
	if err := d.choose(all, o.Strategies); err != nil {
		return err
	}
	tellApart(d.runs, sources)
	d.traces = distinct(d.runs, func(r *run) string { return r.of })
	names := distinct(d.runs, func(r *run) string { return r.label })
	for i := range d.runs {
		r := &d.runs[i]
		r.number = slices.Index(names, r.label)
		if o.Number != nil && r.label == r.Strategy {
			r.number = o.Number(r.Strategy)
		}
		r.label = clipped(r.label)
	}
	return nil
}

// newRun returns a run of a source, named by its strategy, or by its setting where that is what was searched.
func newRun(s *Source, r resultdiff.Run) run {
	out := run{Run: r, label: r.Strategy, of: r.Trace, series: s.series}
	if label := r.Figure("label").Text(); label != "" {
		out.label = label
	}
	if s.result.Schema == schemaBench {
		out.of, _, _ = strings.Cut(r.Trace, " ") // the rest is the parameters
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
			return fmt.Errorf("no run of %q: the results have %s", name, strings.Join(have, ", "))
		}
	}
	return nil
}

// tellApart gives runs of one label and one trace labels of their own: those of their files where there
// is one from each, else numbers.
func tellApart(runs []run, sources []*Source) {
	seen := map[string]int{}
	for i := range runs {
		r := &runs[i]
		key := r.of + "\x00" + r.Trace + "\x00" + r.label
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
	for i := range runs {
		if s := of(&runs[i]); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// clipped returns a name as it can be drawn: its control characters escaped, and no more than fits a row.
func clipped(s string) string {
	const most = 36
	if short := []rune(s); len(short) > most {
		s = string(short[:most-1]) + "…"
	}
	return report.Printable(s)
}

// look returns the look of a run.
func (r *run) look() chart.Look { return chart.LookOf(r.number) }
