package trace

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// Kind is the kind of an event. The numbers are part of stored files and never change.
type Kind uint8

// The kinds.
const (
	Alloc       Kind = 0  // allocation ID of Size bytes
	Free        Kind = 1  // allocation ID is freed
	Completed   Kind = 2  // the delayed free of ID became final
	Use         Kind = 3  // ID is also used by Stream
	LiveAtStart Kind = 4  // ID of Size bytes was live before the first event
	Mark        Kind = 5  // step, phase or annotation; Tag is its text
	Trim        Kind = 6  // cached memory shall be returned to the device
	Frontier    Kind = 7  // the safe frontier rises to Arg
	Drain       Kind = 8  // all work queued on Stream has finished
	PoolBegin   Kind = 9  // allocations of Stream, or of all, go to pool Arg; Tag is its PoolOptions
	PoolEnd     Kind = 10 // redirection into pool Arg ends
	PoolRelease Kind = 11 // pool Arg is released
	Refused     Kind = 12 // a request of Size bytes that failed in the recorded program; see Refusals
	BadFree     Kind = 13 // an illegal free: of ID's address plus Size, or of address Arg if Slot is NoSlot
	Fault       Kind = 14 // the next Arg device calls fail
	ClearStats  Kind = 15 // counters and peaks are reset
	Print       Kind = 16 // the replay prints the data that Arg selects
	Poll        Kind = 17 // the allocator shall check which delayed frees are final
	Conf        Kind = 18 // the program changes the settings of its allocator; Tag is their text
	Pause       Kind = 19 // live blocks with Tag, or all, lose their memory and keep their addresses; see Sleep
	Resume      Kind = 20 // they get memory again
	numKinds    Kind = 21
)

var kindNames = [numKinds]string{
	"alloc", "free", "completed", "use", "live-at-start", "mark", "trim", "frontier", "drain", "pool-begin",
	"pool-end", "pool-release", "refused", "bad-free", "fault", "clear-stats", "print", "poll", "conf",
	"pause", "resume",
}

// String returns the kind in lower case.
func (k Kind) String() string {
	if k < numKinds {
		return kindNames[k]
	}
	return "invalid"
}

// Kinds yields every kind, by number.
func Kinds(yield func(Kind) bool) {
	for k := range numKinds {
		if !yield(k) {
			return
		}
	}
}

// Values of Arg for a Print event.
const (
	PrintStats  uint64 = iota // statistics in one line
	PrintMap                  // rendering of memory in one line
	PrintTotals               // totals in PyTorch's terms
)

// AllStreams as the Stream of PoolBegin means every stream.
const AllStreams = power.AllStreams

// NoSlot is the Slot of an event without an allocation.
const NoSlot = ^uint32(0)

// NoTime is the Time of an event whose time is not known.
const NoTime int64 = -1

// Event is one line of a trace. Fields that its kind does not use are zero. Alloc, LiveAtStart and
// Refused are requests.
type Event struct {
	Kind   Kind           // the kind
	Hint   alloc.Hint     // Alloc: which end of the arena
	Life   alloc.Lifetime // requests: when the program expects to free the block
	Slot   uint32         // dense number of the allocation ID, or NoSlot
	Tag    uint32         // index into Trace.Tags; 0 is no tag
	Thread uint32         // requests: the requesting host thread, counted from 1; 0 is unknown
	ID     uint64         // the allocation's name in the file
	Size   device.Size    // bytes
	Align  device.Size    // Alloc: alignment in bytes; 0 is any
	Stream device.Stream  // stream
	Arg    uint64         // Alloc: Request.Before; otherwise by kind
	Time   int64          // nanoseconds since the start of the trace, or NoTime
	Site   uint64         // requests: hash of the requesting call stack; 0 is unknown
}

// Origin returns the origin of a request: call site, thread and expected lifetime.
func (e *Event) Origin() alloc.Origin { return alloc.OriginOf(e.Site, e.Thread).WithLifetime(e.Life) }

// Pair is one entry of a header, in the order of the file.
type Pair struct {
	Key   string `json:"key"`   // letters, digits and _ . -
	Value string `json:"value"` // the rest of the line
}

// AbsentKey is the header key for the information that the original file lacked.
const AbsentKey = "not_in_file"

// Header keys for the framework of the recorded program.
const (
	FrameworkKey = "framework"   // its name: "PyTorch", "TensorFlow", "JAX"
	TorchKey     = "torch"       // the version of PyTorch
	LimitKey     = "limit_bytes" // most bytes that the recorded allocator might hold
)

// Header describes a trace and its origin.
type Header struct {
	Name   string // short name; by default the file's name without endings
	Format string // format it was read from: "text", "csv", "bfc", "xdl", "torch"
	Hash   string // SHA-256 of the decompressed file in hexadecimal
	Meta   []Pair // further pairs of the file
}

// Trace is a whole trace in memory.
type Trace struct {
	Header Header   // origin and properties
	Events []Event  // in order
	Tags   []string // texts of tags; Tags[0] is ""
	Slots  int      // number of distinct allocations; every Slot is below it

	places *places // nil: unknown
}

// Get returns the value of the first pair with the given key, and whether there is one.
func (h Header) Get(key string) (string, bool) {
	for _, p := range h.Meta {
		if p.Key == key {
			return p.Value, true
		}
	}
	return "", false
}

// TagOf returns the text of an event's tag.
func (t *Trace) TagOf(e *Event) string {
	if e.Tag == 0 {
		return "" // Tags may be empty
	}
	return t.Tags[e.Tag]
}
