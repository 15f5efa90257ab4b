package trace

import (
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
)

// Step is a part of a trace that marks make out: one iteration of a training, one token of a
// generation.
type Step struct {
	Name  string // text of its mark
	First int    // index of its mark
	End   int    // index of the event behind it
}

// Steps returns the steps of a trace, none if its marks tell of none.
//
// Steps begin at marks that differ only in their numbers ("iter 0", "iter 1"), at least two of them.
// If there are several such families, one that speaks of steps, iterations or batches is taken, the
// one with most marks of these. A step ends where the next begins; the last one ends at the first
// mark of a kind that no step before has, such as "teardown", or else with the trace. O(events).
func (t *Trace) Steps() []Step {
	var marks []int
	var families []string
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind == Mark {
			marks = append(marks, i)
			families = append(families, family(t.TagOf(e)))
		}
	}
	best := stepFamily(families)
	if best == "" {
		return nil
	}
	var steps []Step
	inside := map[string]bool{} // families of the marks within steps that have ended
	var open []string
	for k, i := range marks {
		n := len(steps)
		if families[k] == best {
			for _, f := range open {
				inside[f] = true
			}
			if open = open[:0]; n > 0 {
				steps[n-1].End = i
			}
			steps = append(steps, Step{Name: t.TagOf(&t.Events[i]), First: i, End: len(t.Events)})
			continue
		}
		if n > 0 {
			open = append(open, families[k])
		}
	}
	last := &steps[len(steps)-1]
	for k, i := range marks {
		if i > last.First && !inside[families[k]] {
			last.End = i
			break
		}
	}
	return steps
}

// family returns the text of a mark with '#' for every number in it. Without a number, the mark is a
// family of its own, which begins with '='.
func family(text string) string {
	var b strings.Builder
	digits, numbers := false, 0
	for _, c := range []byte(text) {
		if c >= '0' && c <= '9' {
			if !digits {
				numbers++
				b.WriteByte('#')
			}
			digits = true
			continue
		}
		digits = false
		b.WriteByte(c)
	}
	if numbers == 0 {
		return "=" + text
	}
	return b.String()
}

// stepFamily returns the family of marks that begin steps, "" if there is none.
func stepFamily(families []string) string {
	counts := map[string]int{}
	for _, f := range families {
		if !strings.HasPrefix(f, "=") && !isEnd(f) {
			counts[f]++
		}
	}
	best, bestRank := "", 0
	for _, f := range families { // in their order, so that the first of equals is taken
		n := counts[f]
		if n < 2 || f == best {
			continue
		}
		rank := n
		if isStep(f) {
			rank += len(families)
		}
		if rank > bestRank {
			best, bestRank = f, rank
		}
	}
	return best
}

// isStep reports whether a mark speaks of what is repeated.
func isStep(family string) bool {
	lower := strings.ToLower(family)
	return slices.ContainsFunc([]string{"step", "iter", "batch"}, func(word string) bool {
		return strings.Contains(lower, word)
	})
}

// isEnd reports whether a mark tells that something ends.
func isEnd(family string) bool {
	lower := strings.ToLower(family)
	return strings.HasPrefix(lower, "end ") || strings.HasSuffix(lower, "end")
}

// StepInfo tells how much the steps of a trace are alike.
type StepInfo struct {
	Count     int    `json:"count"`               // steps; 0 if marks tell of none
	First     string `json:"first,omitempty"`     // text of the first one's mark
	MinAllocs int    `json:"min_allocs"`          // fewest allocations in a step
	MaxAllocs int    `json:"max_allocs"`          // most
	Compared  int    `json:"compared_allocs"`     // allocations of all steps but the last
	Recurring int    `json:"recurring_allocs"`    // those of them that come again in the next step
	Identical int    `json:"identical_followers"` // steps with the very sizes of the step before
}

// stepInfo compares each step with the next: an allocation comes again if the one at the same place
// in the next step's order has its size.
func (t *Trace) stepInfo() StepInfo {
	var in StepInfo
	var before, sizes []device.Size
	for k, s := range t.Steps() {
		sizes = sizes[:0]
		for i := s.First; i < s.End; i++ {
			if e := &t.Events[i]; e.Kind == Alloc {
				sizes = append(sizes, e.Size)
			}
		}
		if k == 0 {
			in.First, in.MinAllocs = s.Name, len(sizes)
		} else {
			in.compare(before, sizes)
		}
		in.Count++
		in.MinAllocs, in.MaxAllocs = min(in.MinAllocs, len(sizes)), max(in.MaxAllocs, len(sizes))
		before, sizes = sizes, before
	}
	return in
}

// compare books a step and the one behind it.
func (in *StepInfo) compare(before, sizes []device.Size) {
	in.Compared += len(before)
	for i := range min(len(before), len(sizes)) {
		if before[i] == sizes[i] {
			in.Recurring++
		}
	}
	if slices.Equal(before, sizes) {
		in.Identical++
	}
}

// LifeInfo describes how long allocations live that are freed within the trace.
type LifeInfo struct {
	Freed        int   `json:"freed"`               // allocations that are freed
	Kept         int   `json:"kept"`                // allocations that never are
	MedianEvents int   `json:"median_events"`       // lower median of the events from birth to free
	TenthEvents  int   `json:"p90_events"`          // nine of ten live no longer
	MaxEvents    int   `json:"max_events"`          // the longest life
	Timed        int   `json:"timed"`               // lives of which both ends have a time
	MedianTime   int64 `json:"median_ns"`           // as for events
	TenthTime    int64 `json:"p90_ns"`              // as for events
	MaxTime      int64 `json:"max_ns"`              // as for events
	Delayed      int   `json:"delayed_frees"`       // frees that became final later than the next event
	FromStart    int   `json:"freed_live_at_start"` // of Freed, those live at the start, whose lives count from there
}

// lifeInfo follows every allocation.
func (t *Trace) lifeInfo() LifeInfo {
	var in LifeInfo
	births := make([]int, t.Slots)
	frees := make([]int, t.Slots)
	var events []int
	var times []int64
	for i := range t.Events {
		e := &t.Events[i]
		switch e.Kind {
		case Alloc, LiveAtStart:
			births[e.Slot] = i
			in.Kept++
		case Free:
			born := &t.Events[births[e.Slot]]
			frees[e.Slot] = i
			events = append(events, i-births[e.Slot])
			in.Freed++
			in.Kept--
			if born.Kind == LiveAtStart {
				in.FromStart++
			}
			if born.Time != NoTime && e.Time != NoTime {
				times = append(times, e.Time-born.Time)
			}
		case Completed:
			if i > frees[e.Slot]+1 {
				in.Delayed++
			}
		}
	}
	in.MedianEvents, in.TenthEvents, in.MaxEvents = spread(events)
	in.Timed = len(times)
	in.MedianTime, in.TenthTime, in.MaxTime = spread(times)
	return in
}

// spread returns the lower median, what nine of ten do not exceed, and the largest. It sorts.
func spread[N int | int64](list []N) (median, tenth, most N) {
	n := len(list)
	if n == 0 {
		return 0, 0, 0
	}
	slices.Sort(list)
	return list[(n-1)/2], list[(n*9+9)/10-1], list[n-1]
}
