package postmortem

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/torch"
)

// unknownID is the tag of a block without a recorded allocation.
const unknownID = ^uint64(0)

// lives is the allocations of a program at an entry of a recording.
type lives struct {
	of  *torch.Frames
	at  map[uint64]uint64 // by address: ID of the live or pending allocation
	all []life            // by ID: every allocation up to the entry
}

// life is an allocation.
type life struct {
	addr uint64 // first byte
	born int    // event; -1: before the first entry
	call uint32 // stack index
	wait bool   // pending
}

func (r *Recording) livesAt(entry int) *lives {
	l := &lives{of: torch.NewFrames(r.Snapshot), at: map[uint64]uint64{}}
	calls := r.openingCalls()
	for i, o := range r.Timeline.Opening {
		l.begin(life{addr: o.Addr, born: -1, call: calls[i], wait: o.Pending})
	}
	endings := r.Timeline.Endings
	for i, s := range r.Timeline.Steps[:entry] {
		id := uint64(r.Timeline.IDs[i])
		switch s {
		case torch.Alloc: // IDs are assigned in this order
			for ; len(endings) > 0 && endings[0].Entry == i; endings = endings[1:] {
				l.end(uint64(endings[0].ID))
			}
			e := r.Timeline.Device.History.At(i)
			l.begin(life{addr: e.Addr, born: r.Timeline.Events[i], call: e.Stack})
		case torch.FreeLater:
			l.all[id].wait = true
		case torch.Free, torch.Completed:
			l.end(id)
		}
	}
	return l
}

// openingCalls returns the stack index of each allocation from before the first entry, 0 if it is
// unknown.
func (r *Recording) openingCalls() []uint32 {
	stacks := map[uint64]uint32{}
	for i := range r.Timeline.Device.Segments {
		for _, b := range r.Timeline.Device.Segments[i].Blocks {
			stacks[b.Addr] = b.Stack
		}
	}
	calls := make([]uint32, len(r.Timeline.Opening), len(r.Timeline.Opening)+r.Timeline.Report.Allocs)
	for i, o := range r.Timeline.Opening {
		if o.Granted != 0 {
			calls[i] = stacks[o.Addr] // it lives to the end
		}
	}
	return calls
}

func (l *lives) begin(x life) {
	l.at[x.addr] = uint64(len(l.all))
	l.all = append(l.all, x)
}

// end removes an allocation, unless its address has been reused.
func (l *lives) end(id uint64) {
	if a := l.all[id].addr; l.at[a] == id {
		delete(l.at, a)
	}
}

// mark sets the state of chunks whose allocations are pending.
func (l *lives) mark(chunks []alloc.Chunk) {
	for i := range chunks {
		if c := &chunks[i]; c.State == alloc.Live && l.all[c.Tag].wait {
			c.State = alloc.Pending
		}
	}
}

func (l *lives) ownerLookup(event int) OwnerLookup {
	return func(tag uint64) Owner {
		if tag == unknownID {
			return Owner{Born: -1}
		}
		x := &l.all[tag]
		stack, _ := l.of.Lines(x.call)
		return Owner{Known: true, ID: tag, Born: x.born, Age: event - max(x.born, 0), Stack: stack}
	}
}

// fileChunks returns the segments of the file as Walk would.
func (r *Recording) fileChunks(l *lives, pools [][2]uint64) (list []alloc.Chunk) {
	for i := range r.Timeline.Device.Segments {
		s := &r.Timeline.Device.Segments[i]
		c := alloc.Chunk{
			Region: device.Addr(s.Addr), Stream: device.Stream(s.Stream), Pool: poolOf(pools, s.Pool), Class: power.ClassSmall,
		}
		if s.Large {
			c.Class = power.ClassLarge
		}
		if s.Expandable {
			c.Owner = power.OwnerExpandable
		}
		for _, b := range s.Blocks {
			x := c
			x.Addr, x.Size = device.Addr(b.Addr), device.Size(b.Size)
			if b.State == torch.Inactive {
				x.Was = device.Size(b.Requested)
				list = append(list, x)
				continue
			}
			x.State, x.Requested, x.Tag = alloc.Live, device.Size(b.Requested), unknownID
			if b.State == torch.ActivePendingFree {
				x.State = alloc.Pending
			}
			if id, ok := l.at[b.Addr]; ok {
				x.Tag = id
			}
			list = append(list, x)
		}
	}
	return list
}
