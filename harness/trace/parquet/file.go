package parquet

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// magic begins and ends a Parquet file.
const magic = "PAR1"

// Is reports whether a file that begins with head is a Parquet file.
func Is(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }

// Format is the value of Header.Format of a trace from a Parquet file.
const Format = "parquet"

// File is a trace in a Parquet file. It is a [trace.Source] if [File.Streams] returns true. It is
// safe for concurrent use.
type File struct {
	name    string
	r       io.ReaderAt
	in      *parquet.File
	groups  []format.RowGroup // from in's metadata
	columns int               // number of columns
	head    trace.Head
	counts  map[string]int // events by kind, from the metadata
	streams bool
	memory  *budget.Budget

	mu     sync.Mutex
	tags   []string // tag texts seen so far, by first use
	byText map[string]uint32
}

// maxFooter is the maximum size of a file's footer in bytes. A row group takes about 3 KiB of it.
const maxFooter = 16 << 20

// Open opens the trace in size bytes of r. name is the file's name or path, for messages and for
// the header. Every walk of the trace reads r.
//
// Open reads the whole file once, for its hash, and decodes the footer. Walks and traces of the
// file are charged to memory. An error is a [trace.Error].
func Open(r io.ReaderAt, size int64, name string, memory *budget.Budget) (*File, error) {
	f := &File{name: name, memory: memory}
	if err := f.open(r, size); err != nil {
		return nil, &trace.Error{File: name, Err: err}
	}
	return f, nil
}

func (f *File) open(r io.ReaderAt, size int64) (err error) {
	if err := checkFrame(r, size, f.memory); err != nil {
		return err
	}
	f.r = r
	sum := sha256.New()
	if _, err := io.CopyBuffer(sum, io.NewSectionReader(r, 0, size), make([]byte, 1<<18)); err != nil {
		return err
	}
	defer recoverCorrupt(&err)
	if f.in, err = openFile(r, size); err != nil {
		return err
	}
	if err := f.readMetadata(); err != nil {
		return err
	}
	f.head.Header.Hash = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// checkFrame checks the magic numbers and the footer, and charges the footer to memory.
func checkFrame(r io.ReaderAt, size int64, memory *budget.Budget) error {
	if size < 12 {
		return errTruncated
	}
	var first [4]byte
	var last [8]byte
	if _, err := r.ReadAt(first[:], 0); err != nil {
		return err
	}
	if !Is(first[:]) {
		return errors.New("no Parquet file")
	}
	if _, err := r.ReadAt(last[:], size-8); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(last[:]))
	switch {
	case string(last[4:]) != magic || n > size-12:
		return errTruncated
	case n > maxFooter:
		return fmt.Errorf("the description at the end has %d bytes: want at most %d", n, maxFooter)
	}
	footer := make([]byte, n)
	if _, err := r.ReadAt(footer, size-8-n); err != nil {
		return err
	}
	parts, ok := checkThrift(footer)
	if !ok {
		return errThrift
	}
	return memory.Take(int64(parts)*thriftPart + n)
}

// openFile decodes the footer of a file that checkFrame has passed.
func openFile(r io.ReaderAt, size int64) (*parquet.File, error) {
	f, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
		parquet.ReadBufferSize(1<<16))
	if err != nil {
		return nil, fmt.Errorf("no Parquet file: %w", err)
	}
	return f, nil
}

var errTruncated = errors.New("the Parquet data is truncated")

// recoverCorrupt turns a panic of the Parquet library into an error of the file.
func recoverCorrupt(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the Parquet data is corrupt: %v", p)
	}
}

// readMetadata reads the metadata and checks them against the rows.
func (f *File) readMetadata() error {
	v, ok := f.in.Lookup(keyVersion)
	switch {
	case !ok:
		return fmt.Errorf("the metadata lack %s: want a file that was written as a trace", keyVersion)
	case v != version:
		return fmt.Errorf("version %.20q of the trace format: want %s", v, version)
	}
	var err error
	if f.columns, err = checkSchema(f.in.Schema().Fields()); err != nil {
		return err
	}
	h := &f.head.Header
	h.Format = Format
	if h.Name, ok = f.in.Lookup(keyName); !ok || h.Name == "" {
		h.Name = trace.BaseName(f.name)
	}
	if err := f.decode(keyHeader, &h.Meta); err != nil {
		return err
	}
	if len(h.Meta) == 0 {
		h.Meta = nil
	}
	if err := f.decode(keyEvents, &f.counts); err != nil {
		return err
	}
	return f.count()
}

