package offline

import (
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// Options configure the conversion of a trace to a problem.
type Options struct {
	// Round returns the placed size of a request; nil: unchanged.
	Round func(device.Size) device.Size
	// FreeAt is when memory of a delayed free becomes available.
	FreeAt replay.FreeAt
}

// Of converts a trace to a problem with one buffer for each allocation, in order.
//
// Lives overlap exactly if they do in the order of the trace's events: a free makes room for later
// allocations only. Moments count the events that start or end lives, so that results do not depend
// on clocks; only MiniMalloc problems keep their times. Allocations live at the start live from 0,
// those never freed until the end. Refused requests are buffers; see [trace.Refusals]. Streams and
// private pools are ignored: with full knowledge neither is needed.
//
// O(n log n) and 56 bytes for each allocation.
func Of(src trace.Source, o Options) (*Problem, error) {
	head := src.Head().Header
	l := lives{Options: o, timed: head.Format == "minimalloc"}
	src, err := trace.Requested(src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", head.Name, err)
	}
	err = src.Batches(func(events []trace.Event) error {
		for i := range events {
			l.see(&events[i])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range l.buffers {
		if b := &l.buffers[i]; b.Upper == alive {
			b.Upper = l.now + 1
		}
	}
	p, err := New(slices.Clip(l.buffers))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", head.Name, err)
	}
	return p, nil
}

// lives collects the buffers of a trace.
type lives struct {
	Options
	buffers []Buffer
	rows    []int32 // by slot: 1 + index of its latest buffer
	now     int64   // current moment
	timed   bool    // the trace's times are moments
	born    bool    // the last change was a birth
}

// alive is the end of a buffer that is still live.
const alive = -1

// pass advances to the moment of a birth or death.
func (l *lives) pass(time int64, born bool) int64 {
	if !l.timed {
		l.now++
		return l.now
	}
	if l.born && !born {
		l.now++ // buffers born before this death live before it
	}
	l.now, l.born = max(l.now, time), born
	return l.now
}

func (l *lives) see(e *trace.Event) {
	switch e.Kind {
	case trace.Alloc, trace.LiveAtStart, trace.Refused:
		l.begin(e)
		if e.Kind == trace.Refused {
			l.at(e.Slot).Upper = l.pass(e.Time, false)
		}
	case trace.Free:
		if b := l.at(e.Slot); b != nil && b.Upper == alive {
			b.Upper = l.pass(e.Time, false)
		}
	case trace.Completed:
		if b := l.at(e.Slot); b != nil && b.Upper != alive && l.FreeAt != replay.AtRequested {
			b.Upper = l.pass(e.Time, false)
		}
	}
}

func (l *lives) begin(e *trace.Event) {
	if n := int(e.Slot) + 1 - len(l.rows); n > 0 {
		l.rows = append(l.rows, make([]int32, n)...)
	}
	b := Buffer{ID: e.ID, Lower: l.pass(e.Time, true), Upper: alive, Size: e.Size, Align: e.Align}
	if e.Kind == trace.LiveAtStart {
		b.Lower = 0 // even if it has the time of a later event
	}
	if l.Round != nil {
		b.Size = l.Round(b.Size)
	}
	l.buffers = append(l.buffers, b)
	l.rows[e.Slot] = int32(len(l.buffers))
}

// at returns the latest buffer of a slot, or nil.
func (l *lives) at(slot uint32) *Buffer {
	if int64(slot) >= int64(len(l.rows)) || l.rows[slot] == 0 {
		return nil
	}
	return &l.buffers[l.rows[slot]-1]
}
