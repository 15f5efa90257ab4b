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
// The form holds allocations and frees with whole microseconds, and marks without time. Any other
// event is an error that names it, and nothing is written. Events without time get the time of the
// previous event. The columns site and thread are present if any allocation has one of them, the
// column life if any has a lifetime. WriteCSV walks the trace three times; memory grows with the
// live blocks.
func WriteCSV(w io.Writer, t Source) error {
	origins, err := checkCSV(t)
	if err != nil {
		return err
	}
	h := t.Head().Header
	out := bufio.NewWriter(w)
	line := []byte("# format=" + csvFormat + "\n")
	if h.Name != "" {
		line = append(append(append(line, "# name="...), h.Name...), '\n')
	}
	for _, p := range h.Meta {
		line = append(append(append(append(append(line, "# "...), p.Key...), '='), p.Value...), '\n')
	}
	out.Write(line) // Flush returns the first error
	seq := 0
	err = walk(t, func(_ int, e *Event) error {
		if e.Kind == Mark {
			fmt.Fprintf(out, "# mark,%d,%s\n", seq, t.TagOf(e))
		} else {
			seq++
		}
		return nil
	})
	if err != nil {
		return err
	}
	out.WriteString(CSVHeader + csvOrigins[origins] + "\n")
	if err := writeRows(out, t, origins); err != nil {
		return err
	}
	return out.Flush()
}

// writeRows writes the allocations and frees.
func writeRows(out *bufio.Writer, t Source, origins int) error {
	var births []csvBirth // by slot
	var seq, time uint64
	var line []byte
	return walk(t, func(_ int, e *Event) error {
		if e.Kind == Mark {
			return nil
		}
		if e.Time != NoTime {
			time = uint64(e.Time) / 1000
		}
		op := ",a,"
		if e.Kind == Alloc {
			births = grown(births, e.Slot)
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
		if origins >= originsSites {
			if line = append(line, ','); e.Site != 0 {
				line = appendHex(line, e.Site)
			}
			if line = append(line, ','); e.Thread != 0 {
				line = strconv.AppendUint(line, uint64(e.Thread), 10)
			}
		}
		if origins == originsLives {
			if line = append(line, ','); e.Life != alloc.LifeUnknown {
				line = append(line, e.Life.String()...)
			}
		}
		seq++
		_, err := out.Write(append(line, '\n'))
		return err
	})
}

// grown returns a table that is long enough for slot.
func grown[T any](table []T, slot uint32) []T {
	if n := int(slot) + 1 - len(table); n > 0 {
		table = append(table, make([]T, n)...)
	}
	return table
}

// checkCSV returns the index in csvOrigins of the columns that a trace needs. It fails if CSV
// cannot represent the trace.
func checkCSV(t Source) (origins int, err error) {
	h := t.Head().Header
	if !isCSVText(h.Name) {
		return 0, fmt.Errorf("csv: name %s: it must be printable and begin and end without a blank", clip([]byte(h.Name)))
	}
	for _, p := range h.Meta {
		if !isKey(p.Key) || p.Key == "name" || p.Key == "format" || !isCSVText(p.Value) {
			return 0, fmt.Errorf("csv: header pair %s=%s cannot be held", clip([]byte(p.Key)), clip([]byte(p.Value)))
		}
	}
	err = walk(t, func(i int, e *Event) error {
		if err := checkCSVEvent(t, e); err != nil {
			return fmt.Errorf("csv: event %d: %w", i, err)
		}
		switch {
		case e.Life != alloc.LifeUnknown:
			origins = originsLives
		case e.Site != 0 || e.Thread != 0:
			origins = max(origins, originsSites)
		}
		return nil
	})
	return origins, err
}

func checkCSVEvent(t Source, e *Event) error {
	text := t.TagOf(e)
	switch e.Kind {
	case Mark:
		if e.Time != NoTime {
			return errors.New("a mark cannot have a time: want a text trace (.trace) or Parquet (.parquet), which keep it")
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

// isCSVText reports whether a text is the same after writing and reading. It may take half of the
// longest line; the rest is for the other columns.
func isCSVText(s string) bool {
	return len(s) <= maxLine/2 && isPrintable(s) && !strings.HasPrefix(s, " ") && !strings.HasSuffix(s, " ")
}
