package formats

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/internal/fileio"
)

// Format is a file format.
type Format struct {
	Name   string // value of Header.Format
	Doc    string // description in a few words
	Header string // header line of a format in CSV, with the required columns; "" for other formats
	Absent string // information that such files lack, for people; "" if nothing is missing

	// Framework is the framework that writes such files, by its name in [setting.Export]; "" if
	// several do.
	Framework string

	// Parts is set if a file may hold several traces, of which [Options].Part selects one.
	Parts bool

	// Recognize reports whether a file has the format, by up to 32 KiB of its decompressed content.
	// At most one format may accept a given content.
	Recognize func(head []byte) bool
	// Read reads a file of this format.
	Read func(in *Input) (*trace.Trace, error)
	// Write writes a trace in this format; nil if it is only read.
	Write func(w io.Writer, t trace.Source) error
}

// All returns every format, in the order of listings. At most one recognizes a given content.
func All() []Format {
	return []Format{
		{Name: "text", Doc: "the native text form", Recognize: isForm("text"), Read: readNative, Write: trace.Write},
		{
			Name: "csv", Doc: "CSV with the columns " + trace.CSVHeader, Header: trace.CSVHeader, Recognize: isForm("csv"),
			Read: readNative, Write: trace.WriteCSV,
		},
		parquetFormat,
		snapshotFormat,
		rmmFormat,
		kinetoFormat,
		timelineFormat,
		dumpFormat,
		xspaceFormat,
		minimallocFormat,
	}
}

// Names returns the names of all formats.
func Names() []string {
	var names []string
	for _, f := range All() {
		names = append(names, f.Name)
	}
	return names
}

// Writable returns the formats that can be written.
func Writable() []Format {
	var list []Format
	for _, f := range All() {
		if f.Write != nil {
			list = append(list, f)
		}
	}
	return list
}

// Options control how a file is read.
type Options struct {
	// Dialect is "" to recognize the format by content, or one of [trace.Dialects], whose content
	// looks like the native text form.
	Dialect string
	// Part selects the device or allocator in a file with several. "" selects the only part that is
	// not of the host.
	Part string
	// Memory is the maximum memory that a file may take, in bytes, including the replay of its
	// trace. 0 means [budget.Default].
	Memory device.Size
	// Warn, if not nil, receives a [*trace.Error] for each defect that does not prevent reading;
	// see [trace.Options].
	Warn func(error)
	// Doubt, if not nil, receives each kind of inconsistency of a log or a snapshot that the reader
	// bridges, as a [*trace.Error] with the number of occurrences and the first place. check is
	// balance, ghost, overlap, time or marks. The reader then also compares the recorded addresses
	// of live blocks, and records the lines of events.
	Doubt func(check string, err error)
	// Snapshot, if not nil, receives the PyTorch snapshot from which a trace was made, and the
	// timeline of its device.
	Snapshot func(*torch.Snapshot, *torch.Timeline)
	// Watch, if not nil, is called from time to time with the bytes read so far and the size of the
	// file, 0 if unknown. For a compressed file both count compressed bytes.
	Watch func(done, size int64)
}

// progressReader is a file that reports the progress of reading.
type progressReader struct {
	r          io.Reader
	at         io.ReaderAt
	report     func(done, size int64)
	done, size int64
}

// withProgress returns r with o.Watch attached.
func (o *Options) withProgress(r io.Reader) *progressReader {
	w := &progressReader{r: r, report: o.Watch}
	if f, ok := r.(*os.File); ok {
		w.at = f
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			w.size = info.Size()
		}
	}
	return w
}

func (w *progressReader) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	w.progress(n)
	return n, err
}

// ReadAt implements [io.ReaderAt], for a file.
func (w *progressReader) ReadAt(b []byte, at int64) (int, error) {
	n, err := w.at.ReadAt(b, at)
	w.progress(n)
	return n, err
}

// progress reports n more bytes. Bytes that are read again count only up to the size.
func (w *progressReader) progress(n int) {
	if w.done += int64(n); w.size > 0 {
		w.done = min(w.done, w.size)
	}
	if w.report != nil {
		w.report(w.done, w.size)
	}
}

// Input is an open file of a known format. It reads the decompressed content.
type Input struct {
	Options
	Name string // file name for messages
	// File is the file for random access; nil if it is compressed or a pipe.
	File io.ReaderAt
	Size int64 // bytes of File

	plain  *fileio.Stream
	sum    hash.Hash
	count  int64 // bytes read
	budget *budget.Budget
}

// Open reads the trace in a file. See [Read].
func Open(path string, o Options) (*trace.Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, trace.FileError(path, err)
	}
	defer f.Close() // read only: no error matters
	return Read(f, path, o)
}

// Read reads a trace in any of the formats of [All], compressed or not, recognized by its content.
// name is the file's name or path, for messages and for the header. Formats with random access need
// an [os.File].
//
// Errors are [*trace.Error]: one line with the file's name and the position of the fault. If the
// file holds several traces, the error wraps a [*trace.PartsError].
func Read(r io.Reader, name string, o Options) (*trace.Trace, error) {
	switch {
	case o.Dialect != "" && o.Part != "":
		return nil, noPart(name, o.Part, o.Dialect)
	case o.Dialect != "":
		options := trace.Options{Dialect: o.Dialect, Memory: budget.New(o.Memory), Warn: o.Warn,
			Lines: o.Doubt != nil}
		return trace.Read(o.withProgress(r), name, options)
	}
	from := o.withProgress(r)
	plain, err := fileio.NewReader(from)
	if err != nil {
		return nil, trace.FileError(name, err)
	}
	defer plain.Close()
	in := &Input{Options: o, Name: name, plain: plain, sum: sha256.New(), budget: budget.New(o.Memory)}
	if from.at != nil && from.size > 0 && plain.Form() == "" {
		in.File, in.Size = from, from.size
	}
	f, err := in.format()
	if err != nil {
		return nil, trace.FileError(name, err)
	}
	if !f.Parts && o.Part != "" {
		return nil, noPart(name, o.Part, f.Name)
	}
	t, err := f.Read(in)
	return f.complete(name, t, err)
}

