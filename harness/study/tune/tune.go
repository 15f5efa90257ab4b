package tune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/nearest"
)

// Schema is the schema of a [Result] in JSON.
const Schema = "vramyard-tune/1"

// defaultPoints is the default limit of evaluated points.
const defaultPoints = 200

// finalists is the number of fastest points to time again, since single timings under load favour
// lucky points; rounds is the number of timings.
const (
	finalists = 5
	rounds    = 5
)

// lastRounds bounds the rounds of single changes after the search.
const lastRounds = 4

// Options configure a search. The zero value is ready to use.
type Options struct {
	Points  int        // no new round starts after this many points; 0: 200
	Knobs   []string   // settings to vary; nil: all with grid values
	Device  sim.Config // the device; its capacity is ignored
	Workers int        // concurrent replays; 0: one per core

	// Memory limits the memory of concurrent replays, in bytes; 0: none. One replay always runs.
	Memory device.Size

	// Cells are runs that are computed only once; nil: everything is computed. Finalists are always
	// timed again.
	Cells *cell.Cells

	// Progress is called concurrently with the points × traces done and known so far; may be nil.
	Progress func(done, known int)
	// Replayed is called concurrently with the number of events replayed since the last call; may
	// be nil.
	Replayed func(events int)
}

// Result is the result of a search.
type Result struct {
	Schema     string           `json:"schema"`      // the constant Schema
	Provenance provenance.Build `json:"provenance"`  // the program
	Strategy   string           `json:"strategy"`    // name and preset
	Baseline   bool             `json:"is_baseline"` // a baseline, never reported as the winner
	Device     replay.Target    `json:"device"`      // the device; capacity 0, the search sets it
	Grid       []Range          `json:"grid"`        // settings varied
	Space      float64          `json:"space"`       // points of the whole grid
	Evaluated  int              `json:"evaluated"`   // points evaluated
	Refused    int              `json:"refused"`     // points refused by the strategy
	Whole      bool             `json:"whole"`       // the whole grid was evaluated

	Preset   Point           `json:"preset"`           // start of the search
	Smallest Point           `json:"smallest"`         // least memory
	Fastest  Point           `json:"fastest"`          // least time
	Effects  []SettingEffect `json:"worth"`            // single changes of Smallest, by setting
	Searched []Point         `json:"evaluated_points"` // all points by memory, as measured during the search
}

// Range is a setting and its tried values.
type Range struct {
	Setting string   `json:"setting"` // name
	Values  []string `json:"values"`  // as JSON
}

// SettingEffect is the effect of changing one setting of the best point.
type SettingEffect struct {
	Setting string   `json:"setting"` // name
	Value   string   `json:"value"`   // in the best point, as JSON
	Others  []Change `json:"others"`  // the other legal values of the grid
}

// Change is the best point with one setting changed.
type Change struct {
	Value  string   `json:"value"`  // as JSON
	Memory *float64 `json:"memory"` // factor on memory; null: a trace does not complete
	Time   float64  `json:"time"`   // factor on time
}

// Tune searches the grid of the named strategy. Fixed is a JSON object of settings that are not
// varied; empty: none. It fails if [setting.Catalogue.Lookup] does, if a knob is unknown or has no
// grid values, or if a replay fails. If ctx ends, it returns its error, and the points evaluated so
// far, timed once; nil if the preset is not among them.
func Tune(ctx context.Context, traces []*trace.Trace, catalogue setting.Catalogue, strategy string,
	fixed json.RawMessage,
	o Options) (*Result, error) {
	if o.Points <= 0 {
		o.Points = defaultPoints
	}
	s, err := newSearch(ctx, traces, catalogue, strategy, fixed, o)
	if err != nil {
		return nil, err
	}
	var r *Result
	if err = s.run(); err == nil {
		r, err = s.result()
	}
	if err != nil && errors.Is(err, ctx.Err()) {
		return s.partial(), err
	}
	return r, err
}

// partial returns the result of an interrupted search.
func (s *search) partial() *Result {
	s.points = slices.DeleteFunc(s.points, func(p *Point) bool { return p.Runs == nil })
	for key, p := range s.byKey {
		if p.Runs == nil {
			delete(s.byKey, key)
		}
	}
	preset := s.at(s.start)
	if preset == nil {
		return nil
	}
	smallest := s.best(memory)
	r := s.summary(smallest)
	r.Preset, r.Smallest, r.Fastest = *preset, *s.at(smallest), *s.at(s.best(speed))
	return r
}

