package whatif

import (
	"encoding/json"
	"strconv"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/study/verify"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
)

// UnknownSettings begins the text in [Recorded.Unknown] that says why the recorded settings are not
// understood. A colon follows.
const UnknownSettings = "the meaning of the recorded settings"

// Recorded is the recorded run according to the file, and data on its accuracy.
type Recorded struct {
	Framework string `json:"framework,omitempty"`         // empty: unknown
	Version   string `json:"framework_version,omitempty"` // empty: unknown

	// recorded settings, as a configuration of the strategy that models the recorded allocator
	Config json.RawMessage `json:"config,omitempty"`
	// recorded variables of TensorFlow or JAX, each NAME=VALUE
	Environment []string `json:"environment,omitempty"`
	Presumed    bool     `json:"settings_presumed,omitempty"` // the settings are the framework's defaults
	// most bytes that the recorded allocator might hold; absent: unknown
	Limit device.Size `json:"limit_bytes,omitempty"`
	Peak  device.Size `json:"peak_reserved_bytes"` // recorded peak of reserved memory; 0: unknown
	// peak of reserved memory in a replay with the recorded settings; 0: no replay
	Replayed device.Size `json:"replayed_peak_reserved_bytes"`
	// reserved memory plus free device memory when the program failed; 0: unknown
	Capacity device.Size `json:"capacity_bytes"`
	Failure  *Failure    `json:"failure,omitempty"` // last failed request
	Tight    bool        `json:"-"`                 // requests released memory for lack of room on the device

	Predicted int    `json:"predicted_count"`           // allocations that the model places as recorded
	Allocs    int    `json:"judged_count"`              // allocations compared; 0: the file has no addresses
	Stopped   string `json:"judging_stopped,omitempty"` // why the comparison stopped

	Entries         int      `json:"entry_count"`        // entries of the history; 0: unknown
	Empty           bool     `json:"no_history"`         // the file has only allocations live at the start
	Opening         int      `json:"opening_live_count"` // allocations live at the start of the recording
	Wrapped         string   `json:"wrapped,omitempty"`  // why the beginning of the recording is probably lost
	Inconsistencies int      `json:"doubt_count"`        // inconsistent entries
	Pools           int      `json:"pool_count"`         // private pools
	Streams         int      `json:"stream_count"`       // streams with requests
	Rounded         bool     `json:"rounded"`            // refused requests have rounded sizes only
	Unknown         []string `json:"unknown,omitempty"`  // information missing in the file

	// Policy is the recorded order of segments, as a policy of the simulated device; "": unknown.
	Policy sim.Policy `json:"-"`
	// Explained is why the last refused request failed; nil: unknown.
	Explained *postmortem.Report `json:"-"`
	// Final is the heap when the file was written; nil: unknown.
	Final *postmortem.Final `json:"-"`
	// Setup is the model of the recorded allocator and settings; no name: unknown.
	Setup setting.Setup `json:"-"`
}

// Failure is a failed request.
type Failure struct {
	Event      int           `json:"event"`             // index in the trace
	Count      int           `json:"refused_count"`     // total number of refusals
	Fatal      bool          `json:"fatal"`             // no allocation followed
	Size       device.Size   `json:"bytes"`             // requested, or rounded by the allocator
	Stream     device.Stream `json:"stream"`            // of the request
	Reserved   device.Size   `json:"reserved_bytes"`    // reserved at that moment; 0: unknown
	DeviceFree *device.Size  `json:"device_free_bytes"` // free on the device; null: unknown
}

// RecordedIn returns the data in a trace itself: its header and refusals.
func RecordedIn(w *SurveyedTrace) Recorded {
	h := w.Head().Header
	number := func(key string) uint64 {
		text, _ := h.Get(key)
		n, _ := strconv.ParseUint(text, 10, 62) // a malformed number is ignored
		return n
	}
	r := Recorded{
		Peak: device.Size(number(torch.KeyPeak)), Capacity: device.Size(number(torch.KeyCapacity)),
		Opening: int(min(number(torch.KeyOpening), 1<<31-1)),
		Streams: w.Streams, Rounded: w.Rounded, Empty: w.Empty,
	}
	r.Framework, r.Version = frameworkOf(h)
	r.Limit = device.Size(number(trace.LimitKey))
	r.Wrapped, _ = h.Get(torch.KeyWrapped)
	if config, ok := h.Get(torch.KeyConfig); ok && json.Valid([]byte(config)) {
		r.Config = json.RawMessage(config)
	}
	if order, _ := h.Get(torch.KeyOrder); order == torch.OrderFalling {
		r.Policy = sim.TopDown
	}
	if _, ok := h.Get(torch.KeyPools); ok {
		r.Pools = 1
	}
	for _, p := range h.Meta {
		switch p.Key {
		case trace.AbsentKey:
			r.Unknown = append(r.Unknown, p.Value)
		case torch.KeyFinding:
			r.Inconsistencies++
		}
	}
	if f := w.Refusals; f.Count > 0 {
		r.Failure = &Failure{Event: f.LastAt, Count: f.Count, Fatal: f.Died, Size: f.Last.Size, Stream: f.Last.Stream}
	}
	return r
}

// Settings names the settings in Setup: the recorded ones, or the defaults of the framework if the
// file has none.
func (r *Recorded) Settings() string {
	if r.Presumed {
		return "the defaults of " + r.Framework
	}
	return "the recorded settings"
}

// Add adds data of the snapshot that the trace was converted from.
func (r *Recorded) Add(c *torch.Timeline) {
	r.Peak, r.Capacity = device.Size(c.Report.Peak), device.Size(c.Report.Capacity)
	r.Entries, r.Tight = c.Report.Entries, c.Report.Tight
	r.Wrapped, r.Opening, r.Inconsistencies = c.Report.Wrapped, len(c.Opening), c.Report.Inconsistencies()
	r.Pools, r.Unknown = len(c.Report.Pools), c.Report.Unknown
	if f := r.Failure; f != nil && c.LastRefusal != nil {
		free := device.Size(c.LastRefusal.DeviceFree)
		f.DeviceFree, f.Reserved = &free, device.Size(c.LastRefusal.Reserved)
	}
}

// Judged adds the result of verifying the model against the recording.
func (r *Recorded) Judged(v *verify.Result) {
	r.Predicted, r.Allocs, r.Stopped = v.Predicted, v.Allocs, v.Stopped
}
