package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/internal/units"
)

// Sheet is a table before it has a form: a terminal shows its texts, a page its values too.
type Sheet struct {
	Title   string   // what it is about
	Columns []Column // from the left
	Rows    [][]Cell // from the top, each as long as Columns
	Notes   []string // sentences below it
}

// Column is what heads a column.
type Column struct {
	Name    string // in the head
	Meaning string // in a sentence, with the unit of the values; docs/metrics.md says more
	Number  bool   // it holds numbers, which stand at the right edge
}

// Cell is one figure.
type Cell struct {
	Text   string // as people read it
	Value  string // as scripts read it, in the unit of the column; empty where Text is all
	Number bool   // it is one
	Tone   Tone   // meaning, which terminals show in colour
	Hint   string // more about it in a sentence, which pages tell at the pointer
}

// ColumnOf is a column of a table whose rows show values of type R. The heading and the function that fills the cells
// below it are one value, so that no table can show a figure under the heading of another.
type ColumnOf[R any] struct {
	Column
	Cell func(R) Cell // fills the cell of a row
	// Top fills the cell of the row above all others, such as the lower bound; nil: there is no figure.
	Top func(R) Cell
}

// NewSheet returns a table with a row for each value.
func NewSheet[R any](title string, columns []ColumnOf[R], values []R) Sheet {
	s := Sheet{Title: title}
	for _, c := range columns {
		s.Columns = append(s.Columns, c.Column)
	}
	for _, v := range values {
		row := make([]Cell, len(columns))
		for i, c := range columns {
			row[i] = c.Cell(v)
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// sheetBelow puts a row of a value's [ColumnOf.Top] above the others.
func sheetBelow[R any](top R, s Sheet, columns []ColumnOf[R]) Sheet {
	row := make([]Cell, len(columns))
	for i, c := range columns {
		row[i] = lacking()
		if c.Top != nil {
			row[i] = c.Top(top)
		}
	}
	s.Rows = append([][]Cell{row}, s.Rows...)
	return s
}

// of returns the column for values that hold those which it shows.
func of[R, V any](c ColumnOf[V], value func(R) V) ColumnOf[R] {
	return ColumnOf[R]{Column: c.Column, Cell: func(r R) Cell { return c.Cell(value(r)) }}
}

// words returns a cell of text.
func words(s string) Cell { return Cell{Text: units.Printable(s)} }

// clipped returns a text of at most so many characters; one that is cut ends in "…".
func clipped(s string, most int) string {
	n, last := 0, 0 // characters before i, and where the last one that stays ends
	for i := range s {
		switch n {
		case most - 1:
			last = i
		case most:
			return s[:last] + "…"
		}
		n++
	}
	return s
}

// lacking is the cell of a figure that does not exist.
func lacking() Cell { return Cell{Text: none, Number: true} }

// number returns a cell with a figure.
func number(text string, value float64) Cell {
	return Cell{Text: text, Value: raw(value), Number: true}
}

// raw returns a figure with all its digits, a whole one without an exponent.
func raw(value float64) string {
	if value == math.Trunc(value) && math.Abs(value) < 1<<63 {
		return units.Fixed(value, 0)
	}
	return strconv.FormatFloat(value, 'g', -1, 64)
}

// countCell returns a cell with a whole number.
func countCell(n uint64) Cell { return number(strconv.FormatUint(n, 10), float64(n)) }

// bytesCell returns a cell with a size.
func bytesCell(n device.Size) Cell { return number(units.Bytes(n), float64(n)) }

// percentCell returns a cell with a share.
func percentCell(x float64) Cell { return number(units.Percent(x), x) }

// CompareSheets returns a table for each trace of a comparison, its strategies sorted by minimum
// capacity, the lower bound above them.
func CompareSheets(r *compare.Report) (all []Sheet) {
	for runs := r.Runs; len(runs) > 0; {
		n := sameTrace(runs)
		s := compareSheet(runs[:n])
		s.Notes = append(partNotes(runs[0].Trace, runs[0].Lacks), s.Notes...)
		all = append(all, s)
		runs = runs[n:]
	}
	return all
}

// ReplaySheet returns the figures of a replay by name.
func ReplaySheet(r *replay.Result) Sheet {
	s := TextSheet([]Column{{Name: "figure"}, {Name: "value", Number: true}}, slices.Concat(replayRows(r)...)...)
	s.Title = fmt.Sprintf("%s on %s, sha256 %.12s", r.Strategy, units.Printable(r.Trace), r.TraceSHA256)
	s.Notes = partNotes(r.Trace, r.Lacks)
	if r.FirstFailure != nil {
		s.Notes = append(s.Notes, failureLines(r)...)
	}
	if failed := ReplayFailure(r); failed != "" {
		s.Title = "FAILED: " + failed + "; " + s.Title
	}
	return s
}

// BenchSheets returns a table for each workload of a benchmark.
func BenchSheets(r *bench.Report) (all []Sheet) {
	for i, l := range r.Loops {
		all = append(all, benchSheet(l, runsOn(r, i)))
	}
	return all
}
