package corpus

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/units"
)

// Finding is a defect of a trace, or a property that its users should know.
type Finding struct {
	Severity string // [SeverityError], [SeverityWarning] or [SeverityNote]
	Check    string // read, balance, ghost, overlap, time or marks
	Place    string // "file:line", or the file
	Text     string // description with the number of occurrences
}

// The severities. A note is no defect.
const (
	SeverityError   = "error"   // the trace contradicts itself or is broken
	SeverityWarning = "warning" // probably not what its author intended
	SeverityNote    = "note"
)

// String returns the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s: %s", f.Place, f.Severity, f.Check, f.Text)
}

// Lint collects the findings about one trace. Its methods Warn and Doubt are the options of a
// reader of the same names; the events are checked by Walk.
type Lint struct {
	Name     string    // file, for places
	Findings []Finding // in the order in which they were found
}

// add adds a finding whose place may be in the error.
func (l *Lint) add(severity, check string, err error) {
	f := Finding{severity, check, l.Name, err.Error()}
	if at, ok := errors.AsType[*trace.Error](err); ok {
		f.Text = at.Err.Error()
		if f.Place = at.File; at.Line > 0 {
			f.Place = fmt.Sprintf("%s:%d", at.File, at.Line)
		}
	}
	l.Findings = append(l.Findings, f)
}

// Warn adds a defect that does not prevent reading.
func (l *Lint) Warn(err error) { l.add(SeverityWarning, "read", err) }

// Doubt adds an inconsistency that the reader bridged.
func (l *Lint) Doubt(check string, err error) { l.add(SeverityError, check, err) }

// Broken adds the error of a reader about a line of the file. It returns any other error.
func (l *Lint) Broken(err error) error {
	at, ok := errors.AsType[*trace.Error](err)
	if !ok || at.Line == 0 {
		return err
	}
	l.add(SeverityError, "read", err)
	return nil
}

// Failed reports whether a finding is more than a note.
func (l *Lint) Failed() bool {
	return slices.ContainsFunc(l.Findings, func(f Finding) bool { return f.Severity != SeverityNote })
}

// Walk checks the events of a trace. marks are the texts of the marks at which its recorded
// settings change, and place the line of the header that has them.
func (l *Lint) Walk(t trace.Source, marks []string, place string) error {
	w := walker{Lint: l, t: t, head: t.Head(), births: map[uint32]birth{}, open: map[string]*opened{}}
	if err := t.Batches(w.batch); err != nil {
		return err
	}
	w.finish()
	if err := w.marks.Check(marks, "the trace"); err != nil {
		l.Findings = append(l.Findings, Finding{SeverityWarning, "marks", cmp.Or(place, l.Name), err.Error()})
	}
	return nil
}

// walker checks the events of a trace.
type walker struct {
	*Lint
	t      trace.Source
	head   trace.Head
	at     int              // number of the event
	births map[uint32]birth // live blocks, by slot
	marks  trace.Marks
	open   map[string]*opened // parts of the program, by the text of their marks

	untimed  first // allocations and frees without a time
	timed    bool  // some allocation or free has one
	unopened first // ends of parts that are not open
	hinted   first // requests with a lifetime that ends at a mark
}

// birth is the event of a live block and its size.
type birth struct {
	event int
	size  device.Size
}

// opened counts the marks of a text, and the marks of its end.
type opened struct {
	begins, ends int
	last         int // event of the last begin
}

// first counts events and keeps the first.
type first struct{ count, event int }

func (f *first) add(event int) {
	if f.count++; f.count == 1 {
		f.event = event
	}
}

func (w *walker) batch(events []trace.Event) error {
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case trace.Alloc, trace.LiveAtStart:
			w.births[e.Slot] = birth{w.at, e.Size}
			if e.Life == alloc.LifeMark || e.Life == alloc.LifeStep {
				w.hinted.add(w.at)
			}
		case trace.Free:
			delete(w.births, e.Slot)
		case trace.Mark:
			w.mark(w.t.TagOf(e))
		}
		if e.Kind == trace.Alloc || e.Kind == trace.Free {
			if e.Time == trace.NoTime {
				w.untimed.add(w.at)
			} else {
				w.timed = true
			}
		}
		w.at++
	}
	return nil
}

// mark processes a mark: the end of a part if it ends like one, otherwise its begin.
func (w *walker) mark(text string) {
	w.marks.Add(text, w.at)
	part, ends := strings.CutSuffix(text, trace.EndSuffix)
	o := w.open[part]
	if o == nil {
		o = new(opened)
		w.open[part] = o
	}
	switch {
	case !ends:
		o.begins++
		o.last = w.at
	case o.ends == o.begins:
		w.unopened.add(w.at)
	default:
		o.ends++
	}
}

// finding adds a finding about events, if there are any.
func (w *walker) finding(severity, check string, f first, format string, args ...any) {
	if f.count > 0 {
		w.Findings = append(w.Findings, Finding{severity, check, w.place(f.event), fmt.Sprintf(format, args...)})
	}
}

// place returns the place of an event: a line, or the file and the number of the event.
func (w *walker) place(event int) string {
	place := w.head.Place(event)
	if strings.HasPrefix(place, "event ") {
		return w.Name + ": " + place
	}
	return place
}

// finish adds the findings that need the whole trace.
func (w *walker) finish() {
	var kept first
	var bytes device.Size
	for _, b := range w.births {
		if kept.count++; kept.count == 1 || b.event < kept.event {
			kept.event = b.event
		}
		bytes += b.size
	}
	w.finding(SeverityNote, "balance", kept, "%s of %s never freed; the first is allocated here",
		units.Several(kept.count, "block"), units.Bytes(bytes))
	if w.timed {
		w.finding(SeverityWarning, "time", w.untimed, "%d allocations and frees have no time, others do; the first is here",
			w.untimed.count)
	}
	w.finding(SeverityWarning, "marks", w.unopened, "%s of a part that is not open; the first is here",
		units.Several(w.unopened.count, "end"))
	for _, part := range slices.Sorted(maps.Keys(w.open)) {
		if o := w.open[part]; o.ends > 0 && o.ends < o.begins {
			w.finding(SeverityWarning, "marks", first{1, o.last}, "%q begins %d times and ends %d times; the last begins here",
				part, o.begins, o.ends)
		}
	}
	if len(w.open) == 0 {
		w.finding(SeverityWarning, "marks", w.hinted, "%d requests expect a free at a mark, and the trace has none; "+
			"the first is here", w.hinted.count)
	}
	if reason, ok := w.head.Header.Get(torch.KeyWrapped); ok {
		text := "the history has lost its oldest entries: " + reason
		w.Findings = append(w.Findings, Finding{SeverityNote, "balance", w.Name, text})
	}
}
