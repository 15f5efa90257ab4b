package formats

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// timelineFormat is the raw memory timeline of PyTorch's profiler.
var timelineFormat = Format{
	Name:      "timeline",
	Framework: "PyTorch",
	Doc:       "the raw JSON of PyTorch's export_memory_timeline: approximate",
	Absent: "which block a destruction is about (taken for the oldest of its size and category), " +
		"streams, other devices, refused requests",
	Recognize: func(head []byte) bool {
		_, list := keysIn(head)
		return list == "["
	},
	Read: readTimeline,
}

// timelineCategories are the categories by number.
var timelineCategories = [...]string{
	"parameter", "optimizer state", "input", "temporary", "activation", "gradient", "autograd detail", "unknown",
}

// The actions of a timeline.
const (
	timelinePreexisting = 1
	timelineCreate      = 2
	timelineVersion     = 3 // a change of category: one event for the old one, one for the new
	timelineDestroy     = 4
)

// blockKind is all that a timeline records of a block.
type blockKind struct {
	size     uint64
	category int64
}

// queue is a queue of ids, oldest first.
type queue struct {
	ids  []uint64
	from int // index of the oldest id
}

// timelineReader tracks blocks by size and category.
type timelineReader struct {
	memory  *budget.Budget
	blocks  map[blockKind]queue
	changed []uint64 // ids that have left one category and not yet entered another
	events  []trace.Event
	opening []trace.Event
	next    uint64
	first   int64
	now     int64
	unknown int
}

// errCumulative is the error for the profiler's other timeline format.
var errCumulative = errors.New("want [time, action, bytes, category]; a timeline of sums per category cannot " +
	"be read; use the file that ends in .raw.json.gz")

func readTimeline(in *Input) (*trace.Trace, error) {
	doc, err := newDocument(in)
	if err != nil {
		return nil, err
	}
	if err := doc.open('[', "a list"); err != nil {
		return nil, err
	}
	r := &timelineReader{memory: in.budget, blocks: map[blockKind]queue{}, first: -1}
	for doc.more() {
		var row []json.Number
		if err := doc.value(&row, "a list of numbers"); err != nil {
			return nil, err
		}
		if err := r.row(row); err != nil {
			return nil, doc.wrong(err)
		}
	}
	if _, err := doc.token(); err != nil {
		return nil, err
	}
	if err := doc.end(); err != nil {
		return nil, err
	}
	return r.trace(in.header("timeline"))
}

func (r *timelineReader) row(row []json.Number) error {
	if len(row) != 4 {
		return errCumulative
	}
	var n [4]int64
	for i, name := range [...]string{"time", "action", "bytes", "category"} {
		var err error
		if n[i], err = integer(name, row[i]); err != nil {
			return err
		}
	}
	time, action, size, category := n[0], n[1], n[2], n[3]
	if category < 0 || category >= int64(len(timelineCategories)) {
		return fmt.Errorf("category %d: want 0 to %d", category, len(timelineCategories)-1)
	}
	if time < -1 {
		return fmt.Errorf("time %d: want nanoseconds, or -1", time)
	}
	negative := size < 0
	k := blockKind{uint64(size), category}
	if negative {
		k.size = -uint64(size)
	}
	switch {
	case action == timelinePreexisting && !negative:
		return r.birth(trace.LiveAtStart, k, time)
	case action == timelineCreate && !negative:
		return r.birth(trace.Alloc, k, time)
	case action == timelineVersion && negative:
		if id, ok := r.take(k); ok {
			var err error
			r.changed, err = budget.Append(r.memory, r.changed, id)
			return err
		}
	case action == timelineVersion:
		if n := len(r.changed); n > 0 {
			id := r.changed[n-1]
			r.changed = r.changed[:n-1]
			return r.put(k, id)
		}
	case action == timelineDestroy && (negative || size == 0):
		if id, ok := r.take(k); ok {
			var err error
			r.events, err = budget.Append(r.memory, r.events, trace.Event{Kind: trace.Free, ID: id, Time: r.clock(time)})
			return err
		}
	default:
		return fmt.Errorf("action %d with %d bytes: want 1 or 2 with a size, 4 with a negative one, or 3", action, size)
	}
	return nil
}

func (r *timelineReader) birth(kind trace.Kind, k blockKind, time int64) (err error) {
	e := trace.Event{Kind: kind, ID: r.next, Size: device.Size(k.size), Tag: uint32(k.category), Time: trace.NoTime}
	if err := r.put(k, r.next); err != nil {
		return err
	}
	r.next++
	if kind == trace.LiveAtStart {
		r.opening, err = budget.Append(r.memory, r.opening, e)
		return err
	}
	e.Time = r.clock(time)
	r.events, err = budget.Append(r.memory, r.events, e)
	return err
}

// put adds a block as the youngest of its kind.
func (r *timelineReader) put(k blockKind, id uint64) (err error) {
	q := r.blocks[k]
	if q.from > len(q.ids)/2 {
		q.ids, q.from = append(q.ids[:0], q.ids[q.from:]...), 0
	}
	if q.ids, err = budget.Append(r.memory, q.ids, id); err != nil {
		return err
	}
	return budget.Put(r.memory, r.blocks, k, q)
}

// take removes and returns the oldest block of a kind.
func (r *timelineReader) take(k blockKind) (uint64, bool) {
	q := r.blocks[k]
	if q.from == len(q.ids) {
		r.unknown++
		return 0, false
	}
	id := q.ids[q.from]
	q.from++
	r.blocks[k] = q
	return id, true
}

// clock returns a time relative to the first one. Times never decrease.
func (r *timelineReader) clock(time int64) int64 {
	if time < 0 {
		return trace.NoTime
	}
	if r.first < 0 {
		r.first = time
	}
	r.now = max(r.now, time-r.first)
	return r.now
}

func (r *timelineReader) trace(h trace.Header) (*trace.Trace, error) {
	h.Meta = append(h.Meta, trace.Pair{Key: "approximate", Value: "lifetimes are guessed from sizes and categories"})
	if r.unknown > 0 {
		h.Meta = append(h.Meta, trace.Pair{Key: "allocations_lost", Value: fmt.Sprint(r.unknown)})
	}
	b := trace.NewBuilderWithin(r.memory, h)
	b.Grow(len(r.opening) + len(r.events))
	for _, list := range [][]trace.Event{r.opening, r.events} {
		for _, e := range list {
			if e.Kind != trace.Free {
				e.Tag = b.Tag(timelineCategories[e.Tag])
			}
			if err := b.Add(e); err != nil {
				return nil, err
			}
		}
	}
	return b.Trace(), nil
}
