package report

import (
	"fmt"
	"io"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/units"
)

// TraceDiff writes the differences of two traces named a and b.
func TraceDiff(w io.Writer, a, b string, d trace.Diff) error {
	if d.Equal {
		_, err := fmt.Fprintln(w, "equal")
		return err
	}
	out := &lines{w: w}
	out.printf("A %s\nB %s\n", units.Printable(a), units.Printable(b))
	for _, h := range d.Header {
		out.printf("header %s: A %s, B %s\n", units.Printable(h.Key), valueOf(h.A), valueOf(h.B))
	}
	if d.First != nil {
		out.printf("first difference at event %d:\n  A  %s\n  B  %s\n", d.First.Index, lineOf(d.First.A), lineOf(d.First.B))
	}
	out.printf("events: A %d, B %d\n", d.Events[0], d.Events[1])
	for _, k := range d.Kinds {
		out.printf("  %s: A %d, B %d\n", k.Kind, k.A, k.B)
	}
	for side, name := range [...]string{"A", "B"} {
		out.printf("allocations only in %s: %d, %s\n", name, d.Allocs.Count[side], units.Bytes(d.Allocs.Bytes[side]))
		for _, e := range d.Allocs.First[side] {
			out.printf("  event %d: id %d, %d bytes on stream %d\n", e.Index, e.ID, e.Size, e.Stream)
		}
		if more := d.Allocs.Count[side] - len(d.Allocs.First[side]); more > 0 {
			out.printf("  and %d more\n", more)
		}
	}
	if ids := d.Allocs.IDs; ids != nil {
		out.printf("ids: %d only in A, %d only in B, %d of another size or stream\n", ids.OnlyIn[0], ids.OnlyIn[1],
			ids.Changed)
	}
	l := d.Live
	out.printf("peak live: A %s at event %d, B %s at event %d\n", units.Bytes(l.Peak[0]), l.At[0],
		units.Bytes(l.Peak[1]), l.At[1])
	if l.FirstAt >= 0 {
		out.printf("live bytes: differ from allocation or free %d on, most at %d, by %s\n", l.FirstAt, l.MaxAt,
			units.Bytes(l.MaxDifference))
	} else {
		out.printf("live bytes: equal after every allocation and free\n")
	}
	return out.err
}

// lines writes until the first error.
type lines struct {
	w   io.Writer
	err error
}

// printf writes unless an earlier write failed.
func (l *lines) printf(format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.w, format, args...)
	}
}

// sheet writes a table with its title and notes.
func (l *lines) sheet(s *Sheet, rules ...int) {
	l.printf("%s\n%s\n", s.Title, s.Terminal(l.w, rules...))
	for _, n := range s.Notes {
		l.printf("%s\n", n)
	}
}

// line writes an indented line of a name and a text.
func (l *lines) line(name, format string, args ...any) {
	l.printf("  %-15s %s\n", name, fmt.Sprintf(format, args...))
}

func valueOf(v *string) string {
	if v == nil {
		return "missing"
	}
	return units.Printable(*v)
}

func lineOf(line string) string {
	if line == "" {
		return "end of the trace"
	}
	return units.Printable(line)
}
