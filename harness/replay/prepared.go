package replay

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/budget"
)

// Prepared is a trace prepared for replays: the figures of the whole trace, and its events in the
// compact layout that the loop reads. It serves concurrent replays as long as the trace does not
// change.
//
// A [trace.Trace] is laid out once for all replays. For any other [trace.Source] each replay reads
// and lays out batch by batch, so memory grows with the live blocks and not with the
// trace.
type Prepared struct {
	*survey
	requests Requests
	recorded trace.Source
	src      trace.Source
	head     trace.Head
	batches  [numTimings]*lazyBatch // of a trace in memory, nil of others
	hash     func() (string, error)
}

// batch is a run of events with their layout.
type batch struct {
	first  int // number of the first event
	events []trace.Event
	ops    []op
	places int // upper bound of the places so far
}

// op is the part of an event that the loop reads, in 40 bytes where the event has 72.
type op struct {
	size   device.Size // bytes requested; of a free, bytes requested for the block
	id     uint64
	origin alloc.Origin
	place  uint32 // of the block in the replay's table; noPlace if the event names none
	tag    uint32
	stream uint32 // number of the request's stream; of a free, the stream of the block
	kind   opKind
}

// opKind is the loop's treatment of an event.
type opKind uint8

const (
	opEvent   opKind = iota // all other kinds, read from the event itself
	opPending               // a free of a block that other streams use
	opDelayed               // a free that becomes final at a later event, or that event
	opAlloc                 // a request whose fields all are in the op, the common kind
	opFree                  // a free
)

// noPlace is the place of an event that names no block.
const noPlace = math.MaxUint32

// Prepare prepares a trace, with its refused requests as requests; see [trace.Refusals]. It walks
// it once. A Trace costs about as much as one replay without a strategy, and 40 bytes for each
// event, and as much again for each further timing of a trace with delayed frees, when a replay
// first needs it. It fails with the errors of reading, and soon after ctx ends with its error.
func Prepare(ctx context.Context, src trace.Source) (*Prepared, error) {
	p := &Prepared{recorded: src, head: src.Head()}
	p.hash = sync.OnceValues(func() (string, error) { return trace.ContentHash(src) })
	var err error
	if p.requests, err = RequestsOf(p.head.Header); err != nil {
		return nil, err
	}
	if p.survey, err = surveyOf(ctx, src); err != nil {
		return nil, err
	}
	if p.src, err = p.refusals.Request(src); err != nil {
		return nil, fmt.Errorf("%s: %w", p.head.Header.Name, err)
	}
	t, ok := p.src.(*trace.Trace)
	if !ok {
		return p, nil
	}
	for when := range numTimings {
		p.batches[when] = p.batches[atRequest]
		if when == atRequest || when == onStreams && p.uses || p.late != nil {
			p.batches[when] = &lazyBatch{make: func(interrupt func() error) (batch, error) {
				return p.newLayout(when).next(t.Events, interrupt)
			}}
		}
	}
	if _, err := p.batches[atRequest].get(ctx.Err); err != nil {
		return nil, err
	}
	return p, nil
}

// lazyBatch is a trace in memory laid out for a timing, on first use.
type lazyBatch struct {
	lock sync.Mutex
	make func(interrupt func() error) (batch, error) // nil once it was laid out
	laid batch
}

// get returns the layout. While it computes the layout it calls interrupt at intervals; its error
// aborts the computation, and the next caller starts again.
func (w *lazyBatch) get(interrupt func() error) (batch, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.make != nil {
		laid, err := w.make(interrupt)
		if err != nil {
			return batch{}, err
		}
		w.make, w.laid = nil, laid
	}
	return w.laid, nil
}

