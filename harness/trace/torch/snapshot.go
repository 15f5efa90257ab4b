package torch

import "iter"

// Action says what an entry of a history tells.
type Action uint8

// The actions, as PyTorch names them.
const (
	ActionAlloc         Action = iota // the program was given an address
	ActionFreeRequested               // the program gave it back
	ActionFreeCompleted               // the memory became free
	ActionSegmentAlloc                // a segment was taken from the device
	ActionSegmentFree                 // a segment went back to the device
	ActionSegmentMap                  // memory was mapped in an expandable segment
	ActionSegmentUnmap                // memory of one went back
	ActionOOM                         // a request found no memory
	ActionSnapshot                    // a snapshot was written
	ActionOther                       // something that is not known here
)

var actionNames = [...]string{
	"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
	"segment_unmap", "oom", "snapshot", "other",
}

// String returns the action as the file has it.
func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return "invalid"
}

// Snapshot is one file. Strings, frames and stacks are kept once; the first of each is the empty
// one, so that index 0 says "none". An [Interner] fills the tables.
type Snapshot struct {
	Devices     []Device     // those with entries or segments, by ordinal
	Annotations []Annotation // in the order of the file
	Settings    []Setting    // of the allocator, in the order of the file
	Strings     []string     // every text that something refers to
	Frames      []Frame      // every place in a program
	Calls       Calls        // every stack
	Unknown     []string     // keys that were ignored, each once, such as "block.color"
}

// Call is a stack: its innermost frame, and the stack of the caller. Stacks share their outer
// parts, as recorded ones do: a program that was stopped at a million places has few paths to them.
type Call struct {
	Frame  uint32 // index of a frame
	Caller uint32 // index of a call; 0 if there is no caller
}

// Calls are the calls of a snapshot. They stay where they are as more are added, so that reading
// needs no second copy of them.
type Calls struct{ arena[Call] }

// Len returns the number of calls, the empty one included.
func (c *Calls) Len() int { return c.n }

// At returns a call.
//
// Precondition: id < Len.
func (c *Calls) At(id uint32) Call { return c.at(id) }

// Stack yields the frames of a stack, as indices, the innermost first.
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
	Text  bool   // it is a string in the file, and a number, a list and so on otherwise
}

// Frame is a place in a program.
type Frame struct {
	File     uint32 // index of a string
	Function uint32 // index of a string
	Line     int64  // counted from 1
}

// Annotation marks where a named part of the program starts or ends.
type Annotation struct {
	Name   uint32 // index of a string
	Start  bool   // it starts, and ends otherwise
	Device int    // ordinal
	Time   int64  // microseconds
}

// Device is what is known of one device.
type Device struct {
	Ordinal  int       // number of the device
	History  History   // its entries
	Segments []Segment // by address
}

// Segment is contiguous memory that the allocator holds. Of an expandable one it is what is mapped.
type Segment struct {
	Addr, Total, Allocated, Active, Requested uint64 // bytes; Requested by active blocks

	Stream     int64     // handle
	Large      bool      // for large blocks
	Expandable bool      // grows by mapping
	Pool       [2]uint64 // private pool; both 0 for the default pool
	Stack      uint32    // index of a stack
	Blocks     []Block   // by address; they tile the segment
}

// BlockState says what a block is.
type BlockState uint8

// The states.
const (
	Inactive          BlockState = iota // free
	ActiveAllocated                     // the program has it
	ActivePendingFree                   // the program gave it back, a stream may still use it
)

// Block is part of a segment.
type Block struct {
	Addr, Size uint64     // first byte, bytes
	Requested  uint64     // bytes; of an inactive one what its last use asked for
	State      BlockState // what it is
	Stack      uint32     // index of a stack
}
