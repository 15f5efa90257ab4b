package top

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// Kind is the allocations of a trace with one holder, size and stream.
type Kind struct {
	At     string        // call site, tag or size
	Lines  []string      // of a stack of them, innermost first
	Size   device.Size   // bytes requested by each
	Stream device.Stream // of their requests
	Count  int           // allocations in the whole trace
	AtPeak int           // of them, live at the peak
	First  uint64        // ID of the first one
}

// Census counts the allocations of a trace by kind, and returns the property that names them.
// Kinds with the most bytes come first. stacks may be nil. It reads the trace three times, and
// fails if it cannot be read.
func Census(src trace.Source, stacks Stacks) (Grouping, []Kind, error) {
	s, err := look(src)
	if err != nil {
		return "", nil, err
	}
	live, err := collect(src, s.peakAt)
	if err != nil {
		return "", nil, err
	}
	g := newGrouper(groupingOf(live[s.peakAt], stacks), stacks)
	type key struct {
		at     string
		size   device.Size
		stream device.Stream
	}
	kinds := map[key]*Kind{}
	kindOf := func(b block) *Kind {
		of := g.kindOf(&b)
		k := at(kinds, key{of.site, b.size, b.stream})
		if k.Count == 0 {
			*k = Kind{At: of.site, Lines: of.lines, Size: b.size, Stream: b.stream, First: b.id}
		}
		return k
	}
	err = src.Batches(func(events []trace.Event) error {
		for i := range events {
			if e := &events[i]; e.Kind == trace.Alloc || e.Kind == trace.LiveAtStart {
				kindOf(block{e.ID, e.Size, src.TagOf(e), e.Stream}).Count++
			}
		}
		return nil
	})
	for _, b := range live[s.peakAt] {
		kindOf(b).AtPeak++
	}
	all := make([]Kind, 0, len(kinds))
	for _, k := range kinds {
		all = append(all, *k)
	}
	slices.SortFunc(all, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(b.Size*device.Size(b.Count), a.Size*device.Size(a.Count)), cmp.Compare(b.Size, a.Size),
			cmp.Compare(a.At, b.At), cmp.Compare(a.Stream, b.Stream))
	})
	return g.by, all, err
}
