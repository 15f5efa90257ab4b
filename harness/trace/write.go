package trace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/vramyard/vramyard/alloc"
)

// Write writes a trace in the native text form. [Read] gives the same trace back, up to
// Header.Format and Header.Hash, provided that a [Builder] would accept its events and
// that Trace.Tags holds each text once, in the order of first use.
//
// It fails if w does, and for what the form cannot hold: a key of the header that is not
// made of letters, digits and _ . -, an event of no known kind, or a text that takes a line
// of more than 16 MiB. It keeps nothing in memory that grows with the trace.
func Write(w io.Writer, t Source) error {
	out := bufio.NewWriter(w)
	line, err := appendHeader(nil, t.Head().Header)
	if err != nil {
		return err
	}
	out.Write(line) // a bufio.Writer keeps its first error for Flush
	err = walk(t, func(i int, e *Event) error {
		if line, err = appendEvent(line[:0], e, t.TagOf(e)); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if len(line) > maxLine {
			return fmt.Errorf("event %d: %w", i, errLong)
		}
		_, err := out.Write(append(line, '\n'))
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// appendHeader appends the first lines of a file.
func appendHeader(b []byte, h Header) ([]byte, error) {
	b = fmt.Appendf(b, "# %s %d\n", nativeMagic, version)
	pairs := h.Meta
	if _, ok := h.Get("name"); h.Name != "" || ok { // the first pair "name" is read as the name
		pairs = append([]Pair{{"name", h.Name}}, pairs...)
	}
	for _, p := range pairs {
		if !isKey(p.Key) {
			return nil, fmt.Errorf("header key %s: want letters, digits and _ . -", clip([]byte(p.Key)))
		}
		start := len(b)
		b = append(append(append(b, "# "...), p.Key...), '=')
		if isPlainValue(p.Value) {
			b = append(b, p.Value...)
		} else {
			b = strconv.AppendQuote(b, p.Value)
		}
		if len(b)-start > maxLine {
			return nil, fmt.Errorf("header key %s: %w", clip([]byte(p.Key)), errLong)
		}
		b = append(b, '\n')
	}
	return b, nil
}

// isPlainValue reports whether a header value reads back from an unquoted line.
func isPlainValue(s string) bool {
	if s == "" {
		return true
	}
	return s[0] != '"' && s[0] != ' ' && s[len(s)-1] != ' ' && isPrintable(s)
}

// isPrintable reports whether s is text that an editor shows as it is.
func isPrintable(s string) bool {
	for i, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return false // a broken byte, not the character that stands for one
			}
		}
	}
	return true
}

// isBare reports whether a tag reads back without quotes.
func isBare(s string) bool {
	for _, c := range []byte(s) {
		switch c {
		case ' ', '=', '"', '\'', '`', '\\', '#':
			return false
		}
	}
	return s != "" && isPrintable(s)
}

func appendText(b []byte, s string) []byte {
	if isBare(s) {
		return append(b, s...)
	}
	return strconv.AppendQuote(b, s)
}

// appendEvent appends the line of an event, without its end.
func appendEvent(b []byte, e *Event, tag string) ([]byte, error) {
	switch e.Kind {
	case Alloc:
		b = appendAlloc(append(b, "a "...), e, tag)
	case LiveAtStart:
		b = appendAlloc(append(b, "live "...), e, tag)
	case Refused:
		b = appendUint(append(b, "refused"...), uint64(e.Size))
		b = appendRequest(b, e, tag)
	case Free:
		b = appendUint(append(b, 'f'), e.ID)
	case Completed:
		b = appendUint(append(b, "done"...), e.ID)
	case Use:
		b = appendUint(appendUint(append(b, "use"...), e.ID), uint64(e.Stream))
	case Mark:
		b = appendText(append(b, "mark "...), tag)
	case BadFree:
		b = appendBadFree(append(b, "badfree "...), e)
	case PoolBegin:
		b = appendUint(append(b, "pool begin"...), e.Arg)
		if e.Stream != AllStreams {
			b = appendKey(b, "stream", uint64(e.Stream))
		}
	case Print:
		if e.Arg >= uint64(len(printNames)) {
			return nil, fmt.Errorf("print of unknown number %d", e.Arg)
		}
		b = append(append(b, "print "...), printNames[e.Arg]...)
	default:
		return appendOther(b, e)
	}
	return appendTime(b, e), nil
}

// appendOther is appendEvent for the kinds that have nothing or one number.
func appendOther(b []byte, e *Event) ([]byte, error) {
	switch e.Kind {
	case Trim:
		b = append(b, "trim"...)
	case ClearStats:
		b = append(b, "clear"...)
	case Poll:
		b = append(b, "poll"...)
	case Frontier:
		b = appendUint(append(b, "frontier"...), e.Arg)
	case Drain:
		b = appendUint(append(b, "drain"...), uint64(e.Stream))
	case PoolEnd:
		b = appendUint(append(b, "pool end"...), e.Arg)
	case PoolRelease:
		b = appendUint(append(b, "pool release"...), e.Arg)
	case Fault:
		if b = append(b, "fault"...); e.Arg != 1 {
			b = appendUint(b, e.Arg)
		}
	default:
		return nil, fmt.Errorf("unknown kind of event %d", e.Kind)
	}
	return appendTime(b, e), nil
}

func appendAlloc(b []byte, e *Event, tag string) []byte {
	b = strconv.AppendUint(b, e.ID, 10)
	b = appendUint(b, uint64(e.Size))
	return appendRequest(b, e, tag)
}

// appendRequest appends the keys of a request, those that differ from their default.
func appendRequest(b []byte, e *Event, tag string) []byte {
	if e.Align != 0 {
		b = appendKey(b, "align", uint64(e.Align))
	}
	if e.Stream != 0 {
		b = appendKey(b, "stream", uint64(e.Stream))
	}
	if e.Hint != alloc.HintNone && int(e.Hint) < len(hintNames) {
		b = append(append(b, " hint="...), hintNames[e.Hint]...)
	}
	if e.Arg != 0 {
		b = appendKey(b, "before", e.Arg)
	}
	if tag != "" {
		b = appendText(append(b, " tag="...), tag)
	}
	if e.Site != 0 {
		b = appendSite(append(b, " site="...), e.Site)
	}
	if e.Thread != 0 {
		b = appendKey(b, "thread", uint64(e.Thread))
	}
	return b
}

func appendBadFree(b []byte, e *Event) []byte {
	switch {
	case e.Slot != NoSlot:
		b = strconv.AppendUint(b, e.ID, 10)
		if e.Size != 0 {
			b = strconv.AppendUint(append(b, " +"...), uint64(e.Size), 10)
		}
	case e.Arg == 0:
		b = append(b, "null"...)
	default:
		b = strconv.AppendUint(append(b, "0x"...), e.Arg, 16)
	}
	return b
}

func appendTime(b []byte, e *Event) []byte {
	if e.Time == NoTime {
		return b
	}
	return appendKey(b, "t", uint64(e.Time))
}

func appendSite(b []byte, site uint64) []byte {
	return strconv.AppendUint(append(b, "0x"...), site, 16)
}

func appendUint(b []byte, n uint64) []byte { return strconv.AppendUint(append(b, ' '), n, 10) }

func appendKey(b []byte, key string, n uint64) []byte {
	b = append(append(append(b, ' '), key...), '=')
	return strconv.AppendUint(b, n, 10)
}
