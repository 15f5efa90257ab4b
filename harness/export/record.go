package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/snapshot"
	"github.com/vramyard/vramyard/harness/trace"
)

// Options say how a trace is replayed for a recording. The zero value is useful.
type Options struct {
	FreeAt    replay.FreeAt // when a strategy without streams is told of a delayed free
	StopAtOOM bool          // end at the first request that finds no memory, as a program dies of it
}

// Record replays a trace through the strategy of setup over a device that was not used before, as
// [replay.Run] does, and notes everything. It fails where a replay does, and if the strategy shows chunks
// that cannot be.
func Record(src trace.Source, setup alloc.Setup, dev device.Device, o Options) (*Recording, error) {
	config, err := json.Marshal(setup.Config)
	if err != nil {
		return nil, fmt.Errorf("%s: configuration: %w", setup.Name, err)
	}
	head := src.Head()
	r := &recorder{
		Recording: Recording{
			strategy: setup.Name, config: config, header: head.Header, events: head.Events,
			torch:  &snapshot.Snapshot{Devices: make([]snapshot.Device, 1)},
			course: newCourse(head.Events),
		},
		tap: newTap(dev), src: &window{Source: src}, at: map[device.Addr]int{},
		streams: map[device.Stream]uint16{}, stacks: map[string]uint32{}, stops: o.StopAtOOM,
	}
	r.intern = snapshot.NewInterner(r.torch)
	if r.timed, err = hasTimes(src); err != nil {
		return nil, err
	}
	// Only a trace in memory as a whole has every kind of event; its events need no window.
	var source trace.Source = r.src
	if t, ok := src.(*trace.Trace); ok {
		source, r.src.piece = t, t.Events
	}
	if _, err = replay.Run(source, setup, r.tap, replay.Options{FreeAt: o.FreeAt, StopAtOOM: o.StopAtOOM, Observe: r.observe}); err != nil {
		return nil, err
	}
	r.settle()
	return &r.Recording, nil
}

// errFound ends a walk.
var errFound = errors.New("found")

