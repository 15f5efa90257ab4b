package corpus

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// Stats are the statistics of a trace on its card, as in [trace.Info].
type Stats struct {
	Events    int         `json:"events"`             // number of events
	Allocs    int         `json:"allocs"`             // number of allocations
	Peak      device.Size `json:"peak_live_bytes"`    // peak of the live bytes
	PeakLive  int         `json:"peak_live_count"`    // peak of the number of live blocks
	EndLive   int         `json:"end_live_count"`     // live blocks at the end
	Sizes     int         `json:"distinct_sizes"`     // number of distinct sizes
	MinSize   device.Size `json:"min_bytes"`          // smallest size
	Median    device.Size `json:"median_bytes"`       // lower median of the sizes
	MaxSize   device.Size `json:"max_bytes"`          // largest size
	Classes   [4]int      `json:"allocs_by_class"`    // allocations by [ClassOf]
	LifeMid   int         `json:"life_median_events"` // lower median of the lifetimes, in events
	LifeP90   int         `json:"life_p90_events"`    // 90th percentile
	LifeMax   int         `json:"life_max_events"`    // maximum
	Streams   int         `json:"streams"`            // streams with requests
	Pools     int         `json:"pools"`              // private pools
	Marks     int         `json:"marks"`              // marks
	Steps     int         `json:"steps"`              // steps that the marks show
	Refused   int         `json:"refused"`            // requests that the recorded program did not get
	HasTimes  bool        `json:"timed"`              // some event has a time
	HasOrigin bool        `json:"sites"`              // some request has the hash of its stack
}

// ClassNames are the size classes of [Stats.Classes]. PyTorch's allocator changes its rules at
// 1 MiB and at 10 MiB.
var ClassNames = [4]string{"up to 4 KiB", "up to 1 MiB", "up to 10 MiB", "larger"}

// ClassOf returns the index of a size in [ClassNames].
func ClassOf(n device.Size) int {
	switch {
	case n <= 4*device.KiB:
		return 0
	case n <= device.MiB:
		return 1
	case n <= 10*device.MiB:
		return 2
	}
	return 3
}

// StatsOf computes the statistics of a trace.
func StatsOf(t trace.Source) (Stats, error) {
	in, err := trace.Describe(t)
	if err != nil {
		return Stats{}, err
	}
	s := Stats{
		Events: in.Events, Allocs: in.Allocs, Peak: in.Peak, PeakLive: in.PeakLive, EndLive: in.EndLive,
		Sizes: in.Sizes.Distinct, MinSize: in.Sizes.Min, Median: in.Sizes.Median, MaxSize: in.Sizes.Max,
		LifeMid: in.Lives.MedianEvents, LifeP90: in.Lives.P90Events, LifeMax: in.Lives.MaxEvents,
		Streams: len(in.Streams), Pools: in.Pools, Marks: in.Marks, Steps: in.Steps.Count, HasTimes: in.Timed,
	}
	if in.Refusals != nil {
		s.Refused = in.Refusals.Count
	}
	err = t.Batches(func(events []trace.Event) error {
		for i := range events {
			if e := &events[i]; e.Kind == trace.Alloc || e.Kind == trace.LiveAtStart {
				s.Classes[ClassOf(e.Size)]++
				s.HasOrigin = s.HasOrigin || e.Site != 0
			}
		}
		return nil
	})
	return s, err
}

// Check compares a trace with its card: the hash, then each figure. The error names the first
// difference.
func (e *Entry) Check(t trace.Source) error {
	if h := t.Head().Header.Hash; h != e.Hash {
		return fmt.Errorf("%s: the trace has the SHA-256 %.12s…: want %.12s…", e.Name, h, e.Hash)
	}
	s, err := StatsOf(t)
	if err != nil || s == e.Stats {
		return err
	}
	have, want := figures(s), figures(e.Stats)
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if have[key] != want[key] {
			return fmt.Errorf("%s: %s is %s: the card says %s", e.Name, key, have[key], want[key])
		}
	}
	return nil
}

// figures returns the figures of a card by their names.
func figures(s Stats) map[string]string {
	raw, err := json.Marshal(s)
	var fields map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(raw, &fields)
	}
	if err != nil {
		panic(err) // numbers can be encoded
	}
	texts := map[string]string{}
	for key, value := range fields {
		texts[key] = string(value)
	}
	return texts
}
