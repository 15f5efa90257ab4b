package parquet

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/kit/index"
)

// lives gives slots to the allocations that a walk meets, and refuses events that name none. A slot
// is given again once no event can name its allocation, so that the tables grow with what is live.
type lives struct {
	byID    index.AddrMap // ids to slots, counted from 1
	ids     []uint64      // by slot
	freed   []bool        // by slot: only a Completed may name it
	empty   []uint32      // slots to give again
	keep    bool          // freed allocations may become final later
	started bool          // an event other than LiveAtStart was met
	memory  *budget.Budget
}

// liveBytes is what an allocation that is live at once with others takes in these tables and in
// those of a replay.
const liveBytes = 300

// newLives returns an empty table. Where no free becomes final later, it forgets allocations that
// are freed.
func newLives(completed bool, memory *budget.Budget) *lives {
	return &lives{byID: index.NewAddrMap(), keep: completed, memory: memory}
}

// idOf returns the id of the allocation in a slot, counted from 1.
func (l *lives) idOf(h uint32) device.Addr { return device.Addr(l.ids[h-1]) }

// enter gives an event its slot.
func (l *lives) enter(e *trace.Event) error {
	e.Slot = trace.NoSlot
	switch e.Kind {
	case trace.Alloc, trace.LiveAtStart:
		return l.born(e)
	case trace.Free, trace.Use, trace.Completed:
		h := l.byID.Get(device.Addr(e.ID), l.idOf)
		if h == index.NoHandle || l.freed[h-1] != (e.Kind == trace.Completed) {
			return l.objection(e, h)
		}
		e.Slot = h - 1
		switch {
		case e.Kind == trace.Completed, e.Kind == trace.Free && !l.keep:
			l.byID.Unlink(device.Addr(e.ID), h)
			l.empty = append(l.empty, e.Slot)
		case e.Kind == trace.Free:
			l.freed[e.Slot] = true
		}
	}
	l.started = true
	return nil
}

// objection says why an event cannot name its allocation, whose slot counted from 1 is h.
func (l *lives) objection(e *trace.Event, h uint32) error {
	switch {
	case h == index.NoHandle:
		return fmt.Errorf("%s of id %d, which is not live", e.Kind, e.ID)
	case l.freed[h-1]:
		return fmt.Errorf("%s of id %d, which is freed already", e.Kind, e.ID)
	}
	return fmt.Errorf("id %d is not freed", e.ID)
}

func (l *lives) born(e *trace.Event) error {
	if e.Kind == trace.Alloc {
		l.started = true
	} else if l.started {
		return errors.New("what is live at the start must come before all other events")
	}
	if h := l.byID.Get(device.Addr(e.ID), l.idOf); h != index.NoHandle {
		if !l.freed[h-1] {
			return fmt.Errorf("id %d is still live", e.ID)
		}
		e.Slot = h - 1
		l.freed[e.Slot] = false
		return nil
	}
	if n := len(l.empty); n > 0 {
		e.Slot, l.empty = l.empty[n-1], l.empty[:n-1]
	} else if err := l.memory.Take(liveBytes); err != nil {
		return err
	} else {
		e.Slot = uint32(len(l.ids))
		l.ids, l.freed = append(l.ids, 0), append(l.freed, false)
	}
	l.ids[e.Slot], l.freed[e.Slot] = e.ID, false
	l.byID.Put(device.Addr(e.ID), e.Slot+1, l.idOf)
	return nil
}
