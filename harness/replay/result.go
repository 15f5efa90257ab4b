package replay

import (
	"encoding/json"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/provenance"
)

// Schema names the form of [Result] in JSON.
const Schema = "vramyard-replay/1"

// Result holds the figures of one replay. Sizes are bytes, times nanoseconds. A nil pointer is a
// figure that the strategy or the trace does not have.
type Result struct {
	Schema      string           `json:"schema"`       // the constant Schema
	Provenance  provenance.Build `json:"provenance"`   // of the program, for the caller to fill in
	Strategy    string           `json:"strategy"`     // name and preset
	Config      json.RawMessage  `json:"config"`       // the strategy's configuration
	Trace       string           `json:"trace"`        // name of the trace
	TraceSHA256 string           `json:"trace_sha256"` // hash of its decompressed file
	// why the trace is not the whole recorded run; empty: no gap is known
	Gap        string      `json:"lacks"`
	LowerBound device.Size `json:"lower_bound_bytes"` // peak of live bytes as requested; 0 without figures

	Events       int    `json:"events"`             // events of the trace
	Allocs       uint64 `json:"alloc_count"`        // requests granted
	Frees        uint64 `json:"free_count"`         // blocks freed
	OOMs         uint64 `json:"oom_count"`          // requests that found no memory
	Refused      uint64 `json:"refused_count"`      // requests the strategy can never grant, those for zero bytes aside
	Nulls        uint64 `json:"null_count"`         // requests for zero bytes that it refused
	IllegalFrees uint64 `json:"illegal_free_count"` // illegal frees of a counterexample, all of them refused
	Ignored      uint64 `json:"ignored_count"`      // events that this strategy has no power for
	Stopped      bool   `json:"stopped"`            // the replay ended early, at the first failure
	Replayed     int    `json:"-"`                  // events that were replayed; all of them unless it ended early
	// events until the first request that found no memory, with it; all that were replayed if none did
	Decided int `json:"-"`
	// capacities at which the strategy decides the same in them, given the answers of the device; nil:
	// not known
	Span *device.Span `json:"-"`

	Peak // each at its own highest moment

	PeakPending device.Size `json:"peak_pending_bytes"` // most bytes freed that a stream still used
	// of each stream with requests, by its number; none without figures
	Streams          []StreamFigures `json:"streams"`
	CrossStreamWaits uint64          `json:"cross_stream_waits"` // how often the strategy made one stream wait for another

	Now // at the end

	// when allocated bytes were highest
	InternalFragmentation     float64 `json:"internal_fragmentation_at_peak"`
	ExternalFragmentationPeak float64 `json:"external_fragmentation_peak"` // highest seen
	// when reserved bytes first were highest
	ExternalFragmentationAtPeak float64  `json:"external_fragmentation_at_peak_reserved"`
	ExternalFragmentationAtOOM  *float64 `json:"external_fragmentation_at_first_oom,omitempty"` // at the first OOM
	// 1 - peak requested / peak reserved
	ReservationWaste float64 `json:"reservation_waste"`
	// largest request that memory in hand would serve
	Headroom Headroom `json:"headroom_bytes"`

	FirstFailure *FirstFailure `json:"first_failure,omitempty"` // the first request that was not granted
	// report of [inspect.AppendFailure] about the first OOM; nil without [Options].Report
	OOMReport []byte `json:"-"`
	// the strategy's own report about the first OOM; nil without [Options].Report
	OwnOOMReport []byte `json:"-"`

	Sleep *SleepFigures `json:"sleep,omitempty" flat:"-"` // of a trace with pauses; nil without

	Waits *Waits `json:"waits,omitempty" flat:"-"` // of threads that wait for memory, if the caller sets it

	DeviceCalls   uint64       `json:"device_calls"`         // calls to the device of all kinds
	CallsByKind   CallsByKind  `json:"device_calls_by_kind"` // calls that move memory
	Calls         device.Calls `json:"device_calls_each"`    // of every kind that was called
	DeviceTime    uint64       `json:"device_time_ns"`       // their time by the cost model of the device
	DeviceTimes   device.Times `json:"device_time_each_ns"`  // and by kind
	MetadataBytes *device.Size `json:"metadata_bytes"`       // host memory of the strategy at the end; null: not known
	Counters      Counters     `json:"counters,omitempty"`   // in PyTorch's terms, at the end; none without figures

	Device *Target `json:"device,omitempty"` // device of the replay, if the caller sets it
	Driver *Usage  `json:"driver,omitempty"` // on a GPU: usage by all programs during the replay

	NsPerOp float64 `json:"ns_per_op"` // CPU time of the loop per Alloc or Free, bookkeeping included
	// NsPerOpByRef is the time of a replay that freed by reference, where the strategy can
	NsPerOpByRef *float64 `json:"ns_per_op_by_reference,omitempty"`
	Referenced   bool     `json:"-"` // the strategy can free by reference
	Preallocates bool     `json:"-"` // the strategy takes its whole limit at once
	// SelfTimed means that times are measured by the strategy, by the wall clock of its process.
	SelfTimed bool     `json:"self_timed,omitempty"`
	Latency   *Latency `json:"latency,omitempty"` // of single calls

	Series *Series `json:"series,omitempty" flat:"-"` // memory over the run
}

