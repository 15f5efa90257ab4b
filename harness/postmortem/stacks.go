package postmortem

import (
	"iter"

	"github.com/vramyard/vramyard/harness/snapshot"
)

// Stacks tells where a recorded program asked for the allocations of the trace that is made of its course. It is
// safe for concurrent use.
type Stacks struct {
	of    snapshot.Snapshot // its texts, frames and calls
	calls []uint32          // by allocation: index of a stack
}

// Stacks returns where the program asked for each allocation. O(entries).
func (r *Recording) Stacks() *Stacks {
	s := &Stacks{of: snapshot.Snapshot{Strings: r.Snapshot.Strings, Frames: r.Snapshot.Frames, Calls: r.Snapshot.Calls}}
	for _, x := range r.livesAt(len(r.Course.Steps)).all {
		s.calls = append(s.calls, x.call)
	}
	return s
}

// Stack returns the number of the stack of an allocation, 0 if it is not known. O(1).
func (s *Stacks) Stack(id uint64) uint32 {
	if id >= uint64(len(s.calls)) {
		return 0 // the trace asks for what the program was refused
	}
	return s.calls[id]
}

// Frames yields the numbers of the places of a stack, the innermost first.
func (s *Stacks) Frames(stack uint32) iter.Seq[uint32] { return s.of.Stack(stack) }

// Place returns a place.
func (s *Stacks) Place(frame uint32) (file string, line int64, function string) {
	f := s.of.Frames[frame]
	return s.of.Strings[f.File], f.Line, s.of.Strings[f.Function]
}

// Places returns the places of the stack of an allocation, the innermost first: see [Options].
func (s *Stacks) Places(id uint64) []string { return places(&s.of, s.Stack(id)) }
