package follow

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// Phase is a phase in the life of a block.
type Phase uint8

// The phases, in order.
const (
	Live      Phase = iota // the program uses it
	Delayed                // freed by the program, not yet passed to the strategy
	Pending                // passed to the strategy; a stream still uses it
	Reclaimed              // its memory is free again
)

// Never is the event number of a free that does not happen within the trace.
const Never = -1

// Block is the life of a block so far.
type Block struct {
	alloc.Block
	Requested device.Size   // bytes requested
	ID        uint64        // of the allocation in the trace
	Stream    device.Stream // of the request
	Tag       uint32        // of the event
	Phase     Phase         // how far it has come
	Born      int           // event of the request
	Freed     int           // event at which the program freed it, or Never
	Note      int           // for the watcher's own use
}

// Watcher holds the callbacks, which are called in order. A nil function is not called. Blocks are
// valid until the callback returns; it may change only Note.
type Watcher struct {
	Granted   func(e *trace.Event, b *Block)  // a block was granted
	Freed     func(b *Block)                  // the program freed it
	Reclaimed func(event int, b *Block)       // its memory is free again
	OOM       func(o *replay.Observation)     // a request found no memory
	Memory    func(event int, a power.Action) // memory was taken or returned, or the strategy reported an OOM
}

// Follower follows the blocks of one replay. Make one with [New].
type Follower struct {
	tap        *Tap
	watch      Watcher
	s          alloc.Strategy
	hasHistory bool           // the strategy is a Historian
	actions    []power.Action // its actions since the last event
	now        int            // number of the event

	blocks  []Block
	empty   []int32               // free indexes of blocks
	bySlot  []int32               // indexes of blocks by slot, counted from 1
	parked  map[device.Addr]int32 // index of the pending block at an address
	waiting []int32               // indexes of pending blocks, and of some that were reclaimed
	used    int                   // blocks that are not reclaimed

	pending   device.Size // bytes of pending blocks
	requested device.Size // requested bytes of the blocks that the program uses
}

// New returns a follower of a replay on the device of a tap.
func New(tap *Tap, w Watcher) *Follower {
	return &Follower{tap: tap, watch: w, parked: map[device.Addr]int32{}}
}

// Begin starts with a new strategy. With history, a Historian is asked to report; it may then make
// more device calls, because PyTorch's history contains the free memory of the device.
func (f *Follower) Begin(s alloc.Strategy, history bool) {
	f.s = s
	f.hasHistory = history && power.SetHistory(s, func(a power.Action) { f.actions = append(f.actions, a) }) == nil
}

// HasHistory reports whether the strategy reports its actions.
func (f *Follower) HasHistory() bool { return f.hasHistory }

// Requested returns the requested bytes of the blocks that the program uses.
func (f *Follower) Requested() device.Size { return f.requested }

// InUse returns the number of blocks whose memory is not free again.
func (f *Follower) InUse() int { return f.used }

// Blocks yields every block whose memory is not free again, in an arbitrary but deterministic
// order.
func (f *Follower) Blocks(yield func(*Block) bool) {
	for i := range f.blocks {
		if b := &f.blocks[i]; b.Phase != Reclaimed && !yield(b) {
			return
		}
	}
}

// Event takes the observation of an event.
func (f *Follower) Event(o *replay.Observation) error {
	if o.Panic != nil {
		return fmt.Errorf("the strategy panicked: %v", o.Panic)
	}
	f.now = o.Event
	freed := int32(-1)
	switch o.Of.Kind {
	case trace.Free, trace.Completed:
		freed = f.free(o)
	}
	if freed >= 0 || len(f.parked) > 0 {
		f.complete(freed)
	}
	f.Memory()
	if o.Of.Kind == trace.Alloc || o.Of.Kind == trace.LiveAtStart {
		f.alloc(o)
	}
	return nil
}

func (f *Follower) alloc(o *replay.Observation) {
	e := o.Of
	if n := int(e.Slot) + 1 - len(f.bySlot); n > 0 {
		f.bySlot = append(f.bySlot, make([]int32, n)...)
	}
	f.bySlot[e.Slot] = 0
	if errors.Is(o.Err, alloc.ErrOutOfMemory) && f.watch.OOM != nil {
		f.watch.OOM(o)
	}
	if o.Err != nil || !o.Called {
		return
	}
	f.tap.used(o.Block)
	f.Memory()
	i := f.newPlace()
	b := &f.blocks[i]
	*b = Block{
		Block: o.Block, Requested: e.Size, ID: e.ID, Stream: e.Stream, Tag: e.Tag, Born: o.Event, Freed: Never,
	}
	f.bySlot[e.Slot] = i + 1
	f.requested += e.Size
	f.used++
	if f.watch.Granted != nil {
		f.watch.Granted(e, b)
	}
}

