package torch

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Schema is the version of [Report]'s JSON form.
const Schema = "vramyard-snapshot-report/1"

// Report describes the contents of a device's history and how far its trace can be trusted.
type Report struct {
	Schema  string `json:"schema"`      // the constant Schema
	GPU     int    `json:"gpu"`         // ordinal of the device
	Entries int    `json:"entry_count"` // entries of the history
	// entries of the program: allocations, frees, failed requests
	Requests  int         `json:"request_count"`
	Allocs    int         `json:"alloc_count"`         // allocations in the history
	Frees     int         `json:"free_count"`          // frees by the program
	Delayed   int         `json:"delayed_free_count"`  // frees whose memory became reusable later or not at all
	Refused   int         `json:"refused_count"`       // failed requests
	Taken     int         `json:"segment_taken_count"` // segments or mapped ranges taken from the device
	GivenBack int         `json:"segment_given_count"` // segments or mapped ranges returned to the device
	Streams   []int64     `json:"streams"`             // handles, by first appearance
	Pools     [][2]uint64 `json:"pools,omitempty"`     // private pools with segments in the file

	Opening    State  `json:"opening"`                      // state at the beginning of the history
	EndLive    Amount `json:"end_live"`                     // live blocks at its end
	EndPending Amount `json:"end_pending"`                  // pending blocks at its end
	Peak       uint64 `json:"recorded_peak_reserved_bytes"` // most bytes reserved, as far as the history shows
	End        uint64 `json:"recorded_end_reserved_bytes"`  // bytes of the file's segments
	Capacity   uint64 `json:"least_capacity_bytes"`         // lower bound of the capacity; 0 without a failed request
	Tight      bool   `json:"-"`                            // requests released memory for lack of room on the device

	// why the history probably lost its oldest entries; empty if there is no sign of it
	Wrapped  string    `json:"wrapped,omitempty"`
	Findings []Finding `json:"findings"` // inconsistencies
	Unknown  []string  `json:"unknown"`  // facts that the file does not contain
	Heaps    []Heap    `json:"heaps"`    // memory at the dump, by pool and stream
}

// State is the memory at the beginning of a history.
type State struct {
	Live     Amount `json:"live"`           // live blocks
	Pending  Amount `json:"pending"`        // freed blocks that a stream may still use
	Reserved uint64 `json:"reserved_bytes"` // bytes held from the device
}

// Amount is a number of blocks and their bytes.
type Amount struct {
	Count int    `json:"count"` // blocks
	Bytes uint64 `json:"bytes"` // bytes requested
}

func (a *Amount) add(n uint64) {
	a.Count++
	a.Bytes += n
}

// Finding is a kind of inconsistency and its occurrences.
type Finding struct {
	What  string `json:"what"`  // description
	Count int    `json:"count"` // number of occurrences
	Entry int    `json:"entry"` // first entry of the history affected; -1 for the final segments and blocks
	Addr  uint64 `json:"addr"`  // address of the first occurrence
	kind  finding
}

func (f *Finding) String() string {
	where := fmt.Sprintf("entry %d", f.Entry)
	if f.Entry < 0 {
		where = "the final state"
	}
	return fmt.Sprintf("%d %s; the first at %#x in %s", f.Count, f.What, f.Addr, where)
}

// finding is a kind of [Finding].
type finding uint8

const (
	allocOnLive finding = iota
	allocOutside
	freeOfUnknown
	freeTwice
	freeUnrequested
	sizeDiffers
	useUnexplained
	blockUnexplained
	blockTwice
	stateDiffers
	liveNotInFile
	segmentTwice
	segmentUnexplained
	timeBack
	markUnplaced
)

var findingNames = [...]string{
	allocOnLive:        "allocations at the address of a live one, which is assumed to be freed",
	allocOutside:       "allocations outside every known segment",
	freeOfUnknown:      "frees of addresses that are not live, left out",
	freeTwice:          "frees of blocks that were already freed, left out",
	freeUnrequested:    "completed frees without a requested free, taken for frees",
	sizeDiffers:        "frees or final blocks of another size than their allocation",
	useUnexplained:     "blocks in use after their free without a recorded allocation",
	blockUnexplained:   "final blocks in use whose allocation is not recorded",
	blockTwice:         "final blocks at the address of another final block",
	stateDiffers:       "final blocks that are pending but live in the history, or the reverse",
	liveNotInFile:      "allocations that are live at the end without a final block",
	segmentTwice:       "final segments that overlap another one or are not a valid range",
	segmentUnexplained: "segments taken or returned against other entries",
	timeBack:           "decreasing times, raised to the latest one",
	markUnplaced:       "annotations left out, because no entry has a time",
}

// findingChecks are the kinds of defects that the findings are.
var findingChecks = [...]string{
	allocOnLive: "ghost", allocOutside: "balance", freeOfUnknown: "ghost", freeTwice: "ghost", freeUnrequested: "balance",
	sizeDiffers: "balance", useUnexplained: "ghost", blockUnexplained: "ghost", blockTwice: "overlap",
	stateDiffers: "balance", liveNotInFile: "balance", segmentTwice: "overlap", segmentUnexplained: "balance",
	timeBack: "time", markUnplaced: "marks",
}

// Check returns the kind of defect that the finding is: balance, ghost, overlap, time or marks.
func (f *Finding) Check() string { return findingChecks[f.kind] }

