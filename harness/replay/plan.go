package replay

import (
	"fmt"
	"strconv"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// faultKey is the key of the header that FaultPlan reads.
const faultKey = "fault-nth"

// TagsKey is the key of the header by which a trace labels its requests: with the value "ids" the
// tag of each request is the ID of its allocation, as in counterexamples of the property suite.
// Without it the tag is the number of the text that the event has.
const TagsKey = "request-tags"

// Requests builds the requests of a trace from its events. They are the same for every replay,
// observed or not, because a strategy may decide by any field.
type Requests struct{ tagsAreIDs bool }

// RequestsOf returns the requests of a trace with a header. It fails if [TagsKey] has another
// value.
func RequestsOf(h trace.Header) (Requests, error) {
	tags, ok := h.Get(TagsKey)
	if ok && tags != "ids" {
		return Requests{}, fmt.Errorf("%s: header %s=%s: want ids", h.Name, TagsKey, tags)
	}
	return Requests{ok}, nil
}

// Of returns the request of an Alloc event.
func (q Requests) Of(e *trace.Event) alloc.Request {
	r := alloc.Request{
		Size: e.Size, Align: e.Align, Stream: e.Stream, Hint: e.Hint, Before: e.Arg, Tag: uint64(e.Tag), ID: e.ID,
		Origin: e.Origin(),
	}
	if q.tagsAreIDs {
		r.Tag = e.ID
	}
	return r
}

// Tag returns the text that the tag of a request stands for, "" if there is none.
func (p *Prepared) Tag(tag uint64) string {
	if tag == 0 || p.requests.tagsAreIDs {
		return ""
	}
	return p.src.TagOf(&trace.Event{Tag: uint32(tag)})
}

// FaultPlan returns the number of the device call to refuse, for the trace of a counterexample,
// from the key fault-nth of its header; the calls that build and close the strategy count too.
func FaultPlan(h trace.Header) (device.FaultPlan, error) {
	nth, ok := h.Get(faultKey)
	if !ok {
		return device.FaultPlan{}, nil
	}
	n, err := strconv.ParseUint(nth, 10, 64)
	if err != nil {
		return device.FaultPlan{}, fmt.Errorf("%s: header fault-nth=%s: want the number of a device call", h.Name, nth)
	}
	return device.FaultPlan{Nth: n}, nil
}
