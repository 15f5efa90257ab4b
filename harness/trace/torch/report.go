package torch

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Schema names the form of [Report] in JSON.
const Schema = "vramyard-snapshot-report/1"

// Report says how far the trace of a device can be trusted, and what else the file tells.
type Report struct {
	Schema  string `json:"schema"`      // the constant Schema
	GPU     int    `json:"gpu"`         // ordinal of the device
	Entries int    `json:"entry_count"` // of the history
	// of them, those that are the program's: allocations, frees, refusals
	Requests  int         `json:"request_count"`
	Allocs    int         `json:"alloc_count"`         // allocations in the history
	Frees     int         `json:"free_count"`          // frees by the program
	Delayed   int         `json:"delayed_free_count"`  // of them, those whose memory became free later or not at all
	Refused   int         `json:"refused_count"`       // requests that found no memory
	Taken     int         `json:"segment_taken_count"` // segments, or mapped parts, taken from the device
	GivenBack int         `json:"segment_given_count"` // likewise given back
	Streams   []int64     `json:"streams"`             // handles, by first appearance
	Pools     [][2]uint64 `json:"pools,omitempty"`     // private pools that have segments in the file

	Opening    State  `json:"opening"`                      // when the history begins
	EndLive    Amount `json:"end_live"`                     // what the program has when it ends
	EndPending Amount `json:"end_pending"`                  // what it has given back and is not free yet
	Peak       uint64 `json:"recorded_peak_reserved_bytes"` // most bytes held, as far as the history shows
	End        uint64 `json:"recorded_end_reserved_bytes"`  // bytes of the file's segments
	Capacity   uint64 `json:"least_capacity_bytes"`         // the device has at least so many; 0: no refusal tells

	// why the history probably lost its oldest entries; empty: nothing says so
	Wrapped  string    `json:"wrapped,omitempty"`
	Findings []Finding `json:"findings"` // what does not fit
	Unknown  []string  `json:"unknown"`  // what the file cannot tell
	Heaps    []Heap    `json:"heaps"`    // memory at the end, by pool and stream
}

// State is what is there when a history begins.
type State struct {
	Live     Amount `json:"live"`           // what the program has
	Pending  Amount `json:"pending"`        // what it has given back and is not free yet
	Reserved uint64 `json:"reserved_bytes"` // held from the device
}

// Amount is a number of blocks and their bytes.
type Amount struct {
	Count int    `json:"count"` // blocks
	Bytes uint64 `json:"bytes"` // bytes asked for
}

func (a *Amount) add(n uint64) {
	a.Count++
	a.Bytes += n
}

// Finding is something that does not fit, however often it was met.
type Finding struct {
	What  string `json:"what"`  // in words
	Count int    `json:"count"` // how often
	Entry int    `json:"entry"` // of the history, the first; -1: it is about the file's segments and blocks
	Addr  uint64 `json:"addr"`  // the first
	kind  finding
}

// String returns the finding in one line.
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
	allocOnLive:        "allocations where another one was live, which is taken to be freed",
	allocOutside:       "allocations outside every known segment",
	freeOfUnknown:      "frees of what is not live, left out",
	freeTwice:          "frees of what was freed already, left out",
	freeUnrequested:    "completed frees that nobody requested, taken for frees",
	sizeDiffers:        "frees or final blocks of another size than their allocation",
	useUnexplained:     "blocks in use behind their free, though no allocation is recorded",
	blockUnexplained:   "final blocks in use whose allocation is not recorded",
	blockTwice:         "final blocks at the address of another one",
	stateDiffers:       "final blocks that are pending where the history says live, or the other way round",
	liveNotInFile:      "allocations that are live at the end, and are no final block",
	segmentTwice:       "final segments that overlap another one or are no range",
	segmentUnexplained: "segments that came or went and fit no other entry",
	timeBack:           "times that go back, moved up to the latest one",
	markUnplaced:       "annotations left out, because no entry has a time",
}

// newReport returns what the file's lists tell at once.
func newReport(d *Device) *Report {
	r := &Report{Schema: Schema, GPU: d.Ordinal, Entries: d.History.Len(), Findings: []Finding{}, Heaps: heaps(d.Segments)}
	for i := range r.Heaps { // by pool
		p := r.Heaps[i].Pool
		if n := len(r.Pools); p != [2]uint64{} && (n == 0 || r.Pools[n-1] != p) {
			r.Pools = append(r.Pools, p)
		}
	}
	return r
}

// find counts something that does not fit. entry is -1 for what is about the file's segments and
// blocks.
func (r *Report) find(kind finding, entry int, addr uint64) {
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

// Doubts returns how many things do not fit.
func (r *Report) Doubts() (n int) {
	for _, f := range r.Findings {
		n += f.Count
	}
	return n
}

// finish counts what happened and says what cannot be known.
func (r *Report) finish(c *Course) {
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

// finishStreams adds the streams that only segments have.
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

// fewEntries is the least that a ring has that anybody would set, but for those of one entry.
const fewEntries = 1000

// wrapped says why the history probably lost its oldest entries, if it did. The file has no flag.
func wrapped(c *Course) string {
	n := c.Device.History.Len()
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

// unknown lists what the file cannot tell.
func unknown(c *Course) []string {
	list := []string{
		"which streams used a block besides its own: only when its memory became free",
		"when the program emptied the cache, and the bounds that it set",
		"memory that the allocator did not hand out: the CUDA context, libraries, other programs",
	}
	if c.Report.Capacity == 0 {
		list = append(list, "the capacity of the device")
	}
	if !c.requested && c.Report.Frees > 0 {
		list = append(list, "when frees were requested; each stands where its memory became free")
	}
	if len(c.Opening) > 0 {
		list = append(list, "order and age of what was live when the history begins; it is listed by stream and address")
	}
	if len(c.Report.Pools) > 0 && c.Device.History.Pools == nil {
		list = append(list, "which requests went to private pools whose memory went back since")
	}
	return list
}

// String returns the report in words, a line for each thing that there is to say.
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
		line("everything fits")
	}
	for _, u := range r.Unknown {
		line("not in the file: %s", u)
	}
	return b.String()
}
