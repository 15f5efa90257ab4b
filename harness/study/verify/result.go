package verify

import (
	"encoding/json"
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/provenance"
)

// Schema is the schema of a [Result] in JSON.
const Schema = "vramyard-verify/1"

// Result is the result of a verification. Sizes are bytes.
type Result struct {
	Schema     string           `json:"schema"`       // the constant Schema
	Provenance provenance.Build `json:"provenance"`   // the program, set by the caller
	Strategy   string           `json:"strategy"`     // name
	Config     json.RawMessage  `json:"config"`       // configuration of the strategy
	Trace      string           `json:"trace"`        // name of the trace
	TraceHash  string           `json:"trace_sha256"` // hash of the decompressed trace
	// hash of the decompressed address file; "": none
	Addresses         string `json:"addresses_sha256,omitempty"`
	Allocs            int    `json:"alloc_count"`             // recorded allocations
	Predicted         int    `json:"predicted_count"`         // of them: placed as recorded
	Segments          int    `json:"segment_count"`           // segments reserved in the recording
	PredictedSegments int    `json:"predicted_segment_count"` // of them: predicted
	// unpredicted allocations, recorded or predicted in segments of unknown pools
	UnknownPool int `json:"unknown_pool_count"`
	// impossible steps, which were skipped
	Inconsistent       int    `json:"inconsistent_count"`
	FirstInconsistency string `json:"inconsistency,omitempty"` // first of them
	Stopped            string `json:"stopped,omitempty"`       // why the rest was not compared; empty: everything was

	OpeningBlocks int         `json:"opening_blocks"`               // live at the start
	OpeningBytes  device.Size `json:"opening_reserved_bytes"`       // reserved at the start
	Recorded      device.Size `json:"recorded_peak_reserved_bytes"` // recorded peak
	Reserved      device.Size `json:"peak_reserved_bytes"`          // peak of the strategy, refused reservations included

	First *Disagreement `json:"first_disagreement,omitempty"` // first disagreement, or nil
}

// All reports whether every allocation was predicted.
func (r *Result) All() bool { return r.Predicted == r.Allocs }

// Disagreement is an allocation that was not predicted.
type Disagreement struct {
	Event     int           `json:"event"`     // index of the trace's event, without marks
	ID        uint64        `json:"id"`        // allocation ID in the trace
	Size      device.Size   `json:"bytes"`     // requested
	Stream    device.Stream `json:"stream"`    // of the request
	Predicted Placement     `json:"predicted"` // placement by the strategy
	Recorded  Placement     `json:"recorded"`  // recorded placement
}

// String returns the disagreement as one line.
func (d *Disagreement) String() string {
	return fmt.Sprintf("event %d, allocation %d of %d bytes on stream %d: predicted %v, recorded %v",
		d.Event, d.ID, uint64(d.Size), d.Stream, d.Predicted, d.Recorded)
}

// Placement is the result of an allocation. The zero value is a refusal.
type Placement struct {
	Block     device.Addr `json:"block,omitempty"`             // its address; 0: refused
	Segment   device.Size `json:"new_segment_bytes,omitempty"` // size of the segment reserved for it; 0: none
	GivenBack device.Addr `json:"given_back,omitempty"`        // segment released although the recording keeps it
}

// String returns the placement as text.
func (p Placement) String() string {
	segment, block := fmt.Sprintf("a new segment of %d bytes", uint64(p.Segment)), fmt.Sprintf("the block at %v", p.Block)
	switch {
	case p.GivenBack != 0:
		return fmt.Sprintf("release of the segment at %v", p.GivenBack)
	case p.Segment != 0 && p.Block != 0:
		return segment + " and " + block
	case p.Segment != 0:
		return segment
	case p.Block != 0:
		return block
	}
	return "a refusal"
}
