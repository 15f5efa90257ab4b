package torch

import (
	"strconv"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// Format is the value of Header.Format of the traces that this package makes.
const Format = "snapshot"

// Keys of the header of the traces that this package makes.
const (
	KeyConfig   = "config"            // recorded settings, as a configuration of the strategy caching
	KeyStreams  = "streams"           // handles of the streams, by first appearance
	KeyPools    = "pools"             // private pools with segments in the file
	KeyOpening  = "opening_live"      // number of allocations that were live when the history began
	KeyPeak     = "recorded_reserved" // most bytes reserved by the recorded allocator, as far as the history shows
	KeyCapacity = "recorded_capacity" // lower bound of the device's capacity in bytes, from refused requests
	KeyStarted  = "started_us"        // time of the first event, in microseconds of the Unix epoch
	KeyOrder    = "segment_order"     // [OrderFalling] if most new segments lie below the previous one
	KeyWrapped  = "wrapped"           // why the history is probably incomplete
	KeyFinding  = "doubt"             // a finding of the report; may be repeated
	KeyHeap     = "heap"              // summary of a [Heap]; may be repeated
)

// OrderFalling is the value of [KeyOrder]: CUDA places segments like this on Linux. The order
// decides which of two free blocks of equal size PyTorch takes.
const OrderFalling = "falling"

// PartOf returns the name of a device as PyTorch's other formats write it, such as "cuda:0".
func PartOf(gpu int) string { return "cuda:" + strconv.Itoa(gpu) }

// Result is the conversion of one device.
type Result struct {
	GPU      int          // ordinal of the device
	Trace    *trace.Trace // the program's requests
	Report   *Report      // statistics and inconsistencies
	Timeline *Timeline    // the device's history, step by step
}

// Traces returns a trace for each device with requests in its history or, failing that, with live
// blocks. Headers have no name and no hash; the caller sets them from the file. It fails if a trace
// exceeds its limits.
func Traces(s *Snapshot) ([]Result, error) { return TracesWithin(s, nil) }

// TracesWithin is [Traces] with its memory charged to a budget.
func TracesWithin(s *Snapshot, memory *budget.Budget) ([]Result, error) {
	sites, err := s.sites(memory)
	if err != nil {
		return nil, err
	}
	defer budget.Release(memory, sites)
	var results []Result
	for i := range s.Devices {
		d := &s.Devices[i]
		c, err := interpret(d, memory)
		if err != nil {
			return nil, err
		}
		if c.Report.Requests == 0 && len(c.Opening) == 0 {
			continue
		}
		t, err := c.trace(s, sites, memory)
		if err != nil {
			return nil, err
		}
		results = append(results, Result{GPU: d.Ordinal, Trace: t, Report: c.Report, Timeline: c})
	}
	return results, nil
}

// Step is the effect of an entry on the program's allocations.
type Step uint8

// The steps.
const (
	None      Step = iota // no effect
	Alloc                 // an allocation begins
	Free                  // freed, and reusable at once
	FreeLater             // freed; the memory is pending
	Completed             // pending memory became reusable
	Refused               // a request failed
)

// OpeningAlloc is an allocation that existed when the history began.
type OpeningAlloc struct {
	Addr    uint64 // first byte
	Size    uint64 // bytes requested
	Stream  int64  // handle
	Granted uint64 // bytes of its block; 0 if the file does not contain it
	Pending bool   // already freed by the program
	Stack   uint32 // index of the allocation's stack; 0 if the file does not contain it
}

// Ending is an unrecorded end of an allocation, inferred from a later allocation at its address.
type Ending struct {
	Entry   int    // index of the later allocation's entry
	ID      uint32 // id of the allocation that ended
	Pending bool   // it was already pending
}

// Refusal is a request that failed for lack of memory.
type Refusal struct {
	Entry      int    // index of the entry
	Reserved   uint64 // bytes reserved at that time
	DeviceFree uint64 // bytes free on the device
}

// Timeline is the history of a device, interpreted entry by entry.
type Timeline struct {
	Device  *Device        // the device of the history
	Opening []OpeningAlloc // allocations at the beginning, by stream and address; the index is the id
	Steps   []Step         // by entry
	IDs     []uint32       // by entry: id of the allocation
	// By entry: number of its event in the trace, or of the next event if it has none. The last
	// element is the number of events. Nil before [Timeline.Trace].
	Events   []int
	Endings  []Ending      // unrecorded ends, by entry
	Pending  []uint32      // ids of allocations that are pending at the end
	Segments []HeldSegment // segments held at the beginning, by address
	Traffic  []Traffic     // segments taken and returned, by entry
	Report   *Report       // statistics and inconsistencies

	LastRefusal *Refusal // the last failed request, or nil

	requested bool // the history has requested frees; recordings may omit them
}

// Interpret interprets the history of a device.
func Interpret(d *Device) *Timeline {
	c, err := interpret(d, nil)
	if err != nil {
		panic(err) // cannot happen without a budget
	}
	return c
}

// Memory of interpret, in bytes.
const (
	entryBytes   = 24 // per entry: address number, step, id and event
	addressBytes = 80 // per address: its index entry and its states in both passes
	blockBytes   = 64 // per block in use: its opening state
)

// interpret is [Interpret] with its memory charged to a budget.
func interpret(d *Device, memory *budget.Budget) (*Timeline, error) {
	blocks := 0
	for range inUse(d.Segments) {
		blocks++
	}
	if err := memory.Take(int64(d.History.Len())*entryBytes + int64(blocks)*blockBytes); err != nil {
		return nil, err
	}
	c := &Timeline{Device: d, Report: newReport(d)}
	n := c.number()
	if err := memory.Take(int64(len(n.addrs)) * addressBytes); err != nil {
		return nil, err
	}
	defer memory.Give(int64(len(n.addrs)) * addressBytes)
	c.solveOpeningSegments()
	c.solveOpeningBlocks(n)
	c.forward(n)
	c.Report.finish(c)
	return c, nil
}
