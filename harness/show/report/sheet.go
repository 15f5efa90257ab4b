package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/internal/units"
)

// Sheet is a table independent of its format: a terminal shows its texts, a page also its values.
type Sheet struct {
	Title   string   // title
	Columns []Column // from the left
	Rows    [][]Cell // from the top, each with a cell for every column
	Notes   []string // sentences below it
}

// Column is the heading of a column.
type Column struct {
	Name    string // heading
	Meaning string // description with the unit; docs/metrics.md has more
	Number  bool   // numeric, aligned right
}

// Cell is a figure.
type Cell struct {
	Text   string // for people
	Value  string // for scripts, in the unit of the column; empty if equal to Text
	Number bool   // numeric
	Tone   Tone   // colour in terminals
	Hint   string // explanation, shown by pages as a tooltip
}

// ColumnOf is a column of a table whose rows show values of type R. Heading and cell function are
// one value, so that figures cannot appear under the wrong heading.
type ColumnOf[R any] struct {
	Column
	Cell func(R) Cell // returns the cell of a row
	// Top returns the cell of the top row, such as the lower bound; nil: empty.
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

// Texts returns a column of text.
func Texts[R any](name, meaning string, text func(R) string) ColumnOf[R] {
	return ColumnOf[R]{Column: Column{Name: name, Meaning: meaning}, Cell: func(r R) Cell { return textCell(text(r)) }}
}

// AtRight returns the column aligned right.
func (c ColumnOf[R]) AtRight() ColumnOf[R] {
	c.Number = true
	return c
}

func figures[R any](name, meaning string, cell func(R) Cell) ColumnOf[R] {
	return ColumnOf[R]{Column: Column{name, meaning, true}, Cell: cell}
}

func fixed[R any](name, meaning string, decimals int, figure func(R) float64) ColumnOf[R] {
	return figures(name, meaning, func(r R) Cell { return fixedCell(figure(r), decimals) })
}

// byRef is the column with the times of frees by reference. A table in which no strategy offers
// them lacks it.
const byRef = "by ref."

func without[R any](columns []ColumnOf[R], name string) []ColumnOf[R] {
	return slices.DeleteFunc(slices.Clone(columns), func(c ColumnOf[R]) bool { return c.Name == name })
}

// top returns the column with a function for the top row.
func (c ColumnOf[R]) top(cell func(R) Cell) ColumnOf[R] {
	c.Top = cell
	return c
}

// sheetWithTop returns a table with a top row made by [ColumnOf.Top].
func sheetWithTop[R any](top R, title string, columns []ColumnOf[R], values []R) Sheet {
	s := NewSheet(title, columns, values)
	row := make([]Cell, len(columns))
	for i, c := range columns {
		row[i] = missingCell()
		if c.Top != nil {
			row[i] = c.Top(top)
		}
	}
	s.Rows = slices.Insert(s.Rows, 0, row)
	return s
}

func mapColumn[R, V any](c ColumnOf[V], value func(R) V) ColumnOf[R] {
	return ColumnOf[R]{Column: c.Column, Cell: func(r R) Cell { return c.Cell(value(r)) }}
}

func textCell(s string) Cell { return Cell{Text: units.Printable(s)} }

// clipped shortens a text to most characters, ending in "…".
func clipped(s string, most int) string {
	if characters := strings.SplitN(s, "", most+1); len(characters) > most {
		return strings.Join(characters[:most-1], "") + "…"
	}
	return s
}

// missingCell is the cell of a missing figure.
func missingCell() Cell { return Cell{Text: none, Number: true} }

// optional returns the cell of an optional figure.
func optional[T any](figure *T, cell func(T) Cell) Cell {
	if figure == nil {
		return missingCell()
	}
	return cell(*figure)
}

// number returns a numeric cell with its exact value for scripts.
func number(text string, value float64) Cell {
	return Cell{Text: text, Value: raw(value), Number: true}
}

// raw formats a number exactly; integers without an exponent.
func raw(value float64) string {
	if value == math.Trunc(value) && math.Abs(value) < 1<<63 {
		return units.Fixed(value, 0)
	}
	return strconv.FormatFloat(value, 'g', -1, 64)
}

func countCell(n uint64) Cell { return number(strconv.FormatUint(n, 10), float64(n)) }

func bytesCell(n device.Size) Cell { return number(units.Bytes(n), float64(n)) }

func percentCell(x float64) Cell { return number(units.Percent(x), x) }

func fixedCell(x float64, decimals int) Cell { return number(units.Fixed(x, decimals), x) }

// ratioOf returns the cell of an optional ratio, with three decimals.
func ratioOf(x *float64) Cell { return optional(x, func(x float64) Cell { return fixedCell(x, 3) }) }

// CompareSheets returns a table for each trace of a comparison: the lower bound, then the
// strategies by minimum capacity.
func CompareSheets(r *compare.Report) (all []Sheet) {
	for runs := range byTrace(r.Runs) {
		s := compareSheet(runs, r.Learned)
		s.Notes = append(partNotes(runs[0].Trace, runs[0].Gap), s.Notes...)
		all = append(all, s)
	}
	return all
}

// ReplaySheet returns the figures of a replay by name.
func ReplaySheet(r *replay.Result) Sheet {
	s := TextSheet([]Column{{Name: "figure"}, {Name: "value", Number: true}}, slices.Concat(replayRows(r)...)...)
	s.Title = fmt.Sprintf("%s on %s, sha256 %.12s", r.Strategy, units.Printable(r.Trace), r.TraceSHA256)
	s.Notes = partNotes(r.Trace, r.Gap)
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