// each yields the batches of the trace, laid out for a timing. It calls
// interrupt at intervals and stops at the first error.
func (p *Prepared) each(when timing, interrupt func() error, yield func(batch) error) error {
	if w := p.batches[when]; w != nil {
		laid, err := w.get(interrupt)
		if err != nil {
			return err
		}
		return yield(laid)
	}
	l := p.newLayout(when)
	return p.src.Batches(func(events []trace.Event) error {
		laid, err := l.next(events, interrupt)
		if err != nil {
			return err
		}
		return yield(laid)
	})
}

// layout lays out the batches of a trace, in order.
type layout struct {
	placeTable
	*survey
	requests Requests
	when     timing
	late     delays // delays that apply with this timing
	done     int    // events laid out
	ops      []op   // of the last batch

	stream device.Stream // of the last request
	number uint32        // of that stream
}

// newLayout returns a layout of the trace for a timing.
func (p *Prepared) newLayout(when timing) *layout {
	l := &layout{survey: p.survey, requests: p.requests, when: when, number: p.numbers[0]}
	_, whole := p.src.(*trace.Trace)
	l.bySlots = !whole && p.refusals.Count == 0 && p.late == nil
	if when != atRequest {
		l.late = p.late
	}
	return l
}

// next lays out the following events. The result is valid until the next call. It calls
// interrupt at intervals; its error aborts it.
func (l *layout) next(events []trace.Event, interrupt func() error) (batch, error) {
	if len(events) > cap(l.ops) {
		l.ops = make([]op, len(events))
	}
	l.ops = l.ops[:len(events)]
	for k := range events {
		if k%progressStep == 0 {
			if err := interrupt(); err != nil {
				return batch{}, err
			}
		}
		l.layOut(l.done+k, &events[k], &l.ops[k])
	}
	first := l.done
	l.done += len(events)
	return batch{first, events, l.ops, l.n}, nil
}

func (l *layout) layOut(i int, e *trace.Event, o *op) {
	*o = op{size: e.Size, place: noPlace}
	switch e.Kind {
	case trace.Alloc, trace.LiveAtStart:
		if e.Stream != l.stream {
			l.stream, l.number = e.Stream, l.numbers[e.Stream]
		}
		o.stream = l.number
		o.place = l.assignPlace(e.Slot, placeEntry{size: e.Size, stream: o.stream, late: l.late.has(i)})
		if e.Align == 0 && e.Hint == 0 && e.Arg == 0 && !l.requests.tagsAreIDs {
			o.kind, o.tag, o.id, o.origin = opAlloc, e.Tag, e.ID, e.Origin()
		}
	case trace.Refused:
		o.stream = l.numbers[e.Stream]
		o.place = l.assignPlace(e.Slot, placeEntry{size: e.Size, stream: o.stream})
		l.releasePlace(e.Slot)
	case trace.Free:
		l.free(o, e.Slot, l.late.has(i))
	case trace.Completed:
		if l.late.has(i) {
			l.complete(o, e.Slot)
		}
	case trace.Use:
		o.place = l.use(e.Slot)
	case trace.BadFree:
		if e.Slot != trace.NoSlot {
			o.place = l.place(e.Slot)
		}
	}
}

// Head returns the header and the size of the trace.
func (p *Prepared) Head() trace.Head { return p.head }

// Source returns the trace, with its refused requests as requests.
func (p *Prepared) Source() trace.Source { return p.src }

// Recorded returns the trace as [Prepare] was given it: its refused requests are no allocations.
func (p *Prepared) Recorded() trace.Source { return p.recorded }

// LowerBound returns the peak of the live requested bytes, refused requests
// included: no allocator can complete the trace with less.
func (p *Prepared) LowerBound() device.Size { return p.bound }

// Changes reports whether the trace changes settings, so that a configuration alone does not
// decide them.
func (p *Prepared) Changes() bool { return p.changes }

// checkMarks returns an error if the marks at which settings of a setup change are missing or
// reversed.
func (p *Prepared) checkMarks(setup setting.Setup) error {
	if err := p.marks.Check(setup.Marks(), "the trace"); err != nil {
		return fmt.Errorf("%s on %s: %w", setup.Name, p.head.Header.Name, err)
	}
	return nil
}

