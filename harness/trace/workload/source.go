package workload

import (
	"strconv"

	"github.com/vramyard/vramyard/harness/trace"
)

// source generates a workload as a trace, at every walk.
type source struct {
	w      Workload
	head   trace.Head
	starts []start // the marks; tags are numbered from 1 in this order
}

// batchEvents is the number of events passed on at once.
const batchEvents = 1 << 13

// Events returns the number of events of the trace: operations and marks.
func (w Workload) Events() int { return w.parts.Total() + len(w.starts()) }

// Source returns the operations as a trace. The slot is the allocation's id, and a mark precedes
// each part. The header holds the parameters and the [Summary]. Source generates all operations
// once, and again at each walk. Memory grows with the slots only.
func (w Workload) Source() trace.Source {
	s := &source{w: w, starts: w.starts()}
	s.head = trace.Head{Header: w.header(w.Summary()), Events: w.Events()}
	return s
}

func (s *source) Head() trace.Head { return s.head }

func (s *source) TagOf(e *trace.Event) string {
	if e.Tag == 0 {
		return ""
	}
	return s.starts[e.Tag-1].part
}

func (s *source) Batches(yield func([]trace.Event) error) error {
	b := newBatcher(yield)
	n, marks := 0, 0
	for o := range s.w.Ops {
		if marks < len(s.starts) && s.starts[marks].at == n {
			marks++
			b.put(trace.Event{Kind: trace.Mark, Slot: trace.NoSlot, Tag: uint32(marks), Time: trace.NoTime})
		}
		n++
		if !b.put(eventOf(o)) {
			break
		}
	}
	return b.end()
}

// batcher passes on events in batches.
type batcher struct {
	yield func([]trace.Event) error
	batch []trace.Event
	err   error // first error of yield; it ends the walk
}

func newBatcher(yield func([]trace.Event) error) *batcher {
	return &batcher{yield: yield, batch: make([]trace.Event, 0, batchEvents)}
}

// put passes on an event, and reports whether the walk goes on.
func (b *batcher) put(e trace.Event) bool {
	if b.err != nil {
		return false
	}
	if b.batch = append(b.batch, e); len(b.batch) == cap(b.batch) {
		b.err = b.yield(b.batch)
		b.batch = b.batch[:0]
	}
	return b.err == nil
}

// end passes on the last batch and returns the first error.
func (b *batcher) end() error {
	if len(b.batch) > 0 && b.err == nil {
		b.err = b.yield(b.batch)
	}
	return b.err
}

func eventOf(o Op) trace.Event {
	e := trace.Event{Kind: trace.Alloc, Slot: o.Slot(), ID: uint64(o.Slot()), Size: o.Size(), Time: trace.NoTime}
	if o.IsFree() {
		e.Kind = trace.Free
	}
	return e
}

// start is the beginning of a part.
type start struct {
	at   int // number of its first operation
	part string
}

// starts returns the beginnings of the parts that are not empty.
func (w Workload) starts() (all []start) {
	at := 0
	for _, s := range []start{{w.parts.Fill, "fill"}, {w.parts.Settle, "settle"}, {w.parts.Churn, "churn"}} {
		if s.at > 0 {
			all = append(all, start{at, s.part})
		}
		at += s.at
	}
	return all
}

func (w Workload) header(s Summary) trace.Header {
	meta := []trace.Pair{{Key: "workload", Value: w.shape.Name}}
	for _, p := range w.listed() {
		meta = append(meta, trace.Pair{Key: p.name, Value: strconv.FormatUint(p.value, 10)})
	}
	return trace.Header{Name: w.Name(), Meta: append(meta,
		trace.Pair{Key: "peak_live_bytes", Value: strconv.FormatUint(uint64(s.PeakLive), 10)},
		trace.Pair{Key: "workload_hash", Value: s.Hash.String()},
	)}
}
