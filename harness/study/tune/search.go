package tune

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
)

// Point is an evaluated combination of settings.
type Point struct {
	// Config has the settings that differ from the preset, as for --config.
	Config json.RawMessage `json:"config"`
	// TimesBound is the geometric mean of minimum capacity over lower bound; null if a trace completes
	// on no tried device, or has a request that the strategy refuses.
	TimesBound *float64 `json:"times_bound"`
	// Completed is the number of traces with a minimum capacity.
	Completed int `json:"completed"`
	// NsPerOp is the geometric mean of the nanoseconds per operation.
	NsPerOp float64 `json:"ns_per_op"`
	// Runs are the figures, by trace.
	Runs []compare.Run `json:"runs"`

	// product of minimum capacity over lower bound. Points are ranked by it because, unlike a root, it
	// is exact on every machine.
	product float64
}

// judge compares points by the goal of the search.
type judge func(a, b *Point) int

// better reports whether a is better than b. A refused point is nil.
func (by judge) better(a, b *Point) bool { return a != nil && (b == nil || by(a, b) < 0) }

// memory prefers less memory, and the point found first of equals, so that timing does not break
// ties.
var memory judge = func(a, b *Point) int {
	return cmp.Or(cmp.Compare(b.Completed, a.Completed), cmp.Compare(a.product, b.product))
}

// speed prefers less time among the points that complete the most traces.
var speed judge = func(a, b *Point) int {
	return cmp.Or(cmp.Compare(b.Completed, a.Completed), cmp.Compare(a.NsPerOp, b.NsPerOp))
}

// choice is a point of the grid: for each knob 0 for the preset's value, or 1 + index of a grid
// value.
type choice []int

// search is the state of a search.
type search struct {
	ctx       context.Context
	traces    []*trace.Trace
	catalogue setting.Catalogue
	strategy  string
	baseline  bool
	fixed     map[string]json.RawMessage
	knobs     []setting.Knob
	start     choice
	o         Options

	points  []*Point          // in order of evaluation
	byKey   map[string]*Point // by configuration, defaults included
	known   map[string]string // choices to configurations; "": refused
	choices map[*Point]choice // the first choice that led to each point
	refused int

	done, planned atomic.Int64
}

func newSearch(ctx context.Context, traces []*trace.Trace, catalogue setting.Catalogue, strategy string,
	fixed json.RawMessage, o Options) (*search, error) {
	preset, err := catalogue.Lookup(strategy, fixed)
	if err != nil {
		return nil, err
	}
	for _, t := range traces {
		if t.LowerBound() == 0 {
			return nil, fmt.Errorf("trace %s has no allocations", t.Header.Name)
		}
	}
	base, _, _ := strings.Cut(strategy, ":")
	spec, ok := catalogue.Spec(strategy)
	if !ok {
		spec, _ = catalogue.Spec(base)
	}
	s := &search{
		ctx: ctx, traces: traces, catalogue: catalogue, strategy: preset.Name, baseline: preset.Baseline, o: o,
		byKey: map[string]*Point{}, known: map[string]string{}, choices: map[*Point]choice{},
	}
	if len(strings.TrimSpace(string(fixed))) > 0 {
		if err := json.Unmarshal(fixed, &s.fixed); err != nil {
			return nil, err // Lookup has validated it
		}
	}
	var varied []setting.Knob
	for _, k := range spec.Knobs {
		if _, given := s.fixed[k.Name]; len(k.Grid) > 1 && !given {
			varied = append(varied, k)
		}
	}
	s.knobs = varied
	if o.Knobs != nil {
		s.knobs = nil
		for _, name := range o.Knobs {
			i := slices.IndexFunc(varied, func(k setting.Knob) bool { return k.Name == name })
			if i < 0 {
				return nil, errKnob(base, name, varied)
			}
			if slices.ContainsFunc(s.knobs, func(k setting.Knob) bool { return k.Name == name }) {
				return nil, fmt.Errorf("%s: duplicate setting %q", base, name)
			}
			s.knobs = append(s.knobs, varied[i])
		}
	}
	s.start = make(choice, len(s.knobs))
	return s, nil
}

// space returns the number of points of the grid, which may be astronomical.
func (s *search) space() float64 {
	n := 1.0
	for _, k := range s.knobs {
		n *= float64(len(k.Grid))
	}
	return n
}

func (s *search) whole() bool { return s.space() <= float64(s.o.Points) }

func (s *search) everything() []choice {
	all := []choice{s.start}
	c := make(choice, len(s.knobs))
	for i := range c {
		c[i] = 1
	}
	for {
		all = append(all, slices.Clone(c))
		i := 0
		for ; i < len(c); i++ {
			if c[i]++; c[i] <= len(s.knobs[i].Grid) {
				break
			}
			c[i] = 1
		}
		if i == len(c) {
			return all
		}
	}
}

// neighbours returns all points that differ from c in one setting.
func (s *search) neighbours(c choice) (all []choice) {
	for i, k := range s.knobs {
		for v := range len(k.Grid) + 1 {
			if v != c[i] {
				n := slices.Clone(c)
				n[i] = v
				all = append(all, n)
			}
		}
	}
	return all
}

