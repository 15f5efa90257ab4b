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
	trace  *trace.Trace
	ops    []op
	places int // every place is below it
	bound  func() device.Size
}

// op is what the loop reads of an event, in 24 bytes where the event has 64.
type op struct {
	size   device.Size // asked for; of a free, what the block that it frees was asked for with
	place  uint32      // of the block in the replay's table; noPlace if the event names none
	tag    uint32
	stream uint32
	kind   opKind
}

// opKind says how the loop treats an event.
type opKind uint8

const (
	opEvent opKind = iota // whatever else there is, read from the event itself
	opAlloc               // a request of size bytes, on stream, with tag, and no other wish
	opFree                // a free
)

// noPlace is the place of an event that names no block.
const noPlace = math.MaxUint32

// Prepare lays out a trace. It costs about as much as one replay without a strategy, and 24
// bytes for each event.
func Prepare(t *trace.Trace) *Prepared {
	p := &Prepared{trace: t, ops: make([]op, len(t.Events)), bound: sync.OnceValue(t.LowerBound)}
	s := newSeats(t)
	for i := range t.Events {
		e := &t.Events[i]
		o := &p.ops[i]
		*o = op{size: e.Size, place: noPlace, tag: e.Tag, stream: uint32(e.Stream)}
		switch e.Kind {
		case trace.Alloc, trace.LiveAtStart:
			o.place = s.take(e.Slot, e.Size)
			if e.Align == 0 && e.Hint == 0 && e.Arg == 0 && e.Stream <= math.MaxUint32 {
				o.kind = opAlloc
			}
		case trace.Free:
			if o.place, o.size = s.leave(e.Slot); o.place != noPlace {
				o.kind = opFree
			}
		case trace.BadFree, trace.Use:
			if e.Slot != trace.NoSlot {
				o.place = s.of[e.Slot]
			}
		}
	}
	p.places = s.n
	return p
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
	of    []uint32      // by slot: its place, noPlace if it has none
	sizes []device.Size // by place: bytes that its allocation asked for
	empty []uint32      // places to give again
	n     int           // places so far
	keep  bool          // no place is given again
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

// take returns a place for the allocation of size bytes that begins in a slot.
func (s *seats) take(slot uint32, size device.Size) uint32 {
	place := s.of[slot]
	switch last := len(s.empty) - 1; {
	case place != noPlace: // it keeps its place
	case last >= 0:
		place, s.empty = s.empty[last], s.empty[:last]
	default:
		place = uint32(s.n)
		s.n++
		s.sizes = append(s.sizes, 0)
	}
	s.of[slot], s.sizes[place] = place, size
	return place
}

// leave returns the place of the allocation in a slot, noPlace if there is none, and what it
// asked for.
func (s *seats) leave(slot uint32) (place uint32, size device.Size) {
	if place = s.of[slot]; place == noPlace {
		return noPlace, 0
	}
	if !s.keep {
		s.of[slot] = noPlace
		s.empty = append(s.empty, place)
	}
	return place, s.sizes[place]
}
