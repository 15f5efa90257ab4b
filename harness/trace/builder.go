package trace

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/budget"
)

// Memory of a replay beyond the events, in bytes: upper bounds for the strategies of the catalogue.
// A trace whose replay would not fit is rejected while it is read, not during the replay.
const (
	ReplayEvent = 40  // per event: the replay loop's form
	ReplaySleep = 32  // per slot of a trace with pauses, in addition: a [Sleep] of the reader, and one of the replay
	ReplayLive  = 256 // per simultaneously live allocation: records of replay, strategy and simulated device

	replaySlot = 24 // per slot
)

// denseGap bounds the growth of the table of slots by one id; ids further above the table go to the
// map. Ids almost always count upwards. With 16 entries of 4 bytes, hostile ids waste at most the
// size of an event per allocation.
const denseGap = 16

// State of a slot.
const (
	slotLive  uint8 = iota // allocated and not freed
	slotFreed              // freed; a Completed event may follow
	slotDone               // freed, and the Completed event was added
)

// Builder builds a trace event by event. It assigns slots to ids, interns tags and rejects invalid
// events. The zero value is ready for use.
type Builder struct {
	trace    Trace
	memory   *budget.Budget // budget of the trace; nil is unlimited
	err      error          // the budget was exhausted; every later Add returns it
	tags     map[string]uint32
	dense    []uint32          // slots by id, or NoSlot
	sparse   map[uint64]uint32 // slots of ids outside of dense
	lives    []uint8           // by slot
	live     int               // live slots
	peakLive int               // peak of live
	refused  bool              // the trace has a refused request
	started  bool              // an event other than LiveAtStart was added
	now      int64             // latest time added
	sleep    *Sleep            // nil before the first pause
}

// NewBuilder returns a builder of a trace with header h.
func NewBuilder(h Header) *Builder {
	return &Builder{trace: Trace{Header: h}}
}

// NewBuilderWithin returns a builder that charges the trace, and its replay, to a budget.
func NewBuilderWithin(memory *budget.Budget, h Header) *Builder {
	return &Builder{trace: Trace{Header: h}, memory: memory}
}

// Grow reserves space for n more events. If they do not fit, the next Add fails.
func (b *Builder) Grow(n int) {
	old := b.trace.Events
	if cap(old)-len(old) >= n || b.err != nil {
		return
	}
	var room []Event
	if room, b.err = budget.Make[Event](b.memory, len(old)+n); b.err != nil {
		return
	}
	room = append(room, old...)
	b.trace.Events = room
	budget.Release(b.memory, old)
}

// Tag returns the index of a text in Trace.Tags, adding it if it is new. The empty text has index
// 0. The text stays in the trace even if no event uses it. If it does not fit, the next Add fails.
func (b *Builder) Tag(text string) uint32 { return b.intern([]byte(text)) }

// intern is Tag for a text that the caller may overwrite.
func (b *Builder) intern(text []byte) uint32 {
	if len(text) == 0 {
		return 0
	}
	if tag, ok := b.tags[string(text)]; ok {
		return tag
	}
	if b.err != nil {
		return 0
	}
	if b.tags == nil {
		b.tags = map[string]uint32{}
		b.trace.Tags = append(b.trace.Tags, "")
	}
	if b.err = b.memory.Take(int64(len(text))); b.err != nil {
		return 0
	}
	tag := uint32(len(b.trace.Tags))
	s := string(text)
	if b.err = budget.Put(b.memory, b.tags, s, tag); b.err != nil {
		return 0
	}
	b.trace.Tags, b.err = budget.Append(b.memory, b.trace.Tags, s)
	return tag
}

