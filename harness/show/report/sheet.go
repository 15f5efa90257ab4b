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

// ColumnOf is a column of a table whose rows show values of type R. The heading and the function
// that fills the cells below it are one value, so that no table can show a figure under the heading
// of another.
type ColumnOf[R any] struct {
	Column
	Cell func(R) Cell // fills the cell of a row
	// Top fills the cell of the row above all others, such as the lower bound; nil: there is no
	// figure.
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

// Texts returns a column of words.
func Texts[R any](name, meaning string, text func(R) string) ColumnOf[R] {
	return ColumnOf[R]{Column: Column{Name: name, Meaning: meaning}, Cell: func(r R) Cell { return words(text(r)) }}
}

// AtRight returns the column aligned at its right edge, as numbers are.
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

// top returns the column with a function that fills the cell of the row above all others.
func (c ColumnOf[R]) top(cell func(R) Cell) ColumnOf[R] {
	c.Top = cell
	return c
}

// sheetBelow returns the table with a row of a value's [ColumnOf.Top] above those of other values.
func sheetBelow[R any](top R, title string, columns []ColumnOf[R], values []R) Sheet {
	s := NewSheet(title, columns, values)
	row := make([]Cell, len(columns))
	for i, c := range columns {
		row[i] = lacking()
		if c.Top != nil {
			row[i] = c.Top(top)
		}
	}
	s.Rows = slices.Insert(s.Rows, 0, row)
	return s
}

func of[R, V any](c ColumnOf[V], value func(R) V) ColumnOf[R] {
	return ColumnOf[R]{Column: c.Column, Cell: func(r R) Cell { return c.Cell(value(r)) }}
}

func words(s string) Cell { return Cell{Text: units.Printable(s)} }

// clipped returns a text of at most so many characters; a longer one ends in "…".
func clipped(s string, most int) string {
	if characters := strings.SplitN(s, "", most+1); len(characters) > most {
		return strings.Join(characters[:most-1], "") + "…"
	}
	return s
}

// lacking is the cell of a figure that does not exist.
func lacking() Cell { return Cell{Text: none, Number: true} }

// maybe returns the cell of a figure that may not exist.
func maybe[T any](figure *T, cell func(T) Cell) Cell {
	if figure == nil {
		return lacking()
	}
	return cell(*figure)
}

// number returns a cell with a figure, whose exact value scripts read.
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

func countCell(n uint64) Cell { return number(strconv.FormatUint(n, 10), float64(n)) }

func bytesCell(n device.Size) Cell { return number(units.Bytes(n), float64(n)) }

func percentCell(x float64) Cell { return number(units.Percent(x), x) }

func fixedCell(x float64, decimals int) Cell { return number(units.Fixed(x, decimals), x) }

// ratioOf returns the cell of a ratio that may not exist, with three decimals.
func ratioOf(x *float64) Cell { return maybe(x, func(x float64) Cell { return fixedCell(x, 3) }) }

// CompareSheets returns a table for each trace of a comparison, its strategies sorted by minimum
// capacity, the lower bound above them.
func CompareSheets(r *compare.Report) (all []Sheet) {
	for runs := range byTrace(r.Runs) {
		s := compareSheet(runs, r.Learned)
		s.Notes = append(partNotes(runs[0].Trace, runs[0].Lacks), s.Notes...)
		all = append(all, s)
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
