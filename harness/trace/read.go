package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/internal/budget"
)

// DefaultMaxEvents is the maximum number of events of a trace that is generated in memory: by a
// workload, or as a part of another trace. At 72 bytes an event, 2.25 GiB.
const DefaultMaxEvents = 1 << 25

// Options control how a trace is read.
type Options struct {
	// Dialect is one of [Dialects], or "" for the native text form or CSV, recognized by content.
	Dialect string
	// Memory is the budget of the trace, including its replay; nil means [budget.Default] bytes.
	Memory *budget.Budget
	// Warn, if not nil, receives an [*Error] for a defect that does not prevent reading: a last
	// line without a line ending, which may be truncated.
	Warn func(error)
	// Lines records the line of each event, for [Head.Place].
	Lines bool
}

func (o Options) memory() *budget.Budget {
	if o.Memory != nil {
		return o.Memory
	}
	return budget.New(0)
}

// Dialects returns the valid values of Options.Dialect, except "".
func Dialects() []string { return []string{"bfc", "torch", "xdl"} }

// lines returns the lines of the selected dialect.
func (o Options) lines() (map[string]*verb, error) {
	verbs, ok := dialects[o.Dialect]
	if !ok {
		return nil, fmt.Errorf("unknown dialect %q: want one of %s, or none for text and CSV",
			o.Dialect, strings.Join(Dialects(), ", "))
	}
	return verbs, nil
}

// Open reads the trace in a file; "-" is standard input. See [Read].
func Open(path string, o Options) (*Trace, error) {
	if _, err := o.lines(); err != nil {
		return nil, err
	}
	if path == "-" {
		return Read(os.Stdin, "stdin", o)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, FileError(path, err)
	}
	defer f.Close() // read only: no error matters
	return Read(f, path, o)
}

// Read reads a trace. name is the file's name or path, for messages and for the header. gzip, xz
// and zstd are recognized by their first bytes.
//
// Errors are [*Error]: one line "name:line: cause".
func Read(r io.Reader, name string, o Options) (*Trace, error) {
	verbs, err := o.lines()
	if err != nil {
		return nil, err
	}
	lines, err := NewLines(r, name, nil)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	p := &parser{
		src:   lines,
		b:     NewBuilderWithin(o.memory(), Header{Name: BaseName(name), Format: o.Dialect}),
		verbs: verbs,
		loose: o.Dialect != "",
		lines: o.Lines,
	}
	if err := p.run(); err != nil {
		return nil, err
	}
	if err := lines.Truncated(); err != nil && o.Warn != nil {
		o.Warn(err)
	}
	p.b.trace.Header.Hash = lines.Hash()
	return p.b.Trace(), nil
}

// FileError returns an error about a file as a whole. It drops the path that system errors repeat.
func FileError(name string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return &Error{File: name, Err: err}
}

// BaseName returns a file's name without directory and known endings: the default name of its
// trace.
func BaseName(path string) string {
	name := filepath.Base(path)
	if path == "" {
		return ""
	}
	for {
		ext := filepath.Ext(name)
		switch ext {
		case ".gz", ".xz", ".zst", ".csv", ".trace", ".txt", ".json", ".pickle", ".pb", ".parquet":
		default:
			return name
		}
		if ext == name {
			return name
		}
		name = strings.TrimSuffix(name, ext)
	}
}

// FormOf returns the form of a file by its beginning: "text" for the native text form, "csv" for
// this project's CSV, or "". A file of only comments is text.
func FormOf(head []byte) string {
	head = bytes.TrimPrefix(head, bom)
	for len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte("\n"))
		line = bytes.Trim(line, " \t\r")
		if rest, ok := bytes.CutPrefix(line, []byte("#")); ok {
			if bytes.HasPrefix(bytes.TrimLeft(rest, " \t"), []byte("format="+csvFamily)) {
				return "csv"
			}
			continue
		}
		if bytes.HasPrefix(line, []byte("seq,")) {
			return "csv"
		}
		if word, _ := token(line); word != nil {
			if native[string(word)] == nil && string(word) != poolWord {
				return ""
			}
			return "text"
		}
	}
	return "text"
}

