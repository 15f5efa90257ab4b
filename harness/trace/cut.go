package trace

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/vramyard/vramyard/device"
)

// Span is a range of events, and of what they are about.
type Span struct {
	First  int            // index of the first event
	End    int            // index of the event behind the last
	Stream *device.Stream // only what is allocated on this stream; nil for all
}

// InTime returns the events from one time up to but not including another, in nanoseconds. An event
// without time has that of the one before. O(log events) where all have times.
func (t *Trace) InTime(from, to int64) Span {
	at := func(time int64) int {
		return sort.Search(len(t.Events), func(i int) bool {
			for ; i >= 0; i-- {
				if t.Events[i].Time != NoTime {
					return t.Events[i].Time >= time
				}
			}
			return false
		})
	}
	return Span{First: at(from), End: max(at(from), at(to))}
}

// Cut returns a part of the trace as a trace of its own.
//
// What was live at the start of the part becomes live at the start of the trace, by stream and id. What
// other streams use of it is used again. What was freed but not final is freed at once, so that it
// still becomes final where it did. Private pools that were there are there again, those that
// requests went to in the same order, and the safe frontier is where it was. What was freed within
// the part and becomes final behind it does so at its end; frees behind it vanish. So as many bytes
// are live behind every event of the part as in the whole. Blocks that were live in private
// pools are outside of them: the model has no opening state of pools.
//
// The part that is the whole is the same trace. Otherwise the header says what was cut. A span that does
// not lie in the trace is an error. O(events).
func (t *Trace) Cut(s Span) (*Trace, error) {
	if s.First < 0 || s.First > s.End || s.End > len(t.Events) {
		return nil, fmt.Errorf("events %d:%d: the trace has %d", s.First, s.End, len(t.Events))
	}
	h := t.Header
	if s.First > 0 || s.End < len(t.Events) || s.Stream != nil {
		h.Hash = ""
		h.Meta = append(slices.Clip(h.Meta), Pair{"cut", fmt.Sprintf("events %d:%d of %d", s.First, s.End, len(t.Events))})
	}
	if s.Stream != nil {
		h.Meta = append(h.Meta, Pair{"cut_stream", fmt.Sprint(*s.Stream)})
	}
	c := &cutter{
		Trace: t, Span: s, b: NewBuilder(h), slots: make([]cutSlot, t.Slots),
		drained: map[device.Stream]int{}, pools: map[uint64]*cutPool{}, frontier: -1,
	}
	for i := range s.First {
		c.pass(i)
	}
	c.lookAhead()
	if err := c.opening(); err != nil {
		return nil, err
	}
	for i := s.First; i < s.End; i++ {
		if c.pass(i) {
			if err := c.copy(i); err != nil {
				return nil, err
			}
		}
	}
	if err := c.closing(); err != nil {
		return nil, err
	}
	return c.b.Trace(), nil
}

// cutSlot is what is known of an allocation at some event.
type cutSlot struct {
	born  int   // event of its birth, counted from 1; 0 if it is not there
	freed int   // event of its free, counted from 1; 0 while it is live
	uses  []int // events of its uses
	known bool  // the part has it
}

// cutPool is what is known of a private pool.
type cutPool struct {
	users int   // begun and not released, so often
	open  []int // events that began redirections that have not ended
}

// cutter takes a part out of a trace.
type cutter struct {
	*Trace
	Span
	b        *Builder
	slots    []cutSlot
	drained  map[device.Stream]int // event of the last drain
	pools    map[uint64]*cutPool
	order    []uint64 // pools as they were first begun
	frontier int      // event of the last Frontier, or -1

	final  map[uint32]bool        // slots whose free before the part becomes final later
	drains map[device.Stream]bool // streams that are drained later
}

// wanted reports whether a stream belongs to the part.
func (c *cutter) wanted(s device.Stream) bool { return c.Stream == nil || *c.Stream == s }

// pass moves the state over event i and reports whether the part wants the event, if it lies in it.
func (c *cutter) pass(i int) bool {
	e := &c.Events[i]
	switch e.Kind {
	case Alloc, LiveAtStart:
		c.slots[e.Slot] = cutSlot{}
		if c.wanted(e.Stream) {
			c.slots[e.Slot] = cutSlot{born: i + 1, known: i >= c.First}
			return true
		}
		return false
	case Free, Use, Completed, BadFree:
		return c.passBlock(i, e)
	case Drain:
		c.drained[e.Stream] = i
	case Frontier:
		c.frontier = i
	case Refused:
		return c.wanted(e.Stream)
	case PoolBegin, PoolEnd, PoolRelease:
		return c.passPool(i, e)
	}
	return true
}

// passBlock is pass for an event about a block.
func (c *cutter) passBlock(i int, e *Event) bool {
	if e.Slot == NoSlot {
		return c.Stream == nil
	}
	s := &c.slots[e.Slot]
	switch {
	case s.born == 0:
		return false
	case e.Kind == Free:
		s.freed = i + 1
	case e.Kind == Use:
		s.uses = append(s.uses, i)
	case e.Kind == Completed:
		wanted := s.known
		if i < c.First {
			*s = cutSlot{}
		}
		return wanted
	}
	return s.known
}

