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

// Format is one form of file.
type Format struct {
	Name   string // as Header.Format has it
	Doc    string // what it is, in a few words
	Absent string // what such a file cannot tell, for people; "" if it tells all that a trace has

	// Framework is the framework of the programs that such files are recorded of, as [setting.Export]
	// names it; "" if the format does not decide it.
	Framework string

	// Parts says that a file may hold several traces, of which [Options].Part takes one.
	Parts bool

	// Looks tells from the first bytes of the decompressed content, up to 32 KiB of them, whether a
	// file is of this format. No two formats may say so of the same content.
	Looks func(head []byte) bool
	// Read reads a file of this format.
	Read func(in *Input) (*trace.Trace, error)
	// Write writes a trace in this format; nil if it is only read.
	Write func(w io.Writer, t trace.Source) error
}

// All returns every format, in the order in which people are told of them. No two recognise the
// same content.
func All() []Format {
	return []Format{
		{Name: "text", Doc: "the native text form", Looks: isForm("text"), Read: readNative, Write: trace.Write},
		{
			Name: "csv", Doc: "CSV with the columns seq,op,id,bytes,stream,time_us,tag", Looks: isForm("csv"), Read: readNative,
			Write: trace.WriteCSV,
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

// Options tell how to read a file.
type Options struct {
	// Dialect is "" for whatever the content is, or one of [trace.Dialects], which cannot be told
	// from the native text form by their content.
	Dialect string
	// Part is the device or the allocator to take from a file that has several; "" is the only one
	// there is, apart from those of the host.
	Part string
	// Memory is the largest number of bytes that a file may take in memory, the replay of its trace
	// included; 0 means [budget.Default].
	Memory device.Size
	// Warn, if not nil, is called with a [*trace.Error] for what makes a file doubtful that can be
	// read; see [trace.Options].
	Warn func(error)
	// Snapshot, if not nil, is handed a memory snapshot of PyTorch that a trace is made of, and the
	// course of its device, for those who need more than the trace.
	Snapshot func(*torch.Snapshot, *torch.Course)
	// Watch, if not nil, is called every now and then while a file is read, with how many bytes of it
	// were and how many it has, 0 if that is not known. What is compressed counts as it lies in the
	// file.
	Watch func(done, size int64)
}

// watched is a file whose reading somebody watches.
type watched struct {
	r          io.Reader
	at         io.ReaderAt
	tell       func(done, size int64)
	done, size int64
}

func (o *Options) watched(r io.Reader) *watched {
	w := &watched{r: r, tell: o.Watch}
	if f, ok := r.(*os.File); ok {
		w.at = f
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			w.size = info.Size()
		}
	}
	return w
}

// Read implements [io.Reader].
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	w.told(n)
	return n, err
}

// ReadAt implements [io.ReaderAt], for a file.
func (w *watched) ReadAt(b []byte, at int64) (int, error) {
	n, err := w.at.ReadAt(b, at)
	w.told(n)
	return n, err
}

// told tells of so many bytes more. Places that are read twice do not count twice.
func (w *watched) told(n int) {
	if w.done += int64(n); w.size > 0 {
		w.done = min(w.done, w.size)
	}
	if w.tell != nil {
		w.tell(w.done, w.size)
	}
}

// Input is an open file of a format that is known. It reads the decompressed content.
type Input struct {
	Options
	Name string // the file's name, for messages
	// File is the file itself, for formats that look at places of it; nil if it is compressed or a
	// pipe.
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
	defer f.Close() // only read from: nothing can be lost
	return Read(f, path, o)
}

// Read reads a trace in any of the formats of [All], compressed or not; its content tells which.
// name is the file's name for messages and for the header; it may be a path. A format that needs to
// look at places of the file does so if r is an [os.File].
//
// An error is one line that begins with the name and says where the file is wrong, a
// [*trace.Error]. It wraps a [*trace.PartsError] if the file holds several traces.
func Read(r io.Reader, name string, o Options) (*trace.Trace, error) {
	switch {
	case o.Dialect != "" && o.Part != "":
		return nil, noPart(name, o.Part, o.Dialect)
	case o.Dialect != "":
		return trace.Read(o.watched(r), name, trace.Options{Dialect: o.Dialect, Memory: budget.New(o.Memory), Warn: o.Warn})
	}
	from := o.watched(r)
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
	if _, told := t.Header.Get(trace.AbsentKey); f.Absent != "" && !told {
		t.Header.Meta = append(t.Header.Meta, trace.Pair{Key: trace.AbsentKey, Value: f.Absent})
	}
	if _, told := t.Header.Get(trace.FrameworkKey); f.Framework != "" && !told {
		t.Header.Meta = append(t.Header.Meta, trace.Pair{Key: trace.FrameworkKey, Value: f.Framework})
	}
	return t, nil
}

// Recognize returns what is wrong with the beginning of a regular file, as [Open] would say, and
// nil if a format of [All] knows it. It reads no more than that, so that a program can refuse a
// wrong file before it begins anything.
func Recognize(path string, o Options) error {
	f, err := os.Open(path)
	if err != nil {
		return trace.FileError(path, err)
	}
	defer f.Close() // only read from: nothing can be lost
	plain, err := fileio.NewReader(f)
	if err != nil {
		return trace.FileError(path, err)
	}
	defer plain.Close()
	if o.Dialect != "" {
		return nil // a form that its content does not tell
	}
	in := &Input{Options: o, Name: path, plain: plain}
	if _, err := in.format(); err != nil {
		return trace.FileError(path, err)
	}
	return nil
}

// noPart is what is wrong with asking for a part of a file that cannot have several.
func noPart(name, part, format string) error {
	return trace.FileError(name, fmt.Errorf("has no part %q: files of the form %s hold one trace", part, format))
}

// headBytes is how much of a file is looked at to tell its format.
const headBytes = 1 << 15

// format tells which format the content is of.
func (in *Input) format() (Format, error) {
	head, err := in.plain.Peek(headBytes)
	switch {
	case err != nil:
		return Format{}, err
	case len(head) == 0:
		return Format{}, errors.New("is empty: a trace without events has a first line too")
	case bytes.HasPrefix(head, utf16LE) || bytes.HasPrefix(head, utf16BE):
		return Format{}, errors.New("is text in UTF-16: want UTF-8")
	}
	if err := notATrace(head); err != nil {
		return Format{}, err
	}
	var found []Format
	for _, f := range All() {
		if f.Looks(head) {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 0:
		return Format{}, fmt.Errorf("begins with %s, as no known format does: want one of %s",
			clip(head), strings.Join(Names(), ", "))
	case 1:
		return found[0], nil
	}
	return Format{}, fmt.Errorf("content may be %s or %s", found[0].Name, found[1].Name)
}

// Read implements io.Reader.
func (in *Input) Read(b []byte) (int, error) {
	n, err := in.plain.Read(b)
	in.sum.Write(b[:n])
	in.count += int64(n)
	return n, err
}

// header returns the header of a trace that was read from all of the file.
func (in *Input) header(format string) trace.Header {
	return trace.Header{Name: trace.BaseName(in.Name), Format: format, Hash: hex.EncodeToString(in.sum.Sum(nil))}
}

// at blames a byte of the decompressed content.
func (in *Input) at(offset int64, err error) error {
	return &trace.Error{File: in.Name, Err: fmt.Errorf("byte %d: %w", offset, err)}
}

// located is at for an error that may have its place already.
func (in *Input) located(offset int64, err error) error {
	var located *trace.Error
	if errors.As(err, &located) {
		return err
	}
	return in.at(offset, err)
}

// warn tells of a doubt, unless it is nil.
func (in *Input) warn(doubt error) {
	if doubt != nil && in.Warn != nil {
		in.Warn(doubt)
	}
}

// isForm returns the recogniser of one of the forms that package trace reads.
func isForm(form string) func([]byte) bool {
	return func(head []byte) bool { return isText(head) && trace.FormOf(head) == form }
}

// isText reports whether a file begins with something that a person could read.
func isText(head []byte) bool {
	return bytes.IndexFunc(head, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' }) < 0
}

func readNative(in *Input) (*trace.Trace, error) {
	return trace.Read(in, in.Name, trace.Options{Memory: in.budget, Warn: in.Warn})
}

// clip quotes the beginning of some content for a message.
func clip(b []byte) string {
	const most = 24
	if len(b) <= most {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("%q…", b[:most])
}