// parser reads the lines of one trace.
type parser struct {
	src     *Lines
	b       *Builder
	verbs   map[string]*verb
	loose   bool  // a dialect: events of unknown ids are skipped
	magic   bool  // the file begins with the line of the native form
	csv     bool  // the header announces a CSV
	named   bool  // the header gave a name
	lines   bool  // the line of each event is recorded
	started bool  // the first line that is not a comment was read
	ev      Event // the event of the current line
	pending []pendingMark
	markErr error // first error in a mark
}

// pendingMark is a mark of a CSV whose event has not been read yet.
type pendingMark struct {
	seq  uint64
	text string
}

// run reads the whole file. The header is the same in all forms. The first line after it
// distinguishes CSV from text.
func (p *parser) run() error {
	for {
		line, err := p.src.Next()
		if err != nil {
			return err
		}
		if line == nil {
			break
		}
		line = bytes.Trim(line, " \t")
		switch {
		case len(line) == 0:
		case line[0] == '#':
			err = p.comment(line[1:])
		case !p.started && !p.loose && !p.magic && (p.csv || bytes.HasPrefix(line, []byte("seq,"))):
			return p.readCSV(line)
		default:
			p.started = true
			err = p.event(line)
		}
		if err != nil {
			return p.src.errorf(err)
		}
	}
	if p.csv && !p.started {
		return p.src.errorf(errHeader)
	}
	if p.b.trace.Header.Format == "" {
		p.b.trace.Header.Format = "text"
	}
	return nil
}

// nativeMagic is the first word of the native text form.
const nativeMagic = "vramyard-trace"

// version is the version of the native text form that is written, and the highest one accepted.
const version = 1

// comment parses a line that begins with '#', given without it.
func (p *parser) comment(text []byte) error {
	if p.started {
		return nil
	}
	text = bytes.TrimLeft(text, " \t")
	if rest, ok := bytes.CutPrefix(text, []byte(nativeMagic)); ok && !p.loose {
		rest = bytes.TrimLeft(rest, " \t")
		if _, isNumber := parseUint(rest); isNumber || p.src.num == 1 {
			p.magic = true
			return checkVersion(rest)
		}
	}
	if !p.loose && !p.magic {
		if rest, ok := bytes.CutPrefix(text, []byte("mark,")); ok {
			return p.csvMark(rest)
		}
	}
	return p.pair(text)
}

// checkVersion parses the text after nativeMagic.
func checkVersion(b []byte) error {
	if n, ok := parseUint(b); !ok || n == 0 {
		return fmt.Errorf("version %s of the trace format: want %d", clip(b), version)
	} else if n > version {
		return fmt.Errorf("version %d of the trace format is newer than this program, which reads version %d", n, version)
	}
	return nil
}

// pair parses a comment of the header; the form key=value becomes a pair.
func (p *parser) pair(text []byte) error {
	key, value, ok := strings.Cut(string(text), "=")
	if !ok || !isKey(key) {
		return nil
	}
	if !p.loose && !p.magic && key == "format" && strings.HasPrefix(value, csvFamily) {
		p.csv = true
		if value != csvFormat {
			return fmt.Errorf("format %s: want %s", clip([]byte(value)), csvFormat)
		}
		return nil
	}
	if p.magic && strings.HasPrefix(value, `"`) {
		plain, err := strconv.Unquote(value)
		if err != nil {
			return fmt.Errorf("header value %s: not a quoted text", clip([]byte(value)))
		}
		value = plain
	}
	pairs := len(p.b.trace.Header.Meta)
	if err := p.b.meta(key, value, &p.named); err != nil || len(p.b.trace.Header.Meta) == pairs {
		return err
	}
	if err := p.b.memory.Take(placeBytes); err != nil {
		return err
	}
	places := p.places()
	places.pairs = append(places.pairs, p.src.num)
	return nil
}

// isKey reports whether s is a valid key of a header pair: letters, digits and _ . -
func isKey(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return s != ""
}
