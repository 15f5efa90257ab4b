package replay

import (
	"math"
	"sync"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// Prepared is a trace laid out for replays: of each event what the loop reads, side by side,
// and of the whole what every replay needs to know. It serves any number of replays at once,
// as long as nobody changes the trace.
type Prepared struct {
	trace   *trace.Trace
	layouts [numTimings]func() *layout
	streams []device.Stream // those of the requests, by the number that an op has
	bound   func() device.Size
}

// layout is what the loop reads.
type layout struct {
	ops     []op
	places  int   // every place is below it
	pending bool  // some free leaves memory pending, if the strategy knows streams
	err     error // why the trace cannot be replayed so
}

// op is what the loop reads of an event, in 24 bytes where the event has 64.
type op struct {
	size   device.Size // asked for; of a free, what the block that it frees was asked for with
	place  uint32      // of the block in the replay's table; noPlace if the event names none
	tag    uint32
	stream uint32 // number of the request's stream; of a free, that of its block
	kind   opKind
}

// opKind says how the loop treats an event.
type opKind uint8

const (
	opEvent   opKind = iota // whatever else there is, read from the event itself
	opPending               // a free of a block that other streams use
	opDelayed               // a free that becomes final at a later event, or that event
	opAlloc                 // a request of size bytes, on stream, with tag, and no other wish
	opFree                  // a free
)

// noPlace is the place of an event that names no block.
const noPlace = math.MaxUint32

// Prepare lays out a trace. It costs about as much as one replay without a strategy, and 24
// bytes for each event; as much again for each timing that a replay of a trace with delayed
// frees asks for first.
func Prepare(t *trace.Trace) *Prepared {
	p := &Prepared{trace: t, bound: sync.OnceValue(t.LowerBound)}
	numbers := map[device.Stream]uint32{}
	late := delaysOf(t)
	requested := p.lay(atRequest, nil, numbers)
	p.layouts[atRequest] = func() *layout { return requested }
	for _, when := range [...]timing{atCompletion, onStreams} {
		p.layouts[when] = p.layouts[atRequest]
		if when == onStreams && hasUses(t) || late != nil {
			p.layouts[when] = sync.OnceValue(func() *layout { return p.lay(when, late, numbers) })
		}
	}
	return p
}

// lay lays out the trace for a timing. Numbers are those of the streams.
func (p *Prepared) lay(when timing, late delays, numbers map[device.Stream]uint32) *layout {
	t := p.trace
	l := &layout{ops: make([]op, len(t.Events))}
	s := newSeats(t)
	for i := range t.Events {
		e := &t.Events[i]
		o := &l.ops[i]
		*o = op{size: e.Size, place: noPlace, tag: e.Tag}
		if when == onStreams && late != nil && l.err == nil {
			l.err = reserved(i, e)
		}
		switch e.Kind {
		case trace.Alloc, trace.LiveAtStart:
			o.stream = p.number(e.Stream, numbers)
			o.place = s.take(e.Slot, e.Size, o.stream)
			if e.Align == 0 && e.Hint == 0 && e.Arg == 0 {
				o.kind = opAlloc
			}
		case trace.Free:
			l.free(o, s, e.Slot, when, late.has(i))
		case trace.Completed:
			if late.has(i) {
				l.complete(o, s, e.Slot)
			}
		case trace.Use:
			if !late.has(i) {
				o.place = s.of[e.Slot]
				s.use(o.place)
			}
		case trace.BadFree:
			if e.Slot != trace.NoSlot {
				o.place = s.of[e.Slot]
			}
		}
	}
	l.places = s.n
	return l
}

// number returns the number of a stream.
func (p *Prepared) number(s device.Stream, numbers map[device.Stream]uint32) uint32 {
	n, ok := numbers[s]
	if !ok {
		n = uint32(len(p.streams))
		numbers[s] = n
		p.streams = append(p.streams, s)
	}
	return n
}

// LowerBound returns the most bytes that the trace has live at once, as requested: no
// allocator can reserve less. It is worked out once.
func (p *Prepared) LowerBound() device.Size { return p.bound() }

// Trace returns the trace that was prepared.
func (p *Prepared) Trace() *trace.Trace { return p.trace }

// seats gives live allocations places in a table. A place is given again once it is free, the
// last one first, so that the table is as small as what is live at once and stays in the
// processor's caches; slots are as many as the trace has allocations.
type seats struct {
	of    []uint32 // by slot: its place, noPlace if it has none
	seats []seat   // by place
	empty []uint32 // places to give again
	n     int      // places so far
	keep  bool     // no place is given again
}

// seat is what the allocation at a place asked for.
type seat struct {
	size   device.Size // bytes
	stream uint32      // by number
	used   bool        // other streams use it
}

// newSeats returns seats for the slots of a trace.
func newSeats(t *trace.Trace) *seats {
	s := &seats{of: make([]uint32, t.Slots), keep: hasFaults(t)}
	for i := range s.of {
		s.of[i] = noPlace
	}
	return s
}

// hasFaults reports whether a trace names blocks that were freed, or makes frees fail, after
// which the block is live although the trace has done with it. Such blocks keep their places.
func hasFaults(t *trace.Trace) bool {
	if _, ok := t.Header.Get(faultKey); ok {
		return true
	}
	for i := range t.Events {
		if k := t.Events[i].Kind; k == trace.BadFree || k == trace.Fault {
			return true
		}
	}
	return false
}

// take returns a place for the allocation of size bytes on a stream that begins in a slot.
func (s *seats) take(slot uint32, size device.Size, stream uint32) uint32 {
	place := s.of[slot]
	switch last := len(s.empty) - 1; {
	case place != noPlace: // it keeps its place
	case last >= 0:
		place, s.empty = s.empty[last], s.empty[:last]
	default:
		place = uint32(s.n)
		s.n++
		s.seats = append(s.seats, seat{})
	}
	s.of[slot], s.seats[place] = place, seat{size: size, stream: stream}
	return place
}

// use notes that other streams use the allocation at a place.
func (s *seats) use(place uint32) {
	if place != noPlace {
		s.seats[place].used = true
	}
}

// name makes an op name the allocation in a slot, if there is one, and returns its seat.
func (s *seats) name(o *op, slot uint32) (seat, bool) {
	if o.place = s.of[slot]; o.place == noPlace {
		return seat{}, false
	}
	at := s.seats[o.place]
	o.size, o.stream = at.size, at.stream
	return at, true
}

// leave gives up the place of the allocation in a slot.
func (s *seats) leave(slot uint32) {
	if place := s.of[slot]; place != noPlace && !s.keep {
		s.of[slot] = noPlace
		s.empty = append(s.empty, place)
	}
}
