package verify

import (
	"encoding/json"
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// Schema names the form of [Result] in JSON.
const Schema = "vramyard-verify/1"

// Result is what came of one verification. Sizes are bytes.
type Result struct {
	Schema    string          `json:"schema"`       // the constant Schema
	Version   string          `json:"version"`      // of the program
	Strategy  string          `json:"strategy"`     // name
	Config    json.RawMessage `json:"config"`       // the strategy's configuration
	Trace     string          `json:"trace"`        // name of the trace
	TraceHash string          `json:"trace_sha256"` // hash of its decompressed file
	// hash of the decompressed file with the addresses; "" if there is none
	Addresses  string `json:"addresses_sha256,omitempty"`
	Allocs     int    `json:"alloc_count"`             // allocations that the recording has
	Predicted  int    `json:"predicted_count"`         // of them, those the strategy placed as recorded
	Segments   int    `json:"segment_count"`           // segments that the recording takes from the device
	InSegments int    `json:"predicted_segment_count"` // of them, those the strategy takes likewise
	// of those not predicted, recorded or predicted in segments of which nothing tells the pool
	Lost int `json:"unknown_pool_count"`
	// things in the recording that cannot have been, and were left out
	Odd      int    `json:"inconsistent_count"`
	FirstOdd string `json:"inconsistency,omitempty"` // first of them
	Stopped  string `json:"stopped,omitempty"`       // why the rest was not looked at; empty: all was

	OpeningBlocks int         `json:"opening_blocks"`               // live when the recording began
	OpeningBytes  device.Size `json:"opening_reserved_bytes"`       // held when the recording began
	Recorded      device.Size `json:"recorded_peak_reserved_bytes"` // most that the recording ever held
	Reserved      device.Size `json:"peak_reserved_bytes"`          // most that the strategy ever held or would have

	First *Disagreement `json:"first_disagreement,omitempty"` // nil if there is none
}

// All reports whether every allocation was predicted.
func (r *Result) All() bool { return r.Predicted == r.Allocs }

// Disagreement is an allocation that was not predicted.
type Disagreement struct {
	Event     int           `json:"event"`     // number of the event of the trace, marks left out
	ID        uint64        `json:"id"`        // the allocation's name in the trace
	Size      device.Size   `json:"bytes"`     // asked for
	Stream    device.Stream `json:"stream"`    // of the request
	Predicted Placement     `json:"predicted"` // what the strategy did
	Recorded  Placement     `json:"recorded"`  // what the recording has
}

// String returns the disagreement in one line.
func (d *Disagreement) String() string {
	return fmt.Sprintf("event %d, allocation %d of %d bytes on stream %d: predicted %v, recorded %v",
		d.Event, d.ID, uint64(d.Size), d.Stream, d.Predicted, d.Recorded)
}

// Placement is what an allocation led to. None of its fields set is a refusal.
type Placement struct {
	Block     device.Addr `json:"block,omitempty"`             // where it lies; 0: it was not granted
	Segment   device.Size `json:"new_segment_bytes,omitempty"` // of the segment taken for it; 0: none was
	GivenBack device.Addr `json:"given_back,omitempty"`        // segment that goes back although the recording keeps it
}

// String returns the placement in words.
func (p Placement) String() string {
	segment, block := fmt.Sprintf("a new segment of %d bytes", uint64(p.Segment)), fmt.Sprintf("the block at %v", p.Block)
	switch {
	case p.GivenBack != 0:
		return fmt.Sprintf("that the segment at %v goes back", p.GivenBack)
	case p.Segment != 0 && p.Block != 0:
		return segment + " and " + block
	case p.Segment != 0:
		return segment
	case p.Block != 0:
		return block
	}
	return "a refusal"
}
