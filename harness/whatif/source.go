package whatif

import (
	"errors"
	"math"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/history"
	"github.com/vramyard/vramyard/harness/trace"
)

// Wanted is a trace in which the refusals of the recorded program are requests, because what was
// refused is what has to be carried. A refusal that the program survived becomes an allocation that
// is freed at once. The last one, with nothing behind it but frees, is one that lives to the end.
type Wanted struct {
	trace.Source              // with requests in the place of refusals
	Demand       alloc.Demand // what it asks for
	Refusals     int          // refusals of the recorded program
	Died         bool         // the last of them ended the program: nothing is allocated behind it
	Last         trace.Event  // the last refusal, if there are any
	LastAt       int          // its number among the events of the source
	Rounded      bool         // of some refusal only what the recorded allocator made of it is known
	Empty        bool         // nothing is asked for but what is live at the start
	Streams      int          // streams that ask for memory
}

// errIDs refuses traces whose ids leave none for refusals.
var errIDs = errors.New("no ids are left for the refused requests")

// Want returns what a trace wants. It walks the trace once; of a trace in memory with refusals it
// keeps a second copy.
func Want(src trace.Source) (*Wanted, error) {
	s := wantSurvey{w: &Wanted{Source: src, Empty: true}, sizes: map[device.Size]struct{}{}, streams: map[device.Stream]struct{}{}}
	if err := src.Pieces(s.take); err != nil {
		return nil, err
	}
	w := s.w
	for n := range s.sizes {
		w.Demand.Sizes = append(w.Demand.Sizes, n)
	}
	slices.Sort(w.Demand.Sizes)
	w.Streams = len(s.streams)
	w.Died = w.Refusals > 0 && !s.goesOn
	if w.Refusals == 0 {
		return w, nil
	}
	if uint64(w.Refusals) > math.MaxUint64-s.id || uint64(w.Refusals)+uint64(s.slots) >= math.MaxUint32 {
		return nil, errIDs
	}
	g := &granting{src: src, firstID: s.id + 1, firstSlot: s.slots, refusals: w.Refusals, died: w.Died}
	w.Source = g
	if t, ok := src.(*trace.Trace); ok {
		return w, w.inMemory(g, t)
	}
	return w, nil
}

// LastEvent returns the number of the request that stands for the last refusal, -1 if there was none.
func (w *Wanted) LastEvent() int {
	if w.Refusals == 0 {
		return -1
	}
	return w.LastAt + w.Refusals - 1 // behind each refusal before it there is a free more
}

// inMemory replaces the source by a trace that is one too: such are replayed faster.
func (w *Wanted) inMemory(g *granting, t *trace.Trace) error {
	c := *t
	c.Events, c.Slots = make([]trace.Event, 0, g.Head().Events), t.Slots+g.refusals
	w.Source = &c
	return g.Pieces(func(events []trace.Event) error {
		c.Events = append(c.Events, events...)
		return nil
	})
}

// wantSurvey is what must be known before the first refusal can be replaced.
type wantSurvey struct {
	w       *Wanted
	sizes   map[device.Size]struct{}
	streams map[device.Stream]struct{}
	size    device.Size   // of the last request
	stream  device.Stream // likewise
	id      uint64        // the largest
	slots   uint32        // the largest and one more
	at      int
	goesOn  bool // something is allocated behind the last refusal
}

// take takes some events.
func (s *wantSurvey) take(events []trace.Event) error {
	for i := range events {
		e := &events[i]
		s.id = max(s.id, e.ID)
		if e.Slot != trace.NoSlot {
			s.slots = max(s.slots, e.Slot+1)
		}
		switch e.Kind {
		case trace.Alloc, trace.LiveAtStart:
			s.goesOn = true
			s.w.Empty = s.w.Empty && e.Kind == trace.LiveAtStart
			s.asks(e)
		case trace.Refused:
			s.w.Empty = false
			s.goesOn = false
			s.asks(e)
			s.w.Refusals++
			s.w.Last, s.w.LastAt = *e, s.at
			s.w.Rounded = s.w.Rounded || s.w.TagOf(e) == history.Rounded
		case trace.PoolBegin:
			s.w.Demand.Pools = true
		}
		s.at++
	}
	return nil
}

// asks takes a request.
func (s *wantSurvey) asks(e *trace.Event) {
	if e.Size != s.size {
		s.size = e.Size
		s.sizes[e.Size] = struct{}{}
	}
	if e.Stream != s.stream || len(s.streams) == 0 {
		s.stream = e.Stream
		s.streams[e.Stream] = struct{}{}
	}
}

// granting is a source with requests in the place of refusals.
type granting struct {
	src       trace.Source
	firstID   uint64
	firstSlot uint32
	refusals  int
	died      bool
}

// Head implements [trace.Source].
func (g *granting) Head() trace.Head {
	h := g.src.Head()
	h.Events += g.refusals // a request and a free for one refusal
	if g.died {
		h.Events--
	}
	return h
}

// TagOf implements [trace.Source].
func (g *granting) TagOf(e *trace.Event) string { return g.src.TagOf(e) }

// Pieces implements [trace.Source].
func (g *granting) Pieces(yield func([]trace.Event) error) error {
	var out []trace.Event
	n := 0
	return g.src.Pieces(func(events []trace.Event) error {
		if !slices.ContainsFunc(events, func(e trace.Event) bool { return e.Kind == trace.Refused }) {
			return yield(events)
		}
		out = out[:0]
		for _, e := range events {
			if e.Kind != trace.Refused {
				out = append(out, e)
				continue
			}
			e.Kind, e.ID, e.Slot = trace.Alloc, g.firstID+uint64(n), g.firstSlot+uint32(n)
			out = append(out, e)
			if n++; n < g.refusals || !g.died {
				out = append(out, trace.Event{Kind: trace.Free, ID: e.ID, Slot: e.Slot, Time: e.Time})
			}
		}
		return yield(out)
	})
}
