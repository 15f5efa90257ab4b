package offline

import (
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// Options say what a trace means as a problem.
type Options struct {
	// Round turns the bytes that were asked for into those that are placed; nil leaves them.
	Round func(device.Size) device.Size
	// FreeAt says when the memory of a free that other streams delay may be given again.
	FreeAt replay.FreeAt
}

// Of returns the problem of a trace: one buffer for each allocation, in the order of the trace.
//
// Two lives overlap exactly if they do in the trace, in the order of its events: a free makes room
// for what is allocated behind it, not in front. Moments count the events with which lives begin
// and end. Only a problem of MiniMalloc keeps its own: the times of other traces come from clocks,
// and the answer is not to depend on them. What is live at the start lives from 0, what is never
// freed until the end. Refused requests are buffers; see [trace.Refusals]. Streams and private
// pools are left out: whoever knows the future needs neither.
//
// It costs O(n log n) and 56 bytes for each allocation.
func Of(src trace.Source, o Options) (*Problem, error) {
	head := src.Head().Header
	l := lives{Options: o, timed: head.Format == "minimalloc"}
	src, err := trace.Requested(src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", head.Name, err)
	}
	err = src.Pieces(func(events []trace.Event) error {
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
	rows    []int32 // by slot: the latest buffer there, counted from 1
	now     int64   // the moment
	timed   bool    // times of events are moments of a problem
	born    bool    // the last life that began or ended began
}

// alive is the end of a life that has not ended.
const alive = -1

// pass moves on to the moment of an event with which a life begins or ends.
func (l *lives) pass(time int64, born bool) int64 {
	if !l.timed {
		l.now++
		return l.now
	}
	if l.born && !born {
		l.now++ // the buffer that was born in front of this death lives before it
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
		b.Lower = 0 // also if it is told with the time of what comes first
	}
	if l.Round != nil {
		b.Size = l.Round(b.Size)
	}
	l.buffers = append(l.buffers, b)
	l.rows[e.Slot] = int32(len(l.buffers))
}

// at returns the latest buffer of a slot, nil if there is none.
func (l *lives) at(slot uint32) *Buffer {
	if int64(slot) >= int64(len(l.rows)) || l.rows[slot] == 0 {
		return nil
	}
	return &l.buffers[l.rows[slot]-1]
}
