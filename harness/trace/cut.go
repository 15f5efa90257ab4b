package trace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Span is a range of events, and of what they are about.
type Span struct {
	First  int            // index of the first event
	End    int            // index of the event behind the last
	Stream *device.Stream // only what is allocated on this stream; nil for all
}

// InTime returns the events of a source from one time up to but not including another, in
// nanoseconds, and whether any event has a time. An event without time has that of the one before.
// O(events).
func InTime(s Source, from, to int64) (span Span, timed bool, err error) {
	n := s.Head().Events
	span = Span{First: n, End: n}
	err = walk(s, func(i int, e *Event) error {
		if e.Time == NoTime {
			return nil
		}
		timed = true
		if e.Time >= from {
			span.First = min(span.First, i)
		}
		if e.Time >= to {
			span.End = min(span.End, i)
		}
		return nil
	})
	span.End = max(span.First, span.End)
	return span, timed, err
}

// Cut returns a part of a trace as a trace of its own, unless the part has more than so many
// events; 0 means [DefaultMaxEvents].
//
// What was live at the start of the part becomes live at the start of the trace, by stream and id.
// What other streams use of it is used again. What was freed but not final is freed at once, so
// that it still becomes final where it did. Private pools that were there are there again, those
// that requests went to in the same order, and the safe frontier is where it was. A block that was
// live in a private pool is allocated in it again, because the model has no opening state of pools:
// behind what is live at the start, and in the pool whose redirection was begun first. What was
// freed within the part and becomes final behind it does so at its end; frees behind it vanish. So
// as many bytes are live behind every event of the part as in the whole.
//
// The part that is the whole is the same trace. Otherwise the header says what was cut. A span that
// does not lie in the trace is an error. The source is walked twice and not kept: memory grows with
// the part and with what is live at once. O(events).
func Cut(s Source, span Span, most int) (*Trace, error) {
	head := s.Head()
	if span.First < 0 || span.First > span.End || span.End > head.Events {
		return nil, fmt.Errorf("events %d:%d: the trace has %d", span.First, span.End, head.Events)
	}
	if most <= 0 {
		most = DefaultMaxEvents
	}
	c := &cutter{
		Span: span, s: s, b: NewBuilder(cutHeader(head, span)), most: most,
		uses: map[uint32][]cutUse{}, left: map[uint64]*cutBlock{},
		drained: map[device.Stream]int{}, pools: map[uint64]*cutPool{}, drains: map[device.Stream]bool{},
	}
	if span.First > 0 {
		if err := walk(s, c.look); err != nil {
			return nil, err
		}
		if err := c.opening(); err != nil {
			return nil, err
		}
	}
	if err := walk(s, c.take); err != nil {
		return nil, err
	}
	return c.b.Trace(), nil
}

// cutHeader returns the header of a part.
func cutHeader(head Head, s Span) Header {
	h := head.Header
	if s.First > 0 || s.End < head.Events || s.Stream != nil {
		h.Hash = ""
		h.Meta = append(slices.Clip(h.Meta), Pair{"cut", fmt.Sprintf("events %d:%d of %d", s.First, s.End, head.Events)})
	}
	if s.Stream != nil {
		h.Meta = append(h.Meta, Pair{"cut_stream", fmt.Sprint(*s.Stream)})
	}
	return h
}

// cutSlot is what is known of an allocation at some event.
type cutSlot struct {
	Event        // the allocation as one that is live at the start
	freed int    // event of its free, counted from 1; 0 while it is live
	pool  uint32 // the private pool it went to, as cutter.order has it, counted from 1; 0 for none
	there bool   // the slot has an allocation of the part's streams
	known bool   // the part has it
}

// cutBlock is an allocation with its uses.
type cutBlock struct {
	cutSlot
	uses []cutUse
}

// cutUse is a use by another stream.
type cutUse struct {
	at     int // event
	stream device.Stream
}

// cutPool is what is known of a private pool.
type cutPool struct {
	number uint32 // in cutter.order, counted from 1
	users  int    // begun by redirections of the part, and not released, so often
	open   int    // redirections of the part that have not ended
}

// cutOpen is a redirection into a pool that has not ended.
type cutOpen struct {
	pool   uint64
	stream device.Stream
}

// cutter takes a part out of a trace, in two walks. The first follows what is there up to the part,
// and looks for what becomes of it behind. The second copies the part.
type cutter struct {
	Span
	s       Source
	b       *Builder
	most    int
	slots   []cutSlot
	uses    map[uint32][]cutUse   // of the allocations in some slots; those drained are there or not
	left    map[uint64]*cutBlock  // by id: freed allocations whose slots have others, while a use may wait
	prune   int                   // length of left at which it is looked through
	drained map[device.Stream]int // event of the last drain
	pools   map[uint64]*cutPool
	order   []uint64  // pools as they were first begun
	open    []cutOpen // redirections, as they were begun
	raised  *Event    // the last Frontier

	fates  []cutFate              // by slot
	drains map[device.Stream]bool // streams that are drained later
}