// run evaluates the whole grid, or descends it.
func (s *search) run() error {
	if s.whole() {
		return s.evaluate(s.everything())
	}
	if err := s.evaluate([]choice{s.start}); err != nil {
		return err
	}
	if err := s.descend(memory, s.o.Points/2); err != nil {
		return err
	}
	return s.descend(speed, s.o.Points)
}

// descend improves the start by single changes until none helps or the limit of points is reached.
func (s *search) descend(by judge, most int) error {
	here := s.start
	for len(s.points) < most {
		around := s.neighbours(here)
		if err := s.evaluate(around); err != nil {
			return err
		}
		best, all := here, slices.Clone(here)
		for i := range here { // the best value of each setting on its own
			alone := here
			for _, c := range around {
				if c[i] != here[i] && by.better(s.at(c), s.at(alone)) {
					alone = c
				}
			}
			all[i] = alone[i]
			if by.better(s.at(alone), s.at(best)) {
				best = alone
			}
		}
		if err := s.evaluate([]choice{all}); err != nil {
			return err
		}
		if by.better(s.at(all), s.at(best)) {
			best = all
		}
		if slices.Equal(best, here) {
			return nil
		}
		here = best
	}
	return nil
}

// result times the finalists again and computes the worth of each setting.
func (s *search) result() (*Result, error) {
	// Worths refer to a point that no single change improves, within lastRounds more rounds.
	smallest := s.best(memory)
	for round := range lastRounds {
		if err := s.evaluate(s.neighbours(smallest)); err != nil {
			return nil, err
		}
		if better := s.best(memory); round < lastRounds-1 {
			smallest = better
		}
	}
	timed := s.fastest(finalists)
	for _, c := range append([]choice{s.start, smallest}, s.neighbours(smallest)...) {
		if p := s.at(c); p != nil && !slices.ContainsFunc(timed, func(other choice) bool { return s.at(other) == p }) {
			timed = append(timed, c)
		}
	}
	if err := s.timeAgain(timed); err != nil {
		return nil, err
	}
	fastest := slices.MinFunc(timed, func(a, b choice) int { return speed(s.at(a), s.at(b)) })
	r := s.summary(smallest)
	for into, c := range map[*Point]choice{&r.Preset: s.start, &r.Smallest: smallest, &r.Fastest: fastest} {
		var err error
		if *into, err = s.measureAgain(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// summary returns the result, with the single changes of the smallest point.
func (s *search) summary(smallest choice) *Result {
	r := &Result{
		Schema: Schema, Provenance: provenance.Read(), Strategy: s.strategy, Baseline: s.baseline,
		Device: replay.SimTarget(s.o.Device).Used(0),
		Space:  s.space(), Evaluated: len(s.points), Refused: s.refused, Whole: s.whole(),
	}
	for i, k := range s.knobs {
		r.Grid = append(r.Grid, Range{k.Name, k.Grid})
		r.Effects = append(r.Effects, s.effects(smallest, i, k))
	}
	for _, p := range s.points {
		r.Searched = append(r.Searched, *p)
	}
	slices.SortStableFunc(r.Searched, func(a, b Point) int { return memory(&a, &b) })
	return r
}

// effects compares the best point with itself under other values of one setting.
func (s *search) effects(best choice, i int, k setting.Knob) SettingEffect {
	w := SettingEffect{Setting: k.Name, Value: s.value(best, i)}
	here := s.at(best)
	for v := range k.Grid {
		c := slices.Clone(best)
		c[i] = v + 1
		p := s.at(c)
		if p == nil || p == here {
			continue // refused, or the same point
		}
		change := Change{Value: k.Grid[v], Time: p.NsPerOp / here.NsPerOp}
		if p.TimesBound != nil && here.TimesBound != nil {
			factor := *p.TimesBound / *here.TimesBound
			change.Memory = &factor
		}
		w.Others = append(w.Others, change)
	}
	return w
}

func errKnob(strategy, name string, known []setting.Knob) error {
	var names []string
	for _, k := range known {
		names = append(names, k.Name)
	}
	return fmt.Errorf("%s: setting %q has no grid values: %swant some of %s", strategy, name,
		nearest.Hint(name, names), strings.Join(names, ", "))
}
