package whatif

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/internal/units"
)

// textWidth is the most columns of a line of sentences.
const textWidth = 100

// labelWidth is the most columns of the first column, if a label can be broken there.
const labelWidth = 50

// none stands for a figure that does not exist.
const none = "—"

// WriteText writes a result for people: the answer, how sure it is, what was recorded, and all that was
// tried.
func WriteText(w io.Writer, r *Result) error {
	var b strings.Builder
	width, style := report.Columns(w, textWidth), report.StyleOf(w)
	first := len(r.Answer.Text) // sentences before what to export
	if r.Answer.Verdict == Setting {
		first = 1
	}
	wrap(&b, width, "", strings.Join(r.Answer.Text[:first], " "))
	answer := r.Answer.paint(style, b.String())
	b.Reset()
	b.WriteString(answer)
	if len(r.Answer.Recipe) > 0 {
		b.WriteString("\n    " + strings.Join(r.Answer.Recipe, "\n    ") + "\n")
	}
	r.writeExports(&b)
	if first < len(r.Answer.Text) {
		b.WriteString("\n")
		wrap(&b, width, "", strings.Join(r.Answer.Text[first:], " "))
	}
	if len(r.Answer.Sure) > 0 {
		b.WriteString("\nHow sure:\n")
	}
	for _, s := range r.Answer.Sure {
		wrap(&b, width, "- ", s)
	}
	b.WriteString("\n")
	if err := r.writeFinal(&b); err != nil {
		return err
	}
	r.writeRecorded(&b)
	if len(r.Runs) > 0 {
		r.writeTable(&b, width, style)
		b.WriteString("\n")
	}
	if err := r.writeFailure(&b, width); err != nil {
		return err
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

// writeExports writes what to export for the answer.
func (r *Result) writeExports(b *strings.Builder) {
	a := &r.Answer
	if len(a.Environment) == 0 {
		return
	}
	b.WriteString("\n")
	width := 0
	for _, e := range slices.Concat(a.Environment, a.Before) {
		width = max(width, len(e))
	}
	export := func(list []string, remark string) {
		for _, e := range list {
			line := fmt.Sprintf("    export %-*s  # %s", width, units.Printable(e), remark)
			if remark == "" {
				line = "    export " + units.Printable(e)
			}
			b.WriteString(line + "\n")
		}
	}
	if a.Since == "" {
		export(a.Environment, "")
		return
	}
	export(a.Environment, r.Recorded.Framework+" "+a.Since+" and newer")
	export(a.Before, "before "+a.Since)
}

// wrap writes a paragraph in lines of at most so many columns, the first behind a mark and the
// others below its text.
func wrap(b *strings.Builder, width int, mark, paragraph string) {
	line := mark
	for word := range strings.FieldsSeq(units.Printable(paragraph)) {
		if len([]rune(line))+1+len([]rune(word)) > width && len(line) > len(mark) {
			b.WriteString(line + "\n")
			line = strings.Repeat(" ", len(mark))
		}
		if len(line) > len(mark) {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
}

// writeRecorded writes what the file says of the run.
func (r *Result) writeRecorded(b *strings.Builder) {
	rec := &r.Recorded
	line := func(what, format string, args ...any) {
		fmt.Fprintf(b, "%-16s %s\n", what, fmt.Sprintf(format, args...))
	}
	if len(rec.Config) > 0 {
		line("recorded", "settings %s", units.Printable(string(rec.Config)))
	}
	peak, bound, when := "peak reserved", "lower bound", ""
	if rec.Empty { // the file has one moment only
		peak, bound, when = "reserved", "live", " when the file was written"
	}
	if rec.Peak != 0 {
		line(peak, "%s%s", units.Bytes(rec.Peak), when)
	}
	if f := rec.Failure; f != nil {
		how := "the program went on"
		if f.Fatal {
			how = "nothing was allocated behind it"
		}
		what := fmt.Sprintf("%s refused at event %d; %s", units.Bytes(f.Size), f.Event, how)
		if f.DeviceFree != nil {
			what += fmt.Sprintf("; %s held, %s left on the device", units.Bytes(f.Reserved), units.Bytes(*f.DeviceFree))
		}
		if f.Count > 1 {
			what += fmt.Sprintf("; %d refusals in all", f.Count)
		}
		line("failure", "%s", what)
	}
	if r.Card != 0 {
		line("card", "%s", units.Bytes(r.Card))
	}
	line(bound, "%s, the live bytes alone%s", units.Bytes(r.LowerBound), when)
	if o := r.Offline; o != nil {
		proof := ""
		if o.Best.Optimal {
			proof = ", and no less"
		}
		line("in hindsight", "%s in one piece, had every request been known before%s", units.Bytes(o.Best.Height), proof)
		line("", "%s if packed by size, the largest first", units.Bytes(o.Greedy[0].Height))
	}
	b.WriteString("\n")
}

// Sheet returns the table of all that was tried.
func Sheet(r *Result) report.Sheet {
	points := make([]*Point, len(r.Runs))
	for i := range points {
		points[i] = &r.Runs[i]
	}
	return report.NewSheet("All that was tried", r.columns(), points)
}

// columns are the columns of all that was tried.
func (r *Result) columns() []report.ColumnOf[*Point] {
	number := func(text string, value float64) report.Cell {
		return report.Cell{Text: text, Value: strconv.FormatFloat(value, 'f', -1, 64), Number: true}
	}
	return []report.ColumnOf[*Point]{
		{
			Column: report.Column{Name: "setting", Meaning: "the setting, or strategy and what differs from its preset"},
			Cell:   func(p *Point) report.Cell { return report.Cell{Text: units.Printable(p.Label)} },
		},
		{
			Column: report.Column{Name: "min capacity", Meaning: "smallest device on which the trace completes, in bytes", Number: true},
			Cell: func(p *Point) report.Cell {
				for _, n := range []*device.Size{p.MinCapacity, p.CompletesAt, p.FailsAt} {
					if n != nil {
						return number(p.minimum(), float64(*n))
					}
				}
				return report.Cell{Text: p.minimum(), Number: true}
			},
		},
		{
			Column: report.Column{Name: "safe from", Meaning: "smallest device from which on nothing that was tried fails up to 1.25 times it, in bytes", Number: true},
			Cell: func(p *Point) report.Cell {
				if p.SafeFrom == nil {
					return report.Cell{Text: none, Number: true}
				}
				return number(units.Bytes(*p.SafeFrom), float64(*p.SafeFrom))
			},
		},
		{
			Column: report.Column{Name: "on the card", Meaning: "what becomes of the trace on the card", Number: true},
			Cell:   func(p *Point) report.Cell { return report.Cell{Text: p.verdict(), Tone: p.tone()} },
		},
		{
			Column: report.Column{Name: "peak reserved", Meaning: "most bytes held from the device", Number: true},
			Cell:   r.needed(func(p *Point) report.Cell { return number(units.Bytes(p.PeakReserved), float64(p.PeakReserved)) }),
		},
		{
			Column: report.Column{Name: "waste", Meaning: "1 − peak requested / peak reserved, of a run that completed", Number: true},
			Cell:   r.needed(func(p *Point) report.Cell { return number(units.Percent(p.Waste), p.Waste) }),
		},
		{
			Column: report.Column{Name: "device calls", Meaning: "calls to the device", Number: true},
			Cell:   r.needed(func(p *Point) report.Cell { return number(units.Count(p.DeviceCalls), float64(p.DeviceCalls)) }),
		},
		{
			Column: report.Column{Name: "device time", Meaning: "time of the device calls by the cost model, in nanoseconds", Number: true},
			Cell:   r.needed(func(p *Point) report.Cell { return number(units.Nanoseconds(p.DeviceTime), float64(p.DeviceTime)) }),
		},
		{
			Column: report.Column{Name: "ns/op", Meaning: "nanoseconds of a call to the strategy, of the processor", Number: true},
			Cell:   completed(func(p *Point) report.Cell { return number(units.Fixed(p.NsPerOp, 0), p.NsPerOp) }),
		},
		{
			Column: report.Column{Name: "notes"},
			Cell:   func(p *Point) report.Cell { return report.Cell{Text: r.notes(p)} },
		},
	}
}

// completed returns the cell of a figure that only a completed run has.
func completed(cell func(*Point) report.Cell) func(*Point) report.Cell {
	return func(p *Point) report.Cell {
		if !p.Completed() {
			return report.Cell{Text: none, Number: true}
		}
		return cell(p)
	}
}

// needed returns the cell of a figure that says what memory a completed run takes, and what that costs. A strategy that
// took all of an ample device shows nothing of that.
func (r *Result) needed(cell func(*Point) report.Cell) func(*Point) report.Cell {
	return completed(func(p *Point) report.Cell {
		if p.setup.Preallocates && p.Device != r.Card && (p.MinCapacity == nil || *p.MinCapacity != p.Device) {
			return report.Cell{Text: none, Number: true}
		}
		return cell(p)
	})
}

// writeTable writes all that was tried.
func (r *Result) writeTable(b *strings.Builder, width int, style report.Style) {
	sheet := Sheet(r)
	var names []any
	columns := []table.ColumnConfig{{Number: 1, WidthMax: labelWidth, WidthMaxEnforcer: fold}}
	for i, c := range sheet.Columns {
		names = append(names, c.Name)
		if c.Number {
			columns = append(columns, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	t := report.NewTable(names...)
	t.SetColumnConfigs(columns)
	for _, cells := range sheet.Rows {
		var row table.Row
		for _, c := range cells {
			row = append(row, style.Paint(c.Tone, c.Text))
		}
		t.AppendRow(row)
	}
	fmt.Fprintf(b, "%s\n", t.Render())
	for i := range r.Runs {
		if p := &r.Runs[i]; len(p.Same) > 0 {
			wrap(b, width, "  ", "On this trace "+p.Label+" decides like "+strings.Join(p.Same, "; ")+".")
		}
	}
	if r.Points == 1 {
		fmt.Fprintf(b, "1 setting; %s events replayed", units.Count(r.Replayed))
	} else {
		fmt.Fprintf(b, "%d settings, %d of them different on this trace; %s events replayed", r.Points, len(r.Runs), units.Count(r.Replayed))
	}
	if r.Budget != 0 {
		fmt.Fprintf(b, " of at most %s", units.Count(r.Budget))
	}
	b.WriteString(".\n")
}

// fold breaks a label at its commas into lines of at most so many columns, as far as it can.
func fold(label string, width int) string {
	var b strings.Builder
	column := 0
	for part := range strings.SplitAfterSeq(label, ",") {
		n := len([]rune(part))
		if column > 0 && column+n > width {
			b.WriteString("\n")
			column = 0
		}
		b.WriteString(part)
		column += n
	}
	return b.String()
}

// minimum says what is known of a point's minimum capacity.
func (p *Point) minimum() string {
	switch {
	case p.MinCapacity != nil:
		return units.Bytes(*p.MinCapacity)
	case p.CompletesAt != nil:
		return "≤ " + units.Bytes(*p.CompletesAt)
	case p.FailsAt != nil:
		return "> " + units.Bytes(*p.FailsAt)
	case p.Completed():
		return "not searched"
	}
	return none
}

// decisive are the words of an answer that say whether the run is carried; the first of them decides.
var decisive = regexp.MustCompile(`^(Yes:|None:|No setting)|\bcarr(y|ies)\b`)

// paint returns the text of an answer with its decisive words in colour.
func (a *Answer) paint(style report.Style, text string) string {
	at := decisive.FindStringIndex(text)
	if at == nil || a.Verdict == NoCard || a.Verdict == CannotTell {
		return text
	}
	tone := report.Good
	if words := text[at[0]:at[1]]; words == "None:" || words == "No setting" {
		tone = report.Bad
	}
	return text[:at[0]] + style.Paint(tone, text[at[0]:at[1]]) + text[at[1]:]
}

// tone returns how good what becomes of the trace on the card is.
func (p *Point) tone() report.Tone {
	switch {
	case p.Carried == nil:
		return report.Plain
	case *p.Carried:
		return report.Good
	}
	return report.Bad
}

// fails reports whether the trace does not complete on the card, or on the device of its figures.
func (p *Point) fails() bool { return !p.Completed() || p.Carried != nil && !*p.Carried }

// verdict says what becomes of the trace on the card.
func (p *Point) verdict() string {
	switch {
	case p.Carried == nil:
		return none
	case *p.Carried:
		return "carried"
	}
	return "fails"
}

// notes says in words what the figures of a row leave out.
func (r *Result) notes(p *Point) string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch failure := report.Failure(&p.Run); {
	case failure != "":
		add("%s", failure)
	case p.fails():
		add("FAILED, measured on %s instead", units.Bytes(p.Device))
	}
	if p.Recorded {
		add("as recorded")
	}
	if p.Baseline {
		add("baseline: every block from the device")
	}
	if p.FailsAbove != nil {
		add("fails again at %s", units.Bytes(*p.FailsAbove))
	}
	if p.MinCapacity != nil && p.Completed() && p.Device != *p.MinCapacity && p.Device != r.Card {
		add("measured on %s", units.Bytes(p.Device))
	}
	if p.MinCapacity == nil && p.CompletesAt != nil && p.FailsAt != nil {
		add("> %s", units.Bytes(*p.FailsAt))
	}
	return strings.Join(all, ", ")
}

// tableRow is a setting. Its label and environment are its own; the figures are of the setting that was replayed for it.
type tableRow struct {
	Label       string `json:"label"`
	Environment string `json:"environment"` // how users of a framework choose the setting; empty: they cannot
	ReplayedAs  string `json:"replayed_as"` // label of the setting that was replayed: this one, or one that decides alike
	// CardBytes is the capacity of the card in question; 0: not known.
	CardBytes device.Size `json:"card_bytes"`
	Point
}

// Table returns all settings for programs that analyse them, one row for each. A setting that decides like a
// replayed one has its figures.
func Table(r *Result) *flat.Table {
	var rows []tableRow
	for i := range r.Runs {
		p := &r.Runs[i]
		rows = append(rows, tableRow{p.Label, strings.Join(p.environment(), " "), p.Label, r.Card, *p})
		for _, other := range p.alike {
			row := tableRow{other.Label, strings.Join(other.environment(), " "), p.Label, r.Card, *p}
			row.Strategy, row.Changes, row.Recorded = other.Strategy, other.Changes, other.Recorded
			row.Config, _ = json.Marshal(other.Setup(p.Device).Config) // a configuration encodes to JSON
			rows = append(rows, row)
		}
	}
	return flat.Of(rows)
}
