package sweep

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/internal/nearest"
	"github.com/vramyard/vramyard/internal/strictyaml"
)

// Remat is the search of a run of an op log under a budget, with rematerialization.
const Remat Search = "remat"

// RematResult is a row of the merged results of op logs: the exact figures of a cell. Rows have the
// order of the plan.
type RematResult struct {
	Cell      string          `json:"cell"`                 // hash of the cell's key
	Semantics string          `json:"semantics"`            // version of the strategy's placements
	Failed    string          `json:"failed"`               // the error of every repetition, and then no figures; empty: none
	Path      string          `json:"path"`                 // the log in the plan
	Steps     int             `json:"steps"`                // of the log
	Config    json.RawMessage `json:"config"`               // of the strategy, with its defaults filled in
	Baseline  bool            `json:"is_baseline"`          // the strategy is one
	Settings  grid.Settings   `json:"settings" flat:"text"` // of the run
	grid.Run
}

var (
	errRemat = errors.New("want a mapping, such as {heuristics: [eq], budgets: [0.5]}")
	errBool  = errors.New("want true or false")
	errFloat = errors.New("want a number")
)

// plain is a heuristic that goes with every setting.
const plain = "lru"

// rematLists set the lists of a grid by their keys.
var rematLists = map[string]func(o *grid.Options, value *yaml.Node) error{
	"heuristics": func(o *grid.Options, value *yaml.Node) error {
		all, err := texts(value, func(name string) ([]string, error) {
			names, err := grid.ParseHeuristics([]string{name})
			for _, one := range names {
				err = cmp.Or(err, o.Check(one, ""))
			}
			return names, err
		})
		if err == nil {
			if o.Heuristics, err = grid.ParseHeuristics(slices.Concat(all...)); err != nil {
				err = strictyaml.At(value, err)
			}
		}
		return err
	},
	"ladders": func(o *grid.Options, value *yaml.Node) (err error) {
		o.Ladders, err = texts(value, func(name string) (string, error) { return name, o.Check(plain, name) })
		return err
	},
	"budgets": func(o *grid.Options, value *yaml.Node) error {
		all, err := texts(value, func(part string) (string, error) {
			_, err := grid.ParseRatios(part)
			return part, err
		})
		if err == nil {
			if o.Ratios, err = grid.ParseRatios(strings.Join(all, ",")); err != nil {
				err = strictyaml.At(value, err)
			}
		}
		return err
	},
}

// rematFields returns the settings of all runs by their keys.
func rematFields(s *grid.Settings) map[string]any {
	all := map[string]any{}
	for _, f := range s.Fields() {
		all[strings.ReplaceAll(f.Flag, "-", "_")] = f.Value
	}
	return all
}

