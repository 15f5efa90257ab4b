package parquet

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// walker decodes a file from its first row to its last.
type walker struct {
	f                            *File
	id, size, stream, align, arg numbers
	time                         numbers // as the bits of the number with a sign
	kind, hint, tag              words
	ids, sizes, streams, aligns  []uint64
	args, times                  []uint64
	kinds, hints, tags           []uint32
	events                       []trace.Event
	now                          int64 // latest time
}

// newWalker returns one in front of the first row.
func newWalker(f *File, zip *zstd.Decoder, memory *budget.Budget) *walker {
	w := &walker{f: f, events: make([]trace.Event, pieceRows)}
	for _, c := range []*[]uint64{&w.ids, &w.sizes, &w.streams, &w.aligns, &w.args, &w.times} {
		*c = make([]uint64, pieceRows)
	}
	for _, c := range []*[]uint32{&w.kinds, &w.hints, &w.tags} {
		*c = make([]uint32, pieceRows)
	}
	w.kind.code = codeOf("kind", kindNumbers)
	w.hint.code = codeOf("hint", hintNumbers)
	w.tag.code = f.tag
	for i, c := range w.columns() {
		*c.pages, *c.name = newPages(zip, memory), columnList[i].Name
	}
	return w
}

// columnList is what Columns returns.
var columnList = Columns()

// codeOf returns what finds texts in a table.
func codeOf(what string, numbers map[string]uint32) func([]byte) (uint32, error) {
	return func(text []byte) (uint32, error) {
		n, ok := numbers[string(text)]
		if !ok {
			return 0, fmt.Errorf("unknown %s %.40q", what, text)
		}
		return n, nil
	}
}

// held is a column of either type.
type held struct {
	pages **pages
	name  *string
	open  func(io.ReaderAt, *format.ColumnMetaData) error
}

// columns returns the columns in the order of the file.
func (w *walker) columns() [numColumns]held {
	return [numColumns]held{
		colKind: {&w.kind.pages, &w.kind.name, w.kind.open}, colID: {&w.id.pages, &w.id.name, w.id.open},
		colSize: {&w.size.pages, &w.size.name, w.size.open}, colStream: {&w.stream.pages, &w.stream.name, w.stream.open},
		colAlign: {&w.align.pages, &w.align.name, w.align.open}, colHint: {&w.hint.pages, &w.hint.name, w.hint.open},
		colArg: {&w.arg.pages, &w.arg.name, w.arg.open}, colTime: {&w.time.pages, &w.time.name, w.time.open},
		colTag: {&w.tag.pages, &w.tag.name, w.tag.open},
	}
}

// walk hands on all rows as events without slots, of which NoSlot means that the event names no
// allocation. yield is also told the number of the first.
func (f *File) walk(yield func(first int, events []trace.Event) error) error {
	zip, err := newZip()
	if err != nil {
		return err
	}
	defer zip.Close()
	memory := f.memory.Share()
	defer memory.Close()
	w := newWalker(f, zip, memory)
	columns := w.columns()
	at := 0
	counts := make([]int, len(kindNames))
	for g := range f.groups {
		for i, c := range columns {
			if err := c.open(f.r, &f.groups[g].Columns[i].MetaData); err != nil {
				return &trace.Error{File: f.name, Err: fmt.Errorf("column %s: %w", *c.name, err)}
			}
		}
		for left := int(f.groups[g].NumRows); left > 0; {
			events, err := w.next(at, min(left, pieceRows))
			if err != nil {
				return err
			}
			for _, k := range w.kinds[:len(events)] {
				counts[k]++
			}
			if err := yield(at, events); err != nil {
				return err
			}
			at += len(events)
			left -= len(events)
		}
	}
	for k, name := range kindNames {
		if counts[k] != f.counts[name] {
			return &trace.Error{File: f.name, Err: fmt.Errorf("metadata %s count %d events of kind %s, the file has %d",
				keyEvents, f.counts[name], name, counts[k])}
		}
	}
	return nil
}

// next returns the events of the next n rows, of which the first has a number.
func (w *walker) next(first, n int) (_ []trace.Event, err error) {
	defer func() {
		if err != nil && !isLocated(err) {
			err = &trace.Error{File: w.f.name, Err: fmt.Errorf("rows from %d: %w", first, err)}
		}
	}()
	defer blame(&err)
	if err := w.decode(first, n); err != nil {
		return nil, err
	}
	events := w.events[:n]
	for k := range events {
		e := &events[k]
		*e = trace.Event{
			Kind: trace.Kind(w.kinds[k]), Hint: alloc.Hint(w.hints[k]), Tag: w.tags[k], ID: w.ids[k],
			Size: device.Size(w.sizes[k]), Align: device.Size(w.aligns[k]), Stream: device.Stream(w.streams[k]),
			Arg: w.args[k], Time: int64(w.times[k]),
		}
		if w.kinds[k] == addressKind {
			e.Kind, e.Slot = trace.BadFree, trace.NoSlot
		}
		if e.Time != trace.NoTime {
			if e.Time < w.now {
				return nil, w.f.blame(first+k, fmt.Errorf("time goes back from %d ns to %d ns", w.now, e.Time))
			}
			w.now = e.Time
		}
	}
	return events, nil
}

// decode fills the columns with the next n rows.
func (w *walker) decode(first, n int) error {
	for _, c := range []struct {
		from *numbers
		to   []uint64
	}{{&w.id, w.ids}, {&w.size, w.sizes}, {&w.stream, w.streams}, {&w.align, w.aligns}, {&w.arg, w.args}, {&w.time, w.times}} {
		if err := c.from.next(c.to[:n]); err != nil {
			return fmt.Errorf("column %s: %w", c.from.name, err)
		}
	}
	for _, c := range []struct {
		from *words
		to   []uint32
	}{{&w.kind, w.kinds}, {&w.hint, w.hints}, {&w.tag, w.tags}} {
		done, err := c.from.next(c.to[:n])
		if wrong, ok := errors.AsType[errText](err); ok {
			return w.f.blame(first+done, wrong.error)
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", c.from.name, err)
		}
	}
	return nil
}
