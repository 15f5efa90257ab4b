package torch

import "iter"

// Action is the kind of an entry.
type Action uint8

// The actions, by PyTorch's names.
const (
	ActionAlloc         Action = iota // an allocation
	ActionFreeRequested               // a free by the program
	ActionFreeCompleted               // the memory of a free became reusable
	ActionSegmentAlloc                // a segment was taken from the device
	ActionSegmentFree                 // a segment was returned to the device
	ActionSegmentMap                  // memory was mapped in an expandable segment
	ActionSegmentUnmap                // memory was unmapped from an expandable segment
	ActionOOM                         // a request failed
	ActionSnapshot                    // a snapshot was written
	// ActionConf is no action of PyTorch: the program changed the settings of the allocator.
	ActionConf
	ActionOther // an unknown action
)

var actionNames = [...]string{
	"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
	"segment_unmap", "oom", "snapshot", "conf", "other",
}

// String returns the action's name in the file.
func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return "invalid"
}

// Snapshot is the content of a file. Strings, frames and stacks are stored once; index 0 of each is
// the empty one. An [Interner] fills the tables.
type Snapshot struct {
	Devices     []Device     // devices with entries or segments, by ordinal
	Annotations []Annotation // in the order of the file
	Settings    []Setting    // of the allocator, in the order of the file
	Strings     []string     // by index
	Frames      []Frame      // by index
	Calls       Calls        // stacks, by index
	Unknown     []string     // ignored keys, each once, such as "block.color"
}

// Call is a stack: its innermost frame, and the stack of the caller. Stacks share their outer
// frames.
type Call struct {
	Frame  uint32 // index of a frame
	Caller uint32 // index of a call; 0 if there is no caller
}

// Calls are the calls of a snapshot. They do not move as more are added, so growing needs no copy.
type Calls struct{ arena[Call] }

// Len returns the number of calls, including the empty one.
func (c *Calls) Len() int { return c.n }

// At returns a call.
//
// Precondition: id < Len.
func (c *Calls) At(id uint32) Call { return c.at(id) }

// Stack yields the indices of a stack's frames, innermost first.
func (s *Snapshot) Stack(id uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for id != 0 {
			c := s.Calls.at(id)
			if !yield(c.Frame) {
				return
			}
			id = c.Caller
		}
	}
}

// Setting is one of the allocator's settings.
type Setting struct {
	Key   string // as in the file
	Value string // as Python prints it; a list or dictionary as JSON
	Text  bool   // a string in the file; otherwise a number, a list and so on
}

// Frame is a source location.
type Frame struct {
	File     uint32 // index of a string
	Function uint32 // index of a string
	Line     int64  // counted from 1
}

// Annotation marks where a named part of the program starts or ends.
type Annotation struct {
	Name   uint32 // index of a string
	Start  bool   // it starts; otherwise it ends
	Device int    // ordinal
	Time   int64  // microseconds
}

// Device is the data of one device.
type Device struct {
	Ordinal  int       // number of the device
	History  History   // oldest entry first
	Segments []Segment // by address
	Joined   int       // entries of the earliest file, if the history was joined by [Join]; otherwise 0
}

// Segment is contiguous memory held by the allocator; of an expandable segment the mapped part.
type Segment struct {
	Addr, Total, Allocated, Active, Requested uint64 // bytes; Requested by active blocks

	Stream     int64     // handle
	Large      bool      // for large blocks
	Expandable bool      // grows by mapping
	Pool       [2]uint64 // private pool; both 0 for the default pool
	Stack      uint32    // index of a stack
	Blocks     []Block   // by address; they tile the segment
}

// BlockState is the state of a block.
type BlockState uint8

// The states.
const (
	Inactive          BlockState = iota // free
	ActiveAllocated                     // live
	ActivePendingFree                   // freed by the program, but a stream may still use it
)

// Block is part of a segment.
type Block struct {
	Addr, Size uint64     // first byte, bytes
	Requested  uint64     // bytes requested; for an inactive block by its last use
	State      BlockState // whether it is in use
	Stack      uint32     // index of a stack
}
