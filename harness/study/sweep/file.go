package sweep

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/harness/trace/parquet"
	"github.com/vramyard/vramyard/internal/budget"
)

// keySeed is the key of the seed in the metadata of a plan.
const keySeed = "vramyard.sweep_seed"

// SchemaKey is the key of the schema in the metadata of every file.
const SchemaKey = "vramyard.schema"

// Schemas of the files.
const (
	PlanSchema    = "vramyard-sweep-plan/1"    // rows are a [Row]
	ResultsSchema = "vramyard-sweep-results/1" // rows are a [Result]
	RematSchema   = "vramyard-sweep-remat/1"   // rows are a [RematResult]
	TimesSchema   = "vramyard-sweep-times/1"   // rows are a [Timed]
)

// Write writes the plan as Parquet.
func (p *Plan) Write(w io.Writer) error {
	return parquet.WriteTable(w, flat.Of(p.Rows), trace.Pair{Key: SchemaKey, Value: PlanSchema},
		trace.Pair{Key: keySeed, Value: strconv.FormatUint(p.Seed, 10)})
}

// ReadPlan reads a plan of a size in bytes. The name is for messages.
func ReadPlan(r io.ReaderAt, size int64, name string, memory *budget.Budget) (*Plan, error) {
	p := &Plan{}
	rows, meta, err := parquet.ReadTable[Row](r, size, name, memory, HasSchema(PlanSchema))
	if err != nil {
		return nil, err
	}
	if p.Seed, err = strconv.ParseUint(meta[keySeed], 10, 64); err != nil {
		return nil, fmt.Errorf("%s: metadata %s %q: %w", name, keySeed, meta[keySeed], errSeed)
	}
	p.Rows = rows
	for i := range rows {
		err := rows[i].check()
		if err == nil && rows[i].Search == Remat != (rows[0].Search == Remat) {
			err = errBoth
		}
		if err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", name, i, err)
		}
	}
	return p, nil
}

// HasSchema returns a check of the metadata of a file for [parquet.ReadTable].
func HasSchema(want string) func(metadata map[string]string) error {
	return func(metadata map[string]string) error {
		if got := metadata[SchemaKey]; got != want {
			return fmt.Errorf("metadata %s %.40q: want %q", SchemaKey, got, want)
		}
		return nil
	}
}

// finite reports whether a predicted or measured time can be one.
func finite(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }

// check returns an error if a row is not of a plan that [Make] made.
func (r *Row) check() error {
	if len(r.Cell) != 64 || strings.Trim(r.Cell, "0123456789abcdef") != "" { // it becomes a part of a path
		return fmt.Errorf("cell %.80q: want 64 hexadecimal digits", r.Cell)
	}
	if !finite(r.Cost) || r.Events < 0 {
		return fmt.Errorf("cost %v of %d events: want no negative numbers", r.Cost, r.Events)
	}
	switch {
	case r.Trace == "":
		return errNoPath
	case r.Case == nil && r.Strategy == grid.Counting:
		return fmt.Errorf("strategy %s on a trace: it runs op logs only", r.Strategy)
	case r.Case != nil && (r.Learn != "" || r.Device != "" || r.FreeAt != ""):
		return errForTraces
	case r.Search == Remat && r.Case != nil:
		return r.Case.Check()
	case r.Case != nil:
		return fmt.Errorf("search %q of a log: want %q", r.Search, Remat)
	}
	if _, err := parseSearch(string(r.Search)); err != nil {
		return err
	}
	_, err := ParseDevice(r.Device)
	return err
}

// ReadTimes reads the times of computed cells, for [SpeedsOf].
func ReadTimes(r io.ReaderAt, size int64, name string, memory *budget.Budget) ([]Timed, error) {
	rows, _, err := parquet.ReadTable[Timed](r, size, name, memory, HasSchema(TimesSchema))
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if s := rows[i].Seconds; s != nil && !finite(*s) || rows[i].Events < 0 {
			return nil, fmt.Errorf("%s: row %d: a negative or infinite number", name, i)
		}
	}
	return rows, nil
}

// table writes a table with its schema.
func table[R any](w io.Writer, rows []R, schema string) error {
	return parquet.WriteTable(w, flat.Of(rows), trace.Pair{Key: SchemaKey, Value: schema})
}

// WriteTimes writes the times of computed cells as Parquet.
func WriteTimes(w io.Writer, times []Timed) error { return table(w, times, TimesSchema) }

// Write writes the results as Parquet. They must be of traces or of logs.
func (r *Results) Write(w io.Writer) error {
	if r.OfLogs {
		return table(w, r.Logs, RematSchema)
	}
	return table(w, r.Traces, ResultsSchema)
}

// Results are the rows of a file of merged results: of traces or of logs.
type Results struct {
	OfLogs bool          // the file is of op logs
	Traces []Result      // of traces
	Logs   []RematResult // of op logs
}

// ReadResults reads merged results.
func ReadResults(r io.ReaderAt, size int64, name string, memory *budget.Budget) (all Results, err error) {
	schema := ""
	either := func(metadata map[string]string) error {
		if schema = metadata[SchemaKey]; schema == RematSchema {
			return errLogs
		}
		return HasSchema(ResultsSchema)(metadata)
	}
	all.Traces, _, err = parquet.ReadTable[Result](r, size, name, memory, either)
	if all.OfLogs = schema == RematSchema; all.OfLogs {
		all.Logs, _, err = parquet.ReadTable[RematResult](r, size, name, memory, HasSchema(RematSchema))
	}
	for i, row := range all.rows() {
		if err == nil {
			if err = row.check(); err != nil {
				err = fmt.Errorf("%s: row %d: %w", name, i, err)
			}
		}
	}
	return all, err
}

var (
	errNoPath    = errors.New("the path of the trace is missing")
	errForTraces = errors.New("a log with learn, device or free_at: want none")
)

// errLogs: the results are of logs.
var errLogs = errors.New("results of logs")
