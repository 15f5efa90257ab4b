package report

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/vramyard/vramyard/harness/study/gate"
	"github.com/vramyard/vramyard/internal/units"
)

// Gate writes the outcome of a gate: a table for each recording, and the causes of a regression.
func Gate(w io.Writer, r *gate.Report) error {
	out := &lines{w: w}
	for i := range r.Results {
		if i > 0 {
			out.printf("\n")
		}
		result := &r.Results[i]
		tone := Good
		if result.Violated() > 0 {
			tone = Bad
		}
		for k, s := range gateSheets(result) {
			if k == 0 {
				s.Title = StyleOf(w).Paint(tone, s.Title)
			}
			out.sheet(&s)
		}
		for _, n := range result.Notes {
			out.printf("%s\n", units.Printable(n))
		}
	}
	for _, name := range r.Missing {
		out.printf("%s\n", missing(name))
	}
	return out.err
}

func missing(name string) string {
	return units.Printable(name) + ": VIOLATED: the budget has it, and its recording is not among the given ones"
}

// outcome describes the outcome for a recording.
func outcome(r *gate.Result) string {
	work := "the whole recording"
	if r.Steps > 0 {
		work = fmt.Sprintf("steps %d to %d after %d of warm-up", r.Warmup+1, r.Steps, r.Warmup)
	}
	verdict := "within the budget"
	if n := r.Violated(); n > 0 {
		verdict = fmt.Sprintf("VIOLATED, %d of %s", n, units.Several(len(r.Checks), "figure"))
	}
	return fmt.Sprintf("%s (%s, %s)", verdict, units.Printable(r.Strategy), work)
}

// gateColumns are the columns of the judged figures.
var gateColumns = []ColumnOf[gate.Check]{
	Texts("pool", "state of the pool before the work", func(c gate.Check) string { return string(c.State) }),
	Texts("figure", "", func(c gate.Check) string { return strings.ReplaceAll(string(c.Figure), "_", " ") }),
	Texts("budget", "", func(c gate.Check) string { return c.Shown(c.Budget) }).AtRight(),
	Texts("now", "", func(c gate.Check) string { return c.Shown(c.Now) }).AtRight(),
	Texts("change", "", func(c gate.Check) string { return c.Change() }).AtRight(),
	{Column{"verdict", "", false}, func(c gate.Check) Cell {
		cell := textCell(string(c.Verdict))
		switch c.Verdict {
		case gate.Violated:
			cell.Tone = Bad
		case gate.Improved, gate.Lowered:
			cell.Tone = Good
		}
		return cell
	}, nil},
}

// mostCauses bounds the rows of the tables of causes and of call sites; JSON has all.
const mostCauses = 10

// gateSheets returns the tables of a recording: the figures and, for a regression, its causes.
func gateSheets(r *gate.Result) []Sheet {
	all := []Sheet{NewSheet(units.Printable(r.Name)+": "+outcome(r), gateColumns, r.Checks)}
	if r.Violated() == 0 {
		return all
	}
	if len(r.Causes) > 0 {
		causes := []ColumnOf[gate.Cause]{
			figures("more", "bytes in sum", func(c gate.Cause) Cell { return bytesCell(c.Bytes) }),
			Texts("blocks", "", func(c gate.Cause) string { return c.String() }),
			{Column{"allocated at", "call site, tag or size", false}, func(c gate.Cause) Cell { return placeCell(c.At) }, nil},
		}
		all = append(all, largestRows("blocks that explain it", causes, r.Causes))
	}
	grown := r.Sites
	for i := range grown {
		if grown[i].Now < grown[i].Before {
			grown = grown[:i]
			break
		}
	}
	if len(grown) > 0 {
		sites := []ColumnOf[gate.Site]{
			figures("budget", "live at the peak", func(s gate.Site) Cell { return bytesCell(s.Before) }),
			figures("now", "live at the peak", func(s gate.Site) Cell { return bytesCell(s.Now) }),
			figures("more", "", func(s gate.Site) Cell { return bytesCell(s.Now - s.Before) }),
			{Column{"allocated at", "call site, tag or size", false}, func(s gate.Site) Cell { return placeCell(s.At) }, nil},
		}
		all = append(all, largestRows("more live at the peak", sites, grown))
	}
	return all
}

// largestRows returns a table of the first values.
func largestRows[R any](title string, columns []ColumnOf[R], values []R) Sheet {
	if n := len(values); n > mostCauses {
		title, values = fmt.Sprintf("%s, the %d largest of %d", title, mostCauses, n), values[:mostCauses]
	}
	return NewSheet(title, columns, values)
}

// GateMarker begins the Markdown of a gate. A comment on a pull request that begins with it is
// replaced by the next one. It names the file, because a project may have several.
func GateMarker(baseline string) string {
	return "<!-- vramyard gate " + strings.ReplaceAll(baseline, "--", "- -") + " -->"
}

// GateMarkdown writes the outcome of a gate for the summary of a job and for a comment.
func GateMarkdown(w io.Writer, r *gate.Report) error {
	out := &lines{w: w}
	verdict := "within the budget"
	if n := r.Violated(); n > 0 {
		verdict = units.Several(n, "violation")
	}
	out.printf("%s\n### GPU memory: %s\n", GateMarker(r.Baseline), verdict)
	for i := range r.Results {
		result := &r.Results[i]
		for _, s := range gateSheets(result) {
			out.markdown(&s)
		}
		out.printf("\n")
		out.stacks(result)
		for _, n := range result.Notes {
			out.printf("- %s\n", escaped(n))
		}
	}
	for _, name := range r.Missing {
		out.printf("- %s\n", escaped(missing(name)))
	}
	return out.err
}

// The stacks in Markdown: a comment has room for 65,536 characters.
const (
	mostStacks     = 3
	mostStackLines = 24
)

// stacks writes the stacks of the first causes, folded.
func (l *lines) stacks(r *gate.Result) {
	for i, c := range r.Causes {
		if r.Violated() == 0 || i == mostStacks || len(c.Lines) < 2 {
			return
		}
		l.printf("<details><summary>%s at %s</summary>\n\n```\n", html.EscapeString(c.String()),
			strings.ReplaceAll(html.EscapeString(units.Printable(c.At)), "@", "&#64;"))
		for _, line := range c.Lines[:min(len(c.Lines), mostStackLines)] {
			l.printf("%s\n", strings.ReplaceAll(units.Printable(line), "```", "` ` `"))
		}
		l.printf("```\n\n</details>\n\n")
	}
}

// markdown writes a table in Markdown.
func (l *lines) markdown(s *Sheet) {
	l.printf("\n%s\n\n", escaped(s.Title))
	head, rule := "|", "|"
	for _, c := range s.Columns {
		head += " " + escaped(c.Name) + " |"
		if c.Number {
			rule += "--:|"
		} else {
			rule += "---|"
		}
	}
	l.printf("%s\n%s\n", head, rule)
	for _, row := range s.Rows {
		text := "|"
		for _, c := range row {
			if c.Tone == Bad {
				text += " **" + escaped(c.Text) + "** |"
			} else {
				text += " " + escaped(c.Text) + " |"
			}
		}
		l.printf("%s\n", text)
	}
}

// escaped returns a text whose characters Markdown shows as they are.
func escaped(s string) string {
	return strings.NewReplacer("\\", "\\\\", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`", "<", "&lt;", ">", "&gt;",
		"[", "\\[", "]", "\\]", "@", "&#64;").Replace(units.Printable(s))
}
