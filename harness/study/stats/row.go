package stats

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/compare"
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
	Capacity     device.Size  `json:"device_bytes"`        // of the device of the other figures; 0: not known
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

// incomplete reports whether the run failed on the device of its figures.
func (r *Row) incomplete() bool { return !r.Starts || r.OOMs > 0 || r.Refused > 0 || r.broken() }

// unfit reports whether the run completes on no device.
func (r *Row) unfit() bool {
	return r.MinCapacity == nil && (r.Refused > 0 || r.Probes > 0 || r.broken())
}

// wholeDevice reports whether the run held its whole device, up to a page, and the device is not
// the smallest on which it completes: then its reserved peak is a figure of the device.
func (r *Row) wholeDevice() bool {
	minimum := r.MinCapacity != nil && *r.MinCapacity == r.Capacity
	return r.Capacity > 0 && !minimum && r.PeakReserved > r.Capacity-min(compare.Grid, r.Capacity)
}

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

// Select keeps the rows of a device and of a search in the tables; empty: of all. Rows that do not
// name one are kept.
func Select(tables []Table, device, search string) error {
	if err := keep(tables, "device", device, func(r *Run) *string { return r.Device }); err != nil {
		return err
	}
	return keep(tables, "search", search, func(r *Run) *string { return r.Search })
}

// keep keeps the rows with a value, which the flag names, in a column.
func keep(tables []Table, flag, value string, of func(r *Run) *string) error {
	if value == "" {
		return nil
	}
	named := false
	for i := range tables {
		t := &tables[i]
		known := t.values(of)
		if len(known) > 0 && !slices.Contains(known, value) {
			return fmt.Errorf("--%s: %s has no %s %q: %s", flag, t.File, flag, value, nearest.Want(value, known))
		}
		named = named || len(known) > 0
		t.Rows = slices.DeleteFunc(t.Rows, func(r Row) bool { return of(&r.Run) != nil && *of(&r.Run) != value })
	}
	if !named {
		return fmt.Errorf("--%s %q: %s has no column %s: want a table of sweep merge", flag, value, tables[0].File, flag)
	}
	return nil
}

// values returns the values of a column in the order of their first rows.
func (t *Table) values(of func(r *Run) *string) (all []string) {
	for i := range t.Rows {
		if v := of(&t.Rows[i].Run); v != nil && !slices.Contains(all, *v) {
			all = append(all, *v)
		}
	}
	return all
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
