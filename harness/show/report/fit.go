package report

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// minor are the columns that a narrow window does without, the least important first. They are named
// below the table.
var minor = []string{
	"device calls", "device time", "metadata", "ext. frag.", "steps", "nodes", "spread", "heap B", "range", "operations", "sequences", "default",
	"worth trying", "because", "at 0.5", "infeasible", "overhead", "ns/op", "waste", "peak reserved", "safe from", "× bound", "on the card",
}

// least is the room that the first and the last column of a table keep when they are folded, in columns.
const least = 24

// Fitter is a writer for a terminal. Lines that are wider than the window are broken between words, but for those
// to be copied: they begin with a command or an object in JSON. Tables that are wider lose columns, and become lists
// where that is not enough.
type Fitter struct {
	w     io.Writer
	width int      // of the window, in columns
	color bool     // the window shows colours
	rest  []byte   // of a line that has not ended
	table []string // lines of a table that has not ended
	err   error
}

// Fit returns a writer whose tables and sentences fit a window of so many columns. What it holds back, which is a
// line that has not ended or a table, is written by Flush.
func Fit(w io.Writer, width int) *Fitter { return &Fitter{w: w, width: width} }

// Colors has text with a [Tone] come in colours.
func (f *Fitter) Colors() { f.color = true }

// hasColors reports whether text comes in colours.
func (f *Fitter) hasColors() bool { return f.color }

// Columns returns how wide lines of sentences may be that are written to w: as wide as the window, but no more than most.
func Columns(w io.Writer, most int) int {
	if f, ok := w.(interface{ columns() int }); ok {
		return min(f.columns(), most)
	}
	return most
}

// columns returns the width of the window.
func (f *Fitter) columns() int { return f.width }

// Write implements [io.Writer].
func (f *Fitter) Write(p []byte) (int, error) {
	f.rest = append(f.rest, p...)
	for {
		line, rest, ended := bytes.Cut(f.rest, []byte("\n"))
		if !ended {
			break
		}
		f.line(string(line))
		f.rest = rest
	}
	return len(p), f.err
}

// Flush writes a line or a table that did not end.
func (f *Fitter) Flush() error {
	for _, l := range f.table {
		f.put(l + "\n")
	}
	if len(f.rest) > 0 {
		f.put(strings.TrimSuffix(f.sentence(string(f.rest)), "\n"))
	}
	f.table, f.rest = nil, nil
	return f.err
}

// put writes what is known to fit.
func (f *Fitter) put(s string) {
	if f.err == nil && s != "" {
		_, f.err = io.WriteString(f.w, s)
	}
}

// line takes a whole line.
func (f *Fitter) line(l string) {
	switch {
	case len(f.table) == 0 && !strings.HasPrefix(l, "┌"):
		f.put(f.sentence(l))
	case strings.HasPrefix(l, "└"):
		f.put(fitted(append(f.table, l), f.width))
		f.table = nil
	default:
		f.table = append(f.table, l)
	}
}

// copied are the beginnings of lines that are for a shell, which a line break would spoil.
var copied = []string{"vramyard ", "export ", "go run ", "http://", "{"}

// sentence returns a line that is part of no table. What goes on below the first line stands under its words, behind
// a mark if there is one.
func (f *Fitter) sentence(l string) string {
	words := strings.TrimLeft(l, " ")
	if text.StringWidthWithoutEscSequences(l) <= f.width || slices.ContainsFunc(copied, func(c string) bool { return strings.HasPrefix(words, c) }) {
		return l + "\n"
	}
	blank := l[:len(l)-len(words)]
	if len(blank) > f.width/2 {
		blank = ""
	}
	mark := ""
	if strings.HasPrefix(words, "- ") {
		mark, words = "- ", words[2:]
	}
	first := blank + mark
	if label := label.FindString(words); label != "" && text.StringWidthWithoutEscSequences(first+label) <= f.width/2 {
		first, words = first+label, words[len(label):]
	}
	return wrapped(first, words, f.width, strings.Repeat(" ", text.StringWidthWithoutEscSequences(first)))
}

// label is what stands in front of a line, in a column of its own.
var label = regexp.MustCompile(`^\S+( \S+)*  +`)

// drawn is a table as it was drawn.
type drawn struct {
	edges []int      // where columns begin, and one behind the last
	lines [][]string // cells with the blanks around them; nil for a rule
}

