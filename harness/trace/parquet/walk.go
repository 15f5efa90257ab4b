package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// walker decodes a file from the first row to the last.
type walker struct {
	f       *File
	columns []column // columns of the file, in order
	numbers [numColumns]numbers
	words   [numColumns]words
	events  []trace.Event
	now     int64 // latest time
}

// column is a column of numbers or words.
type column interface {
	open(r io.ReaderAt, chunk *format.ColumnMetaData) error
	next(n int) (done int, err error)
}

// newWalker returns a walker before the first row.
func newWalker(f *File, decoder *zstd.Decoder, memory *budget.Budget) *walker {
	w := &walker{f: f, events: make([]trace.Event, batchRows)}
	codes := map[int]func([]byte) (uint32, error){
		colKind: codeOf("kind", kindNumbers), colHint: codeOf("hint", hintNumbers), colTag: f.tag,
		colLife: codeOf("life", lifeNumbers),
	}
	for i := range f.columns {
		if code := codes[i]; code != nil {
			w.words[i] = words{pages: newPages(decoder, memory), out: make([]uint32, batchRows), code: code}
			w.columns = append(w.columns, &w.words[i])
			continue
		}
		w.numbers[i] = numbers{pages: newPages(decoder, memory), out: make([]uint64, batchRows)}
		w.columns = append(w.columns, &w.numbers[i])
	}
	for i := f.columns; i < numColumns; i++ {
		w.numbers[i].out = make([]uint64, batchRows)
		w.words[i].out = make([]uint32, batchRows)
	}
	return w
}

// codeOf returns a function that looks up texts in a table.
func codeOf(what string, numbers map[string]uint32) func([]byte) (uint32, error) {
	return func(text []byte) (uint32, error) {
		n, ok := numbers[string(text)]
		if !ok {
			return 0, fmt.Errorf("unknown %s %.40q", what, text)
		}
		return n, nil
	}
}

// walk passes all rows to yield as events without slots; NoSlot means that the event has no
// allocation. first is the number of the first row.
func (f *File) walk(yield func(first int, events []trace.Event) error) error {
	decoder, err := newDecoder()
	if err != nil {
		return err
	}
	defer decoder.Close()
	memory := f.memory.Share()
	defer memory.Close()
	w := newWalker(f, decoder, memory)
	at := 0
	counts := make([]int, len(kindNames))
	for g := range f.groups {
		for i, c := range w.columns {
			if err := c.open(f.r, &f.groups[g].Columns[i].MetaData); err != nil {
				return &trace.Error{File: f.name, Err: fmt.Errorf("column %s: %w", columnList[i].Name, err)}
			}
		}
		for left := int(f.groups[g].NumRows); left > 0; {
			events, err := w.next(at, min(left, batchRows))
			if err != nil {
				return err
			}
			for _, k := range w.words[colKind].out[:len(events)] {
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

// next returns the events of n rows, beginning with row first.
func (w *walker) next(first, n int) (_ []trace.Event, err error) {
	defer func() {
		if err != nil && !isLocated(err) {
			err = &trace.Error{File: w.f.name, Err: fmt.Errorf("rows from %d: %w", first, err)}
		}
	}()
	defer recoverCorrupt(&err)
	if err := w.decode(first, n); err != nil {
		return nil, err
	}
	number := func(column int) []uint64 { return w.numbers[column].out }
	ids, sizes, streams, aligns := number(colID), number(colSize), number(colStream), number(colAlign)
	args, times, sites, threads := number(colArg), number(colTime), number(colSite), number(colThread)
	word := func(column int) []uint32 { return w.words[column].out }
	kinds, hints, tags, lives := word(colKind), word(colHint), word(colTag), word(colLife)
	events := w.events[:n]
	for k := range events {
		e := &events[k]
		*e = trace.Event{
			Kind: trace.Kind(kinds[k]), Hint: alloc.Hint(hints[k]), Tag: tags[k], Thread: uint32(threads[k]), ID: ids[k],
			Size: device.Size(sizes[k]), Align: device.Size(aligns[k]), Stream: device.Stream(streams[k]),
			Arg: args[k], Time: int64(times[k]), Site: sites[k], Life: alloc.Lifetime(lives[k]),
		}
		if kinds[k] == addressKind {
			e.Kind, e.Slot = trace.BadFree, trace.NoSlot
		}
		if threads[k] > math.MaxUint32 {
			return nil, w.f.errRow(first+k, fmt.Errorf("thread %d: want at most %d", threads[k], uint32(math.MaxUint32)))
		}
		if e.Time != trace.NoTime {
			if e.Time < w.now {
				return nil, w.f.errRow(first+k, fmt.Errorf("time goes back from %d ns to %d ns", w.now, e.Time))
			}
			w.now = e.Time
		}
	}
	return events, nil
}

// decode fills the columns with the next n rows.
func (w *walker) decode(first, n int) error {
	for i, c := range w.columns {
		done, err := c.next(n)
		if wrong, ok := errors.AsType[errText](err); ok {
			return w.f.errRow(first+done, wrong.error)
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", columnList[i].Name, err)
		}
	}
	return nil
}
