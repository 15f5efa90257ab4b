package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// optionalColumns are the columns omitted in narrow windows, least important first. They are named
// below the table.
var optionalColumns = []string{
	"device calls", "device time", "metadata", "ext. frag.", "steps", "nodes", "spread", "heap B", "range", "operations",
	"sequences", "default",
	"worth trying", "because", "at 0.5", "infeasible", "overhead", "ns/op", "waste", "peak reserved", "safe from",
	"× bound", "on the card",
}

// minFolded is the minimum width of folded columns.
const minFolded = 24

// layout is a table formatted for a terminal. Cells may have several lines.
type layout struct {
	head  []string // nil: no header
	rows  [][]string
	rules []int  // numbers of rows followed by a line
	right []bool // by column: aligned right
	room  []int  // by column: minimum width when folded; 0: not foldable
}

// Terminal formats the table for the window of w, with a line below each of the given numbers of
// rows. In narrow windows columns are folded, then omitted; at last the table becomes a list.
func (s *Sheet) Terminal(w io.Writer, rules ...int) string {
	style := StyleOf(w)
	l := &layout{rules: rules, room: make([]int, len(s.Columns))}
	for _, c := range s.Columns {
		l.right = append(l.right, c.Number)
		if c.Name != "" || l.head != nil {
			l.head = append(l.head, c.Name)
		}
	}
	for _, r := range s.Rows {
		row := make([]string, len(r))
		for i, c := range r {
			row[i] = style.Paint(c.Tone, c.Text)
		}
		l.rows = append(l.rows, row)
	}
	return l.fit(Columns(w, math.MaxInt))
}

// width returns the width of some columns of the table.
func (l *layout) width(kept []int) int {
	n := 1
	for _, c := range kept {
		n += l.column(c) + 3
	}
	return n
}

func (l *layout) column(c int) int {
	n := l.room[c]
	for cell := range l.cells(c) {
		n = max(n, text.LongestLineLen(*cell))
	}
	return n
}

// cells yields the cells of a column, including its heading.
func (l *layout) cells(c int) func(func(*string) bool) {
	return func(yield func(*string) bool) {
		if l.head != nil && !yield(&l.head[c]) {
			return
		}
		for _, r := range l.rows {
			if !yield(&r[c]) {
				return
			}
		}
	}
}

// fit formats the table for a width.
func (l *layout) fit(width int) string {
	kept := make([]int, len(l.right))
	for c := range kept {
		kept[c] = c
	}
	if l.width(kept) <= width {
		return l.draw(kept)
	}
	if len(kept) > 2 {
		word := 0 // the first column is broken between words only
		for cell := range l.cells(0) {
			for w := range strings.FieldsSeq(*cell) {
				word = max(word, text.StringWidthWithoutEscSequences(w))
			}
		}
		l.fold(0, l.width(kept)-width, max(minFolded, word), text.WrapSoft)
	}
	if last := len(kept) - 1; last > 0 {
		l.fold(last, l.width(kept)-width, minFolded, func(s string, room int) string { return wrapped("", s, room, "") })
	}
	var without []string
	for _, m := range optionalColumns {
		if c := slices.Index(l.head, m); c > 0 && l.width(kept) > width {
			kept = slices.DeleteFunc(kept, func(k int) bool { return k == c })
			without = append(without, m)
		}
	}
	switch {
	case l.width(kept) > width:
		return l.list(width)
	case len(without) == 0:
		return l.draw(kept)
	}
	note := wrapped("", "omitted because the window is too narrow: "+strings.Join(without, ", "), width, "")
	return l.draw(kept) + "\n" + strings.TrimSuffix(note, "\n")
}

// fold makes a column narrower by up to by columns, but not narrower than low.
func (l *layout) fold(c, by, low int, wrap func(s string, room int) string) {
	was := l.column(c)
	room := max(was-by, low)
	if by <= 0 || room >= was {
		return
	}
	for cell := range l.cells(c) {
		lines := strings.Split(strings.TrimSuffix(wrap(oneLine(*cell), room), "\n"), "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		*cell = strings.Join(lines, "\n")
	}
	l.room[c], l.right[c] = room, false
}

func oneLine(cell string) string {
	lines := strings.Split(cell, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}

// draw formats some columns of the table.
func (l *layout) draw(kept []int) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	pick := func(cells []string) (row table.Row) {
		for _, c := range kept {
			row = append(row, cells[c])
		}
		return row
	}
	if l.head != nil {
		t.AppendHeader(pick(l.head))
	}
	var columns []table.ColumnConfig
	for i, c := range kept {
		config := table.ColumnConfig{Number: i + 1, WidthMin: l.room[c]}
		if l.right[c] {
			config.Align, config.AlignHeader = text.AlignRight, text.AlignRight
		}
		columns = append(columns, config)
	}
	t.SetColumnConfigs(columns)
	for i, r := range l.rows {
		if t.AppendRow(pick(r)); slices.Contains(l.rules, i+1) {
			t.AppendSeparator()
		}
	}
	return t.Render()
}

// list formats the table as a paragraph for each row, or as names and values if it has two columns.
func (l *layout) list(width int) string {
	var b strings.Builder
	rows := l.rows
	if len(l.right) == 2 {
		if l.head != nil {
			rows = append([][]string{l.head}, rows...)
		}
		for _, r := range rows {
			b.WriteString(wrapped("", oneLine(r[0])+": "+oneLine(r[1]), width, "  "))
		}
		return strings.TrimSuffix(b.String(), "\n")
	}
	for _, r := range rows {
		b.WriteString(wrapped("", oneLine(r[0]), width, "  "))
		for i, c := range r[1:] {
			if c = oneLine(c); c != "" {
				b.WriteString(wrapped("  ", l.head[i+1]+": "+c, width, "    "))
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// TextSheet returns a table of values formatted by fmt.
func TextSheet(columns []Column, rows ...[]any) Sheet {
	s := Sheet{Columns: columns}
	for _, r := range rows {
		row := make([]Cell, len(r))
		for i, v := range r {
			row[i] = Cell{Text: fmt.Sprint(v), Number: columns[i].Number}
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}