// parse takes the lines of a table apart. Its first line tells where columns are, so that nothing in a
// cell can move them.
func parse(lines []string) *drawn {
	d := &drawn{}
	at := 0
	for _, r := range lines[0] {
		if at++; r != '─' {
			d.edges = append(d.edges, at)
		}
	}
	for _, l := range lines[1 : len(lines)-1] {
		if strings.HasPrefix(l, "├") {
			d.lines = append(d.lines, nil)
			continue
		}
		d.lines = append(d.lines, d.cells(l))
	}
	return d
}

// cells cuts a line at the edges of the columns, by the room that its characters take.
func (d *drawn) cells(l string) []string {
	cells := make([]string, len(d.edges)-1)
	at, column := 0, -1
	escape := false // within the escape sequence of a colour
	for _, r := range l {
		if escape = escape || r == text.EscapeStartRune; escape {
			cells[column] += string(r) // is in a cell, and takes no room
			escape = r != text.EscapeStopRune
			continue
		}
		if column+1 < len(d.edges) && at == d.edges[column+1]-1 {
			at, column = at+1, column+1
			continue // the rule between two
		}
		at += text.RuneWidth(r)
		if column >= 0 && column < len(cells) {
			cells[column] += string(r)
		}
	}
	return cells
}

// width returns the columns of a window that the table takes with some of its columns.
func (d *drawn) width(kept []int) int {
	n := 1
	for _, c := range kept {
		n += d.edges[c+1] - d.edges[c]
	}
	return n
}

// fitted returns a table as it fits a window.
func fitted(lines []string, width int) string {
	d := parse(lines)
	var kept []int
	for c := range len(d.edges) - 1 {
		kept = append(kept, c)
	}
	if d.width(kept) <= width {
		return strings.Join(lines, "\n") + "\n"
	}
	if len(kept) > 2 {
		d.foldFirst(d.width(kept) - width) // first: where words of the last column stand, a line begins a row
	}
	if len(kept) > 1 {
		d.fold(d.width(kept) - width)
	}
	var without []string
	if head := d.lines[0]; len(d.lines) > 1 && d.lines[1] == nil { // it has names of columns
		for _, m := range minor {
			c := slices.IndexFunc(head, func(cell string) bool { return strings.TrimSpace(cell) == m })
			if c > 0 && d.width(kept) > width {
				kept = slices.DeleteFunc(kept, func(k int) bool { return k == c })
				without = append(without, m)
			}
		}
	}
	if d.width(kept) <= width && len(without) == 0 {
		return d.with(kept)
	}
	if d.width(kept) <= width {
		return d.with(kept) + wrapped("", "without "+strings.Join(without, ", ")+", for which the window is too narrow", width, "")
	}
	return d.list(width)
}

// fold makes the last column narrower, if it is one of words that stay readable.
func (d *drawn) fold(by int) {
	last := len(d.edges) - 2
	room := max(d.edges[last+1]-d.edges[last]-1-by, least+2)
	if room >= d.edges[last+1]-d.edges[last]-1 {
		return
	}
	d.foldRows(room, foldRow)
	d.edges[last+1] = d.edges[last] + room + 1
}

// foldRows folds every row to so much room.
func (d *drawn) foldRows(room int, fold func(lines [][]string, room int) [][]string) {
	var folded [][]string
	for i := 0; i < len(d.lines); {
		if d.lines[i] == nil {
			folded = append(folded, nil)
			i++
			continue
		}
		n := d.linesOf(i)
		folded = append(folded, fold(d.lines[i:i+n], room)...)
		i += n
	}
	d.lines = folded
}

// linesOf returns how many lines the row at a line has.
func (d *drawn) linesOf(i int) int {
	n := 1
	for i+n < len(d.lines) && d.lines[i+n] != nil && goesOn(d.lines[i+n]) {
		n++
	}
	return n
}

// foldFirst makes the first column narrower, as far as its longest word lets it.
func (d *drawn) foldFirst(by int) {
	was := d.edges[1] - d.edges[0] - 1
	room := max(was-by, least+2)
	for _, cells := range d.lines {
		if cells != nil {
			for word := range strings.FieldsSeq(cells[0]) {
				room = max(room, text.StringWidthWithoutEscSequences(word)+2)
			}
		}
	}
	if by <= 0 || room >= was {
		return
	}
	d.foldRows(room, foldLabel)
	for i := range d.edges[1:] {
		d.edges[i+1] -= was - room
	}
}

