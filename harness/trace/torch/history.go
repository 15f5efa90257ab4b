package torch

import (
	"strconv"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// Format is what the header of a trace made here says under Header.Format.
const Format = "snapshot"

// Keys of the header of a trace made here.
const (
	KeyConfig   = "config"            // recorded settings, as a configuration of the strategy caching
	KeyStreams  = "streams"           // handles of the streams, by first appearance
	KeyPools    = "pools"             // private pools in which the file has segments
	KeyOpening  = "opening_live"      // allocations that were live when the history began
	KeyPeak     = "recorded_reserved" // most bytes that the recorded allocator held, as far as it shows
	KeyCapacity = "recorded_capacity" // least capacity of the device in bytes, by the requests that it refused
	KeyStarted  = "started_us"        // time of the first event, in microseconds of the Unix epoch
	KeyWrapped  = "wrapped"           // why the history probably lost its oldest entries
	KeyDoubt    = "doubt"             // a finding of the report; there may be several
	KeyHeap     = "heap"              // memory at the end of one pool and stream; there may be several
)

// PartOf returns the name of a device, as other formats of PyTorch have it.
func PartOf(gpu int) string { return "cuda:" + strconv.Itoa(gpu) }

// Result is what was made of one device.
type Result struct {
	GPU    int          // ordinal of the device
	Trace  *trace.Trace // what the program asked for
	Report *Report      // how far it can be trusted
	Course *Course      // what the trace was made of
}

// Traces returns a trace for each device that has a history of requests or, if it has none, live
// blocks. Its header has no name and no hash: those are the file's. The error is that of a trace
// that cannot hold so much.
func Traces(s *Snapshot) ([]Result, error) { return TracesWithin(s, nil) }

// TracesWithin is [Traces] for traces that may take as much memory together as a budget has.
func TracesWithin(s *Snapshot, memory *budget.Budget) ([]Result, error) {
	sites, err := s.sites(memory)
	if err != nil {
		return nil, err
	}
	defer budget.Release(memory, sites)
	var results []Result
	for i := range s.Devices {
		d := &s.Devices[i]
		c, err := solve(d, memory)
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
		results = append(results, Result{GPU: d.Ordinal, Trace: t, Report: c.Report, Course: c})
	}
	return results, nil
}

// Step says what an entry of a history means for the program's allocations.
type Step uint8

// The steps.
const (
	None      Step = iota // nothing
	Alloc                 // an allocation begins
	Free                  // it was freed and its memory was free at once
	FreeLater             // it was freed, its memory is pending from here on
	Completed             // pending memory became free
	Refused               // a request found no memory
)

// Life is an allocation that was there when the history began.
type Life struct {
	Addr    uint64 // first byte
	Size    uint64 // bytes asked for
	Stream  int64  // handle
	Granted uint64 // bytes of its block; 0 where the file does not tell
	Pending bool   // the program had given it back already
	Stack   uint32 // index of the stack that allocated it; 0 where the file does not tell
}

// Ending is the end of an allocation that is in no entry: another one lies where it was.
type Ending struct {
	Entry   int    // index of the entry that begins the other one
	ID      uint32 // of the allocation that has ended
	Pending bool   // it was pending
}

// Refusal is a request that found no memory.
type Refusal struct {
	Entry      int    // index of the entry
	Reserved   uint64 // bytes held when it came
	DeviceFree uint64 // bytes that the device had left
}

// Course is what happened on a device, entry by entry.
type Course struct {
	Device  *Device  // whose history it is
	Opening []Life   // what was there at the beginning, by stream and address; the index is the id
	Steps   []Step   // by entry
	IDs     []uint32 // by entry: the allocation of its step
	// by entry: number of its step's event in the trace, or of the next event; one more for the end;
	// nil before [Course.Trace]
	Events   []int
	Endings  []Ending      // by entry
	Pending  []uint32      // ids of what is pending at the end, as it became so
	Segments []HeldSegment // what was held at the beginning, by address
	Traffic  []Traffic     // segments that came and went, by entry
	Report   *Report       // how far it can be trusted

	LastRefusal *Refusal // the last request that found no memory; nil if none did

	requested bool // the history tells when frees were requested; recordings may leave that out
}

// Solve works out what happened on a device.
func Solve(d *Device) *Course {
	c, err := solve(d, nil)
	if err != nil {
		panic(err) // there is no bound
	}
	return c
}

// What solve takes, in bytes.
const (
	entryBytes   = 24 // for an entry: its number, its step, its id and its event
	addressBytes = 80 // for an address: its place in the index, and what is known of it on the way back and forth
	blockBytes   = 64 // for a block in use: as it was when the history began
)

// solve is [Solve] within a budget.
func solve(d *Device, memory *budget.Budget) (*Course, error) {
	blocks := 0
	for range inUse(d.Segments) {
		blocks++
	}
	if err := memory.Take(int64(d.History.Len())*entryBytes + int64(blocks)*blockBytes); err != nil {
		return nil, err
	}
	c := &Course{Device: d, Report: newReport(d)}
	n := c.number()
	if err := memory.Take(int64(len(n.addrs)) * addressBytes); err != nil {
		return nil, err
	}
	defer memory.Give(int64(len(n.addrs)) * addressBytes)
	c.backSegments()
	c.back(n)
	c.forward(n)
	c.Report.finish(c)
	return c, nil
}