// newPlace returns a place for a block.
func (f *Follower) newPlace() int32 {
	if n := len(f.empty); n > 0 {
		i := f.empty[n-1]
		f.empty = f.empty[:n-1]
		return i
	}
	f.blocks = append(f.blocks, Block{})
	return int32(len(f.blocks) - 1)
}

// free handles a free or its completion, and returns the block if the strategy
// was asked to take it back, or -1.
func (f *Follower) free(o *replay.Observation) int32 {
	e := o.Of
	if int(e.Slot) >= len(f.bySlot) || f.bySlot[e.Slot] == 0 || o.Err != nil {
		return -1
	}
	i := f.bySlot[e.Slot] - 1
	b := &f.blocks[i]
	switch {
	case e.Kind == trace.Free && b.Phase == Live:
		f.requested -= b.Requested
		b.Phase, b.Freed = Delayed, o.Event
		if f.watch.Freed != nil {
			f.watch.Freed(b)
		}
	case e.Kind == trace.Free || b.Phase != Delayed:
		return -1
	}
	if !o.Called {
		return -1
	}
	f.bySlot[e.Slot] = 0
	return i
}

// complete reclaims the waiting blocks whose memory is free by now. A Historian reports them
// itself, in the order of its actions, except blocks that were never pending.
func (f *Follower) complete(freed int32) {
	stats := f.s.Stats()
	held := stats.Active - stats.Allocated
	if freed >= 0 {
		f.blocks[freed].Phase = Pending
		f.pending += f.blocks[freed].Size
		if held == 0 && len(f.parked) == 0 && len(f.actions) == 0 {
			f.reclaim(freed) // nearly every free
			return
		}
		f.waiting = append(f.waiting, freed)
		f.parked[f.blocks[freed].Addr] = freed
	}
	switch {
	case f.hasHistory:
		if freed >= 0 && f.reportedPending(freed, held) != held {
			f.reclaim(freed)
		}
	case held == 0:
		f.reclaimExcept(nil)
	case held != f.pending:
		still := map[device.Addr]bool{}
		for c := range f.s.Walk {
			if c.State == alloc.Pending {
				still[c.Addr] = true
			}
		}
		f.reclaimExcept(still)
	}
	if len(f.waiting) > 2*len(f.parked)+64 { // most are reclaimed
		f.waiting = slices.DeleteFunc(f.waiting, func(i int32) bool { return !f.isWaiting(i) })
	}
}

// isWaiting reports whether an entry of waiting is still pending. The place of a reclaimed block
// may hold another block, which has an entry of its own if it is pending.
func (f *Follower) isWaiting(i int32) bool {
	b := &f.blocks[i]
	at, ok := f.parked[b.Addr]
	return b.Phase == Pending && ok && at == i
}

// reclaimExcept reclaims all waiting blocks except those at some addresses.
func (f *Follower) reclaimExcept(still map[device.Addr]bool) {
	for _, i := range f.waiting {
		if f.isWaiting(i) && !still[f.blocks[i].Addr] {
			f.reclaim(i)
		}
	}
	f.waiting = slices.DeleteFunc(f.waiting, func(i int32) bool { return !f.isWaiting(i) })
}

// reportedPending returns the pending bytes according to the strategy's reports. If the block just
// freed was reported, it returns held.
func (f *Follower) reportedPending(freed int32, held device.Size) device.Size {
	left := f.pending
	for _, a := range f.actions {
		if i, ok := f.parked[a.Addr]; ok && a.Kind == power.FreeCompleted {
			if i == freed {
				return held
			}
			left -= f.blocks[i].Size
		}
	}
	return left
}

// reclaim records that the memory of a block is free again.
func (f *Follower) reclaim(i int32) {
	b := &f.blocks[i]
	f.pending -= b.Size
	f.used--
	delete(f.parked, b.Addr)
	b.Phase = Reclaimed
	if f.watch.Reclaimed != nil {
		f.watch.Reclaimed(f.now, b)
	}
	f.tap.unused(b.Addr, b.Size)
	f.empty = append(f.empty, i)
}

// Memory passes the strategy's actions, or the changes derived from device calls, to the watcher.
// It is called with each event; a caller that looks between events calls it too.
func (f *Follower) Memory() {
	actions := f.actions
	if !f.hasHistory {
		actions = f.tap.report
	}
	for _, a := range actions {
		if a.Kind == power.FreeCompleted {
			if i, ok := f.parked[a.Addr]; ok {
				f.reclaim(i)
			}
			continue
		}
		if f.watch.Memory != nil {
			f.watch.Memory(f.now, a)
		}
	}
	f.actions, f.tap.report = f.actions[:0], f.tap.report[:0]
}
