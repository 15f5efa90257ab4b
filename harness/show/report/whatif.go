package report

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/internal/units"
)

// textWidth is the maximum width of sentences.
const textWidth = 100

// labelWidth is the maximum width of the first column, if its labels can be folded.
const labelWidth = 50

// WhatIf writes the answer of a search, its accuracy, the recording, and all settings tried.
func WhatIf(w io.Writer, r *whatif.Result) error {
	var b strings.Builder
	width := Columns(w, textWidth)
	if err := answerText(w, &b, r, width); err != nil {
		return err
	}
	recordedText(&b, r)
	if len(r.Runs) > 0 {
		whatIfTable(w, &b, r, width)
		b.WriteString("\n")
	}
	if err := explainedText(&b, r, width); err != nil {
		return err
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

// answerText writes the answer with its accuracy, and the heap of a file that cannot answer.
func answerText(w io.Writer, b *strings.Builder, r *whatif.Result, width int) error {
	first := len(r.Answer.Text) // number of sentences before the exports
	if v := r.Answer.Verdict; v == whatif.Setting || v == whatif.Pooling {
		first = 1
	}
	var answer strings.Builder
	wrap(&answer, width, "", strings.Join(r.Answer.Text[:first], " "))
	b.WriteString(paintAnswer(StyleOf(w), &r.Answer, answer.String()))
	if len(r.Answer.Recipe) > 0 {
		b.WriteString("\n    " + strings.Join(r.Answer.Recipe, "\n    ") + "\n")
	}
	exportsText(b, r)
	if first < len(r.Answer.Text) {
		b.WriteString("\n")
		wrap(b, width, "", strings.Join(r.Answer.Text[first:], " "))
	}
	sentences := func(title string, list []string) {
		if len(list) > 0 {
			b.WriteString("\n" + title + "\n")
		}
		for _, s := range list {
			mark := "- "
			for line := range strings.SplitSeq(s, "\n") {
				wrap(b, width, mark, line)
				mark = "  - "
			}
		}
	}
	sentences("What changed:", r.Answer.Changes)
	var constraints []string
	for _, c := range r.Answer.Constraints {
		constraints = append(constraints, c.Text)
	}
	sentences("If it must also work with:", constraints)
	sentences("The deployment:", r.Answer.Permits)
	sentences("How sure:", r.Answer.Sure)
	b.WriteString("\n")
	if r.Final != nil {
		b.WriteString("The file does show the heap when it was written:\n\n")
		if err := FinalHeap(b, r.Final); err != nil {
			return err
		}
		b.WriteString("\n")
	}
	return nil
}

// exportsText writes the code and the environment variables of the answer, and the calls for
// settings that change.
func exportsText(b *strings.Builder, r *whatif.Result) {
	a := &r.Answer
	if len(a.Environment)+len(a.Python)+len(a.Calls) == 0 {
		return
	}
	b.WriteString("\n")
	for _, line := range a.Python {
		b.WriteString("    " + units.Printable(line) + "\n")
	}
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
	} else {
		export(a.Environment, r.Recorded.Framework+" "+a.Since+" and newer")
		export(a.Before, "before "+a.Since)
	}
	callsText(b, a.Calls)
}

// callsText writes the calls that change settings, as lines of Python.
func callsText(b *strings.Builder, calls []setting.Call) {
	lines, width := make([]string, len(calls)), 0
	for i, c := range calls {
		lines[i] = "torch.cuda.memory._set_allocator_settings(" + strconv.Quote(c.Conf) + ")"
		width = max(width, len(lines[i]))
	}
	for i, c := range calls {
		fmt.Fprintf(b, "    %-*s  # at the mark %s\n", width, lines[i], strconv.Quote(c.Mark))
	}
}

// wrap writes a wrapped paragraph: a mark, then the text, indented below itself.
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

func recordedText(b *strings.Builder, r *whatif.Result) {
	rec := &r.Recorded
	line := func(what, format string, args ...any) {
		fmt.Fprintf(b, "%-16s %s\n", what, fmt.Sprintf(format, args...))
	}
	if len(rec.Config) > 0 {
		line("recorded", "settings %s", units.Printable(string(rec.Config)))
	}
	if len(rec.Environment) > 0 {
		line("recorded", "%s", units.Printable(strings.Join(rec.Environment, " ")))
	}
	peak, bound, when := "peak reserved", "lower bound", ""
	if rec.Empty { // the file has a single moment
		peak, bound, when = "reserved", "live", " when the file was written"
	}
	if rec.Peak != 0 {
		line(peak, "%s%s", units.Bytes(rec.Peak), when)
	}
	if f := rec.Failure; f != nil {
		how := "the program went on"
		if f.Fatal {
			how = "nothing was allocated after it"
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
		line("in hindsight", "%s in one piece, with every request known in advance%s", units.Bytes(o.Best.Height), proof)
		line("", "%s if packed by size, the largest first", units.Bytes(o.Greedy[0].Height))
	}
	if p := r.Pools; p != nil {
		poolLines(line, p)
	}
	b.WriteString("\n")
}

// poolLines writes the minima with other private pools.
func poolLines(line func(label, format string, args ...any), p *whatif.Pools) {
	minimum := func(n *device.Size) string {
		if n == nil {
			return "no capacity"
		}
		return units.Bytes(*n)
	}
	line("private pools", "%s suffice with the recorded ones, under %s", minimum(p.Recorded), p.Label)
	if p.Shared != nil {
		line("", "%s if all captures share one", minimum(p.Shared))
	}
	if p.LargestFirst != nil {
		line("", "%s if all captures share one, the largest first", units.Bytes(*p.LargestFirst))
	}
	if p.Primed != nil {
		line("", "%s if all share one, in which %s are allocated first", units.Bytes(*p.Primed), units.Bytes(p.Priming))
	}
	line("", "%s if all requests go to the ordinary pool", minimum(p.Merged))
	if p.Saves(p.OnOOM) {
		line("", "%s with %s", minimum(p.OnOOM), whatif.PythonOnOOM)
	}
	if p.Saves(p.NoSplit) {
		line("", "%s with %s", minimum(p.NoSplit), whatif.PythonNoSplit)
	}
}

// WhatIfSheet returns the table of all settings tried.
func WhatIfSheet(r *whatif.Result) Sheet {
	points := make([]*whatif.Point, len(r.Runs))
	for i := range points {
		points[i] = &r.Runs[i]
	}
	return NewSheet("All settings tried", whatIfColumns(r), points)
}

func whatIfColumns(r *whatif.Result) []ColumnOf[*whatif.Point] {
	run := func(c ColumnOf[compare.Run]) ColumnOf[*whatif.Point] {
		return mapColumn(c, func(p *whatif.Point) compare.Run { return p.Run })
	}
	// A strategy that reserves all of an ample device shows neither its need nor its cost.
	needed := func(c ColumnOf[*whatif.Point]) ColumnOf[*whatif.Point] {
		cell := c.Cell
		c.Cell = func(p *whatif.Point) Cell {
			if !p.Completed() || p.Setup(p.Device).Preallocates && p.Device != r.Card &&
				(p.MinCapacity == nil || *p.MinCapacity != p.Device) {
				return missingCell()
			}
			return cell(p)
		}
		return c
	}
	return []ColumnOf[*whatif.Point]{
		Texts("setting", "the setting, or the strategy and its differences from the preset", func(p *whatif.Point) string {
			return p.Label
		}),
		{Column: runMinCapacity.Column, Cell: minimumCell},
		run(runSafeFrom),
		figures("on the card", "outcome of the trace on the card", onCard),
		needed(run(runPeakReserved)),
		needed(run(runWaste)),
		needed(figures(runDeviceCalls.Name, runDeviceCalls.Meaning,
			func(p *whatif.Point) Cell { return number(units.Count(p.DeviceCalls), float64(p.DeviceCalls)) })),
		needed(run(runDeviceTime)),
		run(runNsPerOp),
		Texts("notes", "", func(p *whatif.Point) string { return whatIfNotes(r, p) }),
	}
}

// whatIfTable writes the table of all settings tried, and notes of the given width.
func whatIfTable(w io.Writer, b *strings.Builder, r *whatif.Result, width int) {
	sheet := WhatIfSheet(r)
	for _, cells := range sheet.Rows {
		cells[0].Text = fold(cells[0].Text, labelWidth)
	}
	fmt.Fprintf(b, "%s\n", sheet.Terminal(w))
	for i := range r.Runs {
		if p := &r.Runs[i]; len(p.Same) > 0 {
			wrap(b, width, "  ", "On this trace "+p.Label+" makes the same decisions as "+strings.Join(p.Same, "; ")+".")
		}
	}
	rejectedText(b, r, width)
	if r.Points == 1 {
		fmt.Fprintf(b, "1 setting; %s events replayed", units.Count(r.Replayed))
	} else {
		fmt.Fprintf(b, "%d settings, %d of them different on this trace; %s events replayed", r.Points, len(r.Runs),
			units.Count(r.Replayed))
	}
	if r.Budget != 0 {
		fmt.Fprintf(b, " of at most %s", units.Count(r.Budget))
	}
	b.WriteString(".\n")
}

// rejectedText names the settings with which the trace cannot be replayed, for each reason.
func rejectedText(b *strings.Builder, r *whatif.Result, width int) {
	var reasons []string
	labels := map[string][]string{}
	for i := range r.Runs {
		if p := &r.Runs[i]; p.Rejects != "" {
			if labels[p.Rejects] == nil {
				reasons = append(reasons, p.Rejects)
			}
			labels[p.Rejects] = append(labels[p.Rejects], p.Label)
		}
	}
	for _, why := range reasons {
		wrap(b, width, "  ", "Left out: "+strings.Join(labels[why], "; ")+". The trace cannot be replayed with it: "+why+".")
	}
}

// fold breaks a label at its commas into lines of at most width columns, if possible.
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

// minimumCell returns the minimum capacity of a point, or the interval of it.
func minimumCell(p *whatif.Point) Cell {
	interval := func(sign string, n device.Size) Cell { return number(sign+units.Bytes(n), float64(n)) }
	switch {
	case p.MinCapacity != nil:
		return bytesCell(*p.MinCapacity)
	case p.CompletesAt != nil:
		return interval("≤ ", *p.CompletesAt)
	case p.FailsAt != nil:
		return interval("> ", *p.FailsAt)
	case p.Completed():
		return Cell{Text: "not searched", Number: true}
	}
	return missingCell()
}

// decisive matches the words of an answer that decide whether the run completes.
var decisive = regexp.MustCompile(`^(Yes:|None:|No setting)|\bcompletes?\b`)

// paintAnswer colours the decisive words of an answer.
func paintAnswer(style Style, a *whatif.Answer, text string) string {
	at := decisive.FindStringIndex(text)
	if at == nil || a.Verdict == whatif.NoCard || a.Verdict == whatif.CannotTell {
		return text
	}
	tone := Good
	if words := text[at[0]:at[1]]; words == "None:" || words == "No setting" {
		tone = Bad
	}
	return text[:at[0]] + style.Paint(tone, text[at[0]:at[1]]) + text[at[1]:]
}

func onCard(p *whatif.Point) Cell { return carriedCell(p.Carried) }

// carriedCell returns whether a trace completes on the card; nil: the card is unknown.
func carriedCell(carried *bool) Cell {
	switch {
	case carried == nil:
		return Cell{Text: none}
	case *carried:
		return Cell{Text: "completes", Tone: Good}
	}
	return Cell{Text: "fails", Tone: Bad}
}

// whatIfNotes returns the notes of a row.
func whatIfNotes(r *whatif.Result, p *whatif.Point) string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch failure := Failure(&p.Run); {
	case failure != "":
		add("%s", failure)
	case p.Fails():
		add("FAILED, measured on %s instead", units.Bytes(p.Device))
	}
	if p.Recorded && r.Recorded.Presumed {
		add("the default")
	} else if p.Recorded {
		add("as recorded")
	}
	if p.LeastShare {
		add("the least share that completes")
	}
	if p.Permit != "" {
		add("%s", r.Permit.Note(p))
	}
	if p.Baseline {
		add("baseline: every block from the device")
	}
	if p.FailsAbove != nil {
		add("%s", failsAgain(&p.Run))
	}
	if p.MinCapacity != nil && p.Completed() && p.Device != *p.MinCapacity && p.Device != r.Card {
		add("measured on %s", units.Bytes(p.Device))
	}
	if p.MinCapacity == nil && p.CompletesAt != nil && p.FailsAt != nil {
		add("> %s", units.Bytes(*p.FailsAt))
	}
	return strings.Join(all, ", ")
}

// explainedText explains the failed request, and lists its outcome with other settings.
func explainedText(w io.Writer, r *whatif.Result, width int) error {
	x := r.Explained
	if x == nil {
		return nil
	}
	why, where := x.Recorded, "in the recording"
	if why == nil && x.Replayed != nil {
		why, where = x.Replayed.Report, "in the replay of "+r.Recorded.Settings()
	}
	if why != nil {
		if _, err := fmt.Fprintf(w, "The %s, at event %d, %s:\n\n", postmortem.WhichOf(x.Which, x.Of), x.Event,
			where); err != nil {
			return err
		}
		if err := Postmortem(w, why); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, atFailure(r, width))
	return err
}

// atFailure lists the outcomes of the request by setting.
func atFailure(r *whatif.Result, width int) string {
	var groups []string
	labels := map[string][]string{}
	for i := range r.Runs {
		p := &r.Runs[i]
		if p.AtFailure == nil {
			continue
		}
		g := momentText(p.AtFailure)
		if labels[g] == nil {
			groups = append(groups, g)
		}
		labels[g] = append(labels[g], p.Label)
	}
	if len(groups) == 0 {
		return ""
	}
	slices.Sort(groups) // granted before refused
	var b strings.Builder
	fmt.Fprintf(&b, "\nWith other settings that request (event %d) would have been:\n", r.Explained.Event)
	for _, g := range groups {
		wrap(&b, width, "- ", g+": "+strings.Join(labels[g], "; "))
	}
	b.WriteString("\n")
	return b.String()
}

func momentText(m *whatif.Moment) string {
	text := string(m.Outcome)
	switch {
	case m.Cause != "":
		text += ", " + string(m.Cause)
	case m.Before > 0:
	case m.Outcome == postmortem.Granted && m.Took > 0:
		text += ", with " + units.Bytes(m.Took) + " more from the device"
	case m.Outcome == postmortem.Granted:
		text += ", from reserved memory"
	}
	if m.Before > 0 {
		text += ", after others were refused"
	}
	return text
}