// cutFate is what comes first, behind the start of the part, to an allocation that was freed.
type cutFate uint8

const (
	fateNone  cutFate = iota
	fateFinal         // the free becomes final
	fateAgain         // its slot is given to another allocation, or freed anew
)

// look is the first walk.
func (c *cutter) look(i int, e *Event) error {
	if i < c.First {
		c.pass(i, e)
		return nil
	}
	switch e.Kind {
	case Alloc, LiveAtStart, Free:
		c.meets(e.Slot, fateAgain)
	case Completed:
		c.meets(e.Slot, fateFinal)
	case Drain:
		c.drains[e.Stream] = true
	}
	return nil
}

// meets books what comes to a slot, if it is the first.
func (c *cutter) meets(slot uint32, f cutFate) {
	if c.fates = grown(c.fates, slot); c.fates[slot] == fateNone {
		c.fates[slot] = f
	}
}

// take is the second walk: it copies the part, and behind it lets become final what was freed in
// it.
func (c *cutter) take(i int, e *Event) error {
	switch {
	case i < c.First:
	case i < c.End:
		if c.pass(i, e) {
			return c.add(*e)
		}
	case e.Kind == Alloc, e.Kind == LiveAtStart:
		c.slots = grown(c.slots, e.Slot)
		c.slots[e.Slot] = cutSlot{}
	case e.Kind == Free:
		c.slots[e.Slot].known = false
	case e.Kind == Completed && c.slots[e.Slot].known:
		return c.add(Event{Kind: Completed, ID: e.ID, Time: NoTime})
	}
	return nil
}

// add adds an event to the part, with the tag that it has in the source.
func (c *cutter) add(e Event) error {
	e.Tag = c.b.Tag(c.s.TagOf(&e))
	if len(c.b.trace.Events) >= c.most {
		return fmt.Errorf("the part has more than %d events", c.most)
	}
	return c.b.Add(e)
}

// wanted reports whether a stream belongs to the part.
func (c *cutter) wanted(s device.Stream) bool { return c.Stream == nil || *c.Stream == s }

// redirects reports whether a redirection of a stream, or of all, is one of the part.
func (c *cutter) redirects(s device.Stream) bool { return s == AllStreams || c.wanted(s) }

// pass moves the state over event i and reports whether the part wants the event, if it lies in it.
func (c *cutter) pass(i int, e *Event) bool {
	switch e.Kind {
	case Alloc, LiveAtStart:
		return c.born(i, e)
	case Free, Use, Completed, BadFree:
		return c.passBlock(i, e)
	case Drain:
		c.drained[e.Stream] = i
	case Frontier:
		c.raised = &Event{Kind: Frontier, Arg: e.Arg, Time: NoTime}
	case Refused:
		return c.wanted(e.Stream)
	case PoolBegin, PoolEnd, PoolRelease:
		return c.passPool(e)
	}
	return true
}

// born is pass for an allocation.
func (c *cutter) born(i int, e *Event) bool {
	c.slots = grown(c.slots, e.Slot)
	s := &c.slots[e.Slot]
	if uses := c.uses[e.Slot]; len(uses) > 0 {
		if i < c.First && s.there && s.ID != e.ID {
			c.leave(&cutBlock{*s, uses})
		}
		delete(c.uses, e.Slot)
	}
	delete(c.left, e.ID)
	*s = cutSlot{}
	if !c.wanted(e.Stream) {
		return false
	}
	*s = cutSlot{Event: *e, there: true, known: i >= c.First}
	s.Kind, s.Hint, s.Arg, s.Time = LiveAtStart, alloc.HintNone, 0, NoTime
	k := slices.IndexFunc(c.open, func(o cutOpen) bool { return o.stream == AllStreams || o.stream == e.Stream })
	if e.Kind == Alloc && k >= 0 {
		s.pool = c.pools[c.open[k].pool].number
	}
	return true
}

// leave keeps a freed allocation whose slot is given to another. When there are twice as many as
// there were, those are dropped that all streams are through with, so that it holds what waits.
func (c *cutter) leave(b *cutBlock) {
	const least = 64
	if len(c.left) >= max(c.prune, least) {
		maps.DeleteFunc(c.left, func(_ uint64, b *cutBlock) bool { return !slices.ContainsFunc(b.uses, c.pendingUse) })
		c.prune = 2 * len(c.left)
	}
	c.left[b.ID] = b
}

// passBlock is pass for an event about a block.
func (c *cutter) passBlock(i int, e *Event) bool {
	if e.Slot == NoSlot {
		return c.Stream == nil
	}
	s := &c.slots[e.Slot]
	switch {
	case !s.there:
		return false
	case e.Kind == Free:
		s.freed = i + 1
	case e.Kind == Use:
		pending := slices.DeleteFunc(c.uses[e.Slot], func(u cutUse) bool { return !c.pendingUse(u) })
		c.uses[e.Slot] = append(pending, cutUse{i, e.Stream})
	case e.Kind == Completed:
		wanted := s.known
		if i < c.First {
			*s = cutSlot{}
			delete(c.uses, e.Slot)
		}
		return wanted
	}
	return s.known
}

