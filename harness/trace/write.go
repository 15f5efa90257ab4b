package trace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Write writes a trace in the native text form. [Read] returns the same trace, except Header.Format
// and Header.Hash, if a [Builder] would accept its events and Trace.Tags holds each text once, in
// the order of first use.
//
// It fails if w does, and for anything that the form cannot represent: a header key with other
// characters than letters, digits and _ . -, an unknown kind of event, or a text that takes a line
// of more than 16 MiB. Memory does not grow with the trace.
func Write(w io.Writer, t Source) error {
	out := bufio.NewWriter(w)
	line, err := appendHeader(nil, t.Head().Header)
	if err != nil {
		return err
	}
	out.Write(line) // Flush returns the first error
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

func appendHeader(b []byte, h Header) ([]byte, error) {
	b = fmt.Appendf(b, "# %s %d\n", nativeMagic, version)
	pairs := h.Meta
	if _, ok := h.Get("name"); h.Name != "" || ok { // the first pair "name" is read as the trace's name
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

// isPlainValue reports whether a header value can be written without quotes.
func isPlainValue(s string) bool {
	if s == "" {
		return true
	}
	return s[0] != '"' && s[0] != ' ' && s[len(s)-1] != ' ' && isPrintable(s)
}

// isPrintable reports whether s is text that an editor shows unchanged.
func isPrintable(s string) bool {
	for i, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return false // an invalid byte, not U+FFFD itself
			}
		}
	}
	return true
}

// isBare reports whether a tag can be written without quotes.
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

// appendEvent appends the line of an event without its line ending: the word, the positional
// fields, and the keys. Optional fields with default values are omitted.
func appendEvent(b []byte, e *Event, tag string) ([]byte, error) {
	switch {
	case e.Kind >= numKinds:
		return nil, fmt.Errorf("unknown kind of event %d", e.Kind)
	case e.Kind == Print && e.Arg >= uint64(len(printNames)):
		return nil, fmt.Errorf("print of unknown number %d", e.Arg)
	}
	word := nativeWords[e.Kind]
	v := native[word]
	b = append(b, word...)
	for i := range v.args {
		if f := &v.args[i]; i < v.least || f.get(e, tag) != f.get(&v.event, "") {
			b = f.append(append(b, ' '), e, tag)
		}
	}
	for i := range v.keys {
		if f := &v.keys[i]; f.get(e, tag) != f.get(&v.event, "") {
			b = f.append(append(append(append(b, ' '), f.name...), '='), e, tag)
		}
	}
	return b, nil
}

func (f *field) append(b []byte, e *Event, tag string) []byte {
	if f.show != nil {
		return f.show(b, e, tag)
	}
	return strconv.AppendUint(b, f.get(e, tag), 10)
}

func showText(b []byte, _ *Event, tag string) []byte { return appendText(b, tag) }

func showBad(b []byte, e *Event, _ string) []byte {
	switch {
	case e.Slot != NoSlot:
		return strconv.AppendUint(b, e.ID, 10)
	case e.Arg == 0:
		return append(b, "null"...)
	}
	return appendHex(b, e.Arg)
}

func appendHex(b []byte, n uint64) []byte { return strconv.AppendUint(append(b, "0x"...), n, 16) }
