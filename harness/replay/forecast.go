package replay

import (
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/harness/trace"
)

// expected returns the calls of a forecast for an event. A refused request that the program
// survived is freed at once.
var expected = map[trace.Kind][]power.ExpectedKind{
	trace.Alloc:       {power.ExpectAlloc},
	trace.LiveAtStart: {power.ExpectAlloc},
	trace.Refused:     {power.ExpectAlloc, power.ExpectFree},
	trace.Free:        {power.ExpectFree},
	trace.Mark:        {power.ExpectMark},
}

// ForecastOf returns the requests, frees and marks of a replay of t, for strategies that are a
// [power.Planner]. It takes 8 bytes for each of them. The trace must not be changed afterwards.
func ForecastOf(t *trace.Trace) (power.Forecast, error) {
	requests, err := RequestsOf(t.Header)
	if err != nil {
		return nil, err
	}
	src, err := trace.Requested(t)
	if err != nil {
		return nil, err
	}
	var events []trace.Event
	err = src.Batches(func(all []trace.Event) error { // one batch: the trace is in memory
		events = all
		return nil
	})
	var others []int         // by call; see [power.Expected]
	born := map[uint32]int{} // by slot: the call of the request
	for i := range events {
		for _, k := range expected[events[i].Kind] {
			other := -1
			switch k {
			case power.ExpectAlloc:
				born[events[i].Slot] = len(others)
			case power.ExpectFree:
				other = born[events[i].Slot]
				others[other] = len(others)
			}
			others = append(others, other)
		}
	}
	return func(yield func(power.Expected) bool) {
		at := 0
		for i := range events {
			e := &events[i]
			for _, k := range expected[e.Kind] {
				x := power.Expected{Kind: k, Other: others[at]}
				switch k {
				case power.ExpectAlloc:
					x.Request = requests.Of(e)
					x.Request.Tag = 0
				case power.ExpectMark:
					x.Mark = t.TagOf(e)
				}
				if at++; !yield(x) {
					return
				}
			}
		}
	}, err
}