// passPool is pass for an event about a private pool.
func (c *cutter) passPool(e *Event) bool {
	p := c.pools[e.Arg]
	if p == nil {
		c.order = append(c.order, e.Arg)
		p = &cutPool{number: uint32(len(c.order))}
		c.pools[e.Arg] = p
	}
	switch e.Kind {
	case PoolBegin:
		c.open = append(c.open, cutOpen{e.Arg, e.Stream})
		if !c.redirects(e.Stream) {
			return false
		}
		p.users++
		p.open++
	case PoolEnd:
		k := slices.IndexFunc(c.open, func(o cutOpen) bool { return o.pool == e.Arg }) // the one begun first ends
		if k < 0 {
			return c.Stream == nil
		}
		ended := c.open[k].stream
		c.open = slices.Delete(c.open, k, k+1)
		if !c.redirects(ended) {
			return false
		}
		p.open--
	case PoolRelease:
		if p.users == 0 {
			return c.Stream == nil
		}
		p.users--
	}
	return true
}

// drainedLater reports whether a stream that a freed allocation waits for is drained in the part or
// behind it.
func (c *cutter) drainedLater(uses []cutUse) bool {
	return slices.ContainsFunc(uses, func(u cutUse) bool { return c.pendingUse(u) && c.drains[u.stream] })
}

// pendingUse reports whether the stream of a use has not been drained since.
func (c *cutter) pendingUse(u cutUse) bool {
	drained, ok := c.drained[u.stream]
	return !ok || drained < u.at
}

// blocks returns what was there at the start of the part, by stream and id: what is live, and what
// is freed and not final, because the trace says later that it is or drains a stream that uses it.
func (c *cutter) blocks() []*cutBlock {
	var list []*cutBlock
	for i := range c.slots {
		s, slot := &c.slots[i], uint32(i)
		if !s.there {
			continue
		}
		final := i < len(c.fates) && c.fates[i] == fateFinal
		if s.known = s.freed == 0 || final || c.drainedLater(c.uses[slot]); s.known {
			list = append(list, &cutBlock{*s, c.uses[slot]})
		}
	}
	for _, b := range c.left {
		if c.drainedLater(b.uses) {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b *cutBlock) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// opening adds what was there at the start of the part.
func (c *cutter) opening() error {
	list := c.blocks()
	inPools := map[uint32][]Event{}
	for _, s := range list {
		e := s.Event
		if s.pool > 0 {
			e.Kind = Alloc
			inPools[s.pool] = append(inPools[s.pool], e)
		} else if err := c.add(e); err != nil {
			return err
		}
	}
	for _, e := range append(c.openPools(inPools), c.pendingEvents(list)...) {
		if err := c.add(e); err != nil {
			return err
		}
	}
	return nil
}

// pendingEvents returns the uses that were not drained and the frees that were not final, in their
// order, and the safe frontier.
func (c *cutter) pendingEvents(list []*cutBlock) []Event {
	type dated struct {
		at int
		Event
	}
	var past []dated
	for _, s := range list {
		for _, u := range s.uses {
			if c.pendingUse(u) {
				past = append(past, dated{u.at, Event{Kind: Use, ID: s.ID, Stream: u.stream, Time: NoTime}})
			}
		}
		if s.freed > 0 {
			past = append(past, dated{s.freed - 1, Event{Kind: Free, ID: s.ID, Time: NoTime}})
		}
	}
	slices.SortFunc(past, func(a, b dated) int { return cmp.Compare(a.at, b.at) })
	var events []Event
	for _, e := range past {
		events = append(events, e.Event)
	}
	if c.raised != nil {
		events = append(events, *c.raised)
	}
	return events
}

// openPools returns the events that begin the pools that were there, with their blocks. Each is
// begun and ended once for every user without an open redirection, and its blocks are allocated in
// between. Then the redirections are begun in their order, and what has more of them than users is
// released.
func (c *cutter) openPools(blocks map[uint32][]Event) (events []Event) {
	closed := make([]int, len(c.order))
	for k, id := range c.order {
		p := c.pools[id]
		closed[k] = max(p.users-p.open, min(len(blocks[p.number]), 1))
		for n := range closed[k] {
			events = append(events, Event{Kind: PoolBegin, Arg: id, Stream: AllStreams, Time: NoTime})
			if n == 0 {
				events = append(events, blocks[p.number]...)
			}
			events = append(events, Event{Kind: PoolEnd, Arg: id, Time: NoTime})
		}
	}
	for _, o := range c.open {
		if c.redirects(o.stream) {
			events = append(events, Event{Kind: PoolBegin, Arg: o.pool, Stream: o.stream, Time: NoTime})
		}
	}
	for k, id := range c.order {
		for range closed[k] + c.pools[id].open - c.pools[id].users {
			events = append(events, Event{Kind: PoolRelease, Arg: id, Time: NoTime})
		}
	}
	return events
}
