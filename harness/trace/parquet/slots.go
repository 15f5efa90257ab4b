package parquet

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/kit/index"
)

// slots assigns slots to the allocations of a walk and rejects events of unknown ids. A slot is
// reused once no event can refer to its allocation, so the tables grow with the live allocations.
type slots struct {
	byID      index.AddrMap // id to slot, counted from 1
	ids       []uint64      // by slot
	freed     []bool        // by slot: only a Completed may follow
	empty     []uint32      // free slots
	keepFreed bool          // freed allocations may be completed later
	started   bool          // an event other than LiveAtStart has occurred
	sleep     *trace.Sleep  // nil for a trace without pauses
	memory    *budget.Budget
}

// liveBytes is the memory that a live allocation takes in these tables and in a replay.
const liveBytes = 300

// bytes returns the memory of a live allocation.
func (l *slots) bytes() int64 {
	if l.sleep != nil {
		return liveBytes + trace.ReplaySleep
	}
	return liveBytes
}

// newSlots returns an empty table. If completed is false, freed allocations are forgotten at once.
func newSlots(completed bool, memory *budget.Budget) *slots {
	return &slots{byID: index.NewAddrMap(), keepFreed: completed, memory: memory}
}

// idOf returns the id of the allocation in a slot, counted from 1.
func (l *slots) idOf(h uint32) device.Addr { return device.Addr(l.ids[h-1]) }

// slotOf returns the slot of a live id, counted from 1, or NoHandle.
func (l *slots) slotOf(id uint64) uint32 {
	h := l.byID.First(device.Addr(id))
	for h != index.NoHandle && l.ids[h-1] != id {
		h = l.byID.Next(h)
	}
	return h
}

// assign sets the slot of an event.
func (l *slots) assign(e *trace.Event) error {
	e.Slot = trace.NoSlot
	switch e.Kind {
	case trace.Alloc, trace.LiveAtStart:
		return l.allocate(e)
	case trace.Free, trace.Use, trace.Completed:
		h := l.slotOf(e.ID)
		if h == index.NoHandle || l.freed[h-1] != (e.Kind == trace.Completed) {
			return l.invalid(e, h)
		}
		e.Slot = h - 1
		switch {
		case e.Kind == trace.Completed, e.Kind == trace.Free && !l.keepFreed:
			l.byID.Unlink(device.Addr(e.ID), h)
			l.empty = append(l.empty, e.Slot)
		case e.Kind == trace.Free:
			l.freed[e.Slot] = true
		}
	}
	l.started = true
	return nil
}

// invalid returns why an event is invalid. h is the slot of its allocation, counted from 1.
func (l *slots) invalid(e *trace.Event, h uint32) error {
	switch {
	case h == index.NoHandle:
		return fmt.Errorf("%s of id %d, which is not live", e.Kind, e.ID)
	case l.freed[h-1]:
		return fmt.Errorf("%s of id %d, which is freed already", e.Kind, e.ID)
	}
	return fmt.Errorf("id %d is not freed", e.ID)
}

func (l *slots) allocate(e *trace.Event) error {
	if e.Kind == trace.Alloc {
		l.started = true
	} else if l.started {
		return errors.New("allocations live at the start must precede all other events")
	}
	if h := l.slotOf(e.ID); h != index.NoHandle {
		if !l.freed[h-1] {
			return fmt.Errorf("id %d is still live", e.ID)
		}
		e.Slot = h - 1
		l.freed[e.Slot] = false
		return nil
	}
	if n := len(l.empty); n > 0 {
		e.Slot, l.empty = l.empty[n-1], l.empty[:n-1]
	} else if err := l.memory.Take(l.bytes()); err != nil {
		return err
	} else {
		e.Slot = uint32(len(l.ids))
		l.ids, l.freed = append(l.ids, 0), append(l.freed, false)
	}
	l.ids[e.Slot], l.freed[e.Slot] = e.ID, false
	l.byID.Put(device.Addr(e.ID), e.Slot+1, l.idOf)
	return nil
}
