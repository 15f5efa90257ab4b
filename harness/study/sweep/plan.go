package sweep

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
)

// Row is a row of a plan: one cell, with everything that a worker needs to compute it.
type Row struct {
	Cell        string          `json:"cell"`         // hash of the cell's key, also its name in the store
	Trace       string          `json:"trace"`        // how the trace or log is opened; a relative path is relative to the plan
	Name        string          `json:"name"`         // of the trace, for results
	TraceSHA256 string          `json:"trace_sha256"` // of the decompressed file; empty: the trace is generated
	Events      int             `json:"events"`       // of the trace, or steps of the log
	Strategy    string          `json:"strategy"`     // name and preset
	Config      json.RawMessage `json:"config"`       // with its defaults filled in
	Semantics   string          `json:"semantics"`    // version of the strategy's placements
	Device      string          `json:"device"`       // name of the device
	Search      Search          `json:"search"`       // the work
	// least capacity of the recorded device in bytes; 0: not known
	Card     device.Size   `json:"recorded_capacity_bytes"`
	FreeAt   replay.FreeAt `json:"free_at"`           // when strategies without streams get a delayed free
	Baseline bool          `json:"is_baseline"`       // the strategy is one
	Learn    string        `json:"learn"`             // trace that the strategy plans by, like Trace; empty: none
	Case     *grid.Case    `json:"remat" flat:"text"` // run of an op log; null: the row is of a trace
	Cost     float64       `json:"cost"`              // predicted time; only ratios to other rows count
}

// Plan is the cells of a study.
type Plan struct {
	Seed uint64 // of the assignment to shards
	Rows []Row  // by trace, device, search and strategy
}

// Opened is a trace to plan or to run with.
type Opened struct {
	Source trace.Source // its events
	Card   device.Size  // least capacity of the recorded device in bytes; 0: not known
}

// Open opens what a study names. It is the caller's: names and formats are not known here.
type Open struct {
	Trace func(spec string) (Opened, error)    // not nil if the study has traces
	Log   func(spec string) (*grid.Log, error) // not nil if the study has logs
}

// typicalReplays are the predicted replays of a search; see compare's estimate of its own duration.
var typicalReplays = map[Search]float64{
	Minimum: compare.TypicalReplays, Quick: compare.TypicalReplays / 2, Replay: 6, Remat: 1,
}

// mostRows bounds a plan.
const mostRows = 10_000_000

// errNoVersion: plug-ins without a hash, say, have no cells.
var errNoVersion = errors.New("its placements have no version, so its results cannot be kept")

// Make plans a study. Every trace is opened and read once. Traces of the study must be expanded:
// without patterns. Speeds may be nil.
func Make(ctx context.Context, s *Study, open Open, speeds *Speeds) (*Plan, error) {
	n := len(s.Traces) * len(s.Devices) * len(s.Searches) * len(s.Strategies)
	n += len(s.Logs) * len(s.Remat.Heuristics) * len(s.Remat.Ratios) * (1 + len(s.Strategies)*len(s.Remat.Ladders))
	if n > mostRows {
		return nil, fmt.Errorf("the study has %d cells: want at most %d", n, mostRows)
	}
	setups, training, err := learned(s.Learn, s.Strategies, open)
	if err != nil {
		return nil, err
	}
	p := &Plan{Seed: s.Seed}
	add := func(rows []Row) {
		for i := range rows {
			rows[i].Cost = speeds.predict(&rows[i])
		}
		p.Rows = append(p.Rows, rows...)
	}
	for _, name := range s.Logs {
		l, err := open.Log(name)
		if err != nil {
			return nil, err
		}
		rows, err := s.rowsOfLog(name, l)
		if err != nil {
			return nil, err
		}
		add(rows)
	}
	for _, name := range s.Traces {
		o, err := open.Trace(name)
		if err != nil {
			return nil, err
		}
		prepared, err := replay.Prepare(ctx, o.Source)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		rows, err := s.rows(name, o, prepared, setups, training)
		if err != nil {
			return nil, err
		}
		add(rows)
	}
	return p, nil
}

