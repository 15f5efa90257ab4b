package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/vramyard/vramyard/harness/report"
)

// window returns a writer whose tables fit the window that w is, and what writes the rest at the end. What
// is no terminal, or one of unknown size, gets all of every table.
//
// What is written ends the stage that a progress tells of.
func window(w io.Writer, p *progress) (out io.Writer, end func() error) {
	f, ok := w.(*os.File)
	if !ok {
		return w, func() error { return nil }
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return w, func() error { return nil }
	}
	fit := report.Fit(cleared{f, p}, columns)
	return fit, fit.Flush
}

// lively returns the terminal that progress can be drawn on, nil if w is none, or one that understands
// no more than lines.
func lively(w io.Writer) *os.File {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return f
}