// Add appends an event and sets its slot. The caller's slot is ignored, except that a BadFree with
// NoSlot is a free of an address.
//
// Errors: an allocation of a live id; a Free or Use of an id that is not live; a Completed of an id
// that is not freed; a BadFree of an unknown id; a LiveAtStart after another event; an event
// that [Sleep] refuses; wrong [PoolOptions]; decreasing time; no memory left in the budget. A
// failed Add changes nothing. Once the budget is exhausted, all further calls fail.
func (b *Builder) Add(e Event) error {
	if b.err != nil {
		return b.err
	}
	if e.Kind >= numKinds {
		return fmt.Errorf("unknown kind of event %d", e.Kind)
	}
	if e.Time < b.now && e.Time != NoTime {
		return fmt.Errorf("time goes back from %d ns to %d ns", b.now, e.Time)
	}
	if e.Kind == PoolBegin {
		if _, err := PoolOptions(b.trace.TagOf(&e)); err != nil {
			return err
		}
	}
	if err := b.checkSleep(e); err != nil {
		return err
	}
	slot, err := b.updateSlot(&e)
	if err != nil {
		return err
	}
	e.Slot = slot
	b.started = b.started || e.Kind != LiveAtStart
	b.now = max(b.now, e.Time)
	if b.err == nil {
		b.trace.Events, b.err = budget.Append(b.memory, b.trace.Events, e)
	}
	if b.sleep != nil {
		b.sleep.Step(&e)
	}
	if b.err == nil {
		b.err = b.memory.Check(b.replayed(e.Kind))
	}
	return b.err
}

// checkSleep returns an error for an event that contradicts the pauses so far.
func (b *Builder) checkSleep(e Event) error {
	switch {
	case b.sleep != nil:
	case e.Kind != Pause && e.Kind != Resume:
		return nil
	default:
		b.sleep = new(Sleep)
		for i := range b.trace.Events {
			b.sleep.Step(&b.trace.Events[i])
		}
	}
	if e.Kind == Free || e.Kind == Use {
		if !b.Live(e.ID) {
			return nil // another error
		}
		e.Slot, _ = b.find(e.ID)
	}
	return b.sleep.Check(&b.trace, &e)
}

// replayed returns the additional bytes for a replay of the trace after an event of kind k was
// added. A trace with refused requests needs a copy of its events: see [Refusals.Request].
func (b *Builder) replayed(k Kind) int64 {
	if k == Refused {
		b.refused = true
	}
	b.peakLive = max(b.peakLive, b.live)
	n := int64(len(b.trace.Events)) * ReplayEvent
	if b.refused {
		n += budget.SizeOf[Event](len(b.trace.Events))
	}
	if b.sleep != nil {
		n += int64(b.trace.Slots) * ReplaySleep
	}
	return n + int64(b.trace.Slots)*replaySlot + int64(b.peakLive)*ReplayLive
}

// updateSlot returns the slot of an event and updates the state of the slot.
func (b *Builder) updateSlot(e *Event) (uint32, error) {
	switch e.Kind {
	case Alloc, LiveAtStart:
		return b.allocate(e)
	case Free:
		return b.changeState(e.ID, slotLive, slotFreed)
	case Use:
		return b.changeState(e.ID, slotLive, slotLive)
	case Completed:
		return b.changeState(e.ID, slotFreed, slotDone)
	case BadFree:
		if e.Slot == NoSlot {
			return NoSlot, nil
		}
		if slot, ok := b.find(e.ID); ok {
			return slot, nil
		}
		return NoSlot, fmt.Errorf("id %d was never allocated", e.ID)
	}
	return NoSlot, nil
}

// allocate makes the id of an allocation live.
func (b *Builder) allocate(e *Event) (uint32, error) {
	if e.Kind == LiveAtStart && b.started {
		return NoSlot, errors.New("allocations live at the start must precede all other events")
	}
	slot, ok := b.find(e.ID)
	if ok {
		if b.lives[slot] == slotLive {
			return NoSlot, fmt.Errorf("id %d is still live", e.ID)
		}
		b.lives[slot] = slotLive
		b.live++
		return slot, nil
	}
	if uint64(b.trace.Slots) >= math.MaxUint32 {
		return NoSlot, errors.New("too many allocations")
	}
	slot = uint32(b.trace.Slots)
	b.trace.Slots++
	b.live++
	b.lives, b.err = budget.Append(b.memory, b.lives, slotLive)
	if b.err == nil {
		b.err = b.setSlot(e.ID, slot)
	}
	return slot, nil
}

