package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/units"
)

// mostTags bounds the tags shown.
const mostTags = 12

// TraceInfo writes the description of a trace as a table of names and values.
func TraceInfo(w io.Writer, i *trace.Info) error {
	t := TextSheet([]Column{{}, {}}, infoRows(*i)...)
	for _, r := range t.Rows {
		r[1].Text = text.WrapSoft(r[1].Text, 80)
	}
	_, err := fmt.Fprintf(w, "%s (%s), sha256 %.12s\n%s\n\n", units.Printable(i.Name), i.Format, i.Hash, t.Terminal(w))
	return err
}

// TraceParts writes the parts of a file with several traces, and a command that describes one of
// them.
func TraceParts(w io.Writer, path string, several *trace.PartsError) error {
	var rows [][]any
	for _, p := range several.Parts {
		rows = append(rows, []any{units.Printable(p.Name), p.Events})
	}
	t := TextSheet([]Column{{Name: "part"}, {Name: "events", Number: true}}, rows...)
	_, err := fmt.Fprintf(w, "%s (%s): %d parts\n%s\n"+
		"choose one with --part, for example\n  vramyard trace info --part %s %s\n\n",
		units.Printable(several.Name), several.Format, len(several.Parts), t.Terminal(w), ShellWord(several.Parts[0].Name),
		ShellWord(path))
	return err
}

func infoRows(i trace.Info) [][]any {
	rows := [][]any{{"events", strings.TrimSuffix(fmt.Sprintf("%d: %s", i.Events, kinds(i.Kinds)), ": ")}}
	rows = append(rows, liveRows(i)...)
	rows = append(rows, [][]any{
		{"sizes", fmt.Sprintf("%d distinct, %s to %s, median %s", i.Sizes.Distinct, units.Bytes(i.Sizes.Min),
			units.Bytes(i.Sizes.Max), units.Bytes(i.Sizes.Median))},
		{"requested bytes in total", units.Bytes(i.Sizes.Total)},
	}...)
	rows = append(rows, lifeRows(i)...)
	for _, s := range i.Streams {
		rows = append(rows, []any{fmt.Sprintf("stream %d", s.Stream),
			fmt.Sprintf("%d allocations, %s", s.Allocs, units.Bytes(s.Bytes))})
	}
	if i.Timed {
		rows = append(rows, []any{"duration", time.Duration(i.Duration).String()})
	}
	for _, tag := range i.Tags[:min(len(i.Tags), mostTags)] {
		name := "untagged"
		if tag.Tag != "" {
			name = "tag " + placeCell(tag.Tag).Text
		}
		rows = append(rows, []any{name, fmt.Sprintf("%d allocations, %s", tag.Allocs, units.Bytes(tag.Bytes))})
	}
	if more := len(i.Tags) - mostTags; more > 0 {
		rows = append(rows, []any{"more tags", more})
	}
	for _, m := range i.Meta {
		key := "# " + clipped(units.Printable(m.Key), mostPlace)
		if m.Key == trace.AbsentKey {
			key = "not in the file"
		}
		rows = append(rows, []any{key, units.Printable(m.Value)})
	}
	return rows
}

// lifeRows describes lifetimes of allocations and the similarity of steps.
func lifeRows(i trace.Info) [][]any {
	var rows [][]any
	if l := i.Lives; l.Freed > 0 && i.History {
		text := fmt.Sprintf("%d freed: median %d events, 9 of 10 at most %d, longest %d", l.Freed, l.MedianEvents,
			l.P90Events, l.MaxEvents)
		if l.Timed > 0 {
			text += fmt.Sprintf("; median %v, 9 of 10 at most %v, longest %v",
				time.Duration(l.MedianTime), time.Duration(l.P90Time), time.Duration(l.MaxTime))
		}
		rows = append(rows, []any{"lifetimes", text})
		if l.Delayed > 0 {
			rows = append(rows, []any{"delayed frees", l.Delayed})
		}
	}
	rows = append(rows, []any{"steps", steps(i.Steps)})
	if i.Pools > 0 {
		rows = append(rows, []any{"private pools", i.Pools})
	}
	if r := i.Refusals; r != nil {
		rows = append(rows, []any{"refused when recorded", refusals(r, i.Refused)})
	}
	return rows
}

// refusals describes the refused requests.
func refusals(r *trace.RefusalInfo, largest device.Size) string {
	end := "the program went on"
	if r.Died {
		end = "it ended the program: no allocation follows"
	}
	if r.Count == 1 {
		return fmt.Sprintf("1 request: %s at event %d; %s. The lower bound and every replay include it",
			units.Bytes(r.Last), r.LastAt, end)
	}
	return fmt.Sprintf("%d requests, up to %s; the last is %s at event %d; %s. The lower bound and every replay "+
		"include them",
		r.Count, units.Bytes(largest), units.Bytes(r.Last), r.LastAt, end)
}

// steps describes the similarity of steps.
func steps(s trace.StepInfo) string {
	first := strconv.Quote(clipped(s.First, mostPlace))
	switch {
	case s.Count == 0:
		return "none: no marks of steps"
	case s.Compared == 0:
		return fmt.Sprintf("%d from %s on, nothing to compare", s.Count, first)
	}
	return fmt.Sprintf("%d from %s on, %d to %d allocations each; %s recur in the next step at the same index "+
		"with the same size; %d steps equal the one before",
		s.Count, first, s.MinAllocs, s.MaxAllocs, units.Percent(float64(s.Recurring)/float64(s.Compared)), s.Identical)
}

// liveRows describes the live blocks at the peak and at the end. A file without history has only
// one state.
func liveRows(i trace.Info) [][]any {
	end := fmt.Sprintf("%s, %s", units.Several(i.EndLive, "block"), units.Bytes(i.End))
	bound := fmt.Sprintf("%s at event %d", units.Bytes(i.Peak), i.PeakAt)
	switch {
	case i.PeakAt < 0:
		bound = "nothing is allocated"
	case !i.History:
		return [][]any{{"in use", end + ", when the file was written; it has no history"}}
	}
	return [][]any{{"lower bound", bound}, {"most live blocks", i.PeakLive}, {"live at the end", end}}
}

func kinds(counts []trace.KindCount) string {
	parts := make([]string, len(counts))
	for i, k := range counts {
		parts[i] = fmt.Sprintf("%d %s", k.Count, k.Kind)
	}
	return strings.Join(parts, ", ")
}
