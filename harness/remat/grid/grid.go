package grid

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
)

// Schema names the form of [Report] in JSON.
const Schema = "vramyard-remat/1"

// Counting is the name of the memory that counts bytes and knows no addresses.
const Counting = "counting"

// The ladders that prices are told by.
const (
	Evict       = "none"         // nothing is moved
	DefragFirst = "defrag-first" // blocks are moved before anything is evicted, if the request then fits
)

// Log is a schedule with the name of its model.
type Log struct {
	Model    string          // for people
	Schedule *remat.Schedule // its operators
}

// Options of a grid. Heuristics, Ladders and Ratios must not be empty.
type Options struct {
	Settings
	Heuristics []string // of remat.Heuristics
	Ladders    []string // of remat.Ladders, for strategies
	Ratios     []Ratio  // budgets in base peaks
	Workers    int      // runs at once; 0 is one for each core
	Version    string   // of the program, kept in the report
	// Done is called after each run, from many goroutines, with about how much of the work of all runs
	// is done, 0 to 1; nil for none.
	Done func(share float64)
}

// Report is the outcome of a grid.
type Report struct {
	Schema  string `json:"schema"`  // the constant Schema
	Version string `json:"version"` // of the program
	Settings
	Logs  []Base `json:"logs"`  // in the order in which they were given
	Lines []Line `json:"lines"` // what the runs come to, by log, heuristic, strategy and ladder
	Runs  []Run  `json:"runs"`  // in the order of the lines, then by ratio
}

// Base is a log and its run without a budget.
type Base struct {
	Model  string      `json:"model"`           // name
	SHA256 string      `json:"log_sha256"`      // of the decompressed file; empty if there is none
	Ops    int         `json:"operator_count"`  // operators, constants among them
	Time   int64       `json:"base_compute_ns"` // every operator run once
	Peak   device.Size `json:"base_peak_bytes"` // most bytes at once without a budget
	Bounds
}

// errEmpty is what is wrong with a log of nothing.
var errEmpty = errors.New("no operator makes anything: there is no memory to be short of")

func baseOf(l Log, o *Options) (Base, error) {
	res, err := remat.Run(l.Schedule, &remat.Counter{Budget: remat.Unlimited},
		remat.Config{Heuristic: o.Heuristics[0], Liveness: o.Liveness})
	if err == nil && res.Peak == 0 {
		err = errEmpty
	}
	if err != nil {
		return Base{}, fmt.Errorf("%s: %w", l.Model, err)
	}
	return Base{
		Model: l.Model, SHA256: l.Schedule.SHA256, Ops: len(l.Schedule.Ops), Time: res.Model, Peak: res.Peak,
		Bounds: BoundsOf(l.Schedule),
	}, nil
}

// Parse reads a report in JSON, and judges whether it is one: its runs are of its logs, and those
// of all lines are within the same budgets.
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
			return nil, fmt.Errorf("%.60q: a run of a log that is not told, or not in the order of the logs", l.Model)
		}
		if !slices.EqualFunc(l.Runs, r.Lines[0].Runs, func(a, b Run) bool { return a.Ratio == b.Ratio }) {
			return nil, fmt.Errorf("%.60q on %.60q by %.60q: its runs have other ratios than those before", l.Strategy, l.Model,
				l.Heuristic)
		}
	}
	return r, nil
}
