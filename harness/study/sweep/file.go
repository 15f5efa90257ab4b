package sweep

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"

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
		if err := rows[i].check(); err != nil {
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

// cellName matches the hash of a key: it becomes a part of a path.
var cellName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// finite reports whether a predicted or measured time can be one.
func finite(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }

// check returns an error if a row is not of a plan that [Make] made.
func (r *Row) check() error {
	if !cellName.MatchString(r.Cell) {
		return fmt.Errorf("cell %.80q: want 64 hexadecimal digits", r.Cell)
	}
	if !finite(r.Cost) || r.Events < 0 {
		return fmt.Errorf("cost %v of %d events: want no negative numbers", r.Cost, r.Events)
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

// ReadResults reads merged results.
func ReadResults(r io.ReaderAt, size int64, name string, memory *budget.Budget) ([]Result, error) {
	rows, _, err := parquet.ReadTable[Result](r, size, name, memory, HasSchema(ResultsSchema))
	for i := range rows {
		if err == nil {
			if err = rows[i].row().check(); err != nil {
				err = fmt.Errorf("%s: row %d: %w", name, i, err)
			}
		}
	}
	return rows, err
}
