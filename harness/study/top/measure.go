package top

import (
	"iter"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// Stacks holds the allocation stacks of a trace.
type Stacks interface {
	// Stack returns the number of the stack of an allocation, 0 if unknown.
	Stack(id uint64) uint32
	// Lines returns the lines of a stack, innermost first, and its call site.
	Lines(stack uint32) (lines []string, site string)
	// Frames yields the recorded frames of a stack, innermost first.
	Frames(stack uint32) iter.Seq[uint32]
	// Frame returns the file and function of a frame.
	Frame(frame uint32) (file, function string)
}

// block is a live allocation.
type block struct {
	id     uint64
	size   device.Size
	tag    string
	stream device.Stream
}

// survey is the result of the first pass over a trace.
type survey struct {
	trace.Refusals

	covered trace.Coverage
	peakAt  int // event of the peak; -1: no allocations
}

func look(src trace.Source) (*survey, error) {
	s := &survey{peakAt: -1}
	var ledger trace.Ledger
	most := device.Size(0)
	i := 0
	err := src.Batches(func(events []trace.Event) error {
		for k := range events {
			e := &events[k]
			s.Refusals.Step(e)
			s.covered.Step(e)
			ledger.Step(e)
			if e.Kind == trace.Alloc || e.Kind == trace.LiveAtStart {
				if live := ledger.Live(); live > most { // refused requests are not live
					most, s.peakAt = live, i
				}
			}
			i++
		}
		return nil
	})
	if s.covered.Empty() && s.peakAt >= 0 {
		s.peakAt = i - 1 // without history there is only the final state
	}
	return s, err
}

// collect returns the live blocks after each of the events.
func collect(src trace.Source, events ...int) (map[int][]block, error) {
	found := map[int][]block{}
	live := map[uint32]block{}
	i := 0
	err := src.Batches(func(piece []trace.Event) error {
		for k := range piece {
			switch e := &piece[k]; e.Kind {
			case trace.Alloc, trace.LiveAtStart:
				live[e.Slot] = block{e.ID, e.Size, src.TagOf(e), e.Stream}
			case trace.Free:
				delete(live, e.Slot)
			}
			if slices.Contains(events, i) {
				found[i] = make([]block, 0, len(live))
				for _, b := range live {
					found[i] = append(found[i], b) // Moment sorts its output
				}
			}
			i++
		}
		return nil
	})
	return found, err
}

// groupingOf returns the grouping: stacks or tags if they cover at least half of the bytes.
func groupingOf(blocks []block, stacks Stacks) Grouping {
	var all, stacked, tagged device.Size
	for i := range blocks {
		b := &blocks[i]
		all += b.size
		if stacks != nil && stacks.Stack(b.id) != 0 {
			stacked += b.size
		}
		if b.tag != "" {
			tagged += b.size
		}
	}
	switch half := all / 2; {
	case stacked > 0 && stacked >= half:
		return ByCallSite
	case tagged > 0 && tagged >= half:
		return ByTag
	}
	return BySize
}

// Measure reports the memory by holder at the peak and at the last refused request. stacks may be
// nil. It fails if the trace cannot be read.
func Measure(src trace.Source, stacks Stacks) (*Report, error) {
	s, err := look(src)
	if err != nil {
		return nil, err
	}
	head := src.Head()
	r := &Report{
		Schema: Schema, Trace: head.Header.Name, Hash: head.Header.Hash, Events: head.Events,
		History: !s.covered.Empty(),
	}
	wanted := []int{s.peakAt}
	if s.Count > 0 {
		wanted = append(wanted, s.LastAt)
	}
	live, err := collect(src, wanted...)
	if err != nil {
		return nil, err
	}
	r.By = groupingOf(live[s.peakAt], stacks)
	g := newGrouper(r.By, stacks)
	r.Peak = g.moment(s.peakAt, live[s.peakAt])
	if s.Count > 0 {
		m := g.moment(s.LastAt, live[s.LastAt])
		m.Asked, m.Refusals = s.Last.Size, s.Count
		if tag := src.TagOf(&s.Last); tag != "" && r.By == ByTag {
			m.AskedBy = tag
		}
		r.Failure = &m
	}
	r.Cut = g.cut
	return r, nil
}