// changeState moves the slot of an id from one state to another. It fails in any other state.
func (b *Builder) changeState(id uint64, from, to uint8) (uint32, error) {
	slot, ok := b.find(id)
	switch {
	case !ok:
		return NoSlot, fmt.Errorf("id %d was never allocated", id)
	case b.lives[slot] == from:
		b.lives[slot] = to
		if to == slotFreed {
			b.live--
		}
		return slot, nil
	case from == slotLive:
		return NoSlot, fmt.Errorf("id %d is freed already", id)
	case b.lives[slot] == slotLive:
		return NoSlot, fmt.Errorf("id %d is not freed", id)
	}
	return NoSlot, fmt.Errorf("the free of id %d is final already", id)
}

// Live reports whether id was allocated and not freed.
func (b *Builder) Live(id uint64) bool {
	slot, ok := b.find(id)
	return ok && b.lives[slot] == slotLive
}

func (b *Builder) find(id uint64) (uint32, bool) {
	if id < uint64(len(b.dense)) && b.dense[id] != NoSlot {
		return b.dense[id], true
	}
	slot, ok := b.sparse[id]
	return slot, ok
}

// setSlot records the slot of a new id.
func (b *Builder) setSlot(id uint64, slot uint32) (err error) {
	n := uint64(len(b.dense))
	if id >= n && id-n >= denseGap {
		if b.sparse == nil {
			b.sparse = map[uint64]uint32{}
		}
		return budget.Put(b.memory, b.sparse, id, slot)
	}
	for uint64(len(b.dense)) <= id && err == nil {
		b.dense, err = budget.Append(b.memory, b.dense, NoSlot)
	}
	if err == nil {
		b.dense[id] = slot
	}
	return err
}

// Alloc adds an allocation of size bytes on a stream.
func (b *Builder) Alloc(id uint64, size device.Size, stream device.Stream) error {
	return b.Add(Event{Kind: Alloc, ID: id, Size: size, Stream: stream, Time: NoTime})
}

// AllocRequest adds an allocation with all properties of a request. tag is the text of its tag;
// r.Tag is ignored.
func (b *Builder) AllocRequest(id uint64, r alloc.Request, tag string) error {
	return b.Add(Event{
		Kind: Alloc, ID: id, Size: r.Size, Align: r.Align, Stream: r.Stream, Hint: r.Hint, Arg: r.Before,
		Site: r.Origin.Site(), Thread: r.Origin.Thread(), Life: r.Origin.Lifetime(), Tag: b.Tag(tag), Time: NoTime,
	})
}

// Free adds a free.
func (b *Builder) Free(id uint64) error { return b.Add(Event{Kind: Free, ID: id, Time: NoTime}) }

// Mark adds a mark with the given text.
func (b *Builder) Mark(text string) error {
	return b.Add(Event{Kind: Mark, Tag: b.Tag(text), Time: NoTime})
}

// Trace returns the trace. The builder must not be used afterwards.
func (b *Builder) Trace() *Trace {
	if b.trace.Tags == nil {
		b.trace.Tags = []string{""}
	}
	if len(b.trace.Events) == 0 {
		b.trace.Events = nil
	}
	return &b.trace
}

// meta adds a pair to the header. The first name becomes the name of the trace.
func (b *Builder) meta(key, value string, named *bool) error {
	if key == "name" && !*named {
		*named = true
		b.trace.Header.Name = value
		return nil
	}
	if err := b.memory.Take(int64(len(key) + len(value))); err != nil {
		return err
	}
	var err error
	b.trace.Header.Meta, err = budget.Append(b.memory, b.trace.Header.Meta, Pair{strings.Clone(key), strings.Clone(value)})
	return err
}
