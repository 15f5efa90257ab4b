package grid

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/remat"
)

// Schema is the schema of a [Report] in JSON.
const Schema = "vramyard-remat/1"

// Counting is the name of the memory that only counts bytes.
const Counting = "counting"

// The ladders of remat.Ladders that define the prices of a [Line].
const (
	Evict       = "none"         // blocks never move
	DefragFirst = "defrag-first" // if enough bytes are free, blocks move before a storage is evicted
)

// Log is a schedule with the name of its model.
type Log struct {
	Model    string          // name of the model
	Schedule *remat.Schedule // the program
}

// Options of a grid. Heuristics, Ladders and Ratios must not be empty.
type Options struct {
	Settings
	Heuristics []string // of remat.Heuristics or remat.Plans
	Ladders    []string // of remat.Ladders, for strategies
	Ratios     []Ratio  // budgets, as shares of the base peak
	Workers    int      // parallel runs; 0: one per core
	// Cells are runs that are computed only once; nil: everything is computed.
	Cells *cell.Cells
	// Done is called after each run, concurrently, with the approximate share of the work done, 0
	// to 1; may be nil.
	Done func(share float64)
}

// Report is the result of a grid.
type Report struct {
	Schema     string           `json:"schema"`     // the constant Schema
	Provenance provenance.Build `json:"provenance"` // the program
	Settings
	Logs  []Base `json:"logs"`  // in the given order
	Lines []Line `json:"lines"` // summaries, by log, heuristic, strategy and ladder
	Runs  []Run  `json:"runs"`  // in the order of the lines, then by ratio
}

// Base is a log and its run without a budget.
type Base struct {
	Model  string      `json:"model"`           // name
	SHA256 string      `json:"log_sha256"`      // of the decompressed file; may be empty
	Ops    int         `json:"operator_count"`  // operators, constants included
	Time   int64       `json:"base_compute_ns"` // every operator run once
	Peak   device.Size `json:"base_peak_bytes"` // peak without a budget
	Bounds
}

// errEmpty: the log allocates nothing.
var errEmpty = errors.New("the log allocates no memory")

// BaseOf runs a log without a budget. It fails if the log allocates nothing, or if a heuristic
// cannot run it.
func BaseOf(l Log, liveness string, heuristics []string) (Base, error) {
	for _, h := range heuristics {
		if err := remat.CanRun(l.Schedule, h); err != nil {
			return Base{}, fmt.Errorf("%s: %w", l.Model, err)
		}
	}
	res, err := remat.Run(l.Schedule, &remat.Counter{Budget: remat.Unlimited},
		remat.Config{Heuristic: "lru", Liveness: liveness}) // any heuristic: there are no victims
	if err == nil && res.Peak == 0 {
		err = errEmpty
	}
	if err != nil {
		return Base{}, fmt.Errorf("%s: %w", l.Model, err)
	}
	return Base{
		Model: l.Model, SHA256: l.Schedule.SHA256, Ops: len(l.Schedule.Ops), Time: res.ModelTime, Peak: res.Peak,
		Bounds: BoundsOf(l.Schedule),
	}, nil
}

// Parse reads a report from JSON. It checks that every run belongs to a log and that all lines have
// the same budgets.
func Parse(text []byte) (*Report, error) {
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("schema %.60q: want %q", r.Schema, Schema)
	}
	r.Lines = LinesOf(r.Runs)
	at := 0
	for i := range r.Lines {
		l := &r.Lines[i]
		for at < len(r.Logs) && (r.Logs[at].Model != l.Model || r.Logs[at].SHA256 != l.SHA256) {
			at++
		}
		if at == len(r.Logs) || r.Logs[at].Peak == 0 || r.Logs[at].Time < 0 {
			return nil, fmt.Errorf("run refers to log %.60q, which is missing or out of order", l.Model)
		}
		if !slices.EqualFunc(l.Runs, r.Lines[0].Runs, func(a, b Run) bool { return a.Ratio == b.Ratio }) {
			return nil, fmt.Errorf("%.60q on %.60q by %.60q: its ratios differ from the first line's",
				l.Strategy, l.Model, l.Heuristic)
		}
	}
	return r, nil
}
