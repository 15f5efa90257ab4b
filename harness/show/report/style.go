package report

import (
	"io"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Tone is the meaning of a piece of text, which terminals show in colour.
type Tone int

// The tones.
const (
	Plain Tone = iota // no meaning of its own
	Good              // a run is carried, the winner
	Bad               // a run fails
)

// Style paints text. The zero value leaves it as it is, for files, pipes and terminals without
// colours.
type Style struct{ colored bool }

// StyleOf returns the style of text written to w: in colours if w, or a writer below it, is a
// [Fitter] with colours.
func StyleOf(w io.Writer) Style {
	f, ok := w.(interface{ hasColors() bool })
	return Style{ok && f.hasColors()}
}

// Paint returns text in the colour of its tone.
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

// Over returns a writer to w with the width and the colours of out, for a buffer before it.
func Over(out, w io.Writer) io.Writer {
	f, ok := out.(window)
	if !ok {
		return w
	}
	return buffered{w, f}
}

// window is a writer to the window of a terminal.
type window interface {
	columns() int
	hasColors() bool
}

// buffered is a buffer before a window.
type buffered struct {
	io.Writer
	window
}