// decode decodes a metadata entry in JSON.
func (f *File) decode(key string, v any) error {
	text, ok := f.in.Lookup(key)
	if !ok {
		return fmt.Errorf("the metadata lack %s", key)
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return fmt.Errorf("metadata %s: %w", key, err)
	}
	return nil
}

// count checks the event counts of the metadata against the rows.
func (f *File) count() error {
	sum, rows := 0, int64(0)
	for _, kind := range slices.Sorted(maps.Keys(f.counts)) {
		n := f.counts[kind]
		if _, ok := kindNumbers[kind]; !ok || n < 0 || n >= math.MaxUint32 {
			return fmt.Errorf("metadata %s: %d events of kind %q", keyEvents, n, kind)
		}
		sum += n
	}
	f.groups = f.in.Metadata().RowGroups
	for _, g := range f.groups {
		if g.NumRows < 0 || len(g.Columns) != f.columns {
			return fmt.Errorf("a group of %d rows and %d columns", g.NumRows, len(g.Columns))
		}
		rows += g.NumRows
	}
	if int64(sum) != rows || rows != f.in.NumRows() {
		return fmt.Errorf("metadata %s count %d events, the file has %d rows", keyEvents, sum, rows)
	}
	f.head.Events = sum
	_, faults := f.head.Header.Get("fault-nth")
	f.streams = !faults && f.counts[trace.BadFree.String()] == 0 && f.counts[badAddress] == 0 &&
		f.counts[trace.Fault.String()] == 0
	return nil
}

// Streams reports whether the trace may be walked as a [trace.Source]. A counterexample, which
// names blocks long after they were freed, may not; read it with [File.Trace].
func (f *File) Streams() bool { return f.streams }

func (f *File) Head() trace.Head { return f.head }

func (f *File) TagOf(e *trace.Event) string {
	if e.Tag == 0 {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tags[e.Tag-1]
}

// tag returns the number of a text, counted from 1; 0 is the empty text.
func (f *File) tag(text []byte) (uint32, error) {
	if len(text) == 0 {
		return 0, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, ok := f.byText[string(text)]; ok {
		return n, nil
	}
	if f.byText == nil {
		f.byText = map[string]uint32{}
	}
	if err := f.memory.Take(int64(len(text))); err != nil {
		return 0, err
	}
	s := string(text)
	var err error
	if f.tags, err = budget.Append(f.memory, f.tags, s); err != nil {
		return 0, err
	}
	n := uint32(len(f.tags))
	return n, budget.Put(f.memory, f.byText, s, n)
}

// isLocated reports whether an error already names the file.
func isLocated(err error) bool {
	_, ok := errors.AsType[*trace.Error](err)
	return ok
}

// Batches implements [trace.Source]. Each walk decodes the file again.
func (f *File) Batches(yield func([]trace.Event) error) error {
	memory := f.memory.Share()
	defer memory.Close()
	l := newSlots(f.counts[trace.Completed.String()] > 0, memory)
	if f.counts[trace.Pause.String()]+f.counts[trace.Resume.String()] > 0 {
		l.sleep = new(trace.Sleep)
	}
	return f.walk(func(first int, events []trace.Event) error {
		for i := range events {
			e := &events[i]
			err := l.assign(e)
			if l.sleep != nil && err == nil {
				err = l.sleep.Check(f, e)
				l.sleep.Step(e)
			}
			if err != nil {
				return f.errRow(first+i, err)
			}
		}
		return yield(events)
	})
}

// Trace loads the whole trace into memory.
func (f *File) Trace() (*trace.Trace, error) {
	b := trace.NewBuilderWithin(f.memory, f.head.Header)
	b.Grow(f.head.Events)
	err := f.walk(func(first int, events []trace.Event) error {
		for i := range events {
			e := &events[i]
			e.Tag = b.Tag(f.TagOf(e))
			if err := b.Add(*e); err != nil {
				return f.errRow(first+i, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b.Trace(), nil
}

// errRow returns an error at a row.
func (f *File) errRow(row int, err error) error {
	return &trace.Error{File: f.name, Err: fmt.Errorf("row %d: %w", row, err)}
}
