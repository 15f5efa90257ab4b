package whatif

import (
	"encoding/json"
	"strconv"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/study/verify"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
)

// Recorded is what the file of a trace says of the run that was recorded, and how far that can be
// trusted.
type Recorded struct {
	Framework string `json:"framework,omitempty"`         // framework of the recorded program; empty: not known
	Version   string `json:"framework_version,omitempty"` // its version; empty: not known

	// recorded settings, as a configuration of the strategy that stands for the recorded allocator
	Config json.RawMessage `json:"config,omitempty"`
	Peak   device.Size     `json:"peak_reserved_bytes"` // most bytes the recorded allocator held; 0: not known
	// most bytes held in a replay with the recorded settings; 0: there was none
	Replayed device.Size `json:"replayed_peak_reserved_bytes"`
	// what it held when it was refused memory, and what the device had left; 0: not known
	Capacity device.Size `json:"capacity_bytes"`
	Failure  *Failure    `json:"failure,omitempty"` // the last request that found no memory

	Predicted int    `json:"predicted_count"`           // allocations that the strategy places as recorded
	Allocs    int    `json:"judged_count"`              // of so many; 0: the file has no addresses
	Stopped   string `json:"judging_stopped,omitempty"` // why the rest was not judged

	Entries int      `json:"entry_count"`        // entries of the history; 0: not known
	Empty   bool     `json:"no_history"`         // there is nothing but what was live when the recording began
	Opening int      `json:"opening_live_count"` // allocations that were live when the recording began
	Wrapped string   `json:"wrapped,omitempty"`  // why the recording probably lost its beginning
	Doubts  int      `json:"doubt_count"`        // entries that do not fit
	Pools   int      `json:"pool_count"`         // private pools
	Streams int      `json:"stream_count"`       // streams that ask for memory
	Rounded bool     `json:"rounded"`            // of what was refused only the rounded size is known
	Unknown []string `json:"unknown,omitempty"`  // what the file cannot tell

	// Explained says why the last refused request found no memory; nil: the file does not tell.
	Explained *postmortem.Report `json:"-"`
	// Final is the heap when the file was written; nil: the file does not have it.
	Final *postmortem.Final `json:"-"`
	// Setup stands for the recorded allocator with the recorded settings; no name: neither is known.
	Setup setting.Setup `json:"-"`
}

// Failure is a request that found no memory.
type Failure struct {
	Event      int           `json:"event"`             // its number in the trace
	Count      int           `json:"refused_count"`     // refusals in all
	Fatal      bool          `json:"fatal"`             // nothing was allocated behind it
	Size       device.Size   `json:"bytes"`             // asked for, or what the allocator made of it
	Stream     device.Stream `json:"stream"`            // of the request
	Reserved   device.Size   `json:"reserved_bytes"`    // held when it came; 0: not known
	DeviceFree *device.Size  `json:"device_free_bytes"` // left on the device; null: not known
}

// RecordedIn returns what a trace itself tells: its header and its refusals.
func RecordedIn(w *Wanted) Recorded {
	h := w.Head().Header
	number := func(key string) uint64 {
		text, _ := h.Get(key)
		n, _ := strconv.ParseUint(text, 10, 62) // what is no number is not known
		return n
	}
	r := Recorded{
		Peak: device.Size(number(torch.KeyPeak)), Capacity: device.Size(number(torch.KeyCapacity)),
		Opening: int(min(number(torch.KeyOpening), 1<<31-1)),
		Streams: w.Streams, Rounded: w.Rounded, Empty: w.Empty,
	}
	r.Framework, r.Version = frameworkOf(h)
	r.Wrapped, _ = h.Get(torch.KeyWrapped)
	if config, ok := h.Get(torch.KeyConfig); ok && json.Valid([]byte(config)) {
		r.Config = json.RawMessage(config)
	}
	if _, ok := h.Get(torch.KeyPools); ok {
		r.Pools = 1
	}
	for _, p := range h.Meta {
		switch p.Key {
		case trace.AbsentKey:
			r.Unknown = append(r.Unknown, p.Value)
		case torch.KeyDoubt:
			r.Doubts++
		}
	}
	if f := w.Refusals; f.Count > 0 {
		r.Failure = &Failure{Event: f.LastAt, Count: f.Count, Fatal: f.Died, Size: f.Last.Size, Stream: f.Last.Stream}
	}
	return r
}

// Add adds what a snapshot tells beyond the trace that is made of it.
func (r *Recorded) Add(c *torch.Course) {
	r.Peak, r.Capacity = device.Size(c.Report.Peak), device.Size(c.Report.Capacity)
	r.Entries = c.Report.Entries
	r.Wrapped, r.Opening, r.Doubts = c.Report.Wrapped, len(c.Opening), c.Report.Doubts()
	r.Pools, r.Unknown = len(c.Report.Pools), c.Report.Unknown
	if f := r.Failure; f != nil && c.LastRefusal != nil {
		free := device.Size(c.LastRefusal.DeviceFree)
		f.DeviceFree, f.Reserved = &free, device.Size(c.LastRefusal.Reserved)
	}
}

// Judged adds what came of holding the strategy to the recording.
func (r *Recorded) Judged(v *verify.Result) {
	r.Predicted, r.Allocs, r.Stopped = v.Predicted, v.Allocs, v.Stopped
}
