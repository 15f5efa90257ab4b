package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc"
)

// WriteCSV writes a trace as CSV, the form of the recorded traces.
//
// That form holds allocations and frees with whole microseconds, and marks without time.
// Anything else in the trace is an error that names the event; nothing is written then.
// Events without time get that of the event before.
func WriteCSV(w io.Writer, t *Trace) error {
	if err := checkCSV(t); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	line := []byte("# format=" + csvFormat + "\n")
	if t.Header.Name != "" {
		line = append(append(append(line, "# name="...), t.Header.Name...), '\n')
	}
	for _, p := range t.Header.Meta {
		line = append(append(append(append(append(line, "# "...), p.Key...), '='), p.Value...), '\n')
	}
	out.Write(line) // a bufio.Writer keeps its first error for Flush
	seq := 0
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind == Mark {
			fmt.Fprintf(out, "# mark,%d,%s\n", seq, t.TagOf(e))
		} else {
			seq++
		}
	}
	out.WriteString(csvHeader + "\n")
	writeRows(out, t)
	return out.Flush()
}

// writeRows writes the allocations and frees.
func writeRows(out *bufio.Writer, t *Trace) {
	births := make([]csvBirth, t.Slots)
	var seq, time uint64
	var line []byte
	for i := range t.Events {
		e := &t.Events[i]
		if e.Kind == Mark {
			continue
		}
		if e.Time != NoTime {
			time = uint64(e.Time) / 1000
		}
		op := ",a,"
		if e.Kind == Alloc {
			births[e.Slot] = csvBirth{uint64(e.Size), uint64(e.Stream)}
		} else {
			op = ",f,"
		}
		b := births[e.Slot]
		line = strconv.AppendUint(line[:0], seq, 10)
		line = append(line, op...)
		for _, n := range [...]uint64{e.ID, b.bytes, b.stream, time} {
			line = append(strconv.AppendUint(line, n, 10), ',')
		}
		line = append(line, t.TagOf(e)...)
		out.Write(append(line, '\n'))
		seq++
	}
}

// checkCSV returns what keeps a trace from being a CSV.
func checkCSV(t *Trace) error {
	if !isCSVText(t.Header.Name) {
		return fmt.Errorf("csv: name %s: it must be printable and begin and end without a blank", clip([]byte(t.Header.Name)))
	}
	for _, p := range t.Header.Meta {
		if !isKey(p.Key) || p.Key == "name" || p.Key == "format" || !isCSVText(p.Value) {
			return fmt.Errorf("csv: header pair %s=%s cannot be held", clip([]byte(p.Key)), clip([]byte(p.Value)))
		}
	}
	for i := range t.Events {
		if err := checkCSVEvent(t, &t.Events[i]); err != nil {
			return fmt.Errorf("csv: event %d: %w", i, err)
		}
	}
	return nil
}

func checkCSVEvent(t *Trace, e *Event) error {
	text := t.TagOf(e)
	switch e.Kind {
	case Mark:
		if e.Time != NoTime {
			return errors.New("a mark cannot have a time")
		}
	case Free:
	case Alloc:
		if e.Align != 0 || e.Hint != alloc.HintNone || e.Arg != 0 {
			return errors.New("an allocation has only size, stream and tag: no alignment, hint or bound")
		}
		if e.Size == 0 {
			return errors.New("an allocation of 0 bytes cannot be held")
		}
		if strings.ContainsRune(text, ',') {
			return fmt.Errorf("tag %s: a comma cannot be held", clip([]byte(text)))
		}
	default:
		return fmt.Errorf("%s events cannot be held", e.Kind)
	}
	if !isCSVText(text) {
		return fmt.Errorf("text %s: it must be printable and begin and end without a blank", clip([]byte(text)))
	}
	if e.Time != NoTime && e.Time%1000 != 0 {
		return fmt.Errorf("time %d ns is no whole number of microseconds", e.Time)
	}
	return nil
}

// isCSVText reports whether a text reads back as it is. Half a line leaves room for what
// else stands there.
func isCSVText(s string) bool {
	return len(s) <= maxLine/2 && isPrintable(s) && !strings.HasPrefix(s, " ") && !strings.HasSuffix(s, " ")
}
