package report

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Fitter is a writer for a terminal. Lines that are wider than the window are broken between words,
// but for those to be copied: they begin with a command or an object in JSON. Tables fit already:
// see [Sheet.Terminal].
type Fitter struct {
	w     io.Writer
	width int    // of the window, in columns
	color bool   // the window shows colours
	rest  []byte // of a line that has not ended
	err   error
}

// Fit returns a writer to a window of a width. Flush writes a last line that has not ended.
func Fit(w io.Writer, width int) *Fitter { return &Fitter{w: w, width: width} }

// Colors has text with a [Tone] come in colours.
func (f *Fitter) Colors() { f.color = true }

// hasColors reports whether text comes in colours.
func (f *Fitter) hasColors() bool { return f.color }

// Columns returns how wide lines of sentences may be that are written to w: as wide as the window,
// but no more than most.
func Columns(w io.Writer, most int) int {
	if f, ok := w.(interface{ columns() int }); ok {
		return min(f.columns(), most)
	}
	return most
}

// columns returns the width of the window.
func (f *Fitter) columns() int { return f.width }

// Write implements [io.Writer].
func (f *Fitter) Write(p []byte) (int, error) {
	f.rest = append(f.rest, p...)
	for {
		line, rest, ended := bytes.Cut(f.rest, []byte("\n"))
		if !ended {
			break
		}
		f.put(f.sentence(string(line)))
		f.rest = rest
	}
	return len(p), f.err
}

// Flush writes a line that did not end.
func (f *Fitter) Flush() error {
	if len(f.rest) > 0 {
		f.put(strings.TrimSuffix(f.sentence(string(f.rest)), "\n"))
	}
	f.rest = nil
	return f.err
}

// put writes what is known to fit.
func (f *Fitter) put(s string) {
	if f.err == nil && s != "" {
		_, f.err = io.WriteString(f.w, s)
	}
}

// copied are the beginnings of lines that are for a shell, which a line break would spoil.
var copied = []string{"vramyard ", "export ", "go run ", "http://", "{"}

// sentence returns a line that fits. What goes on below the first line stands under its words,
// behind a mark if there is one.
func (f *Fitter) sentence(l string) string {
	words := strings.TrimLeft(l, " ")
	if text.StringWidthWithoutEscSequences(l) <= f.width ||
		slices.ContainsFunc(copied, func(c string) bool { return strings.HasPrefix(words, c) }) {
		return l + "\n"
	}
	blank := l[:len(l)-len(words)]
	if len(blank) > f.width/2 {
		blank = ""
	}
	mark := ""
	if strings.HasPrefix(words, "- ") {
		mark, words = "- ", words[2:]
	}
	first := blank + mark
	if label := label.FindString(words); label != "" && text.StringWidthWithoutEscSequences(first+label) <= f.width/2 {
		first, words = first+label, words[len(label):]
	}
	return wrapped(first, words, f.width, strings.Repeat(" ", text.StringWidthWithoutEscSequences(first)))
}

// label is what stands in front of a line, in a column of its own.
var label = regexp.MustCompile(`^\S+( \S+)*  +`)

// wrapped breaks a line between words, or within one that is longer than a line. The first line
// begins with one indent, what follows with another, which is no shorter.
func wrapped(first, s string, width int, indent string) string {
	lines := strings.Split(text.WrapSoft(s, max(width-len(indent), 8)), "\n")
	for i := range lines {
		lines[i] = indent + strings.TrimSpace(lines[i])
	}
	lines[0] = first + strings.TrimPrefix(lines[0], indent)
	return strings.Join(lines, "\n") + "\n"
}