// passPool is pass for an event about a private pool.
func (c *cutter) passPool(i int, e *Event) bool {
	p := c.pools[e.Arg]
	if p == nil {
		p = &cutPool{}
		c.pools[e.Arg] = p
		c.order = append(c.order, e.Arg)
	}
	switch e.Kind {
	case PoolBegin:
		if e.Stream != AllStreams && !c.wanted(e.Stream) {
			return false
		}
		p.users++
		p.open = append(p.open, i)
	case PoolEnd:
		if len(p.open) == 0 {
			return c.Stream == nil
		}
		p.open = p.open[:len(p.open)-1]
	case PoolRelease:
		if p.users == 0 {
			return c.Stream == nil
		}
		p.users--
	}
	return true
}

// lookAhead finds out which frees before the part become final in it or later, and which streams
// are drained.
func (c *cutter) lookAhead() {
	c.final, c.drains = map[uint32]bool{}, map[device.Stream]bool{}
	again := map[uint32]bool{} // slots that are given to another allocation or freed anew
	for i := c.First; i < len(c.Events); i++ {
		switch e := &c.Events[i]; e.Kind {
		case Alloc, LiveAtStart, Free:
			again[e.Slot] = true
		case Completed:
			if !again[e.Slot] {
				c.final[e.Slot] = true
			}
		case Drain:
			c.drains[e.Stream] = true
		}
	}
}

// waits reports whether the free of a slot is not final at the start of the part: the trace says later
// that it is, or a stream that uses it is drained later.
func (c *cutter) waits(slot uint32) bool {
	if c.final[slot] {
		return true
	}
	return slices.ContainsFunc(c.slots[slot].uses, func(i int) bool {
		stream := c.Events[i].Stream
		return c.pendingUse(i) && c.drains[stream]
	})
}

// pendingUse reports whether the use at event i has not been drained before the part.
func (c *cutter) pendingUse(i int) bool {
	drained, ok := c.drained[c.Events[i].Stream]
	return !ok || drained < i
}

// opening adds what was there at the start of the part.
func (c *cutter) opening() error {
	var slots []uint32
	for i := range c.slots {
		if s := &c.slots[i]; s.born > 0 && (s.freed == 0 || c.waits(uint32(i))) {
			s.known = true
			slots = append(slots, uint32(i))
		}
	}
	birth := func(slot uint32) *Event { return &c.Events[c.slots[slot].born-1] }
	slices.SortFunc(slots, func(a, b uint32) int {
		x, y := birth(a), birth(b)
		return cmp.Or(cmp.Compare(x.Stream, y.Stream), cmp.Compare(x.ID, y.ID))
	})
	var events []int // uses and frees, each of which is repeated
	for _, slot := range slots {
		e := *birth(slot)
		e.Kind, e.Hint, e.Arg, e.Time, e.Tag = LiveAtStart, 0, 0, NoTime, c.b.Tag(c.TagOf(&e))
		if err := c.b.Add(e); err != nil {
			return err
		}
		s := &c.slots[slot]
		for _, i := range s.uses {
			if c.pendingUse(i) {
				events = append(events, i)
			}
		}
		if s.freed > 0 {
			events = append(events, s.freed-1)
		}
	}
	slices.Sort(events)
	if c.frontier >= 0 {
		events = append(events, c.frontier)
	}
	for _, i := range events {
		e := c.Events[i]
		e.Time = NoTime
		if err := c.b.Add(e); err != nil {
			return err
		}
	}
	return c.openPools()
}

// openPools begins the pools that were there: those that nothing goes to any more are begun and ended,
// then the redirections are begun in their order.
func (c *cutter) openPools() error {
	var events []Event
	var begun []int
	for _, id := range c.order {
		p := c.pools[id]
		for range p.users - len(p.open) {
			events = append(events, Event{Kind: PoolBegin, Arg: id, Stream: AllStreams}, Event{Kind: PoolEnd, Arg: id})
		}
		begun = append(begun, p.open...)
	}
	slices.Sort(begun)
	for _, i := range begun {
		events = append(events, c.Events[i])
	}
	for _, id := range c.order {
		for range len(c.pools[id].open) - c.pools[id].users {
			events = append(events, Event{Kind: PoolRelease, Arg: id})
		}
	}
	for _, e := range events {
		e.Time = NoTime
		if err := c.b.Add(e); err != nil {
			return err
		}
	}
	return nil
}

// copy adds event i to the part.
func (c *cutter) copy(i int) error {
	e := c.Events[i]
	e.Tag = c.b.Tag(c.TagOf(&e))
	return c.b.Add(e)
}

// closing lets become final what was freed in the part and does so behind it.
func (c *cutter) closing() error {
	for i := c.End; i < len(c.Events); i++ {
		e := &c.Events[i]
		switch e.Kind {
		case Alloc, LiveAtStart:
			c.slots[e.Slot] = cutSlot{}
		case Free:
			c.slots[e.Slot].known = false
		case Completed:
			if !c.slots[e.Slot].known {
				continue
			}
			if err := c.b.Add(Event{Kind: Completed, ID: e.ID, Time: NoTime}); err != nil {
				return err
			}
		}
	}
	return nil
}
