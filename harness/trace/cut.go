package trace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Span selects a range of events and a stream.
type Span struct {
	First  int            // index of the first event
	End    int            // index after the last event
	Stream *device.Stream // only allocations on this stream; nil for all
}

// InTime returns the events in the time interval [from, to) of nanoseconds, and whether any event
// has a time. An event without time has the time of the previous one. O(events).
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

// Cut returns a part of a trace as a trace of its own. It fails if the part has more than maxEvents
// events; 0 means [DefaultMaxEvents].
//
// Blocks live at the start of the part become live at the start of the trace, by stream and id.
// Uses of them by other streams are repeated. Blocks that were freed but not final are freed at
// once, and become final where they did. Open private pools are begun again, with their requests in
// the same order, and the safe frontier, changed settings and paused tags are restored. A live
// block of a private pool is allocated in that pool again, because a trace has no opening state of
// pools: after the blocks live at the start, in the pool whose redirection was begun first. A free
// of the part that becomes final after it does so at its end; later frees are dropped. So after
// every event of the part the live bytes are the same as in the whole.
//
// A part that is the whole is the same trace. Otherwise the header describes the cut. A span
// outside of the trace is an error. Cut walks the source twice; memory grows with the part and with
// the live blocks. O(events).
func Cut(s Source, span Span, maxEvents int) (*Trace, error) {
	head := s.Head()
	if span.First < 0 || span.First > span.End || span.End > head.Events {
		return nil, fmt.Errorf("events %d:%d: the trace has %d", span.First, span.End, head.Events)
	}
	if maxEvents <= 0 {
		maxEvents = DefaultMaxEvents
	}
	c := &cutter{
		Span: span, s: s, b: NewBuilder(cutHeader(head, span)), maxEvents: maxEvents,
		uses: map[uint32][]cutUse{}, reused: map[uint64]*cutBlock{},
		drained: map[device.Stream]int{}, pools: map[uint64]*cutPool{}, drains: map[device.Stream]bool{},
	}
	if span.First > 0 {
		if err := walk(s, c.scan); err != nil {
			return nil, err
		}
		if err := c.opening(); err != nil {
			return nil, err
		}
	}
	if span.Stream == nil {
		c.b.Grow(min(span.End-span.First, maxEvents))
	}
	if err := walk(s, c.copy); err != nil {
		return nil, err
	}
	return c.b.Trace(), nil
}

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