// Failures returns the number of requests that were not granted, those for zero bytes aside.
func (r *Result) Failures() uint64 { return r.OOMs + r.Refused }

// Peak holds the peaks of the sums that every strategy has. Each is at least the one before.
type Peak struct {
	Requested device.Size `json:"peak_requested_bytes"` // requested by live blocks
	Allocated device.Size `json:"peak_allocated_bytes"` // granted to them
	Active    device.Size `json:"peak_active_bytes"`    // including pending bytes
	Reserved  device.Size `json:"peak_reserved_bytes"`  // held from the device
	Charged   device.Size `json:"-"`                    // counted by the device for that, in whole pages of its own
}

// StreamFigures are the figures of one stream's requests. Sizes are bytes.
type StreamFigures struct {
	Stream        device.Stream `json:"stream"`               // its number
	Allocs        uint64        `json:"alloc_count"`          // requests granted
	PeakRequested device.Size   `json:"peak_requested_bytes"` // peak of the bytes requested by its live blocks
	PeakAllocated device.Size   `json:"peak_allocated_bytes"` // peak of the bytes granted to them
}

// Now holds the four sums at one moment.
type Now struct {
	Requested device.Size `json:"final_requested_bytes"` // requested by live blocks
	Allocated device.Size `json:"final_allocated_bytes"` // granted to them
	Active    device.Size `json:"final_active_bytes"`    // including pending bytes
	Reserved  device.Size `json:"final_reserved_bytes"`  // held from the device
}

// Headroom is the largest request that a free chunk in hand would have served, at two moments.
type Headroom struct {
	AtPeak device.Size `json:"at_peak_reserved"` // when reserved bytes first were highest
	Final  device.Size `json:"final"`            // at the end
}

// CallsByKind counts the device calls that took or returned memory, as regions or as handles.
type CallsByKind struct {
	Reserve  uint64 `json:"reserve"`  // memory granted
	Refused  uint64 `json:"refused"`  // memory refused
	Release  uint64 `json:"release"`  // memory given back
	Rejected uint64 `json:"rejected"` // memory not taken back
}

// FirstFailure describes the first request that was not granted.
type FirstFailure struct {
	Event       int          `json:"event"`              // index in the trace, from 0
	ID          uint64       `json:"id"`                 // the allocation
	Size        device.Size  `json:"size_bytes"`         // bytes requested
	Error       string       `json:"error"`              // out of memory or invalid request
	Reason      string       `json:"reason,omitempty"`   // the strategy's reason
	DeviceAsked device.Size  `json:"device_asked_bytes"` // last reservation tried for it; 0: none
	DeviceFree  *device.Size `json:"device_free_bytes"`  // capacity not charged; null: unlimited
	LargestHole device.Size  `json:"largest_hole_bytes"` // largest free chunk
	Free        device.Size  `json:"free_bytes"`         // reserved and not active
}

// Latency holds the distribution of single calls. The clock is read before and after each call;
// Clock is the time between two readings with nothing between them.
type Latency struct {
	Alloc Quantiles `json:"alloc"`    // of Alloc
	Free  Quantiles `json:"free"`     // of Free
	Clock int64     `json:"clock_ns"` // median of an empty measurement, included in the quantiles

	AllocCalls *Histogram `json:"-"` // of Alloc: the histogram of its quantiles
	FreeCalls  *Histogram `json:"-"` // of Free, likewise

	// NsPerOp is the time per operation of this replay. The difference to a replay without
	// latencies is the cost of measuring them.
	NsPerOp float64 `json:"ns_per_op"`
}

// Series samples the memory of a run in at most [MaxPoints] points, or after each event.
type Series struct {
	Stride int     `json:"events_per_point"` // events per point
	Points []Point `json:"points"`           // in order
}

// Point holds the highest values within its events, so that no peak is lost.
type Point struct {
	Event     int         `json:"event"`           // index of the last event of the point
	Requested device.Size `json:"requested_bytes"` // highest within the point
	Allocated device.Size `json:"allocated_bytes"` // likewise
	Reserved  device.Size `json:"reserved_bytes"`  // likewise
	OOMs      uint32      `json:"oom_count"`       // requests within the point that found no memory
}
