package report

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Fitter is a writer to a terminal that wraps long lines. Lines meant to be copied, which start
// with a command or a JSON object, are not wrapped. Tables fit by themselves: see [Sheet.Terminal].
type Fitter struct {
	w     io.Writer
	width int    // window width in columns
	color bool   // colours are enabled
	rest  []byte // incomplete last line
	err   error
}

// Fit returns a writer to a window of the given width. Flush writes an incomplete last line.
func Fit(w io.Writer, width int) *Fitter { return &Fitter{w: w, width: width} }

// Colors enables the colours of [Tone].
func (f *Fitter) Colors() { f.color = true }

func (f *Fitter) hasColors() bool { return f.color }

// Columns returns the line width for text written to w: the window's width, at most most.
func Columns(w io.Writer, most int) int {
	if f, ok := w.(interface{ columns() int }); ok {
		return min(f.columns(), most)
	}
	return most
}

func (f *Fitter) columns() int { return f.width }

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

// Flush writes an incomplete last line.
func (f *Fitter) Flush() error {
	if len(f.rest) > 0 {
		f.put(strings.TrimSuffix(f.sentence(string(f.rest)), "\n"))
	}
	f.rest = nil
	return f.err
}

// put writes text that fits.
func (f *Fitter) put(s string) {
	if f.err == nil && s != "" {
		_, f.err = io.WriteString(f.w, s)
	}
}

// copied are the prefixes of lines for a shell or for Python, which must not be wrapped.
var copied = []string{"vramyard ", "export ", "torch.", "go run ", "http://", "{"}

// sentence wraps a line. Continuation lines are indented to the text after a label.
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

// label matches a label column at the start of a line.
var label = regexp.MustCompile(`^\S+( \S+)*  +`)

// wrapped wraps a line between words, or inside words longer than a line. first and indent are the
// indents of the first and the following lines; indent is no shorter.
func wrapped(first, s string, width int, indent string) string {
	lines := strings.Split(text.WrapSoft(s, max(width-len(indent), 8)), "\n")
	for i := range lines {
		lines[i] = indent + strings.TrimSpace(lines[i])
	}
	lines[0] = first + strings.TrimPrefix(lines[0], indent)
	return strings.Join(lines, "\n") + "\n"
}