// cutSlot is the state of the allocation in a slot.
type cutSlot struct {
	Event           // the allocation, in the form of a LiveAtStart
	freed    int    // number of its free event, counted from 1; 0 while it is live
	pool     uint32 // number of its private pool in cutter.order, counted from 1; 0 for none
	selected bool   // the allocation is on the span's stream
	included bool   // the allocation is in the part
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

// cutPool is the state of a private pool.
type cutPool struct {
	number  uint32 // index in cutter.order, plus 1
	users   int    // begins by redirections of the part, minus releases
	open    int    // open redirections of the part
	options uint32 // tag of its latest options
}

// cutOpen is an open redirection into a pool.
type cutOpen struct {
	pool   uint64
	stream device.Stream
}

// cutter extracts a part of a trace in two walks. The first tracks the state before the part, and
// the fate of its allocations after it. The second copies the part.
type cutter struct {
	Span
	s         Source
	b         *Builder
	maxEvents int
	slots     []cutSlot
	uses      map[uint32][]cutUse   // uses of the allocations in some slots; may include drained ones
	reused    map[uint64]*cutBlock  // by id: freed allocations whose slots were reused, while a use may be pending
	pruneAt   int                   // size of reused at which it is pruned
	drained   map[device.Stream]int // event of the last drain
	pools     map[uint64]*cutPool
	order     []uint64  // pools by their first begin
	open      []cutOpen // open redirections, in order
	frontier  *Event    // the last Frontier
	confs     []Event   // the last Conf of each text, in order
	pauses    []Event   // what restores the paused tags

	fates  []cutFate              // by slot
	drains map[device.Stream]bool // streams that are drained later
}

// cutFate is the first event after the start of the part for a freed allocation.
type cutFate uint8

const (
	fateNone   cutFate = iota
	fateFinal          // the free becomes final
	fateReused         // its slot is reused, or freed again
)

// scan processes event i of the first walk.
func (c *cutter) scan(i int, e *Event) error {
	if i < c.First {
		c.apply(i, e)
		return nil
	}
	switch e.Kind {
	case Alloc, LiveAtStart, Free:
		c.setFate(e.Slot, fateReused)
	case Completed:
		c.setFate(e.Slot, fateFinal)
	case Drain:
		c.drains[e.Stream] = true
	}
	return nil
}

// setFate records the fate of a slot, if it is the first.
func (c *cutter) setFate(slot uint32, f cutFate) {
	if c.fates = grown(c.fates, slot); c.fates[slot] == fateNone {
		c.fates[slot] = f
	}
}

// copy processes event i of the second walk: it copies the part, and completes the frees of the
// part after it.
func (c *cutter) copy(i int, e *Event) error {
	switch {
	case i < c.First:
	case i < c.End:
		if c.apply(i, e) {
			return c.add(e)
		}
	case e.Kind == Alloc, e.Kind == LiveAtStart:
		c.slots = grown(c.slots, e.Slot)
		c.slots[e.Slot] = cutSlot{}
	case e.Kind == Free:
		c.slots[e.Slot].included = false
	case e.Kind == Completed && c.slots[e.Slot].included:
		return c.add(&Event{Kind: Completed, ID: e.ID, Time: NoTime})
	}
	return nil
}

// add adds an event to the part, with its tag in the source.
func (c *cutter) add(e *Event) error {
	own := *e
	own.Tag = c.b.Tag(c.s.TagOf(e))
	if len(c.b.trace.Events) >= c.maxEvents {
		return fmt.Errorf("the part has more than %d events", c.maxEvents)
	}
	return c.b.Add(own)
}

// onStream reports whether a stream belongs to the part.
func (c *cutter) onStream(s device.Stream) bool { return c.Stream == nil || *c.Stream == s }

// redirects reports whether a redirection of a stream, or of all, belongs to the part.
func (c *cutter) redirects(s device.Stream) bool { return s == AllStreams || c.onStream(s) }

// apply applies event i to the state, and reports whether it is one of the part if in the span.
func (c *cutter) apply(i int, e *Event) bool {
	switch e.Kind {
	case Alloc, LiveAtStart:
		return c.allocate(i, e)
	case Free, Use, Completed, BadFree:
		return c.applyBlock(i, e)
	case Drain:
		c.drained[e.Stream] = i
	case Frontier:
		c.frontier = &Event{Kind: Frontier, Arg: e.Arg, Time: NoTime}
	case Conf:
		// A setting lasts until a later text overrides it, so earlier events of a text do not matter.
		c.confs = slices.DeleteFunc(c.confs, func(o Event) bool { return o.Tag == e.Tag })
		c.confs = append(c.confs, Event{Kind: Conf, Tag: e.Tag, Time: NoTime})
	case Pause, Resume:
		c.pause(e)
	case Refused:
		return c.onStream(e.Stream)
	case PoolBegin, PoolEnd, PoolRelease:
		return c.applyPool(e)
	}
	return true
}

// pause is apply for a Pause or a Resume.
func (c *cutter) pause(e *Event) {
	own := Event{Kind: e.Kind, Tag: e.Tag, Time: NoTime}
	switch i := slices.IndexFunc(c.pauses, func(o Event) bool { return o.Tag == e.Tag }); {
	case e.Tag == 0 && e.Kind == Pause:
		c.pauses = []Event{own}
	case e.Tag == 0:
		c.pauses = nil
	case i >= 0: // the opposite, which it undoes
		c.pauses = slices.Delete(c.pauses, i, i+1)
	default:
		c.pauses = append(c.pauses, own)
	}
}

// allocate is apply for an allocation.
func (c *cutter) allocate(i int, e *Event) bool {
	c.slots = grown(c.slots, e.Slot)
	s := &c.slots[e.Slot]
	if uses := c.uses[e.Slot]; len(uses) > 0 {
		if i < c.First && s.selected && s.ID != e.ID {
			c.keepReused(&cutBlock{*s, uses})
		}
		delete(c.uses, e.Slot)
	}
	delete(c.reused, e.ID)
	*s = cutSlot{}
	if !c.onStream(e.Stream) {
		return false
	}
	*s = cutSlot{Event: *e, selected: true, included: i >= c.First}
	s.Kind, s.Hint, s.Arg, s.Time = LiveAtStart, alloc.HintNone, 0, NoTime
	k := slices.IndexFunc(c.open, func(o cutOpen) bool { return o.stream == AllStreams || o.stream == e.Stream })
	if e.Kind == Alloc && k >= 0 {
		s.pool = c.pools[c.open[k].pool].number
	}
	return true
}

// keepReused keeps a freed allocation whose slot is reused. Whenever their number has doubled, it
// drops those without pending uses.
func (c *cutter) keepReused(b *cutBlock) {
	const least = 64
	if len(c.reused) >= max(c.pruneAt, least) {
		maps.DeleteFunc(c.reused, func(_ uint64, b *cutBlock) bool { return !slices.ContainsFunc(b.uses, c.pendingUse) })
		c.pruneAt = 2 * len(c.reused)
	}
	c.reused[b.ID] = b
}

// applyBlock is apply for an event about a block.
func (c *cutter) applyBlock(i int, e *Event) bool {
	if e.Slot == NoSlot {
		return c.Stream == nil
	}
	s := &c.slots[e.Slot]
	switch {
	case !s.selected:
		return false
	case e.Kind == Free:
		s.freed = i + 1
	case e.Kind == Use:
		pending := slices.DeleteFunc(c.uses[e.Slot], func(u cutUse) bool { return !c.pendingUse(u) })
		c.uses[e.Slot] = append(pending, cutUse{i, e.Stream})
	case e.Kind == Completed:
		wanted := s.included
		if i < c.First {
			*s = cutSlot{}
			delete(c.uses, e.Slot)
		}
		return wanted
	}
	return s.included
}

// applyPool is apply for an event about a private pool.
func (c *cutter) applyPool(e *Event) bool {
	p := c.pools[e.Arg]
	if p == nil {
		c.order = append(c.order, e.Arg)
		p = &cutPool{number: uint32(len(c.order))}
		c.pools[e.Arg] = p
	}
	switch e.Kind {
	case PoolBegin:
		c.open = append(c.open, cutOpen{e.Arg, e.Stream})
		p.options = cmp.Or(e.Tag, p.options)
		if !c.redirects(e.Stream) {
			return false
		}
		p.users++
		p.open++
	case PoolEnd:
		k := slices.IndexFunc(c.open, func(o cutOpen) bool { return o.pool == e.Arg }) // the first one begun ends
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

// drainedLater reports whether a stream that a freed allocation waits for is drained at or after
// the start of the part.
func (c *cutter) drainedLater(uses []cutUse) bool {
	return slices.ContainsFunc(uses, func(u cutUse) bool { return c.pendingUse(u) && c.drains[u.stream] })
}

// pendingUse reports whether the stream of a use has not been drained since the use.
func (c *cutter) pendingUse(u cutUse) bool {
	drained, ok := c.drained[u.stream]
	return !ok || drained < u.at
}

// blocks returns the allocations at the start of the part, by stream and id: the live ones, and
// freed ones that the trace completes later or that wait for a stream that it drains later.
func (c *cutter) blocks() []*cutBlock {
	var list []*cutBlock
	for i := range c.slots {
		s, slot := &c.slots[i], uint32(i)
		if !s.selected {
			continue
		}
		final := i < len(c.fates) && c.fates[i] == fateFinal
		if s.included = s.freed == 0 || final || c.drainedLater(c.uses[slot]); s.included {
			list = append(list, &cutBlock{*s, c.uses[slot]})
		}
	}
	for _, b := range c.reused {
		if c.drainedLater(b.uses) {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b *cutBlock) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// opening adds the state at the start of the part.
func (c *cutter) opening() error {
	list := c.blocks()
	inPools := map[uint32][]Event{}
	for _, s := range list {
		e := s.Event
		if s.pool > 0 {
			e.Kind = Alloc
			inPools[s.pool] = append(inPools[s.pool], e)
		} else if err := c.add(&e); err != nil {
			return err
		}
	}
	for _, e := range slices.Concat(c.confs, c.openPools(inPools), c.pendingEvents(list), c.pauses) {
		if err := c.add(&e); err != nil {
			return err
		}
	}
	return nil
}

// pendingEvents returns the undrained uses and the frees that are not final, in order, and the safe
// frontier.
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
	if c.frontier != nil {
		events = append(events, *c.frontier)
	}
	return events
}

// openPools returns the events that restore the private pools and their blocks. Each pool is begun
// and ended once for every user without an open redirection; its blocks are allocated in between.
// Then the open redirections are begun in order, and pools with more redirections than users are
// released.
func (c *cutter) openPools(blocks map[uint32][]Event) (events []Event) {
	closed := make([]int, len(c.order))
	for k, id := range c.order {
		p := c.pools[id]
		closed[k] = max(p.users-p.open, min(len(blocks[p.number]), 1))
		for n := range closed[k] {
			events = append(events, Event{Kind: PoolBegin, Arg: id, Stream: AllStreams, Tag: p.options, Time: NoTime})
			if n == 0 {
				events = append(events, blocks[p.number]...)
			}
			events = append(events, Event{Kind: PoolEnd, Arg: id, Time: NoTime})
		}
	}
	for _, o := range c.open {
		if c.redirects(o.stream) {
			begin := Event{Kind: PoolBegin, Arg: o.pool, Stream: o.stream, Tag: c.pools[o.pool].options, Time: NoTime}
			events = append(events, begin)
		}
	}
	for k, id := range c.order {
		for range closed[k] + c.pools[id].open - c.pools[id].users {
			events = append(events, Event{Kind: PoolRelease, Arg: id, Time: NoTime})
		}
	}
	return events
}