// newReport returns a report with the data that needs no interpretation of the history.
func newReport(d *Device) *Report {
	r := &Report{Schema: Schema, GPU: d.Ordinal, Entries: d.History.Len(), Findings: []Finding{}, Heaps: heaps(d.Segments)}
	for i := range r.Heaps { // sorted by pool
		p := r.Heaps[i].Pool
		if n := len(r.Pools); p != [2]uint64{} && (n == 0 || r.Pools[n-1] != p) {
			r.Pools = append(r.Pools, p)
		}
	}
	return r
}

// addFinding counts an inconsistency. entry is -1 for the file's segments and blocks.
func (r *Report) addFinding(kind finding, entry int, addr uint64) {
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.kind == kind })
	if i < 0 {
		i = len(r.Findings)
		r.Findings = append(r.Findings, Finding{What: findingNames[kind], Entry: entry, Addr: addr, kind: kind})
	}
	f := &r.Findings[i]
	if f.Count++; entry >= 0 && (entry < f.Entry || f.Entry < 0) {
		f.Entry, f.Addr = entry, addr
	}
}

// Inconsistencies returns the number of inconsistencies.
func (r *Report) Inconsistencies() (n int) {
	for _, f := range r.Findings {
		n += f.Count
	}
	return n
}

// finish counts allocations and frees and lists the unknown facts.
func (r *Report) finish(c *Timeline) {
	r.finishStreams()
	for _, o := range c.Opening {
		if o.Pending {
			r.Opening.Pending.add(o.Size)
		} else {
			r.Opening.Live.add(o.Size)
		}
	}
	for _, s := range c.Steps {
		switch s {
		case Alloc:
			r.Allocs++
		case Free:
			r.Frees++
		case FreeLater:
			r.Frees++
			r.Delayed++
		}
	}
	slices.SortFunc(r.Findings, func(a, b Finding) int { return int(a.kind) - int(b.kind) })
	r.Wrapped = wrapped(c)
	r.Unknown = unknown(c)
}

// finishStreams adds the streams that occur only in segments.
func (r *Report) finishStreams() {
	seen := map[int64]bool{}
	for _, s := range r.Streams {
		seen[s] = true
	}
	for i := range r.Heaps {
		if s := r.Heaps[i].Stream; !seen[s] {
			seen[s] = true
			r.Streams = append(r.Streams, s)
		}
	}
}

// fewEntries is the smallest plausible limit of a history, apart from 1.
const fewEntries = 1000

// wrapped guesses why the history lost its oldest entries, or returns "". The file has no flag.
func wrapped(c *Timeline) string {
	n := cmp.Or(c.Device.Joined, c.Device.History.Len())
	switch {
	case len(c.Opening) == 0 || n == 0:
		return ""
	case n == 1:
		return "it has a single entry, as recordings without a history do"
	case n >= fewEntries && (n%fewEntries == 0 || bits.OnesCount(uint(n)) == 1):
		return fmt.Sprintf("it has exactly %d entries and begins with blocks in use", n)
	case c.Report.Opening.Pending.Count > 0:
		return "it begins between the request of a free and its completion"
	}
	return ""
}

// UnknownPools is an unknown fact of files whose entries have no pools, if memory was taken and
// returned in the history.
const UnknownPools = "which requests used private pools that have returned their memory since"

// NoFreeRequests is listed under [trace.AbsentKey] if the history has no requested frees.
const NoFreeRequests = "when frees were requested (each is placed where its memory became reusable)"

// unknown lists the facts that the file does not contain.
func unknown(c *Timeline) []string {
	list := []string{
		"which other streams used a block (only when its memory became reusable)",
		"the limits that the program set",
		"memory outside the allocator: the CUDA context, libraries, other programs",
	}
	if c.Report.Capacity == 0 {
		list = append(list, "the capacity of the device")
	}
	if !c.requested && c.Report.Frees > 0 {
		list = append(list, NoFreeRequests)
	}
	if len(c.Opening) > 0 {
		list = append(list, "order and age of the blocks live at the beginning (listed by stream and address)")
	}
	if slices.ContainsFunc(c.Traffic, func(t Traffic) bool { return t.Segment.PoolUnknown }) {
		list = append(list, UnknownPools)
	}
	return list
}

// String returns the report as text, one fact a line.
func (r *Report) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("GPU %d: %d entries, %d allocations, %d frees (%d delayed), %d refused requests", r.GPU, r.Entries, r.Allocs,
		r.Frees, r.Delayed, r.Refused)
	line("at the start %d blocks of %d bytes live, %d of %d bytes pending, %d bytes reserved", r.Opening.Live.Count,
		r.Opening.Live.Bytes,
		r.Opening.Pending.Count, r.Opening.Pending.Bytes, r.Opening.Reserved)
	line("at the end %d blocks of %d bytes live, %d of %d bytes pending, %d bytes reserved", r.EndLive.Count,
		r.EndLive.Bytes,
		r.EndPending.Count, r.EndPending.Bytes, r.End)
	line("peak reserved %d bytes; segments taken %d times, given back %d times", r.Peak, r.Taken, r.GivenBack)
	if r.Capacity > 0 {
		line("the device has at least %d bytes", r.Capacity)
	}
	if r.Wrapped != "" {
		line("the history probably lost its oldest entries: %s", r.Wrapped)
	}
	if len(r.Pools) > 0 {
		line("private pools %s%s", join(r.Pools, poolName), poolWarning)
	}
	for i := range r.Heaps {
		line("%v", &r.Heaps[i])
	}
	for i := range r.Findings {
		line("%v", &r.Findings[i])
	}
	if len(r.Findings) == 0 {
		line("no inconsistencies")
	}
	for _, u := range r.Unknown {
		line("not in the file: %s", u)
	}
	return b.String()
}