// rows returns the rows of a trace, without their costs.
func (s *Study) rows(name string, o Opened, t *replay.Prepared, setups []setting.Setup,
	training *compare.Training) (rows []Row, err error) {
	head := o.Source.Head()
	for _, d := range s.Devices {
		for _, search := range s.Searches {
			for _, setup := range setups {
				r := Row{Trace: name, Name: head.Header.Name, TraceSHA256: head.Header.Hash, Events: head.Events,
					Strategy: setup.Name, Semantics: setup.Semantics, Device: d.Name, Search: search, FreeAt: s.FreeAt,
					Card: o.Card, Baseline: setup.Baseline}
				if setup.Forecast != nil {
					r.Learn = s.Learn
				}
				if r.Config, err = json.Marshal(setup.Config); err != nil {
					return nil, fmt.Errorf("%s: %w", setup.Name, err)
				}
				r.Cell, err = r.trial(nil, t, setup, d, o.Card, compare.Options{Training: training}).Key()
				if err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				if r.Cell == "" {
					return nil, fmt.Errorf("%s: %w", setup.Name, errNoVersion)
				}
				rows = append(rows, r)
			}
		}
	}
	return rows, nil
}

// learned returns setups with the forecast of a trace, "" for none.
func learned(spec string, setups []setting.Setup, open Open) ([]setting.Setup, *compare.Training, error) {
	if spec == "" {
		return setups, nil, nil
	}
	o, err := open.Trace(spec)
	if err != nil {
		return nil, nil, err
	}
	t, ok := o.Source.(*trace.Trace)
	if !ok {
		return nil, nil, fmt.Errorf("%s: too long to learn from", spec)
	}
	setups, training, err := compare.Learn(t, setups)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", spec, err)
	}
	return setups, training, nil
}

// trial returns the work of a row.
func (r *Row) trial(pool *compare.Pool, t *replay.Prepared, s setting.Setup, d Device, card device.Size,
	o compare.Options) *compare.Trial {
	o.Device, o.Capacity, o.FreeAt = replay.SimTarget(d.Config), d.Capacity, r.FreeAt
	o.Quick, o.Single = r.Search == Quick, r.Search == Replay
	trial := compare.NewTrial(pool, t, s, o)
	trial.RecordedOn(card)
	return trial
}

// cells returns the rows without repeated cells: two names may have one configuration.
func (p *Plan) cells() []int {
	seen := map[string]bool{}
	var all []int
	for i := range p.Rows {
		if c := p.Rows[i].Cell; !seen[c] {
			seen[c] = true
			all = append(all, i)
		}
	}
	return all
}

// Distinct returns the number of cells without repetitions.
func (p *Plan) Distinct() int { return len(p.cells()) }

// Cost returns the predicted time of all cells.
func (p *Plan) Cost() (sum float64) {
	for _, i := range p.cells() {
		sum += p.Rows[i].Cost
	}
	return sum
}

// Speeds predict times from cells that were computed before.
type Speeds struct {
	perEvent map[string]*rate // by strategy and search
	all      rate             // of one replay
}

// rate is seconds for some events.
type rate struct{ seconds, events float64 }

// SpeedsOf returns the speeds of computed cells.
func SpeedsOf(times []Timed) *Speeds {
	s := &Speeds{perEvent: map[string]*rate{}}
	for i := range times {
		t := &times[i]
		if t.Seconds == nil || t.Events == 0 {
			continue
		}
		// Of a strategy without times, the mean of the others in the same search is taken.
		for _, key := range []string{speedKey(t.Strategy, t.Search), speedKey("", t.Search)} {
			if s.perEvent[key] == nil {
				s.perEvent[key] = &rate{}
			}
			s.perEvent[key].add(*t.Seconds, float64(t.Events))
		}
		s.all.add(*t.Seconds/typicalReplays[t.Search], float64(t.Events))
	}
	return s
}

func (r *rate) add(seconds, events float64) {
	r.seconds += seconds
	r.events += events
}

func speedKey(strategy string, search Search) string { return strategy + " " + string(search) }

// predict returns the predicted cost of a row: in seconds, or in replayed events if no speed is
// known.
func (s *Speeds) predict(r *Row) float64 {
	if s == nil || s.all.events == 0 {
		return float64(r.Events) * typicalReplays[r.Search]
	}
	of := cmp.Or(s.perEvent[speedKey(r.Strategy, r.Search)], s.perEvent[speedKey("", r.Search)])
	if of == nil {
		return float64(r.Events) * s.all.seconds / s.all.events * typicalReplays[r.Search]
	}
	return float64(r.Events) * of.seconds / of.events
}

// Shard is one of several equal parts of a plan.
type Shard struct {
	Index int // from 0
	Count int // of all shards, at least 1
}

// String returns the shard as it is written on the command line, counted from 1.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index+1, s.Count) }