// complete returns the outcome of reading a file of a format, with the header that all its files
// have, or with the name of the file in the error.
func (f *Format) complete(name string, t *trace.Trace, err error) (*trace.Trace, error) {
	if several, ok := errors.AsType[*trace.PartsError](err); ok {
		several.Name, several.Format = trace.BaseName(name), f.Name
	}
	if err != nil {
		var located *trace.Error
		if !errors.As(err, &located) {
			err = &trace.Error{File: name, Err: err}
		}
		return nil, err
	}
	if _, ok := t.Header.Get(trace.AbsentKey); f.Absent != "" && !ok {
		t.Header.Meta = append(t.Header.Meta, trace.Pair{Key: trace.AbsentKey, Value: f.Absent})
	}
	if _, ok := t.Header.Get(trace.FrameworkKey); f.Framework != "" && !ok {
		t.Header.Meta = append(t.Header.Meta, trace.Pair{Key: trace.FrameworkKey, Value: f.Framework})
	}
	return t, nil
}

// Recognize returns the error that [Open] would return for the beginning of a regular file, or nil
// if its format is known. It reads only the beginning, so that a program can reject a wrong file
// before it starts work.
func Recognize(path string, o Options) error {
	f, err := os.Open(path)
	if err != nil {
		return trace.FileError(path, err)
	}
	defer f.Close() // read only: no error matters
	plain, err := fileio.NewReader(f)
	if err != nil {
		return trace.FileError(path, err)
	}
	defer plain.Close()
	if o.Dialect != "" {
		return nil // a dialect is not recognized by its content
	}
	in := &Input{Options: o, Name: path, plain: plain}
	if _, err := in.format(); err != nil {
		return trace.FileError(path, err)
	}
	return nil
}

// noPart returns the error for a part of a format that has no parts.
func noPart(name, part, format string) error {
	return trace.FileError(name, fmt.Errorf("has no part %q: files of the form %s hold one trace", part, format))
}

// headBytes is the length of the beginning by which a format is recognized.
const headBytes = 1 << 15

// format recognizes the format of the content.
func (in *Input) format() (Format, error) {
	head, err := in.plain.Peek(headBytes)
	switch {
	case err != nil:
		return Format{}, err
	case len(head) == 0:
		return Format{}, errors.New("empty file: want a trace")
	case bytes.HasPrefix(head, utf16LE) || bytes.HasPrefix(head, utf16BE):
		return Format{}, errors.New("is text in UTF-16: want UTF-8")
	}
	if err := notATrace(head); err != nil {
		return Format{}, err
	}
	var found []Format
	for _, f := range All() {
		if f.Recognize(head) {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 0:
		return Format{}, fmt.Errorf("begins with %s, as no known format does: want one of %s%s",
			clip(head), strings.Join(Names(), ", "), headersFor(head))
	case 1:
		return found[0], nil
	}
	return Format{}, fmt.Errorf("content may be %s or %s", found[0].Name, found[1].Name)
}

// headersFor returns the header lines of the formats in CSV, as the end of an error about content
// whose first line may be such a header, or "".
func headersFor(head []byte) string {
	line, _, _ := bytes.Cut(head, newline)
	if !isText(line) || !bytes.Contains(line, comma) || bytes.ContainsAny(line, "{[<") {
		return ""
	}
	var known []string
	for _, f := range All() {
		if f.Header != "" {
			known = append(known, fmt.Sprintf("%q of %s", f.Header, f.Name))
		}
	}
	return ". A CSV has the header line " + strings.Join(known, ", or ")
}

func (in *Input) Read(b []byte) (int, error) {
	n, err := in.plain.Read(b)
	in.sum.Write(b[:n])
	in.count += int64(n)
	return n, err
}

// header returns the header of a trace, once the whole file has been read.
func (in *Input) header(format string) trace.Header {
	return trace.Header{Name: trace.BaseName(in.Name), Format: format, Hash: hex.EncodeToString(in.sum.Sum(nil))}
}

// at returns an error at a byte of the decompressed content.
func (in *Input) at(offset int64, err error) error {
	return &trace.Error{File: in.Name, Err: fmt.Errorf("byte %d: %w", offset, err)}
}

// located is at for errors that may already have a position.
func (in *Input) located(offset int64, err error) error {
	var located *trace.Error
	if errors.As(err, &located) {
		return err
	}
	return in.at(offset, err)
}

// warn passes a defect to Options.Warn, unless either is nil.
func (in *Input) warn(defect error) {
	if defect != nil && in.Warn != nil {
		in.Warn(defect)
	}
}

// isForm returns a function that recognizes a form of package trace.
func isForm(form string) func([]byte) bool {
	return func(head []byte) bool { return isText(head) && trace.FormOf(head) == form }
}

// isText reports whether a file begins with printable text.
func isText(head []byte) bool {
	return bytes.IndexFunc(head, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' }) < 0
}

func readNative(in *Input) (*trace.Trace, error) {
	return trace.Read(in, in.Name, trace.Options{Memory: in.budget, Warn: in.Warn, Lines: in.Doubt != nil})
}

// clip quotes the beginning of some content for a message.
func clip(b []byte) string {
	const most = 24
	if len(b) <= most {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("%q…", b[:most])
}
