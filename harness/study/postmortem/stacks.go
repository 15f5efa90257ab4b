package postmortem

import (
	"iter"

	"github.com/vramyard/vramyard/harness/trace/torch"
)

// Stacks holds the allocation stacks of a recording's trace. It is safe for concurrent use.
type Stacks struct {
	of     torch.Snapshot // source of strings, frames and stacks
	frames *torch.Frames
	calls  []uint32 // by allocation: index of its stack
}

// Stacks returns the stacks of all allocations. O(entries).
func (r *Recording) Stacks() *Stacks {
	s := &Stacks{of: torch.Snapshot{Strings: r.Snapshot.Strings, Frames: r.Snapshot.Frames, Calls: r.Snapshot.Calls}}
	s.frames = torch.NewFrames(&s.of)
	s.calls = r.openingCalls()
	for i, step := range r.Timeline.Steps {
		if step == torch.Alloc { // IDs are assigned in this order
			s.calls = append(s.calls, r.Timeline.Device.History.At(i).Stack)
		}
	}
	return s
}

// Stack returns the number of the stack of an allocation, 0 if unknown. O(1).
func (s *Stacks) Stack(id uint64) uint32 {
	if id >= uint64(len(s.calls)) {
		return 0 // an allocation added for a refused request
	}
	return s.calls[id]
}

// Lines returns the lines of a stack, innermost first, and its call site: see [torch.Frames].
func (s *Stacks) Lines(stack uint32) (lines []string, site string) { return s.frames.Lines(stack) }

// Frames yields the recorded frames of a stack, innermost first.
func (s *Stacks) Frames(stack uint32) iter.Seq[uint32] { return s.of.Stack(stack) }

// Frame returns the file and function of a frame: see [torch.Frames].
func (s *Stacks) Frame(frame uint32) (file, function string) { return s.frames.Frame(frame) }

// Places returns the lines of the stack of an allocation, for [Options].
func (s *Stacks) Places(id uint64) []string {
	lines, _ := s.Lines(s.Stack(id))
	return lines
}