// foldLabel returns the lines of a row whose first cell has so much room.
func foldLabel(lines [][]string, room int) [][]string {
	var words []string
	for _, l := range lines {
		words = append(words, strings.TrimSpace(l[0]))
	}
	labels := strings.Split(text.WrapSoft(strings.TrimSpace(strings.Join(words, " ")), room-2), "\n")
	var rows [][]string
	for i := range max(len(labels), len(lines)) {
		row := make([]string, len(lines[0]))
		for c := range row {
			row[c] = strings.Repeat(" ", text.StringWidthWithoutEscSequences(lines[0][c]))
			if i < len(lines) {
				row[c] = lines[i][c]
			}
		}
		label := ""
		if i < len(labels) {
			label = strings.TrimSpace(labels[i])
		}
		row[0] = " " + text.Pad(label, room-1, ' ')
		if strings.TrimSpace(strings.Join(row, "")) != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

// foldRow returns the lines of a row whose last cell has so much room.
func foldRow(lines [][]string, room int) [][]string {
	last := len(lines[0]) - 1
	var words []string
	for _, l := range lines {
		words = append(words, strings.TrimSpace(l[last]))
	}
	texts := strings.Split(strings.TrimSuffix(wrapped("", strings.TrimSpace(strings.Join(words, " ")), room-2, ""), "\n"), "\n")
	var rows [][]string
	for i := range max(len(texts), len(lines)) {
		row := make([]string, last+1)
		for c := range row {
			row[c] = strings.Repeat(" ", text.StringWidthWithoutEscSequences(lines[0][c]))
			if i < len(lines) {
				row[c] = lines[i][c]
			}
		}
		cell := ""
		if i < len(texts) {
			cell = texts[i]
		}
		row[last] = " " + text.Pad(cell, room-1, ' ')
		if i > 0 && i >= len(lines) || strings.TrimSpace(strings.Join(row, "")) != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

// with draws the table with some of its columns.
func (d *drawn) with(kept []int) string {
	var b strings.Builder
	rule := func(left, middle, right string) {
		for i, c := range kept {
			if i == 0 {
				b.WriteString(left)
			} else {
				b.WriteString(middle)
			}
			b.WriteString(strings.Repeat("─", d.edges[c+1]-d.edges[c]-1))
		}
		b.WriteString(right + "\n")
	}
	rule("┌", "┬", "┐")
	for _, cells := range d.lines {
		if cells == nil {
			rule("├", "┼", "┤")
			continue
		}
		b.WriteString("│")
		for _, c := range kept {
			b.WriteString(cells[c] + "│")
		}
		b.WriteString("\n")
	}
	rule("└", "┴", "┘")
	return b.String()
}

// list draws the table without lines: a paragraph for each row, or, of two columns, name and value.
func (d *drawn) list(width int) string {
	var rows [][]string
	for _, cells := range d.lines {
		trimmed := make([]string, len(cells))
		for i, c := range cells {
			trimmed[i] = strings.TrimSpace(c)
		}
		switch {
		case cells == nil:
		case len(rows) > 0 && goesOn(trimmed): // the row before
			last := rows[len(rows)-1]
			for i, c := range trimmed {
				last[i] = strings.TrimSpace(last[i] + " " + c)
			}
		default:
			rows = append(rows, trimmed)
		}
	}
	var b strings.Builder
	if len(d.edges)-1 == 2 {
		for _, r := range rows {
			b.WriteString(wrapped("", r[0]+": "+r[1], width, "  "))
		}
		return b.String()
	}
	for _, r := range rows[1:] {
		b.WriteString(wrapped("", r[0], width, "  "))
		for i, c := range r[1:] {
			if c != "" {
				b.WriteString(wrapped("  ", rows[0][i+1]+": "+c, width, "    "))
			}
		}
	}
	return b.String()
}

// goesOn reports whether a line of a table goes on with the row before: it has nothing in its first cell, or nothing
// in any other, of which a table of names and values may have some.
func goesOn(cells []string) bool {
	return strings.TrimSpace(cells[0]) == "" || len(cells) > 2 && strings.TrimSpace(strings.Join(cells[1:], "")) == ""
}

// wrapped breaks a line between words, or within one that is longer than a line. The first line begins
// with one indent, what follows with another, which is no shorter.
func wrapped(first, s string, width int, indent string) string {
	lines := strings.Split(text.WrapSoft(s, max(width-len(indent), 8)), "\n")
	for i := range lines {
		lines[i] = indent + strings.TrimSpace(lines[i])
	}
	lines[0] = first + strings.TrimPrefix(lines[0], indent)
	return strings.Join(lines, "\n") + "\n"
}
