package stats

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/harness/trace/parquet"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/internal/nearest"
)

// Row is a run in a table of results of compare or of sweep merge: the columns that identify it,
// and the figures. docs/metrics.md defines the figures.
type Row struct {
	Run
	Strategy string `json:"strategy"` // name and preset

	MinCapacity  *device.Size `json:"min_capacity_bytes"`  // nil: none was found, or it was not searched
	Probes       int          `json:"probe_count"`         // capacities that the search tried
	PeakReserved device.Size  `json:"peak_reserved_bytes"` // most bytes held from the device
	Starts       bool         `json:"starts"`              // whether the initial reservation fits the device
	OOMs         uint64       `json:"oom_count"`           // requests that found no memory
	Refused      uint64       `json:"refused_count"`       // requests that the strategy can never grant
	DeviceCalls  uint64       `json:"device_calls"`        // of all kinds
	DeviceTime   uint64       `json:"device_time_ns"`      // time of the calls by the cost model
	NsPerOp      *float64     `json:"ns_per_op"`           // measured time; nil: not measured
	Failed       *string      `json:"failed"`              // error of a sweep's cell without figures; nil, empty: none
}

// Read reads the rows of a table of results in Parquet, of a size in bytes. The name is for
// messages.
func Read(r io.ReaderAt, size int64, name string, memory *budget.Budget) ([]Row, error) {
	rows, _, err := parquet.ReadTable[Row](r, size, name, memory, func(metadata map[string]string) error {
		if metadata[sweep.SchemaKey] == "" {
			return nil
		}
		if err := sweep.HasSchema(sweep.ResultsSchema)(metadata); err != nil {
			return fmt.Errorf("%w or a table of compare", err)
		}
		return nil
	})
	return rows, err
}

// broken reports whether the run has no figures.
func (r *Row) broken() bool { return r.Failed != nil && *r.Failed != "" }

// Side is one of the two sides of a comparison.
type Side struct {
	File     string `json:"file"`     // that the runs were read from
	Strategy string `json:"strategy"` // of all runs
	rows     []Row
}

// Pick returns the two sides in one or two tables: a and b name the strategies. They may be empty
// if a table has one strategy, or if a single table has two. Without b, a second table is searched
// for a too.
func Pick(tables []Table, a, b string) (sideA, sideB Side, err error) {
	first, second := tables[0], tables[len(tables)-1]
	known := first.strategies()
	if len(tables) == 1 && a == "" && b == "" && len(known) == 2 {
		a, b = known[0], known[1]
	}
	if sideA, err = first.side("a", a); err != nil {
		return sideA, sideB, err
	}
	if b == "" && len(tables) == 2 && slices.Contains(second.strategies(), a) {
		b = a
	}
	if sideB, err = second.side("b", b); err != nil {
		return sideA, sideB, err
	}
	if len(tables) == 1 && sideA.Strategy == sideB.Strategy {
		return sideA, sideB, fmt.Errorf("%s: A and B are both the runs of %s: want two strategies or two files", first.File,
			sideA.Strategy)
	}
	return sideA, sideB, nil
}

// Table is the content of a file.
type Table struct {
	File string // its name
	Rows []Row  // its runs
}

// strategies returns the names of the strategies in the order of their first runs.
func (t *Table) strategies() (names []string) {
	seen := map[string]bool{}
	for i := range t.Rows {
		if s := t.Rows[i].Strategy; !seen[s] {
			seen[s] = true
			names = append(names, s)
		}
	}
	return names
}

// side returns the runs of a strategy, which the flag names. An empty name is the only strategy.
func (t *Table) side(flag, strategy string) (Side, error) {
	known := t.strategies()
	switch {
	case len(known) == 0:
		return Side{}, fmt.Errorf("%s: no runs", t.File)
	case strategy == "" && len(known) > 1:
		return Side{}, fmt.Errorf("%s has %d strategies: choose one with --%s: %s", t.File, len(known), flag,
			strings.Join(known, ", "))
	case strategy == "":
		strategy = known[0]
	case !slices.Contains(known, strategy):
		return Side{}, fmt.Errorf("--%s: %s has no strategy %q: %s", flag, t.File, strategy, nearest.Want(strategy, known))
	}
	s := Side{File: t.File, Strategy: strategy}
	for _, r := range t.Rows {
		if r.Strategy == strategy {
			s.rows = append(s.rows, r)
		}
	}
	return s, nil
}