// hasTimes reports whether an event of a trace has a time.
func hasTimes(src trace.Source) (bool, error) {
	err := src.Pieces(func(events []trace.Event) error {
		if slices.ContainsFunc(events, func(e trace.Event) bool { return e.Time != trace.NoTime }) {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// window is a source of which the piece that was handed on last can be looked at.
type window struct {
	trace.Source
	first int // number of the first event of the piece
	piece []trace.Event
}

// Pieces implements [trace.Source].
func (w *window) Pieces(yield func([]trace.Event) error) error {
	w.first, w.piece = 0, nil
	return w.Source.Pieces(func(events []trace.Event) error {
		w.first += len(w.piece)
		w.piece = events
		return yield(events)
	})
}

// recorder makes a recording.
type recorder struct {
	Recording
	reserved
	builder

	tap   *tap
	src   *window
	s     alloc.Strategy
	tells bool           // the strategy tells what it does
	told  []alloc.Action // what it has told since somebody looked
	timed bool           // the trace has times
	stops bool           // the replay ends at the first request that finds no memory
	// asking is the event if it asks for memory, nil if not.
	asking *trace.Event
	now    int64 // when the event happens
	dated  int   // calls that have their times

	intern  *snapshot.Interner
	streams map[device.Stream]uint16 // numbers in the history
	stacks  map[string]uint32        // of tags

	bySlot    []int               // lives by slot, counted from 1
	at        map[device.Addr]int // lives of the blocks that the strategy has not taken back
	waiting   []int               // lives that are pending, and some that are gone
	parked    int                 // how many are pending
	pending   device.Size         // their bytes
	requested device.Size         // by live blocks
}

// observe is told of each event; see [replay.Options].
func (r *recorder) observe(o replay.Observation) error {
	switch {
	case o.Panic != nil:
		return fmt.Errorf("the strategy panicked: %v", o.Panic)
	case o.Event < 0:
		if r.s = o.Strategy; o.Err == nil {
			r.tells = alloc.SetHistory(r.s, func(a alloc.Action) { r.told = append(r.told, a) }) == nil
		}
	case o.Event >= r.events:
		return nil // closing is no part of the run
	default:
		if err := r.event(&r.src.piece[o.Event-r.src.first], &o); err != nil {
			return err
		}
	}
	stopped := r.stops && r.asking != nil && errors.Is(o.Err, alloc.ErrOutOfMemory)
	if o.Event+1 < r.events && !stopped || o.Err != nil && o.Event < 0 {
		return nil
	}
	r.events = o.Event + 1
	r.tap.off = true
	return r.finish()
}

// event notes an event and what it has led to.
func (r *recorder) event(e *trace.Event, o *replay.Observation) error {
	r.tick(e, o.Event)
	freed := -1
	r.asking = nil
	switch e.Kind {
	case trace.Alloc, trace.LiveAtStart:
		r.asking = e
	case trace.Free, trace.Completed:
		freed = r.free(e, o)
	case trace.Mark:
		r.marks = append(r.marks, mark{r.now, r.intern.String(r.src.TagOf(e))})
	}
	r.actions(freed)
	if r.asking != nil {
		r.alloc(e, o)
	}
	stats := r.s.Stats()
	if stats.Allocated > r.most {
		r.most, r.peak = stats.Allocated, r.now
	}
	r.course.add(r.now, [numCurves]device.Size{r.requested, stats.Allocated, stats.Active, r.tap.held})
	return nil
}

// tick sets the clock to an event, and the times of the calls to the device that it led to.
func (r *recorder) tick(e *trace.Event, i int) {
	const each = 1000 // nanoseconds of an event in a trace without times
	switch {
	case !r.timed:
		r.now = int64(i)*each + int64(r.tap.spent)
	case e.Time != trace.NoTime:
		r.now = e.Time
	}
	for ; r.dated < len(r.tap.calls); r.dated++ {
		c := &r.tap.calls[r.dated]
		began := r.now
		if !r.timed {
			began = int64(i)*each + c.start
		}
		c.event, c.start = i, began
		if r.dated > 0 {
			c.start = max(began, r.tap.calls[r.dated-1].end())
		}
		r.last = max(r.last, c.end())
	}
	r.last = max(r.last, r.now)
}

// entry appends to the history.
func (r *recorder) entry(a snapshot.Action, addr device.Addr, size device.Size, stream uint16, stack uint32) {
	r.torch.Devices[0].History.Append(snapshot.Entry{
		Action: a, Addr: uint64(addr), Size: uint64(size), Stream: stream, Stack: stack, Time: r.now / 1000,
	})
}

// streamOf returns the number of a stream in the history.
func (r *recorder) streamOf(s device.Stream) uint16 {
	n, ok := r.streams[s]
	if !ok {
		h := &r.torch.Devices[0].History
		n = uint16(len(h.Streams))
		h.Streams = append(h.Streams, int64(s))
		r.streams[s] = n
	}
	return n
}

// stackOf returns the tag of an event as a stack.
func (r *recorder) stackOf(e *trace.Event) uint32 {
	text := r.src.TagOf(e)
	if text == "" {
		return 0
	}
	id, ok := r.stacks[text]
	if !ok {
		f := snapshot.Frame{File: r.intern.String(r.header.Name), Function: r.intern.String(text)}
		id = r.intern.Stack([]uint32{r.intern.Frame(f)})
		r.stacks[text] = id
	}
	return id
}

// alloc notes a request.
func (r *recorder) alloc(e *trace.Event, o *replay.Observation) {
	if errors.Is(o.Err, alloc.ErrOutOfMemory) {
		r.oom(e)
	}
	for int(e.Slot) >= len(r.bySlot) {
		r.bySlot = append(r.bySlot, 0)
	}
	r.bySlot[e.Slot] = 0
	if o.Err != nil || !o.Called {
		return
	}
	r.tap.used(o.Block)
	r.memory()
	l := life{
		block: o.Block, requested: e.Size, id: e.ID, start: r.now, end: never,
		stack: r.stackOf(e), stream: r.streamOf(e.Stream),
	}
	r.lives = append(r.lives, l)
	r.bySlot[e.Slot] = len(r.lives)
	r.at[o.Block.Addr] = len(r.lives) - 1
	r.requested += e.Size
	r.joined = r.joined || r.across(o.Block.Addr, o.Block.Size)
	r.entry(snapshot.ActionAlloc, l.block.Addr, l.requested, l.stream, l.stack)
}

// oom notes a request that found no memory, where the strategy has not told of it.
func (r *recorder) oom(e *trace.Event) {
	x := oom{at: r.now, requested: e.Size, id: e.ID, stream: e.Stream}
	if u := r.tap.Usage(); u.Capacity != 0 {
		x.free = u.Free()
	}
	r.ooms = append(r.ooms, x)
	if !r.tells {
		r.entry(snapshot.ActionOOM, device.Addr(x.free), x.requested, r.streamOf(e.Stream), r.stackOf(e))
	}
}

// free notes what a free or its completion says of a block, and returns the life of a block that
// the strategy was asked to take back, or -1.
func (r *recorder) free(e *trace.Event, o *replay.Observation) int {
	if int(e.Slot) >= len(r.bySlot) || r.bySlot[e.Slot] == 0 || o.Err != nil {
		return -1
	}
	i := r.bySlot[e.Slot] - 1
	l := &r.lives[i]
	switch {
	case e.Kind == trace.Free && l.phase == live:
		r.requested -= l.requested
		r.entry(snapshot.ActionFreeRequested, l.block.Addr, l.requested, l.stream, l.stack)
		l.phase = given
	case e.Kind == trace.Free || l.phase != given:
		return -1
	}
	if !o.Called {
		return -1
	}
	return i
}

// actions notes what the strategy did with memory, and which frees have become final. freed is the
// life of a block that it was asked to take back, or -1.
func (r *recorder) actions(freed int) {
	if freed >= 0 {
		r.lives[freed].phase = pending
		r.waiting = append(r.waiting, freed)
		r.parked++
		r.pending += r.lives[freed].block.Size
	}
	if r.parked > 0 {
		r.complete(freed)
	}
	r.memory()
}

// complete finds out which of the waiting blocks are free. A strategy that tells does so itself, at
// the right place among its actions, but for a block that never was pending.
func (r *recorder) complete(freed int) {
	if len(r.waiting) > 2*r.parked+64 { // most are gone
		r.waiting = slices.DeleteFunc(r.waiting, func(i int) bool { return r.lives[i].phase != pending })
	}
	stats := r.s.Stats()
	held := stats.Active - stats.Allocated
	switch {
	case r.tells:
		if freed >= 0 && r.toldPending(freed) != held {
			r.final(freed)
		}
	case held != r.pending:
		still := map[device.Addr]bool{}
		if held > 0 {
			for c := range r.s.Walk {
				if c.State == alloc.Pending {
					still[c.Addr] = true
				}
			}
		}
		for _, i := range r.waiting {
			if l := &r.lives[i]; l.phase == pending && !still[l.block.Addr] {
				r.final(i)
			}
		}
	}
}

// toldPending returns the bytes that are pending by what the strategy has told, if the block that was
// just freed is; all that are pending in fact if the strategy has told of that block.
func (r *recorder) toldPending(freed int) device.Size {
	left := r.pending
	for _, a := range r.told {
		if i, ok := r.at[a.Addr]; ok && a.Kind == alloc.FreeCompleted {
			if i == freed {
				stats := r.s.Stats()
				return stats.Active - stats.Allocated
			}
			left -= r.lives[i].block.Size
		}
	}
	return left
}

// final notes that a free has become final.
func (r *recorder) final(i int) {
	l := &r.lives[i]
	r.parked--
	r.pending -= l.block.Size
	delete(r.at, l.block.Addr)
	l.phase, l.end = gone, r.now
	r.entry(snapshot.ActionFreeCompleted, l.block.Addr, l.requested, l.stream, l.stack)
	r.tap.unused(l.block.Addr, l.block.Size)
}

// memory notes what the strategy has told since the last time, or else what the device was asked.
func (r *recorder) memory() {
	told := r.told
	if !r.tells {
		told = r.tap.told
	}
	for _, a := range told {
		r.action(a)
	}
	r.told, r.tap.told = r.told[:0], r.tap.told[:0]
}

// segmentActions are the actions that are told of memory, as the snapshot has them.
var segmentActions = map[alloc.ActionKind]snapshot.Action{
	alloc.SegmentAlloc: snapshot.ActionSegmentAlloc, alloc.SegmentFree: snapshot.ActionSegmentFree,
	alloc.SegmentMap: snapshot.ActionSegmentMap, alloc.SegmentUnmap: snapshot.ActionSegmentUnmap,
}

// action notes one of those.
func (r *recorder) action(a alloc.Action) {
	switch a.Kind {
	case alloc.FreeCompleted:
		if i, ok := r.at[a.Addr]; ok && r.lives[i].phase == pending {
			r.final(i)
		}
	case alloc.OutOfMemory:
		var stack uint32
		if r.asking != nil {
			stack = r.stackOf(r.asking)
		}
		r.entry(snapshot.ActionOOM, device.Addr(a.DeviceFree), a.Size, r.streamOf(a.Stream), stack)
	default:
		r.hold(a)
		r.entry(segmentActions[a.Kind], a.Addr, a.Size, r.streamOf(a.Stream), 0)
	}
}
