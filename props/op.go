package props

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Kind says which call an [Op] makes.
type Kind uint8

// The kinds.
const (
	OpAlloc       Kind = iota // request a block
	OpFree                    // free a live block
	OpDoubleFree              // free a block that was freed before
	OpInterior                // free an address inside a live block
	OpForeign                 // free an address that no block ever had
	OpNull                    // free address zero
	OpTrim                    // give cached regions back
	OpFrontier                // raise the safe frontier
	OpClear                   // clear the statistics
	OpFault                   // let the next device calls fail
	OpUse                     // record a stream for a live block
	OpDrain                   // what is queued on a stream finishes
	OpPoll                    // look which deferred frees are finished
	OpPoolBegin               // redirect requests into a private pool
	OpPoolEnd                 // end the redirection into a pool
	OpPoolRelease             // release a pool
)

// Op is one call. Which block it names depends on what is live when it is run, so that
// every sequence of operations is legal and stays legal when some are taken out; one that
// finds nothing to act on does nothing.
type Op struct {
	Kind   Kind          // which call
	Size   device.Size   // OpAlloc: bytes
	Align  device.Size   // OpAlloc: bytes; 0 is no wish
	Stream device.Stream // OpAlloc, OpUse, OpDrain; OpPoolBegin, where it may be alloc.AllStreams
	Hint   alloc.Hint    // OpAlloc
	Before uint64        // OpAlloc: Request.Before
	Pool   alloc.PoolID  // OpPoolBegin, OpPoolEnd, OpPoolRelease
	Pick   uint64        // which block, how far inside, how far the frontier, how many faults
}

// request returns the request that an OpAlloc makes for allocation id.
func (o Op) request(id uint64) alloc.Request {
	return alloc.Request{
		Size: o.Size, Align: o.Align, Stream: o.Stream, Hint: o.Hint, Before: o.Before, Tag: id,
	}
}

var hintNames = [...]string{"none", "low", "high"}

// String returns the operation as a line of a trace, with the pick where a trace has the
// id of a block. The exact line depends on the blocks live at that moment; see [Failure].
func (o Op) String() string {
	switch o.Kind {
	case OpAlloc:
		return o.allocString()
	case OpFree:
		return fmt.Sprintf("f %d", o.Pick)
	case OpDoubleFree:
		return fmt.Sprintf("badfree freed %d", o.Pick)
	case OpInterior:
		return fmt.Sprintf("badfree inside %d", o.Pick)
	case OpForeign:
		return fmt.Sprintf("badfree foreign %d", o.Pick)
	case OpNull:
		return "badfree null"
	case OpTrim:
		return "trim"
	case OpFrontier:
		return fmt.Sprintf("frontier %d", o.Pick)
	case OpClear:
		return "clear"
	case OpFault:
		return fmt.Sprintf("fault %d", o.Pick)
	case OpUse:
		return fmt.Sprintf("use %d %d", o.Pick, uint64(o.Stream))
	case OpDrain:
		return fmt.Sprintf("drain %d", uint64(o.Stream))
	case OpPoll:
		return "poll"
	case OpPoolBegin, OpPoolEnd, OpPoolRelease:
		return o.poolString()
	}
	return "invalid"
}

// allocString is String for an allocation.
func (o Op) allocString() string {
	var b strings.Builder
	fmt.Fprintf(&b, "a %d", uint64(o.Size))
	if o.Align != 0 {
		fmt.Fprintf(&b, " align=%d", uint64(o.Align))
	}
	if o.Stream != 0 {
		fmt.Fprintf(&b, " stream=%d", uint64(o.Stream))
	}
	if o.Hint != alloc.HintNone && int(o.Hint) < len(hintNames) {
		fmt.Fprintf(&b, " hint=%s", hintNames[o.Hint])
	}
	if o.Before != 0 {
		fmt.Fprintf(&b, " before=%d", o.Before)
	}
	return b.String()
}

// poolWords are the words behind pool.
var poolWords = map[Kind]string{OpPoolBegin: "begin", OpPoolEnd: "end", OpPoolRelease: "release"}

// poolString is String for an operation of private pools.
func (o Op) poolString() string {
	s := fmt.Sprintf("pool %s %d", poolWords[o.Kind], uint64(o.Pool))
	if o.Kind == OpPoolBegin && o.Stream != alloc.AllStreams {
		s += fmt.Sprintf(" stream=%d", uint64(o.Stream))
	}
	return s
}

// Sequence is a run of operations.
type Sequence []Op

// String returns how long the sequence is. The generator's library formats every sequence
// that it tries, so the long form is left to [Sequence.Lines].
func (s Sequence) String() string { return fmt.Sprintf("%d operations", len(s)) }

// Lines returns the operations, one a line.
func (s Sequence) Lines() string {
	var b strings.Builder
	for _, o := range s {
		b.WriteString(o.String())
		b.WriteByte('\n')
	}
	return b.String()
}
