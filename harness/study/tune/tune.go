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
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/nearest"
)

// Schema names the form of [Result] in JSON.
const Schema = "vramyard-tune/1"

// defaultPoints is how many points are evaluated unless the caller says otherwise.
const defaultPoints = 200

// finalists is how many of the fastest points are timed again, because a single timing
// among many others running beside it picks the luckiest. rounds is how often.
const (
	finalists = 5
	rounds    = 5
)

// lastRounds is how many rounds of single changes may follow the search.
const lastRounds = 4

// Options of a search. The zero value is useful.
type Options struct {
	Points  int        // points after which no further round of the search begins; 0 is 200
	Knobs   []string   // settings to vary; nil for all that have a grid
	Device  sim.Config // the device but for its capacity, which the search sets
	Workers int        // replays at once; 0 is one for each core

	// Memory is the bytes that replays at once may take; 0 is without bound. One replay always runs.
	Memory device.Size

	Version string // of the program, kept in the result

	// Progress is called with the number of points and traces done and known so far, from
	// many goroutines; nil for none.
	Progress func(done, known int)
	// Replayed is called every now and then with how many events were replayed since, from many
	// goroutines; nil for none.
	Replayed func(events int)
}

// Result is the outcome of a search.
type Result struct {
	Schema    string        `json:"schema"`      // the constant Schema
	Version   string        `json:"version"`     // of the program
	Strategy  string        `json:"strategy"`    // name and preset
	Baseline  bool          `json:"is_baseline"` // others are compared with the strategy; no verdict names it the winner
	Device    replay.Target `json:"device"`      // the device; its capacity is 0, because the search sets it
	Grid      []Range       `json:"grid"`        // settings that were varied
	Space     float64       `json:"space"`       // points of the whole grid
	Evaluated int           `json:"evaluated"`   // points evaluated
	Refused   int           `json:"refused"`     // points that the strategy refuses
	Whole     bool          `json:"whole"`       // every point of the grid was evaluated

	Preset   Point   `json:"preset"`           // where the search began
	Smallest Point   `json:"smallest"`         // least memory
	Fastest  Point   `json:"fastest"`          // least time
	Worth    []Worth `json:"worth"`            // single changes of Smallest, by setting
	Searched []Point `json:"evaluated_points"` // every point evaluated, least memory first, as measured in the search
}

// Range is a setting and the values that were tried, in JSON.
type Range struct {
	Setting string   `json:"setting"` // its name
	Values  []string `json:"values"`  // as JSON
}

// Worth is what single changes of one setting do to the best point.
type Worth struct {
	Setting string   `json:"setting"` // its name
	Value   string   `json:"value"`   // in the best point, as JSON
	Others  []Change `json:"others"`  // the other values of the grid that are legal there
}

// Change is the best point with one setting changed.
type Change struct {
	Value  string   `json:"value"`  // as JSON
	Memory *float64 `json:"memory"` // factor on the memory of the best point; null: a trace completes on no device
	Time   float64  `json:"time"`   // factor on its time
}

// Tune searches the grid of the named strategy. Fixed holds settings, as a JSON object,
// that are given and not varied; nothing at all is none. It fails for what
// [setting.Catalogue.Lookup] refuses, for a knob that there is not or that has no grid, and if
// a replay fails. If ctx ends before, the error is that of ctx, and the result has the points that
// were evaluated, timed once; nil if the preset is not among them.
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

// partial tells of the points that were evaluated before the search was ended.
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
	r := s.told(smallest)
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

// descend goes from the start to a point that no single change makes better, or as far as
// the number of points evaluated allows.
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

// result times what matters again, and tells what each setting was worth.
func (s *search) result() (*Result, error) {
	// What each setting is worth is told of a point that no single change improves, as far as
	// some more rounds get there.
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
	r := s.told(smallest)
	for into, c := range map[*Point]choice{&r.Preset: s.start, &r.Smallest: smallest, &r.Fastest: fastest} {
		var err error
		if *into, err = s.measureAgain(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// told returns what is known of all points, and of single changes of the smallest.
func (s *search) told(smallest choice) *Result {
	r := &Result{
		Schema: Schema, Version: s.o.Version, Strategy: s.strategy, Baseline: s.baseline,
		Device: replay.SimTarget(s.o.Device).Used(0),
		Space:  s.space(), Evaluated: len(s.points), Refused: s.refused, Whole: s.whole(),
	}
	for i, k := range s.knobs {
		r.Grid = append(r.Grid, Range{k.Name, k.Grid})
		r.Worth = append(r.Worth, s.worth(smallest, i, k))
	}
	for _, p := range s.points {
		r.Searched = append(r.Searched, *p)
	}
	slices.SortStableFunc(r.Searched, func(a, b Point) int { return memory(&a, &b) })
	return r
}

// worth compares the best point with the same point under other values of one setting.
func (s *search) worth(best choice, i int, k setting.Knob) Worth {
	w := Worth{Setting: k.Name, Value: s.value(best, i)}
	here := s.at(best)
	for v := range k.Grid {
		c := slices.Clone(best)
		c[i] = v + 1
		p := s.at(c)
		if p == nil || p == here {
			continue // the strategy refuses it, or it is the same
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
	return fmt.Errorf("%s: setting %q has no values worth trying: %swant some of %s", strategy, name,
		nearest.Hint(name, names), strings.Join(names, ", "))
}
