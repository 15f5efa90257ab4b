package report

import (
	"io"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Tone is a meaning shown by colour in terminals.
type Tone int

// The tones.
const (
	Plain Tone = iota // no colour
	Good              // success, or the winner
	Bad               // failure
)

// Style applies colours. The zero value does not, for files, pipes and plain terminals.
type Style struct{ colored bool }

// StyleOf returns the style of text written to w: coloured if w, or a writer it wraps, is a
// [Fitter] with colours.
func StyleOf(w io.Writer) Style {
	f, ok := w.(interface{ hasColors() bool })
	return Style{ok && f.hasColors()}
}

// Paint returns text in the colour of a tone.
func (s Style) Paint(t Tone, words string) string {
	if !s.colored || t == Plain || words == "" {
		return words
	}
	c := text.FgGreen
	if t == Bad {
		c = text.FgRed
	}
	return c.EscapeSeq() + words + text.EscapeReset
}

// Over returns a writer to w with the width and colours of out, to buffer output for out.
func Over(out, w io.Writer) io.Writer {
	f, ok := out.(window)
	if !ok {
		return w
	}
	return buffered{w, f}
}

// window is a writer to a terminal.
type window interface {
	columns() int
	hasColors() bool
}

// buffered is a buffer in front of a window.
type buffered struct {
	io.Writer
	window
}