// override returns the configuration of a choice, as an override of the preset.
func (s *search) override(c choice) json.RawMessage {
	fields := map[string]json.RawMessage{}
	for name, value := range s.fixed {
		fields[name] = value
	}
	for i, v := range c {
		if v > 0 {
			fields[s.knobs[i].Name] = json.RawMessage(s.knobs[i].Grid[v-1])
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		panic("tune: grid values are not JSON:  " + err.Error()) // SpecOf encoded them
	}
	return text
}

// value returns the JSON value of a setting in a choice; the preset's is looked up.
func (s *search) value(c choice, i int) string {
	if c[i] > 0 {
		return s.knobs[i].Grid[c[i]-1]
	}
	setup, err := s.catalogue.Lookup(s.strategy, s.override(c))
	if err != nil {
		return ""
	}
	text, _ := json.Marshal(setup.Config) // it was encoded before
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(text, &fields) // it was encoded before
	return string(fields[s.knobs[i].Name])
}

func (c choice) key() string {
	text := make([]byte, 0, 2*len(c))
	for _, v := range c {
		text = strconv.AppendInt(append(text, ' '), int64(v), 10)
	}
	return string(text)
}

// at returns the point of a choice, nil if refused or not evaluated.
func (s *search) at(c choice) *Point { return s.byKey[s.known[c.key()]] }

// evaluate replays the traces through the new choices.
func (s *search) evaluate(choices []choice) error {
	var setups []setting.Setup
	var fresh []*Point
	for _, c := range choices {
		if _, ok := s.known[c.key()]; ok {
			continue
		}
		override := s.override(c)
		setup, err := s.catalogue.Lookup(s.strategy, override)
		if err != nil {
			s.known[c.key()] = ""
			s.refused++
			continue
		}
		text, err := json.Marshal(setup.Config)
		if err != nil {
			return fmt.Errorf("%s: %w", s.strategy, err)
		}
		s.known[c.key()] = string(text)
		if s.byKey[string(text)] != nil {
			continue
		}
		p := &Point{Config: override}
		s.byKey[string(text)], s.choices[p] = p, c
		s.points = append(s.points, p)
		setups, fresh = append(setups, setup), append(fresh, p)
	}
	runs, err := s.compare(setups, true)
	for i, p := range fresh {
		if runs[i] != nil {
			p.fill(runs[i])
		}
	}
	return err
}

// compare returns the runs of each setup by trace. With an error, setups that did not finish every
// trace are nil.
func (s *search) compare(setups []setting.Setup, quick bool) ([][]compare.Run, error) {
	s.planned.Add(int64(len(setups) * len(s.traces)))
	finished := make([]*compare.Run, len(s.traces)*len(setups))
	_, err := compare.Compare(s.ctx, s.traces, setups, compare.Options{
		Workers: s.o.Workers, Memory: s.o.Memory, Device: replay.SimTarget(s.o.Device), Quick: quick,
		Across: true, Replayed: s.o.Replayed, Cells: s.o.Cells,
		Done: func(at int, r *compare.Run) {
			finished[at] = r
			if n := s.done.Add(1); s.o.Progress != nil {
				s.o.Progress(int(n), int(s.planned.Load()))
			}
		},
	})
	runs := make([][]compare.Run, len(setups))
	for i := range runs {
		for t := range s.traces {
			r := finished[t*len(setups)+i]
			if r == nil {
				runs[i] = nil
				break
			}
			runs[i] = append(runs[i], *r)
		}
	}
	return runs, err
}

func (p *Point) fill(runs []compare.Run) {
	p.Runs, p.product, p.Completed, p.TimesBound = runs, 1, 0, nil
	var ns float64 // sum of logarithms
	for _, r := range runs {
		if r.MinCapacity != nil {
			p.Completed++
			p.product *= float64(*r.MinCapacity) / float64(r.LowerBound)
		}
		ns += math.Log(r.NsPerOp)
	}
	n := float64(len(runs))
	p.NsPerOp = math.Exp(ns / n)
	if p.Completed == len(runs) {
		mean := math.Round(math.Pow(p.product, 1/n)*1e6) / 1e6
		p.TimesBound = &mean
	}
}

func (s *search) best(by judge) choice {
	best := s.points[0]
	for _, p := range s.points[1:] {
		if by.better(p, best) {
			best = p
		}
	}
	return s.choices[best]
}

func (s *search) fastest(n int) (all []choice) {
	points := slices.Clone(s.points)
	slices.SortStableFunc(points, speed)
	for _, p := range points[:min(n, len(points))] {
		all = append(all, s.choices[p])
	}
	return all
}

func (s *search) setups(choices []choice) ([]setting.Setup, error) {
	setups := make([]setting.Setup, len(choices))
	for i, c := range choices {
		var err error
		if setups[i], err = s.catalogue.Lookup(s.strategy, s.override(c)); err != nil {
			return nil, err
		}
	}
	return setups, nil
}

// timeAgain replaces the times of evaluated choices by the minimum of several interleaved rounds.
func (s *search) timeAgain(choices []choice) error {
	setups, err := s.setups(choices)
	if err != nil {
		return err
	}
	ns, err := compare.Time(s.ctx, s.traces, setups, s.o.Device, rounds)
	if err != nil {
		return err
	}
	for i, c := range choices {
		p := s.at(c)
		for j := range p.Runs {
			p.Runs[j].NsPerOp = ns[i][j]
		}
		p.fill(p.Runs)
	}
	return nil
}

// measureAgain returns a choice with all figures, keeping its times.
func (s *search) measureAgain(c choice) (Point, error) {
	setups, err := s.setups([]choice{c})
	if err != nil {
		return Point{}, err
	}
	runs, err := s.compare(setups, false)
	if err != nil {
		return Point{}, err
	}
	for i := range runs[0] {
		runs[0][i].NsPerOp = s.at(c).Runs[i].NsPerOp
	}
	p := Point{Config: s.override(c)}
	p.fill(runs[0])
	return p, nil
}