// setRemat sets how a study runs its logs.
func (s *Study) setRemat(n *yaml.Node) error {
	pairs, err := strictyaml.Pairs(n, errRemat)
	if err != nil {
		return err
	}
	o := &s.Remat
	fields := rematFields(&o.Settings)
	for _, p := range pairs {
		name := p.Key.Value
		field := fields[name]
		switch set := rematLists[name]; {
		case set != nil:
			err = set(o, p.Value)
		case field != nil:
			_, err = text(p.Value, func(text string) (struct{}, error) {
				err := assign(field, text)
				return struct{}{}, cmp.Or(err, o.Check(plain, ""), grid.CheckLimit(o.Limit))
			})
		default:
			keys := append(slices.Sorted(maps.Keys(rematLists)), slices.Sorted(maps.Keys(fields))...)
			err = strictyaml.At(p.Key, fmt.Errorf("unknown field %q: %s", name, nearest.Want(name, keys)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// assign sets a field from a text.
func assign(field any, text string) (err error) {
	switch to := field.(type) {
	case *string:
		*to = text
	case *bool:
		if *to, err = strconv.ParseBool(text); err != nil {
			err = fmt.Errorf("%q: %w", text, errBool)
		}
	case *float64:
		if *to, err = strconv.ParseFloat(text, 64); err != nil {
			err = fmt.Errorf("%q: %w", text, errFloat)
		}
	case *uint64:
		if *to, err = strconv.ParseUint(text, 10, 64); err != nil {
			err = fmt.Errorf("%q: %w", text, errSeed)
		}
	}
	return err
}

// rowsOfLog returns the rows of a log: every heuristic with the counting memory, and with every
// strategy and ladder, under every budget.
func (s *Study) rowsOfLog(name string, l *grid.Log) (rows []Row, err error) {
	base, err := grid.BaseOf(*l, s.Remat.Liveness, s.Remat.Heuristics)
	if err != nil {
		return nil, err
	}
	counting := setting.Setup{Name: grid.Counting, Semantics: grid.CountingSemantics, Config: struct{}{}}
	add := func(setup *setting.Setup, heuristic, ladder string) error {
		for _, ratio := range s.Remat.Ratios {
			r := Row{Trace: name, Name: base.Model, TraceSHA256: base.SHA256, Events: len(l.Schedule.Steps),
				Strategy: setup.Name, Semantics: setup.Semantics, Baseline: setup.Baseline, Search: Remat,
				Case: &grid.Case{Heuristic: heuristic, Ladder: ladder, Ratio: ratio, Settings: s.Remat.Settings}}
			if r.Config, err = json.Marshal(setup.Config); err != nil {
				return fmt.Errorf("%s: %w", setup.Name, err)
			}
			p, err := r.point(l, &base, *setup)
			if err != nil {
				return err
			}
			if r.Cell, err = p.Key(); err == nil && r.Cell == "" {
				err = fmt.Errorf("%s: %w", setup.Name, errNoVersion)
			}
			if err != nil {
				return err
			}
			rows = append(rows, r)
		}
		return nil
	}
	for _, h := range s.Remat.Heuristics {
		if err := add(&counting, h, grid.Evict); err != nil {
			return nil, err
		}
		for i := range s.Strategies {
			for _, ladder := range s.Remat.Ladders {
				if err := add(&s.Strategies[i], h, ladder); err != nil {
					return nil, err
				}
			}
		}
	}
	return rows, nil
}

// point returns the run of a row.
func (r *Row) point(l *grid.Log, b *grid.Base, setup setting.Setup) (*grid.Point, error) {
	if r.Strategy == grid.Counting {
		return grid.NewPoint(l, b, nil, *r.Case)
	}
	return grid.NewPoint(l, b, &setup, *r.Case)
}

// openLog returns the tasks of cells of a log.
func (r *shardRun) openLog(name string) (*opening, error) {
	l, err := r.Open.Log(name)
	if err != nil {
		return nil, err
	}
	bases := map[string]*grid.Base{} // by liveness
	return &opening{hash: l.Schedule.SHA256, events: len(l.Schedule.Steps), task: func(s share) (task, error) {
		row := &r.plan.Rows[s.row]
		base := bases[row.Case.Settings.Liveness]
		if base == nil {
			b, err := grid.BaseOf(*l, row.Case.Settings.Liveness, nil)
			if err != nil {
				return task{}, err
			}
			base, bases[row.Case.Settings.Liveness] = &b, &b
		}
		p, err := row.point(l, base, r.setups[s.row])
		if err != nil {
			return task{}, fmt.Errorf("row %d of the plan: %w", s.row, err)
		}
		p.Cells, p.Failures = r.cells, true
		return task{p.Key, func(ctx context.Context) error {
			_, err := p.Execute(ctx)
			return err
		}}, nil
	}}, nil
}

func (r *Row) rematResult(k *grid.Kept) RematResult {
	out := RematResult{Cell: r.Cell, Semantics: r.Semantics, Failed: k.Failed, Path: r.Trace, Steps: r.Events,
		Config: r.Config, Baseline: r.Baseline, Settings: r.Case.Settings, Run: k.Run}
	out.Model, out.SHA256, out.Strategy = r.Name, r.TraceSHA256, r.Strategy
	out.Heuristic, out.Ladder, out.Ratio, out.Liveness = r.Case.Heuristic, r.Case.Ladder, r.Case.Ratio,
		r.Case.Settings.Liveness
	return out
}

func (r *RematResult) row() *Row {
	return &Row{Cell: r.Cell, Trace: r.Path, Name: r.Model, TraceSHA256: r.SHA256, Events: r.Steps, Strategy: r.Strategy,
		Config: r.Config, Semantics: r.Semantics, Search: Remat, Baseline: r.Baseline, Cost: float64(r.Steps),
		Case: &grid.Case{Heuristic: r.Heuristic, Ladder: r.Ladder, Ratio: r.Ratio, Settings: r.Settings}}
}

// Completed reports whether the run completed within its budget.
func (r *RematResult) Completed() bool { return r.Failed == "" && r.Verdict == remat.OK }