// Hash returns the [trace.ContentHash] of the trace. The first call walks it.
func (p *Prepared) Hash() (string, error) { return p.hash() }

// Memory returns the approximate bytes of replays beyond the trace: shared by all, and for each
// replay.
func (p *Prepared) Memory() (shared, each device.Size) {
	if p.batches[atRequest] != nil { // a trace that is not laid out at once has no copies
		shared = trace.ReplayEvent * device.Size(p.head.Events)
		if p.refusals.Count > 0 {
			shared += device.Size(budget.SizeOf[trace.Event](p.head.Events))
		}
	}
	return shared, trace.ReplayLive * device.Size(p.live)
}

// Gap returns why the trace is not the whole recorded run; see [torch.Gap].
func (p *Prepared) Gap() string {
	wrapped, _ := p.head.Header.Get(torch.KeyWrapped)
	return torch.Gap(p.coverage.Empty(), wrapped)
}

// placeTable assigns places in a table to live allocations. Free places are reused,
// newest first, so that the table is as small as the peak of live allocations and stays in the
// processor's caches. Slots number all allocations of the trace.
type placeTable struct {
	bySlots bool         // a place is a slot: the source reuses slots as the table reuses places
	bySlot  []uint32     // by slot: its place + 1; 0 if none
	entries []placeEntry // by place
	empty   []uint32     // free places
	n       int          // places so far
}

// placeEntry holds the request of the allocation at a place.
type placeEntry struct {
	size   device.Size // bytes
	stream uint32      // by number
	used   bool        // other streams use it, which determines when it is free
	late   bool        // it becomes free at a later event
}

// place returns the place of the allocation in a slot, noPlace if it has none.
func (s *placeTable) place(slot uint32) uint32 {
	if s.bySlots {
		return slot // it has a live allocation
	}
	if int(slot) >= len(s.bySlot) {
		return noPlace
	}
	return s.bySlot[slot] - 1 // 0 becomes noPlace
}

// assignPlace returns a place for the allocation that begins in a slot.
func (s *placeTable) assignPlace(slot uint32, at placeEntry) uint32 {
	if s.bySlots {
		if n := int(slot) + 1 - s.n; n > 0 {
			s.entries, s.n = append(s.entries, make([]placeEntry, n)...), s.n+n
		}
		s.entries[slot] = at
		return slot
	}
	if n := int(slot) + 1 - len(s.bySlot); n > 0 {
		s.bySlot = append(s.bySlot, make([]uint32, n)...)
	}
	place := s.place(slot)
	switch last := len(s.empty) - 1; {
	case place != noPlace: // it keeps its place
	case last >= 0:
		place, s.empty = s.empty[last], s.empty[:last]
	default:
		place = uint32(s.n)
		s.n++
		s.entries = append(s.entries, placeEntry{})
	}
	s.bySlot[slot], s.entries[place] = place+1, at
	return place
}

// use records that other streams use the allocation in a slot. It returns the place, or none if the
// strategy need not be called.
func (l *layout) use(slot uint32) uint32 {
	place := l.place(slot)
	if place == noPlace || l.entries[place].late {
		return noPlace
	}
	l.entries[place].used = true
	return place
}

// setPlace sets the place of an op to the place of the allocation in a slot, and returns its entry.
func (s *placeTable) setPlace(o *op, slot uint32) (placeEntry, bool) {
	if o.place = s.place(slot); o.place == noPlace {
		return placeEntry{}, false
	}
	at := s.entries[o.place]
	o.size, o.stream = at.size, at.stream
	return at, true
}

// releasePlace frees the place of the allocation in a slot.
func (l *layout) releasePlace(slot uint32) {
	if place := l.place(slot); place != noPlace && !l.keep && !l.bySlots {
		l.bySlot[slot] = 0
		l.empty = append(l.empty, place)
	}
}
