package cli

import (
	"fmt"
	"io"
	"math"
	"os"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/vramyard/vramyard/harness/show/report"
)

// narrow makes characters such as │ and × one column wide in every locale: few terminals show
// them as two, and the output must not depend on the locale.
func narrow() { text.OverrideRuneWidthEastAsianWidth(false) }

// window returns a writer that fits tables to the window of w if w is a terminal, and a function
// that writes the rest at the end. Files, pipes and terminals of unknown size get complete tables;
// any terminal gets colors. A write erases the progress line.
func window(w io.Writer, p *progress) (out io.Writer, end func() error) {
	f, ok := w.(*os.File)
	if !ok {
		return w, func() error { return nil }
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return w, func() error { return nil }
	}
	if columns <= 0 {
		columns = math.MaxInt32 // a terminal of unknown size
	}
	raw := cleared{f, p}
	fit := report.Fit(raw, columns)
	if os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		fit.Colors()
	}
	return screen{fit, raw}, fit.Flush
}

// screen is standard output that fits tables and sentences to a window.
type screen struct {
	*report.Fitter
	raw io.Writer
}

// document returns standard output without the fitting of tables, for a document that programs
// read.
func document(stdout io.Writer) io.Writer {
	if s, ok := stdout.(screen); ok {
		return s.raw
	}
	return stdout
}

// tell writes a line to standard error, wrapped at words on a terminal. Errors are ignored.
func tell(stderr io.Writer, format string, args ...any) {
	w, end := window(stderr, nil)
	fmt.Fprintf(w, format+"\n", args...)
	_ = end() // the error cannot be reported anywhere
}

// lively returns w as a terminal on which progress can be drawn, or nil.
func lively(w io.Writer) *os.File {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return f
}
