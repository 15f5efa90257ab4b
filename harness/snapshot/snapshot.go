// Package snapshot holds PyTorch's CUDA memory snapshots, the files that
// torch.cuda.memory._dump_snapshot writes, in columns.
package snapshot

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

// Snapshot is one file. Strings, frames and stacks are kept once; the first string and the first stack
// are empty.
type Snapshot struct {
	Devices     []Device     // those with entries or segments, by ordinal
	Annotations []Annotation // in the order of the file
	Settings    []Setting    // of the allocator, in the order of the file
	Strings     []string     // every text of the file
	Frames      []Frame      // every place in a program
	Stacks      [][]uint32   // indices of frames, the innermost first
	Unknown     []string     // keys that nobody knows, each once
}

// Setting is one of the allocator's settings, as text.
type Setting struct {
	Key, Value string // as in the file; a list or dictionary as text
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

// NoTime is the time of an entry that has none.
const NoTime int64 = -1

// History is the entries of a device, oldest first, a column for each property. Columns are equally
// long, or nil where no entry has the property.
type History struct {
	Action   []Action    // what it tells
	Addr     []uint64    // first byte; of ActionOOM the bytes that the device had free
	Size     []uint64    // bytes; of ActionOOM rounded
	Stream   []uint16    // index into Streams
	Streams  []int64     // handles of streams as the file has them; 0 is the default stream
	Time     []int64     // microseconds, or NoTime
	Stack    []uint32    // index of a stack
	Category []uint32    // index of a string
	Pool     [][2]uint64 // private pool; both 0 for the default pool
}

// Len returns the number of entries.
func (h *History) Len() int { return len(h.Action) }

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
