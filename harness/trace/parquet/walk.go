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
		w.numbers[i].out, w.numbers[i].constant = make([]uint64, batchRows), true
		w.words[i].out, w.words[i].constant = make([]uint32, batchRows), true
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
	if err := w.checkThreads(first, n); err != nil {
		return nil, err
	}
	kinds, ids, sizes, times := w.words[colKind].out, w.numbers[colID].out, w.numbers[colSize].out, w.numbers[colTime].out
	events := w.events[:n]
	same := w.constant()
	base := w.event(0)
	for k := range events {
		e := &events[k]
		if !same {
			base = w.event(k)
		}
		*e = base
		e.Kind, e.ID, e.Size, e.Time = trace.Kind(kinds[k]), ids[k], device.Size(sizes[k]), int64(times[k])
		if kinds[k] == addressKind {
			e.Kind, e.Slot = trace.BadFree, trace.NoSlot
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

// constant reports whether all columns that [walker.event] reads have one value in this batch.
func (w *walker) constant() bool {
	for _, c := range []int{colStream, colAlign, colArg, colSite, colThread} {
		if !w.numbers[c].constant {
			return false
		}
	}
	return w.words[colHint].constant && w.words[colTag].constant && w.words[colLife].constant
}

// event returns row k of the batch without kind, id, size and time.
func (w *walker) event(k int) trace.Event {
	return trace.Event{
		Hint: alloc.Hint(w.words[colHint].out[k]), Tag: w.words[colTag].out[k],
		Life:   alloc.Lifetime(w.words[colLife].out[k]),
		Thread: uint32(w.numbers[colThread].out[k]), Align: device.Size(w.numbers[colAlign].out[k]),
		Stream: device.Stream(w.numbers[colStream].out[k]), Arg: w.numbers[colArg].out[k],
		Site: w.numbers[colSite].out[k],
	}
}

// checkThreads returns an error for a thread number of the batch that is too large.
func (w *walker) checkThreads(first, n int) error {
	for k, thread := range w.numbers[colThread].out[:n] {
		if thread > math.MaxUint32 {
			return w.f.errRow(first+k, fmt.Errorf("thread %d: want at most %d", thread, uint32(math.MaxUint32)))
		}
	}
	return nil
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
